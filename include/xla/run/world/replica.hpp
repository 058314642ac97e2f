// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a transport: how the replicas of a world exchange elements. All of them begin
// the same exchanges in the same order, by whatever transport, and get the same bits. Elements at
// the same position are combined in one fixed tree of ordinals: tree(lo, hi) = tree(lo, lo + k) +
// tree(lo + k, hi), where k is the largest power of two below hi - lo
// (kernel/reduce/replica_sum.hpp).

#include <cstdint>
#include <exception>

#include "xla/op/collectives.hpp"
#include "xla/shape/dtype.hpp"

namespace xla::detail {

/// The memory of one exchange: this replica sends `in`, and its result goes to `out`. They do not
/// overlap, unless stated otherwise.
struct exchange_piece {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;  ///< elements: of one block, if there is one for each replica
  int parameter = -1;      ///< the number of the parameter whose gradient it is; -1: none
};

struct replica_pair {
  int from = 0, to = 0;
  friend constexpr bool operator==(replica_pair, replica_pair) = default;
};

/// The properties that must be equal on all replicas, as hashes; the error names the replica that
/// differs and the property.
struct fingerprint {
  std::uint64_t structure = 0;  ///< ops, their attributes, their inputs
  std::uint64_t sizes = 0;      ///< and element types, of all values
  std::uint64_t options = 0;    ///< passes, algorithms, instruction set
  std::uint64_t seed = 0;       ///< of random numbers
  friend constexpr bool operator==(const fingerprint&, const fingerprint&) = default;
};

/// An operation of all replicas of a world together.
struct exchange {
  enum class kind : std::uint8_t {
    all_reduce,      ///< out: all replicas' in, combined; may be in
    all_gather,      ///< out: a block for each replica, its in
    reduce_scatter,  ///< in: a block for each replica, which gets the combination of all replicas'
                     ///< blocks for it
    all_to_all,      ///< in: a block for each replica; out: one from each
    broadcast,       ///< out: the root's in; may be in
    permute,         ///< out: the in of the replica that sends to this one; zeros if none does
    /// A part of the results of a program that one replica runs for all; they share memory.
    program,
    barrier  ///< nothing: returns when all replicas have come
  };
  kind what = kind::barrier;
  reduce_type how = reduce_type::sum;  ///< of float32, float64 and int64; others only move
  dtype type = dtype::float32;
  int root = 0;
  const exchange_piece* pieces = nullptr;
  int piece_count = 0;
  const replica_pair* pairs = nullptr;
  int pair_count = 0;
  const fingerprint* program =
      nullptr;  ///< of the program whose step this is; none: only the sizes are compared
  /// For a program: runs it with the `out` of each replica's piece, by ordinal.
  void (*run)(void* const* shares, int replicas) = nullptr;
};

constexpr const char* name_of(exchange::kind what) {
  switch (what) {
    case exchange::kind::all_reduce: return "all_reduce";
    case exchange::kind::all_gather: return "all_gather";
    case exchange::kind::reduce_scatter: return "reduce_scatter";
    case exchange::kind::all_to_all: return "all_to_all";
    case exchange::kind::broadcast: return "broadcast";
    case exchange::kind::permute: return "collective_permute";
    case exchange::kind::program: return "a program of all replicas";
    default: return "barrier";
  }
}
/// Whether an exchange combines elements, or only moves them.
constexpr bool combines(exchange::kind what) {
  return what == exchange::kind::all_reduce || what == exchange::kind::reduce_scatter;
}

/// A replica's interface to its world. One thread at a time uses it.
class replica {
 public:
  const int ordinal, world_size;

  replica(int number, int size) : ordinal(number), world_size(size) {}
  replica(const replica&) = delete;
  virtual ~replica() = default;

  /// Begins an exchange and returns its ticket, which is not 0. It keeps copies of the exchange,
  /// its pieces and pairs; the elements belong to it until the wait.
  virtual std::uint64_t start(const exchange& e) = 0;
  /// Waits for an exchange; then `out` is complete. Throws replica_error when another replica has
  /// failed, does something else, or does not come in time.
  virtual void wait(std::uint64_t ticket) = 0;
  /// Ends the world: replicas that wait, now or later, throw the first error. After it returns, or
  /// a replica_error is thrown, nobody accesses this replica's elements any more. Code that leaves
  /// the scope of those elements by another exception must call it first.
  virtual void abort(std::exception_ptr why) noexcept = 0;
  /// Whether exchanges progress while nobody waits; if not, progress() must be called now and then.
  virtual bool progresses_alone() const noexcept = 0;
  virtual void progress() noexcept {}
  /// Whether all replicas are threads of this process, so that one can run a program for all.
  virtual bool shares_memory() const noexcept { return false; }

  /// Starts an exchange and waits for it.
  virtual void run(const exchange& e) { wait(start(e)); }
};

}  // namespace xla::detail
