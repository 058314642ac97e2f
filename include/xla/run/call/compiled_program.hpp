// SPDX-License-Identifier: Apache-2.0
#pragma once

// What xla::compile() is given and what the compiler makes: the options, and a program at given
// argument types behind one untyped pointer. static_program.hpp fills that in, and
// compiled_calls.hpp runs it.

#include <cstdint>
#include <string>

#include "xla/kernel/call.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/call/arguments.hpp"
#include "xla/transform/program.hpp"

namespace xla {

/// How a function is compiled.
struct CompileOptions {
  std::string name = "step";  ///< in the metrics report and in XLA_DEBUG's output
  /// Different argument shapes that are specialised; one more is refused. Numbers of steps of loops
  /// are none of their own: as many plans stay, and of those that differ in numbers of steps alone
  /// the one goes that was used longest ago. Where a backend runs the function, each number counts.
  int max_signatures = 64;
  /// Convolutions may use Winograd's algorithm; see set_winograd(). In the body of another compiled
  /// function that one's option holds.
  bool winograd = true;
  Backend backend =
      {};  ///< what runs it, as xla::pjrt("CPU"); in another one's body that one's does
};

}  // namespace xla

namespace xla::detail {

/// What the C++ compiler has made of a function at given argument types.
struct compiled_program {
  program source;
  const region_kernel* kernels;
  const program* ops;  ///< the same for backends; nullptr where the program links none
  const double* facts;
  const std::int8_t* flags;  ///< per fact: 1 or -1 where the body sets a training flag; or nullptr
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
