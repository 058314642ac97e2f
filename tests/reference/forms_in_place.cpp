// SPDX-License-Identifier: Apache-2.0
// As forms.cpp, of methods that change a tensor.
#include "reference/forms.hpp"

using namespace std::string_literals;
using namespace xla;

namespace test {
namespace {
struct in_place : forms {
  void run(bool special, const std::string& kind) {
#include "forms_in_place.inc"
  }
};
}  // namespace
}  // namespace test

TEST_CASE("forms of methods in place, against PyTorch") {
  const eager_mode_guard eager;
  test::in_place().run(false, "");
  test::in_place().run(true, "/special");
}
