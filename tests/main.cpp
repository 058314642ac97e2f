// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  // tests/conformance.cmake need not run again what has no body in every way.
  if (const char* ways = std::getenv("XLA_TEST_WAYS")) std::ofstream{ways};
  return Catch::Session().run(argc, argv);
}
