// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdlib>
#include <string_view>

#include <xla/kernel/product_bfloat16.hpp>

// A way with instructions that not every processor has stands in functions that say what they need,
// and is taken where the processor has them. The compiled run time has it for all of x86-64; headers
// alone only where the compiler may use AVX-512 in any case, since the intrinsics cost an include
// half a second (Eigen has brought them there).
#if defined(__x86_64__) && (defined(XLA_EXTERN_RUNTIME) || defined(__AVX512F__))
#define XLA_HAS_DOT 1
#define XLA_DOT_CODE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]]
#else
#define XLA_HAS_DOT 0
#endif

namespace xla::kernel {
namespace detail {

/// Whether this machine runs XLA_DOT_CODE: the processor and the system.
template <class = void>
bool has_dot() {
#if XLA_HAS_DOT
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

/// By the maker: a measurement beside other programs may err, and then the bits of a program would
/// change from run to run. AMD's vdpbf16ps multiplies 1.9 times as fast as its multiply-adds,
/// Intel's half as fast, which is still more than those of 128 bits.
template <class = void>
bool dot_is_faster() {
#if XLA_HAS_DOT && defined(__FMA__)
  return __builtin_cpu_is("amd");
#else
  return true;
#endif
}

template <class = void>
[[gnu::cold]] bfloat16_way choose_bfloat16_way() {
  const char* const text = std::getenv("XLA_BF16");
  const std::string_view said = text == nullptr ? "" : text;
  const bool dot = said == "dot" || (said != "fma" && dot_is_faster());
  return dot && has_dot() ? bfloat16_way::dot : bfloat16_way::fma;
}

/// The way of this process; tests take each in turn.
template <class = void>
std::atomic<bfloat16_way>& way_of_process() {
  static std::atomic<bfloat16_way> way{choose_bfloat16_way()};
  return way;
}

}  // namespace detail

template <class>
bfloat16_way bfloat16_products() {
  return detail::way_of_process().load(std::memory_order_relaxed);
}
XLA_INSTANCE(bfloat16_way bfloat16_products<void>());

}  // namespace xla::kernel
