// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an exchange goes by MPI. All processes first tell each other in one block which exchange it
// is, with its elements if they are few. Of many, each process gets a part from all, combines it
// in the fixed tree and gives it to all. What MPI reads and writes is memory of this object: it
// may do so after the world has ended, when nobody waits any more.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/ext/mpi_roster.hpp"
#include "xla/kernel/replica_sum.hpp"
#include "xla/run/world/exchange_summary.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::mpi::detail {

/// Carries one exchange after another between the processes of a communicator, which have the same
/// ones in the same order.
class carrier {
 public:
  /// fast: sums of many elements are MPI's, in an order of its choice.
  carrier(MPI_Comm comm, bool fast) : comm_(comm), fast_(fast) {}
  ~carrier() {
    // After the end of the world MPI may still write here.
    if (request_ != MPI_REQUEST_NULL) new memory(std::move(memory_));
  }
  carrier(const carrier&) = delete;
  carrier& operator=(const carrier&) = delete;

  /// Begins what the replicas of this process have started, in the order of their ordinals. All
  /// stay where they are until it is done.
  void begin(const roster& all, std::span<const started> own) {
    all_ = &all;
    own_ = own;
    about_ = summary_of(own[0].what);
    how_ = about_.how == reduce_type::mean ? reduce_type::sum : about_.how;
    size_ = size_of(about_.type);
    piece_ = 0;
    at_ = 0;
    next_ = &carrier::say_what;
  }
  /// Goes on as far as it can without waiting; true when nothing is left. It reads and writes
  /// elements under the lock, and only until `over`. Throws replica_error where replicas do
  /// different things, xla::runtime_error where MPI fails.
  bool advance(std::mutex& elements, const std::atomic<bool>& over) {
    while (next_) {
      if (request_ != MPI_REQUEST_NULL) {
        int done = 0;
        check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (!done) return false;
      }
      const std::lock_guard hold(elements);
      if (over.load(std::memory_order_acquire)) return false;
      (this->*std::exchange(next_, nullptr))();
    }
    return true;
  }

 private:
  using kind = exchange::kind;
  using step = void (carrier::*)();
  struct memory {
    std::vector<std::byte> send, receive, result;
    std::vector<int> send_counts, send_places, counts, places;  // bytes, by rank
  };
  static constexpr std::int64_t most_bytes = std::int64_t{32} << 20;  // of what is under way
  static constexpr std::int64_t header = 64;
  static_assert(sizeof(exchange_summary) <= header);

