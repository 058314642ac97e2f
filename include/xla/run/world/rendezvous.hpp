// SPDX-License-Identifier: Apache-2.0
#pragma once

// One exchange of replicas that share memory, such as the sum of a gradient: all waiting threads
// take part in computing it. Only thread_world.hpp uses it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/reduce/replica_sum.hpp"
#include "xla/run/world/exchange_summary.hpp"

namespace xla::detail {

/// One exchange of replicas that share memory. Once all have arrived, the waiting ones compute
/// chunks of it, each chunk for all replicas, until none is left. So neither an early nor a slow
/// replica delays others, and each element is combined and distributed in one pass.
template <class In>
class basic_rendezvous {
 public:
  explicit basic_rendezvous(int replicas) : from_(replicas) {}

  void begin() {
    arrived_ = left_ = 0;
    complete_.store(false, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    for (contribution& c : from_) c.came = false;
  }
  /// Registers a replica; the caller holds the world's lock. True for the last one.
  bool arrive(int ordinal, const exchange& e) {
    contribution& c = from_[ordinal];
    c.pieces.assign(0, {});
    c.pieces.append(e.pieces, e.pieces + e.piece_count);
    c.about = summary_of(e, ordinal);
    c.came = true;
    if (++arrived_ < from_.size()) return false;
    prepare(e);
    return true;
  }
  /// The first replica whose exchange differs from earlier ones, whose summary is `all`; -1 if all
  /// agree.
  int mismatch(exchange_summary& all) const {
    all = from_[0].about;
    for (int i = 1; i < from_.size(); ++i) {
      if (!same(from_[i].about, all)) return i;
      add_program(all, from_[i].about);
    }
    return -1;
  }
  void open() { complete_.store(true, std::memory_order_release); }
  bool complete() const { return complete_.load(std::memory_order_acquire); }
  void leave() { ++left_; }
  bool empty() const { return left_ == from_.size(); }  ///< all have left
  bool came(int ordinal) const { return from_[ordinal].came; }
  const exchange_summary& about(int ordinal) const { return from_[ordinal].about; }

  std::int64_t chunks() const { return chunks_; }
  bool done() const { return done_.load(std::memory_order_acquire) == chunks_; }
  /// Computes chunks until none is left or the world is `over`.
  void work(const std::atomic<bool>& over) {
    list<const void*> sources(from_.size());
    for (std::int64_t c; !over.load(std::memory_order_seq_cst) &&
                         (c = next_.fetch_add(1, std::memory_order_relaxed)) < chunks_;) {
      each_part(c * chunk, std::min((c + 1) * chunk, units_), sources);
      done_.fetch_add(1, std::memory_order_acq_rel);
    }
  }

 private:
  using kind = exchange::kind;
  static constexpr std::int64_t chunk = 16384;  ///< elements
  struct contribution {
    exchange_summary about;
    list<exchange_piece> pieces;
    bool came = false;
  };

  void prepare(const exchange& e) {
    pairs_.assign(0, {});
    pairs_.append(e.pairs, e.pairs + e.pair_count);
    run_ = e.run;
    blocks_ = e.what == kind::reduce_scatter ? from_.size() : 1;
    begins_.assign(0, 0);
    units_ = 0;
    for (const exchange_piece& p : from_[0].pieces) {
      begins_.push_back(units_);
      units_ += p.count * blocks_;
    }
    chunks_ = (units_ + chunk - 1) / chunk;
  }
  /// Splits elements [from, to) of all pieces at the borders of pieces and blocks.
  void each_part(std::int64_t from, std::int64_t to, list<const void*>& sources) {
    int p =
        static_cast<int>(std::upper_bound(begins_.begin(), begins_.end(), from) - begins_.begin()) -
        1;
    for (; from < to; ++p) {
      const std::int64_t count = from_[0].pieces[p].count;
      const std::int64_t end = std::min(to, begins_[p] + count * blocks_);
      while (from < end) {
        const std::int64_t at = from - begins_[p], block = at / count;
        const std::int64_t some = std::min(end - from, count - at % count);
        run_part(p, block, at % count, some, sources);
        from += some;
      }
    }
  }
  void run_part(int piece, std::int64_t block, std::int64_t at, std::int64_t count,
                list<const void*>& sources) {
    const std::int64_t size = from_[0].pieces[piece].count;
    const int all = from_.size();
    switch (from_[0].about.what) {
      case kind::all_reduce: return combine(piece, at, at, 0, all, count, sources);
      case kind::reduce_scatter: {
        const int owner = static_cast<int>(block);
        return combine(piece, block * size + at, at, owner, owner + 1, count, sources);
      }
      case kind::all_gather:
        for (int s = 0; s < all; ++s)
          for (int r = 0; r < all; ++r) move(piece, s, at, r, s * size + at, count);
        return;
      case kind::all_to_all:
        for (int s = 0; s < all; ++s)
          for (int r = 0; r < all; ++r) move(piece, s, r * size + at, r, s * size + at, count);
        return;
      case kind::broadcast:
        for (int r = 0; r < all; ++r) move(piece, from_[0].about.root, at, r, at, count);
        return;
      case kind::permute: return permute(piece, at, count);
      case kind::program: return run_program(piece);
      case kind::barrier: return;
    }
  }
  /// Combines the elements at `from` of all replicas into those of replicas [first, last) at `to`.
  /// It uses a buffer, because `to` may be part of a source.
  void combine(int piece, std::int64_t from, std::int64_t to, int first, int last,
               std::int64_t count, list<const void*>& sources) {
    constexpr std::int64_t block = 1024;
    alignas(64) std::byte result[block * 8];
    const exchange_summary& e = from_[0].about;
    const std::int64_t size = size_of(e.type);
    for (std::int64_t i = 0; i < count; i += block) {
      const std::int64_t some = std::min(block, count - i);
      for (int r = 0; r < from_.size(); ++r) sources[r] = in(r, piece, from + i);
      kernel::sum_replicas(e.how, e.type, sources.data(), from_.size(), some, result);
      for (int r = first; r < last; ++r)
        std::memcpy(out(r, piece, to + i), result, static_cast<std::size_t>(some * size));
    }
  }
  void move(int piece, int source, std::int64_t from, int target, std::int64_t to,
            std::int64_t count) {
    const void* const a = in(source, piece, from);
    void* const b = out(target, piece, to);
    if (a != b) std::memcpy(b, a, static_cast<std::size_t>(count * size_of(from_[0].about.type)));
  }
  void permute(int piece, std::int64_t at, std::int64_t count) {
    for (int r = 0; r < from_.size(); ++r) {
      int source = -1;
      for (const replica_pair& p : pairs_)
        if (p.to == r) source = p.from;
      if (source >= 0) move(piece, source, at, r, at, count);
      else
        std::memset(out(r, piece, at), 0,
                    static_cast<std::size_t>(count * size_of(from_[0].about.type)));
    }
  }
  void run_program(int piece) {
    list<void*> shares;
    for (int r = 0; r < from_.size(); ++r) shares.push_back(out(r, piece, 0));
    run_(shares.data(), from_.size());
  }
  const void* in(int replica, int piece, std::int64_t at) const {
    return static_cast<const std::byte*>(from_[replica].pieces[piece].in) +
           at * size_of(from_[replica].about.type);
  }
  void* out(int replica, int piece, std::int64_t at) const {
    return static_cast<std::byte*>(from_[replica].pieces[piece].out) +
           at * size_of(from_[replica].about.type);
  }

  list<contribution> from_;  // by ordinal
  list<replica_pair> pairs_;
  void (*run_)(void* const*, int) = nullptr;  // of a program
  list<std::int64_t> begins_;                 // of the pieces, among all elements
  std::int64_t units_ = 0, chunks_ = 0, blocks_ = 1;
  int arrived_ = 0, left_ = 0;
  std::atomic<bool> complete_{false};
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::int64_t> done_{0};
};
using rendezvous = basic_rendezvous<void>;

}  // namespace xla::detail
