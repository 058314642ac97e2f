// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares the kernels of ops that draw random numbers; random_kernels.hpp defines them, and graphs
// need only declarations.

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/op/integers.hpp"
#include "xla/op/multinomial.hpp"

namespace xla::detail {

// Declared for the library's own types, as no program instantiates others.

template <class Out, class T>
struct kernel_of<op::uniform, Out, T> {
  static void run(const kernel_call& call);
};

template <class Out, class T>
struct kernel_of<op::normal, Out, T> {
  static void run(const kernel_call& call);
};

template <class Out, class T>
struct kernel_of<op::integers, Out, T> {
  static void run(const kernel_call& call);
};

template <class Out, class T>
struct kernel_of<op::permutation, Out, T> {
  static void run(const kernel_call& call);
};

template <class Out, class T>
struct kernel_of<op::check_probabilities, Out, T> {
  static void run(const kernel_call& call);
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/kernel/op/random_kernels.hpp"
#endif
