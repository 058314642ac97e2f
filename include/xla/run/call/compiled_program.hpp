// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the compiler has made of a function at given argument types, behind one untyped pointer.
// static_program.hpp fills it in and compiled_calls.hpp runs it.

#include <cstdint>

#include "xla/kernel/call.hpp"
#include "xla/run/call/arguments.hpp"
#include "xla/transform/program.hpp"

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
