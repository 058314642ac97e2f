// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2, version 2 or 3.
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace test {
inline auto contains(const std::string& s) { return Catch::Matchers::ContainsSubstring(s); }
}  // namespace test
#else
#include <catch2/catch.hpp>
namespace test {
inline auto contains(const std::string& s) { return Catch::Contains(s); }
}  // namespace test
#endif
