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
  // tests/conformance.cmake does not run a program again that has no body in every mode.
  if (const char* path = std::getenv("XLA_TEST_OPS_USED")) std::ofstream{path};
  return Catch::Session().run(argc, argv);
}
