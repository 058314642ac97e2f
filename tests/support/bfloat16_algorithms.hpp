// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string_view>

#include "catch.hpp"
#include "xla/kernel/simd/bfloat16_support.hpp"

namespace test {

/// Whether tests run the instructions of AMX: where XLA_TEST_AMX is 1, and then they have to be
/// there. Nothing has run them yet, so a machine that has them does not do so unasked.
inline bool runs_amx() {
  const char* const text = std::getenv("XLA_TEST_AMX");
  if (text == nullptr || std::string_view(text) != "1") return false;
  INFO("XLA_TEST_AMX=1, but the processor has no AMX, or the system does not grant it");
  REQUIRE(xla::kernel::detail::has_amx());
  return true;
}

/// Calls f for each way of products at bfloat16's precision that this machine has; gives the
/// process its own back.
template <class F>
void each_bfloat16_algorithm(F&& f) {
  using xla::kernel::bfloat16_algorithm;
  auto& way = xla::kernel::detail::algorithm_of_process();
  const bfloat16_algorithm before = way;
  for (const bfloat16_algorithm one :
       {bfloat16_algorithm::fma, bfloat16_algorithm::dot, bfloat16_algorithm::amx}) {
    if (one == bfloat16_algorithm::dot && !xla::kernel::detail::has_dot()) continue;
    if (one == bfloat16_algorithm::amx && !runs_amx()) continue;
    way = one;
    CAPTURE(static_cast<int>(one));
    f();
  }
  way = before;
}

}  // namespace test
