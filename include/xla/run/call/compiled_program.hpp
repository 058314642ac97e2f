// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of xla::compile(), and its output: a program at given argument types behind one
// untyped pointer. static_program.hpp makes the program, and compiled_calls.hpp runs it.

#include <cstdint>
#include <string>

#include "xla/kernel/call.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/call/arguments.hpp"
#include "xla/transform/program.hpp"

namespace xla {

/// Options of xla::compile().
struct CompileOptions {
  std::string name = "step";  ///< in the metrics report and in XLA_DEBUG's output
  /// The number of argument shapes that may be specialised; one more is refused. Numbers of steps
  /// of loops do not count: as many plans are kept, and of those that differ in numbers of steps
  /// alone the least recently used is evicted. If another backend runs the function, each number
  /// counts.
  int max_signatures = 64;
  /// Whether convolutions may use Winograd's algorithm; see set_winograd(). Inside another compiled
  /// function the outer function's option holds.
  bool winograd = true;
  Backend backend = {};  ///< the backend, as xla::pjrt("CPU"); the outer function's holds inside it
};

}  // namespace xla

namespace xla::detail {

/// The result of compiling a function at given argument types.
struct compiled_program {
  program source;
  const region_kernel* kernels;
  const program* ops;  ///< the same for other backends; nullptr if the program links none
  const double* facts;
  const std::int8_t* flags;  ///< per fact: 1 or -1 if the body sets a training flag; or nullptr
  void (*visit)(void* const* arguments, leaf_visitor& to);
  const node* forward;  ///< for a backward() outside; see forward_finder
  const int* forward_lists;
  int forward_count;

  const int* forward_inputs(const node& n) const {
    return n.arity > few_inputs ? forward_lists + n.in[0] : n.in;
  }
  const node& forward_result(int i) const {
    return forward[forward_count - source.count.results + i];
  }
};

}  // namespace xla::detail
