// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transport of one exchange over MPI. First all processes send each other a block that says
// which exchange it is; it contains the elements if they are few. MPI reads and writes memory that
// this object owns, because it may do so after the world has ended and nobody waits any more.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/ext/mpi_contribution.hpp"
#include "xla/ext/mpi_messages.hpp"
#include "xla/ext/mpi_reduction.hpp"

namespace xla::mpi::detail {

/// Carries out exchanges one after the other between the processes of a communicator. All processes
/// have the same exchanges in the same order.
class transport {
 public:
  /// fast: leaves sums of many elements to MPI, which chooses their order, so that bits may vary.
  transport(MPI_Comm comm, bool fast)
      : comm_(comm), fast_(fast), chunks_(comm), in_flight_(comm, 0) {}
  ~transport() {
    // MPI may still write here after the end of the world, so this memory is never freed.
    if (!in_flight_.empty()) new memory(std::move(memory_));
  }
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  /// Begins an exchange that the replicas of this process have started, in the order of their
  /// ordinals. Their elements must stay valid until it is done.
  void begin(const process_map& all, std::span<const started> own) {
    x_.begin(all, own);
    piece_ = 0;
    at_ = 0;
    next_ = &transport::send_headers;
  }
  /// Continues as far as possible without waiting; true when nothing is left. It accesses elements
  /// under the lock, and only until `over`, the end of the world. moved: set if there was progress.
  /// Throws replica_error if replicas do different things, xla::runtime_error if MPI fails.
  bool advance(sys::mutex& elements, const std::atomic<bool>& over, bool& moved) {
    const auto touch = [&](auto f) {
      const std::lock_guard hold(elements);
      if (over.load(std::memory_order_acquire)) return false;
      f();
      return moved = true;
    };
    while (next_)
      if (!in_flight_.done() || !touch([&] { (this->*std::exchange(next_, nullptr))(); }))
        return false;
    return chunks_.advance(touch);
  }
  /// Lets MPI make progress on messages that it has accepted.
  void poll() const noexcept {
    int any = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &any, MPI_STATUS_IGNORE);
  }

 private:
  using kind = exchange::kind;
  using step = void (transport::*)();
  struct memory {
    message_memory headers, send, receive, result;
    std::vector<int> send_counts, send_offsets, counts, offsets;  // bytes, by rank
  };
  static constexpr std::int64_t max_bytes = std::int64_t{32} << 20;  // of the exchange in flight
  static constexpr std::int64_t header = 64;
  static_assert(sizeof(exchange_summary) <= header);
  /// Up to this many processes send each other messages; more use MPI_Iallgather.
  static constexpr int max_pairwise = 8;

  int ranks() const { return x_.ranks(); }
  std::size_t bytes(std::int64_t count) const { return x_.bytes(count); }
  std::int64_t size() const { return x_.element_size(); }
  const process_map& all() const { return x_.all(); }
  kind what() const { return x_.about().what; }
  std::byte* block_of(int r) { return memory_.headers.data() + r * block_; }

  // The first block: the kind of the exchange, and few elements.