  int ranks() const { return all_->ranks(); }
  int world_size() const { return all_->world_size(); }
  /// Sums that rank r gives: one for each unit of its replicas.
  int parts(int r) const { return all_->devices(r) / all_->unit; }
  int all_parts() const { return world_size() / all_->unit; }
  const exchange_piece& piece(int own, int p) const {
    return own_[static_cast<std::size_t>(own)].pieces[static_cast<std::size_t>(p)];
  }
  const std::byte* in(int own, int p, std::int64_t at) const {
    return static_cast<const std::byte*>(piece(own, p).in) + at * size_;
  }
  std::byte* out(int own, int p, std::int64_t at) const {
    return static_cast<std::byte*>(piece(own, p).out) + at * size_;
  }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count * size_); }
  static void grow(std::size_t bytes, std::vector<std::byte>& v) {
    if (v.size() < bytes) v.resize(bytes);
  }
  void room_for(std::int64_t count, std::vector<std::byte>& v) const { grow(bytes(count), v); }

  /// Elements [begin, begin + count) of all pieces behind each other, as f(piece, at, count, done).
  template <class F>
  void each_run(std::int64_t begin, std::int64_t count, F f) const {
    std::int64_t done = 0;
    for (int p = 0; done < count; ++p) {
      const std::int64_t here = piece(0, p).count;
      if (begin >= here) {
        begin -= here;
        continue;
      }
      const std::int64_t some = std::min(here - begin, count - done);
      f(p, begin, some, done);
      done += some;
      begin = 0;
    }
  }
  /// The sum over a unit of this process's replicas.
  void combine_own(int part, int p, std::int64_t at, std::int64_t count, std::byte* to) {
    sources_.clear();
    for (int i = 0; i < all_->unit; ++i) sources_.push_back(in(part * all_->unit + i, p, at));
    kernel::sum_replicas(how_, about_.type, sources_.data(), all_->unit, count, to);
  }
  /// What the sums of all parts, in sources_, are together.
  void combine_all(std::int64_t count, std::byte* to) {
    kernel::sum_replicas(how_, about_.type, sources_.data(), all_parts(), count, to);
    finish_mean(count, to);
  }
  void finish_mean(std::int64_t count, std::byte* to) const {
    if (about_.how != reduce_type::mean) return;
    about_.type == dtype::float64 ? scale<double>(count, to) : scale<float>(count, to);
  }
  template <class T>
  void scale(std::int64_t count, std::byte* to) const {
    const T by = T(1) / static_cast<T>(world_size());
    const auto x = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i) x[i] *= by;
  }
  void hand_out(std::int64_t begin, std::int64_t count, const std::byte* from) const {
    for (int i = 0; i < all_->own(); ++i)
      each_run(begin, count, [&](int p, std::int64_t at, std::int64_t some, std::int64_t done) {
        std::memcpy(out(i, p, at), from + done * size_, bytes(some));
      });
  }

  // The first block: what it is, and few elements.

  void say_what() {
    for (std::size_t i = 1; i < own_.size(); ++i)
      if (const auto other = summary_of(own_[i].what); !same(other, about_))
        refuse(all_->at(all_->rank) + static_cast<int>(i), other, about_);
    const std::int64_t room = ranks() <= 64 ? 512 - header : 0;
    most_parts_ = all_->most() / all_->unit;
    with_header_ = about_.what == kind::all_reduce && about_.elements * size_ * most_parts_ <= room;
    const auto block = static_cast<std::size_t>(header + room);  // of one size, whatever others do
    std::vector<std::byte>& send = memory_.send;
    grow(block, send);
    grow(block * static_cast<std::size_t>(ranks()), memory_.receive);
    std::memcpy(send.data(), &about_, sizeof about_);
    for (int j = 0; with_header_ && j < parts(all_->rank); ++j)
      each_run(0, about_.elements, [&](int p, std::int64_t at, std::int64_t some, std::int64_t d) {
        combine_own(j, p, at, some, send.data() + header + (j * about_.elements + d) * size_);
      });
    const int n = block_ = static_cast<int>(block);
    check(MPI_Iallgather(send.data(), n, MPI_BYTE, memory_.receive.data(), n, MPI_BYTE, comm_,
                         &request_),
          "MPI_Iallgather");
    next_ = &carrier::hear_what;
  }
  void hear_what() {
    const auto block_of = [&](std::int64_t r) { return memory_.receive.data() + r * block_; };
    const auto told_by = [&](int r) {
      exchange_summary s;
      std::memcpy(&s, block_of(r), sizeof s);
      return s;
    };
    const exchange_summary first = told_by(0);
    for (int r = 1; r < ranks(); ++r)
      if (const auto other = told_by(r); !same(other, first)) refuse(all_->at(r), other, first);
    if (!with_header_) return go_on();
    std::byte result[512];
    sources_.clear();
    for (int r = 0; r < ranks(); ++r)
      for (int j = 0; j < parts(r); ++j)
        sources_.push_back(block_of(r) + header + j * about_.elements * size_);
    combine_all(about_.elements, result);
    hand_out(0, about_.elements, result);
  }
  [[noreturn]] void refuse(int ordinal, const exchange_summary& other,
                           const exchange_summary& first) const {
    const std::string why =
        how_it_differs(other, first, "replica 0") + "; all replicas have to do the same";
    std::rethrow_exception(
        error_of_replica(ordinal, world_size(), std::make_exception_ptr(runtime_error(why))));
  }

  // Then all elements, as many at a time as there is memory for.

  void go_on() {
    if (about_.what == kind::barrier) return;
    const bool reduces = about_.what == kind::all_reduce;
    if (!reduces)
      for (; piece_ < own_[0].what.piece_count && at_ == piece(0, piece_).count; at_ = 0) ++piece_;
    const bool at_end = reduces ? at_ == about_.elements : piece_ == own_[0].what.piece_count;
    if (at_end) return;
    const std::int64_t width = reduces ? most_parts_ : all_->most() * world_size();
    some_ = std::min(std::max<std::int64_t>(1, most_bytes / size_ / width),
                     (reduces ? about_.elements : piece(0, piece_).count) - at_);
    switch (about_.what) {
      case kind::all_reduce: return fast_ ? reduce_fast() : reduce();
      case kind::all_gather: return gather();
      case kind::broadcast: return broadcast();
      default: return send_parts();
    }
  }
  void next_some() {
    at_ += some_;
    go_on();
  }

  /// Where the part of rank r begins, of what is under way.
  std::int64_t cut(int r) const { return some_ * r / ranks(); }

  void reduce() {
    begin_parts(parts(all_->rank) * some_);
    for (int r = 0; r < ranks(); ++r) {
      for (int j = 0; j < parts(all_->rank); ++j)
        each_run(at_ + cut(r), cut(r + 1) - cut(r),
                 [&](int p, std::int64_t at, std::int64_t some, std::int64_t) {
                   combine_own(j, p, at, some, add(some));
                 });
      end_part(parts(r) * (cut(all_->rank + 1) - cut(all_->rank)));
    }
    exchange_parts(&carrier::reduce_part);
  }
  void reduce_part() {
    const int own = all_->rank;
    const std::int64_t count = cut(own + 1) - cut(own);
    sources_.clear();
    for (int i = 0; i < all_parts(); ++i)
      sources_.push_back(memory_.receive.data() + i * count * size_);
    room_for(some_, memory_.result);
    combine_all(count, memory_.result.data() + cut(own) * size_);
    gather_result([&](int r) { return cut(r); }, &carrier::hand_out_sum);
  }
  void hand_out_sum() {
    hand_out(at_, some_, memory_.result.data());
    next_some();
  }

  void reduce_fast() {
    room_for(some_, memory_.send);
    room_for(some_, memory_.result);
    each_run(at_, some_, [&](int p, std::int64_t at, std::int64_t some, std::int64_t done) {
      sources_.clear();
      for (int i = 0; i < all_->own(); ++i) sources_.push_back(in(i, p, at));
      kernel::sum_replicas(how_, about_.type, sources_.data(), all_->own(), some,
                           memory_.send.data() + done * size_);
    });
    const MPI_Datatype type = about_.type == dtype::float32   ? MPI_FLOAT
                              : about_.type == dtype::float64 ? MPI_DOUBLE
                                                              : MPI_INT64_T;
    const MPI_Op op = how_ == reduce_type::sum       ? MPI_SUM
                      : how_ == reduce_type::product ? MPI_PROD
                      : how_ == reduce_type::max     ? MPI_MAX
                                                     : MPI_MIN;
    check(MPI_Iallreduce(memory_.send.data(), memory_.result.data(), static_cast<int>(some_), type,
                         op, comm_, &request_),
          "MPI_Iallreduce");
    next_ = &carrier::hand_out_fast;
  }
  void hand_out_fast() {
    finish_mean(some_, memory_.result.data());
    hand_out_sum();
  }

  void gather() {
    room_for(some_ * world_size(), memory_.result);
    for (int i = 0; i < all_->own(); ++i)
      std::memcpy(memory_.result.data() + (all_->at(all_->rank) + i) * some_ * size_,
                  in(i, piece_, at_), bytes(some_));
    gather_result([&](int r) { return all_->at(r) * some_; }, &carrier::hand_out_gathered);
  }
  void hand_out_gathered() {
    const std::int64_t count = piece(0, piece_).count;
    for (int i = 0; i < all_->own(); ++i)
      for (int o = 0; o < world_size(); ++o)
        std::memcpy(out(i, piece_, o * count + at_), memory_.result.data() + o * some_ * size_,
                    bytes(some_));
    next_some();
  }
  /// All get the parts of result that the ranks have: rank r's begins at place(r).
  template <class Place>
  void gather_result(Place place, step next) {
    memory_.counts.clear();
    memory_.places.clear();
    for (int r = 0; r < ranks(); ++r) {
      memory_.places.push_back(static_cast<int>(place(r) * size_));
      memory_.counts.push_back(static_cast<int>((place(r + 1) - place(r)) * size_));
    }
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory_.result.data(),
                          memory_.counts.data(), memory_.places.data(), MPI_BYTE, comm_, &request_),
          "MPI_Iallgatherv");
    next_ = next;
  }

  void broadcast() {
    const int root = all_->rank_of(about_.root);
    room_for(some_, memory_.result);
    if (root == all_->rank)
      std::memcpy(memory_.result.data(), in(about_.root - all_->at(root), piece_, at_),
                  bytes(some_));
    check(MPI_Ibcast(memory_.result.data(), static_cast<int>(bytes(some_)), MPI_BYTE, root, comm_,
                     &request_),
          "MPI_Ibcast");
    next_ = &carrier::hand_out_root;
  }
  void hand_out_root() {
    for (int i = 0; i < all_->own(); ++i)
      std::memcpy(out(i, piece_, at_), memory_.result.data(), bytes(some_));
    next_some();
  }

  /// Whether a replica of rank `from` sends to one of rank `to`.
  bool joins(const replica_pair& p, int from, int to) const {
    return all_->rank_of(p.from) == from && all_->rank_of(p.to) == to;
  }
  /// reduce_scatter, all_to_all and permute: each rank has something for each other.
  void send_parts() {
    const int own = all_->rank;
    const std::int64_t count = piece(0, piece_).count;
    begin_parts(all_->own() * world_size() * some_);
    for (int r = 0; r < ranks(); ++r) {
      std::int64_t come = 0;
      if (about_.what == kind::permute) {
        for (const replica_pair& p : own_[0].pairs) {
          if (joins(p, own, r))
            std::memcpy(add(some_), in(p.from - all_->at(own), piece_, at_), bytes(some_));
          come += joins(p, r, own);
        }
      } else {
        const bool sums = about_.what == kind::reduce_scatter;
        for (int i = 0; i < (sums ? parts(own) : all_->own()); ++i)
          for (int o = all_->at(r); o < all_->at(r + 1); ++o) {
            const std::int64_t at = o * count + at_;
            if (sums) combine_own(i, piece_, at, some_, add(some_));
            else std::memcpy(add(some_), in(i, piece_, at), bytes(some_));
          }
        come = std::int64_t{sums ? parts(r) : all_->devices(r)} * all_->own();
      }
      end_part(come * some_);
    }
    exchange_parts(&carrier::take_parts);
  }
  void take_parts() {
    const int own = all_->rank;
    const std::int64_t count = piece(0, piece_).count;
    const std::byte* from = memory_.receive.data();
    const auto take = [&] { return std::exchange(from, from + bytes(some_)); };
    if (about_.what == kind::permute) {
      for (int i = 0; i < all_->own(); ++i) std::memset(out(i, piece_, at_), 0, bytes(some_));
      for (int r = 0; r < ranks(); ++r)
        for (const replica_pair& p : own_[0].pairs)
          if (joins(p, r, own))
            std::memcpy(out(p.to - all_->at(own), piece_, at_), take(), bytes(some_));
    } else if (about_.what == kind::all_to_all) {
      for (int o = 0; o < world_size(); ++o)
        for (int i = 0; i < all_->own(); ++i)
          std::memcpy(out(i, piece_, o * count + at_), take(), bytes(some_));
    } else {
      for (int i = 0; i < all_->own(); ++i) {
        sources_.clear();
        for (int j = 0; j < all_parts(); ++j)
          sources_.push_back(from + (j * all_->own() + i) * some_ * size_);
        combine_all(some_, out(i, piece_, at_));
      }
    }
    next_some();
  }

  void begin_parts(std::int64_t most) {
    room_for(most, memory_.send);
    for (auto* list :
         {&memory_.send_counts, &memory_.send_places, &memory_.counts, &memory_.places})
      list->clear();
    sent_ = part_ = received_ = 0;
  }
  /// Room for so many elements more, for the rank of the moment.
  std::byte* add(std::int64_t count) {
    sent_ += static_cast<int>(bytes(count));
    return memory_.send.data() + sent_ - bytes(count);
  }
  /// What was added since the last time is for the next rank, which sends so many elements.
  void end_part(std::int64_t come) {
    memory_.send_places.push_back(part_);
    memory_.send_counts.push_back(sent_ - part_);
    memory_.places.push_back(received_);
    memory_.counts.push_back(static_cast<int>(bytes(come)));
    part_ = sent_;
    received_ += memory_.counts.back();
  }
  void exchange_parts(step next) {
    room_for(received_ / size_, memory_.receive);
    check(MPI_Ialltoallv(memory_.send.data(), memory_.send_counts.data(),
                         memory_.send_places.data(), MPI_BYTE, memory_.receive.data(),
                         memory_.counts.data(), memory_.places.data(), MPI_BYTE, comm_, &request_),
          "MPI_Ialltoallv");
    next_ = next;
  }

  const MPI_Comm comm_;
  const bool fast_;
  const roster* all_ = nullptr;
  std::span<const started> own_;
  exchange_summary about_;
  reduce_type how_ = reduce_type::sum;  // as far as the tree goes
  std::int64_t size_ = 0;               // of an element
  int most_parts_ = 1;
  int block_ = 0;  // bytes
  bool with_header_ = false;
  int piece_ = 0;          // that is under way; an all_reduce has all behind each other
  std::int64_t at_ = 0;    // elements that are done, of the piece or of all
  std::int64_t some_ = 0;  // that are under way
  step next_ = nullptr;
  MPI_Request request_ = MPI_REQUEST_NULL;
  memory memory_;
  int sent_ = 0, part_ = 0, received_ = 0;  // bytes: all, where the rank's part begins
  std::vector<const void*> sources_;
};

}  // namespace xla::mpi::detail
