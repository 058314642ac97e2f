// SPDX-License-Identifier: Apache-2.0
// Every form of cmake/pytorch_functions.txt, what is written here for a function of PyTorch's of
// another name, computes PyTorch's numbers: those that forms.py wrote.
#include "reference/forms.hpp"

using namespace std::string_literals;
using namespace xla;

namespace test {

void forms::reset(bool special) {
  static const auto ordinary = numbers<float>({4, 4});
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  x = special ? tensor<float>({{nan, inf, -inf, 0.f},
                               {-0.f, 1, -1, 0.5f},
                               {-2.5f, 1e30f, -1e30f, 1e-30f},
                               {88, -88, 20.5f, 3}})
              : ordinary;
  y = special ? transpose(x) : numbers<float>({4, 4}, 1);
  v = special ? tensor<float>({nan, 2, inf, -0.f}) : numbers<float>({4}, 2);
  w = special ? tensor<float>({1, inf, 0, -3}) : numbers<float>({4}, 3);
  b = numbers<float>({4, 4, 4}, 4);
  z = numbers<float>({1, 4, 4, 4}, 5);
  m = numbers<bool>({4, 4}, 6);
  i = tensor<std::int64_t>({2, 0, 3, 1});
  k = tensor<std::int64_t>({3, 0, 0, 2});
  j = tensor<std::int64_t>({{2, 0, 3, 1}, {0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}});
  s = 0.5f;
  pointer = ordinary.data();
}

namespace {
struct functions : forms {
  void run(bool special, const std::string& kind) {
#include "forms_functions.inc"
  }
};
}  // namespace

}  // namespace test

TEST_CASE("forms of functions, against PyTorch") {
  const eager_mode_guard eager;
  test::functions().run(false, "");
  test::functions().run(true, "/special");
}
