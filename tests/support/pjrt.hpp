// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

#include "catch.hpp"
#include "xla/ext/pjrt/find.hpp"

namespace test {

/// Whether there is a plugin for the processor. Where there is none a test case ends at once: the
/// sentence tells ctest to count the program as skipped; with XLA_REQUIRE_PJRT=1 it fails.
inline bool plugin_is_there() {
  try {
    xla::ext::pjrt::find_plugin("CPU");
    return true;
  } catch (const xla::runtime_error& e) {
    if (const char* const required = std::getenv("XLA_REQUIRE_PJRT"); required && *required == '1')
      FAIL(e.what());
    std::printf("skipped: %s\n", e.what());
    return false;
  }
}

}  // namespace test