  void send_headers() {
    exchange_summary about = x_.about();
    const int first = all().at(all().rank);
    for (int i = 1; i < all().own(); ++i) compare(first + i, x_.about(i), about, first);
    // The block has the same size on all processes.
    block_ = ranks() <= max_pairwise ? sent_at_once : ranks() <= 64 ? 512 : header;
    const std::int64_t content = about.elements * size() * x_.max_parts();
    with_header_ = what() == kind::all_reduce && content <= block_ - header;
    memory_.headers.room(block_ * ranks());
    std::memcpy(block_of(all().rank), &about, sizeof about);
    if (with_header_) x_.combine_all_own(0, about.elements, block_of(all().rank) + header);
    ranks() <= max_pairwise ? send_header_to_each() : allgather_headers();
    next_ = &transport::check_headers;
    // Chunks are read only after all processes have reported.
    if (in_chunks()) chunks_.begin(x_);
  }
  bool in_chunks() const { return what() == kind::all_reduce && !with_header_ && !fast_; }
  void send_header_to_each() {
    const int own = all().rank;
    const std::int64_t content = x_.about().elements * size() * x_.parts(own);
    for (int r = 0; r < ranks(); ++r) {
      if (r == own) continue;
      in_flight_.receive(block_of(r), block_, r);
      in_flight_.send(block_of(own), header + (with_header_ ? content : 0), r);
    }
  }
  void allgather_headers() {
    const int n = static_cast<int>(block_);
    check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory_.headers.data(), n, MPI_BYTE,
                         comm_, &in_flight_.more()),
          "MPI_Iallgather");
  }
  void check_headers() {
    const auto header_of = [&](int r) {
      exchange_summary s;
      std::memcpy(&s, block_of(r), sizeof s);
      return s;
    };
    exchange_summary first = header_of(0);
    for (int r = 1; r < ranks(); ++r) compare(all().at(r), header_of(r), first, 0);
    if (with_header_) combine_parts_of_headers();
    else if (!in_chunks()) next_piece();
  }
  void combine_parts_of_headers() {
    const std::int64_t elements = x_.about().elements;
    parts_.clear();
    for (int r = 0; r < ranks(); ++r)
      for (int j = 0; j < x_.parts(r); ++j)
        parts_.push_back(block_of(r) + header + j * elements * size());
    x_.combine_for_own([&](int i) { return parts_[static_cast<std::size_t>(i)]; }, 0, elements);
  }
  /// Throws unless a replica's exchange equals those before it, beginning with `first`.
  void compare(int ordinal, const exchange_summary& its, exchange_summary& theirs,
               int first) const {
    if (!same(its, theirs))
      std::rethrow_exception(error_of_replica(
          ordinal, x_.world_size(),
          std::make_exception_ptr(runtime_error(how_it_differs(its, theirs, first)))));
    add_program(theirs, its);
  }

  // Then all elements outside of chunks, in pieces that fit the available memory.

  void next_piece() {
    if (what() == kind::barrier) return;
    const bool reduces = what() == kind::all_reduce;
    if (!reduces)
      for (; piece_ < x_.own()[0].what.piece_count && at_ == x_.piece(0, piece_).count; at_ = 0)
        ++piece_;
    const bool at_end =
        reduces ? at_ == x_.about().elements : piece_ == x_.own()[0].what.piece_count;
    if (at_end) return;
    const std::int64_t width = reduces ? x_.max_parts() : all().most() * x_.world_size();
    some_ = std::min(std::max<std::int64_t>(1, max_bytes / size() / width),
                     (reduces ? x_.about().elements : x_.piece(0, piece_).count) - at_);
    switch (what()) {
      case kind::all_reduce: return reduce_fast();
      case kind::all_gather: return gather();
      case kind::broadcast: return broadcast();
      default: return send_parts();
    }
  }
  void next_some() {
    at_ += some_;
    next_piece();
  }

  void reduce_fast() {
    memory_.send.room(some_ * size());
    memory_.result.room(some_ * size());
    x_.each_run(at_, some_, [&](int p, std::int64_t at, std::int64_t some, std::int64_t done) {
      sources_.clear();
      for (int i = 0; i < all().own(); ++i) sources_.push_back(x_.in(i, p, at));
      kernel::sum_replicas(x_.how(), x_.about().type, sources_.data(), all().own(), some,
                           memory_.send.data() + done * size());
    });
    const MPI_Datatype type = x_.about().type == dtype::float32   ? MPI_FLOAT
                              : x_.about().type == dtype::float64 ? MPI_DOUBLE
                                                                  : MPI_INT64_T;
    const MPI_Op op = x_.how() == reduce_type::sum       ? MPI_SUM
                      : x_.how() == reduce_type::product ? MPI_PROD
                      : x_.how() == reduce_type::max     ? MPI_MAX
                                                         : MPI_MIN;
    check(MPI_Iallreduce(memory_.send.data(), memory_.result.data(), static_cast<int>(some_), type,
                         op, comm_, &in_flight_.more()),
          "MPI_Iallreduce");
    next_ = &transport::distribute_fast;
  }
  void distribute_fast() {
    x_.finish_mean(some_, memory_.result.data());
    x_.distribute(at_, some_, memory_.result.data());
    next_some();
  }

  void gather() {
    memory_.result.room(some_ * size() * x_.world_size());
    for (int i = 0; i < all().own(); ++i)
      std::memcpy(memory_.result.data() + (all().at(all().rank) + i) * some_ * size(),
                  x_.in(i, piece_, at_), bytes(some_));
    gather_result([&](int r) { return all().at(r) * some_; }, &transport::distribute_gathered);
  }
  void distribute_gathered() {
    const std::int64_t count = x_.piece(0, piece_).count;
    for (int i = 0; i < all().own(); ++i)
      for (int o = 0; o < x_.world_size(); ++o)
        std::memcpy(x_.out(i, piece_, o * count + at_), memory_.result.data() + o * some_ * size(),
                    bytes(some_));
    next_some();
  }
  /// Every rank gets all parts of the result; rank r's begins at begin_of(r).
  template <class BeginOf>
  void gather_result(BeginOf begin_of, step next) {
    memory_.counts.clear();
    memory_.offsets.clear();
    for (int r = 0; r < ranks(); ++r) {
      memory_.offsets.push_back(static_cast<int>(begin_of(r) * size()));
      memory_.counts.push_back(static_cast<int>((begin_of(r + 1) - begin_of(r)) * size()));
    }
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory_.result.data(),
                          memory_.counts.data(), memory_.offsets.data(), MPI_BYTE, comm_,
                          &in_flight_.more()),
          "MPI_Iallgatherv");
    next_ = next;
  }

  void broadcast() {
    const int root = all().rank_of(x_.about().root);
    memory_.result.room(some_ * size());
    if (root == all().rank)
      std::memcpy(memory_.result.data(), x_.in(x_.about().root - all().at(root), piece_, at_),
                  bytes(some_));
    check(MPI_Ibcast(memory_.result.data(), static_cast<int>(bytes(some_)), MPI_BYTE, root, comm_,
                     &in_flight_.more()),
          "MPI_Ibcast");
    next_ = &transport::distribute_root;
  }
  void distribute_root() {
    for (int i = 0; i < all().own(); ++i)
      std::memcpy(x_.out(i, piece_, at_), memory_.result.data(), bytes(some_));
    next_some();
  }

  /// Whether a replica of rank `from` sends to one of rank `to`.
  bool joins(const replica_pair& p, int from, int to) const {
    return all().rank_of(p.from) == from && all().rank_of(p.to) == to;
  }
  /// For reduce_scatter, all_to_all and permute, in which each rank has a part for each other rank.
  void send_parts() {
    const int own = all().rank;
    const std::int64_t count = x_.piece(0, piece_).count;
    begin_parts(all().own() * x_.world_size() * some_);
    for (int r = 0; r < ranks(); ++r) {
      std::int64_t come = 0;
      if (what() == kind::permute) {
        for (const replica_pair& p : x_.own()[0].pairs) {
          if (joins(p, own, r))
            std::memcpy(add(some_), x_.in(p.from - all().at(own), piece_, at_), bytes(some_));
          come += joins(p, r, own);
        }
      } else {
        const bool sums = what() == kind::reduce_scatter;
        for (int i = 0; i < (sums ? x_.parts(own) : all().own()); ++i)
          for (int o = all().at(r); o < all().at(r + 1); ++o) {
            const std::int64_t at = o * count + at_;
            if (sums) x_.combine_own(i, piece_, at, some_, add(some_));
            else std::memcpy(add(some_), x_.in(i, piece_, at), bytes(some_));
          }
        come = std::int64_t{sums ? x_.parts(r) : all().devices(r)} * all().own();
      }
      end_part(come * some_);
    }
    exchange_parts(&transport::take_parts);
  }
  void take_parts() {
    const int own = all().rank;
    const std::int64_t count = x_.piece(0, piece_).count;
    const std::byte* from = memory_.receive.data();
    const auto take = [&] { return std::exchange(from, from + bytes(some_)); };
    if (what() == kind::permute) {
      for (int i = 0; i < all().own(); ++i) std::memset(x_.out(i, piece_, at_), 0, bytes(some_));
      for (int r = 0; r < ranks(); ++r)
        for (const replica_pair& p : x_.own()[0].pairs)
          if (joins(p, r, own))
            std::memcpy(x_.out(p.to - all().at(own), piece_, at_), take(), bytes(some_));
    } else if (what() == kind::all_to_all) {
      for (int o = 0; o < x_.world_size(); ++o)
        for (int i = 0; i < all().own(); ++i)
          std::memcpy(x_.out(i, piece_, o * count + at_), take(), bytes(some_));
    } else {
      for (int i = 0; i < all().own(); ++i) {
        const auto part = [&](int j) { return from + (j * all().own() + i) * some_ * size(); };
        x_.combine_all(part, some_, x_.out(i, piece_, at_));
      }
    }
    next_some();
  }

  void begin_parts(std::int64_t most) {
    memory_.send.room(most * size());
    for (auto* list :
         {&memory_.send_counts, &memory_.send_offsets, &memory_.counts, &memory_.offsets})
      list->clear();
    sent_ = part_ = received_ = 0;
  }
  /// Makes room for further elements of the current rank's part.
  std::byte* add(std::int64_t count) {
    sent_ += static_cast<int>(bytes(count));
    return memory_.send.data() + sent_ - bytes(count);
  }
  /// Ends the part of the current rank, which sends us this many elements.
  void end_part(std::int64_t come) {
    memory_.send_offsets.push_back(part_);
    memory_.send_counts.push_back(sent_ - part_);
    memory_.offsets.push_back(received_);
    memory_.counts.push_back(static_cast<int>(bytes(come)));
    part_ = sent_;
    received_ += memory_.counts.back();
  }
  void exchange_parts(step next) {
    memory_.receive.room(received_);
    check(
        MPI_Ialltoallv(memory_.send.data(), memory_.send_counts.data(), memory_.send_offsets.data(),
                       MPI_BYTE, memory_.receive.data(), memory_.counts.data(),
                       memory_.offsets.data(), MPI_BYTE, comm_, &in_flight_.more()),
        "MPI_Ialltoallv");
    next_ = next;
  }

  const MPI_Comm comm_;
  const bool fast_;
  exchange_contribution x_;
  chunked_reduction chunks_;
  messages in_flight_;
  memory memory_;
  std::int64_t block_ = 0;  // bytes
  bool with_header_ = false;
  int piece_ = 0;          // in flight; an all_reduce has all of them in order
  std::int64_t at_ = 0;    // elements that are done, of the piece or of all
  std::int64_t some_ = 0;  // in flight
  step next_ = nullptr;
  int sent_ = 0, part_ = 0, received_ = 0;  // offset in bytes, from the begin of all parts
  std::vector<const void*> sources_;
  std::vector<const std::byte*> parts_;
};

}  // namespace xla::mpi::detail
