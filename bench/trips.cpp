// SPDX-License-Identifier: Apache-2.0
// What a number of steps costs that a compiled function has not had: a scan over 1 to 10,000 rows
// of four numbers, without and with its gradient, and a fori_loop, each number for the first time
// and once more right away.

#include <tuple>
#include <utility>

#include <xla/loop.hpp>
#include <xla/xla.hpp>

#include "measure.hpp"

namespace {

constexpr auto recurrence = [](const auto& w, const auto& xs) {
  const auto step = [&](const auto& c, const auto& x) {
    const auto next = xla::tanh(c * w + x);
    return std::pair(next, next);
  };
  return xla::sum(xla::square(xla::scan(step, xla::zeros_like(w), xs).second));
};

/// Calls f with n rows for n = 1 to `most`, twice each.
template <class F, class W>
void measure(const char* program, F& f, W& w, int most) {
  const auto all = xla::zeros<float>({most, 4});
  std::vector<double> extra;
  const auto before = xla::memory_reserved();
  double first = 0, again = 0;
  for (int n = 1; n <= most; ++n) {
    const auto xs = xla::slice(all, 0, 0, n);
    const auto seconds = [&] {
      const double start = bench::time_of(1);
      bench::touch(f(w, xs).data());
      return bench::time_of(1) - start;
    };
    const double a = seconds(), b = seconds();
    first += a;
    again += b;
    extra.push_back((a - b) * 1e6);
  }
  bench::record{"trips"}
      .add("program", program)
      .add("numbers", most)
      .add("extra_us", bench::spread_of(extra))
      .add("first_us", first / most * 1e6)
      .add("again_us", again / most * 1e6)
      .add("reserved_mb", static_cast<double>(xla::memory_reserved() - before) / 1e6)
      .add("plans_gone", static_cast<double>(xla::counter_value("EvictedCompile").value_or(0)))
      .print();
}

}  // namespace

int main() {
  xla::set_num_threads(1);
  xla::eager_mode(true);
  constexpr int most = 10000;
  xla::Parameter<float, 1> w(xla::ones<float>({4}));
  auto forward = xla::compile(recurrence, {.name = "forward"});
  measure("scan", forward, w, most);
  auto train = xla::compile([](auto& w, const auto& xs) {
    auto loss = recurrence(w, xs);
    loss.backward();
    return loss;
  });
  measure("scan and its gradient", train, w, most);
  auto counted = xla::compile([](const auto& w, const auto& xs) {
    const auto step = [&](const auto&, const auto& c) { return c * w + 1; };
    return xla::fori_loop(0, xs.size(0), step, xla::zeros_like(w));
  });
  measure("fori_loop", counted, w, most);
}
