// SPDX-License-Identifier: Apache-2.0
#include <xla/xla.hpp>

float one();
float two();

int main() {
  xla::eager_mode(true);
  return one() == 6.0f && two() == 6.0f ? 0 : 1;
}
