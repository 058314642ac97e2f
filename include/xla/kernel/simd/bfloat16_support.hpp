// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which algorithm this process uses for products at bfloat16's precision. It asks the processor and
// the system once.

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "xla/kernel/gemm/product_bfloat16.hpp"
#include "xla/kernel/simd/bfloat16_code.hpp"
#if XLA_HAS_AMX
#include "xla/kernel/simd/amx/tiles.hpp"
#endif
#if XLA_HAS_DOT
#include "xla/base/system/process.hpp"
#endif

namespace xla::kernel {
namespace detail {

/// Whether this machine runs XLA_DOT_CODE: the processor and the system.
template <class = void>
bool has_dot() {
#if XLA_HAS_DOT && defined(__aarch64__)
  return sys::has_arm_bfloat16();
#elif XLA_HAS_DOT
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

/// Whether this process may multiply by tiles that XLA_DOT_CODE packs; asks the system for
/// permission.
template <class = void>
bool has_amx() {
#if XLA_HAS_AMX
  return has_dot() && machine_has_tiles() && tiles_granted();
#else
  return false;
#endif
}

/// Decides by the vendor, because a measurement on a loaded machine may err, and would change a
/// program's bits from run to run. AMD's vdpbf16ps multiplies 1.9 times as fast as its
/// multiply-adds; Intel's half as fast, which is still faster than those of 128 bits. ARM's bfdot
/// does twice the work of a multiply-add.
template <class = void>
bool dot_is_faster() {
#if XLA_HAS_DOT && defined(__FMA__)
  return __builtin_cpu_is("amd");
#else
  return true;
#endif
}

/// The algorithm that XLA_BF16 names if the machine supports it, else the faster of the others.
/// Asks for `amx` only if XLA_BF16 names it, because a grant lasts as long as the process.
template <class = void>
[[gnu::cold]] bfloat16_algorithm choose_bfloat16_algorithm(std::string_view said, bool (*amx)()) {
  if (said == "amx" && amx()) return bfloat16_algorithm::amx;
  const bool dot = said == "dot" || (said != "fma" && dot_is_faster());
  return dot && has_dot() ? bfloat16_algorithm::dot : bfloat16_algorithm::fma;
}

/// The algorithm of this process; tests set it to each of them.
template <class = void>
std::atomic<bfloat16_algorithm>& algorithm_of_process() {
  static std::atomic<bfloat16_algorithm> algorithm{[] {
    const char* const text = std::getenv("XLA_BF16");
    return choose_bfloat16_algorithm(text == nullptr ? "" : text, &has_amx<>);
  }()};
  return algorithm;
}

}  // namespace detail

template <class>
bfloat16_algorithm bfloat16_products() {
  return detail::algorithm_of_process().load(std::memory_order_relaxed);
}
XLA_PRODUCT_INSTANCE(bfloat16_algorithm bfloat16_products<void>());

}  // namespace xla::kernel
