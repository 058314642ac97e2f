// SPDX-License-Identifier: Apache-2.0
// As forms.cpp, of tensors' methods.
#include "reference/forms.hpp"

using namespace std::string_literals;
using namespace xla;

namespace test {
namespace {
struct methods : forms {
  void run(bool special, const std::string& kind) {
#include "forms_methods.inc"
  }
};
}  // namespace
}  // namespace test

TEST_CASE("forms of methods, against PyTorch") {
  const eager_mode_guard eager;
  test::methods().run(false, "");
  test::methods().run(true, "/special");
}
