// SPDX-License-Identifier: Apache-2.0
// The program that is built with the package of a package manager: a value, and an error that names its line.
#include <string>

#include <xla/xla.hpp>

int main() {
  xla::eager_mode(true);
  const auto x = xla::tensor<float>({1, 2, 3});
  if (xla::sum(x * x).item() != 14) return 1;
  try {
    xla::reshape(x, {2});
  } catch (const std::exception& e) {
    return std::string(e.what()).find("(small.cpp:12)") == std::string::npos ? 2 : 0;
  }
  return 3;
}
