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

/// What a slot brings to a run: its value and its gradient at entry, nullptr where the program
/// reads none; or a number.
struct slot_value {
  buffer* value = nullptr;
  buffer* gradient = nullptr;
  double number = 0;
};

/// What one run reads and writes.
struct run_arguments {
  const slot_value* slots = nullptr;
  /// The new values of the writes, then the results. Of a write that sized_program::in_place
  /// allows, it may be the buffer of the value at entry.
  buffer* const* outputs = nullptr;
  const rng_state* random = nullptr;  ///< per random op
};

/// Something that runs a program at some sizes on the buffers of a call: what compile() and sync()
/// hold. Runs at the same time have nothing in common but this.
template <class In>
class basic_executable {
 public:
  virtual ~basic_executable() = default;
  basic_executable(const basic_executable&) = delete;
  basic_executable& operator=(const basic_executable&) = delete;

  virtual const dependent<In, sized_program>& about() const = 0;
  /// Throws where a check fails, or without memory; then no output has been written in which
  /// somebody else could see it.
  virtual void run(const run_arguments& with) = 0;
  /// Throws what the checks of what comes with the arguments throw, and runs nothing else. False
  /// when there are other checks, that need what the program computes. Outputs are not looked at.
  virtual bool check(const run_arguments& with) = 0;
  virtual MemoryAnalysis memory() const = 0;
  /// What it takes itself, in bytes on the host, as far as the library knows.
  virtual std::int64_t bytes() const { return bytes_of_sizes<In>(about()); }
  /// This one, if it is a plan; nullptr otherwise.
  virtual dependent<In, basic_planned<void>>* as_plan() { return nullptr; }
  /// What has made it; nullptr: the planner.
  const backend* made_by() const { return made_by_; }
  /// Where it leaves what it writes, in buffers of that memory space that it gives their owners.
  /// nullptr: on the host.
  const memory_space* space() const { return space_; }
  /// Whether it reads a buffer as it is; any other it needs row by row on the host
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

/// An executable that a compiled function keeps for its next calls with such arguments.
template <class In>
struct basic_cached_executable {
  std::shared_ptr<basic_executable<In>> made;
  std::int64_t bytes;
  std::uint64_t used;  ///< when it was last found after another one
  int hash;
  std::uint64_t family;  ///< of signatures that differ in numbers of steps alone; 0: of no other
};

}  // namespace xla::detail
