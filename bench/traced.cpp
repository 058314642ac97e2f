// SPDX-License-Identifier: Apache-2.0
// Traced mode against compiled functions on chains of elementwise ops, one thread: in traced mode
// such a region runs tile by tile through the ops' own kernels. A call waits for its result.

#include <xla/xla.hpp>

#include "measure.hpp"

namespace {

constexpr std::int64_t sizes[] = {1 << 10, 1 << 15, 1 << 20};

template <class Body>
void chain(const char* name, Body body) {
  auto compiled = xla::compile(body, {.name = name});
  for (const std::int64_t n : sizes) {
    xla::eager_mode(true);
    auto x = xla::rand<float>({n});
    xla::eager_mode(false);
    const auto traced = [&] {
      auto y = body(x);
      xla::sync(true);
      bench::touch(y.data());
    };
    const auto call = [&] { bench::touch(compiled(x).data()); };
    const auto r = bench::measure_pair(traced, call);
    bench::record{"traced"}
        .add("name", name)
        .add("elements", static_cast<double>(n))
        .add("us", 1e6 * r.ours.median)
        .add("compiled_us", 1e6 * r.theirs.median)
        .add("speed", r.speed)
        .print();
  }
}

}  // namespace

int main() {
  xla::set_num_threads(1);
  chain("gelu (tanh)", [](auto& x) {
    return 0.5f * x * (1.f + xla::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  });
  chain("relu(x/2 + x*x + 1) - x/4 + 2",
        [](auto& x) { return xla::relu(x * 0.5f + x * x + 1.f) - x * 0.25f + 2.f; });
  chain("x/(1+exp(-x)) * x", [](auto& x) { return x / (1.f + xla::exp(-x)) * x; });
}
