// SPDX-License-Identifier: Apache-2.0
// A program that links xla::pjrt, of which one unit does not: an error names it, the rest runs.
#include <cstdlib>
#include <string>
#include <vector>

#include <xla/ext/pjrt.hpp>
#include <xla/xla.hpp>

float sum_of_squares(xla::Tensor<float, 1>& x);  // in forgotten.cpp

namespace {

template <class F>
std::string thrown(F&& f) {
  try {
    f();
  } catch (const xla::runtime_error& e) {
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

int main() {
  const char* const named = std::getenv("XLA_PJRT_PLUGIN");
  const std::string before = named ? named : "";
  const char* const required = std::getenv("XLA_REQUIRE_PJRT");
  xla::eager_mode(true);
  auto step = xla::compile(
      [](auto& x) {
        auto loss = xla::sum(x * x);
        loss.backward();
        return loss;
      },
      {.backend = xla::pjrt("CPU")});
  auto x = xla::tensor<float>({1, 2, 3});
  x.requires_grad_();

  setenv("XLA_PJRT_PLUGIN", "/nowhere/plugin.so", 1);
  const bool sought = has(thrown([&] { step(x); }), "/nowhere/plugin.so: there is no such file");
  xla::set_backend(xla::pjrt("CPU"));
  const bool lacks = has(thrown([&] { sum_of_squares(x); }),
                         "the backend pjrt:CPU needs the function's graph, which its source was "
                         "compiled without; link the backend's CMake target there as well");
  xla::set_backend("native");
  const bool planned = sum_of_squares(x) == 14;

  if (named) setenv("XLA_PJRT_PLUGIN", before.c_str(), 1);
  else unsetenv("XLA_PJRT_PLUGIN");
  float loss = 0;
  const std::string none = thrown([&] { loss = step(x).item(); });
  const bool skipped = (has(none, "no plugin found") || has(none, "no such file")) &&
                       !(required && *required == '1');
  const bool ran = loss == 14 && x.grad().to_vector() == std::vector<float>{2, 4, 6};
  return sought && lacks && planned && (skipped || ran) ? 0 : 1;
}
