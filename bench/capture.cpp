// SPDX-License-Identifier: Apache-2.0
// What capture.py compiles, with MODE 0: the include alone; 1: a residual net of BLOCKS blocks,
// trained eagerly; 2: trained by its compiled step.

#include "residual.hpp"

int main() {
#if MODE > 0
  xla::eager_mode(true);
  bench::Residual<BLOCKS> model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.01f, .momentum = 0.9f}};
  auto data = xla::randn<float>({32, bench::width});
  auto target = xla::zeros<std::int64_t>({32});
#if MODE == 1
  auto step = bench::step_fn;
#else
  auto step = xla::compile(bench::step_fn, {.name = "residual"});
#endif
  const float first = step(model, data, target, loss_fn, optimizer).item();
  for (int i = 0; i < 20; ++i) step(model, data, target, loss_fn, optimizer);
  const float last = step(model, data, target, loss_fn, optimizer).item();
  return last < first ? 0 : 1;
#endif
}
