// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/call.hpp"
#include "xla/kernel/philox.hpp"
#include "xla/op/integers.hpp"

namespace xla::detail {

template <class Out, class T>
struct kernel_of<op::uniform, Out, T> {
  static void run(const kernel_call& call) {
    fill_uniform(static_cast<T*>(call.out), count(*call.out_shape), call.seed, call.offset);
  }
};

template <class Out, class T>
struct kernel_of<op::normal, Out, T> {
  static void run(const kernel_call& call) {
    fill_normal(static_cast<T*>(call.out), count(*call.out_shape), call.seed, call.offset);
  }
};

template <class Out, class T>
struct kernel_of<op::integers, Out, T> {
  static void run(const kernel_call& call) {
    fill_integers(static_cast<T*>(call.out), count(*call.out_shape),
                  *static_cast<const T*>(call.in[0]), *static_cast<const T*>(call.in[1]), call.seed,
                  call.offset);
  }
};

template <class Out, class T>
struct kernel_of<op::permutation, Out, T> {
  static void run(const kernel_call& call) {
    fill_permutation(static_cast<T*>(call.out), count(*call.out_shape), call.seed, call.offset);
  }
};

}  // namespace xla::detail
