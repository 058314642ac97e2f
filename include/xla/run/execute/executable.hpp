// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface to anything that runs a program at given sizes: a native plan, the interpreter,
// XLA. Compiled functions and traced graphs hold executables and know no more of backends.

#include <cstdint>
#include <memory>

#include "xla/base/dependent.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::detail {

class backend;
template <class>
class basic_planned;

/// The input of a run for a slot: its value and its gradient at entry, nullptr if the program reads
/// none; or a number.
struct slot_value {
  buffer* value = nullptr;
  buffer* gradient = nullptr;
  double number = 0;
};

/// The inputs and outputs of one run.
struct run_arguments {
  const slot_value* slots = nullptr;
  /// The new values of the writes, then the results. For a write that sized_program::in_place
  /// allows, it may be the buffer of the value at entry.
  buffer* const* outputs = nullptr;
  const rng_state* random = nullptr;  ///< per random op
};

/// Runs a program at given sizes on the buffers of a call; compile() and sync() hold one.
/// Concurrent runs share nothing but this.
template <class In>
class basic_executable {
 public:
  virtual ~basic_executable() = default;
  basic_executable(const basic_executable&) = delete;
  basic_executable& operator=(const basic_executable&) = delete;

  virtual const dependent<In, sized_program>& about() const = 0;
  /// Throws if a check fails or memory runs out; then no output that someone else can see has been
  /// written.
  virtual void run(const run_arguments& with) = 0;
  /// Runs only the checks of arguments, and throws their errors. False if other checks depend on
  /// values that the program computes. It does not use the outputs.
  virtual bool check(const run_arguments& with) = 0;
  virtual MemoryAnalysis memory() const = 0;
  /// The bytes that it takes itself on the host, as far as the library knows.
  virtual std::int64_t bytes() const { return bytes_of_sizes<In>(about()); }
  /// This object if it is a plan; else nullptr.
  virtual dependent<In, basic_planned<void>>* as_plan() { return nullptr; }
  /// The backend that made it; nullptr: the native one.
  const backend* made_by() const { return made_by_; }
  /// The memory space of its outputs, in buffers whose owners it sets. nullptr: the host.
  const memory_space* space() const { return space_; }
  /// Whether it reads a buffer as it is; otherwise it needs it row-major on the host
  /// (buffer::host_copy).
  bool takes(const buffer& b) const { return space_ && b.space == space_; }

 protected:
  explicit basic_executable(const backend* by, const memory_space* space = nullptr)
      : made_by_(by), space_(space) {}

 private:
  const backend* made_by_;
  const memory_space* space_;
};
using executable = basic_executable<void>;

/// An executable that a compiled function caches for calls with such arguments.
template <class In>
struct basic_cached_executable {
  std::shared_ptr<basic_executable<In>> made;
  std::int64_t bytes;
  std::uint64_t used;  ///< time of the last lookup after another entry's
  int hash;
  std::uint64_t family;  ///< of signatures that differ in numbers of steps alone; 0: no family
};

}  // namespace xla::detail
