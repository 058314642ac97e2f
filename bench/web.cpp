// SPDX-License-Identifier: Apache-2.0
// web: answers `run N` with the time of N training steps of examples/web, and the last loss.
#include "../examples/web/trainer.cpp"
#include "measure.hpp"
#include "serve.hpp"

int main() {
  xla::set_num_threads(1);
  return bench::serve("compiled", [](int n) {
    constexpr int warm = 5;  // steps before the clock starts
    restart(1);
    for (int i = 0; i < warm; ++i) train();
    const double start = bench::now();
    float loss = 0;
    for (int i = 0; i < n; ++i) loss = train();
    return bench::turn{(bench::now() - start) * 1e9, loss};
  });
}
