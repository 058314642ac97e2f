// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops for the parts trips and loops.

#include <utility>
#include <vector>

#include <xla/loop.hpp>
#include <xla/xla.hpp>

#include "measure.hpp"

namespace bench {

/// Programs with loops of as many steps as xs has rows, and what a number of steps costs that a
/// compiled function has not had.
constexpr auto recurrence = [](const auto& w, const auto& xs) {
  const auto step = [&](const auto& c, const auto& x) {
    const auto next = xla::tanh(c * w + x);
    return std::pair(next, next);
  };
  return xla::sum(xla::square(xla::scan(step, xla::zeros_like(w), xs).second));
};

/// Calls f with n rows for n = 1 to `most`, twice each, and prints what the first call of each
/// number took beyond the second.
template <class F, class W>
void measure_trips(const char* part, const char* program, F& f, W& w, int most) {
  const auto all = xla::zeros<float>({most, 4});
  std::vector<double> extra;
  const auto before = xla::memory_reserved();
  double first = 0, again = 0;
  for (int n = 1; n <= most; ++n) {
    const auto xs = xla::slice(all, 0, 0, n);
    const auto seconds = [&] {
      const double start = time_of(1);
      touch(f(w, xs).data());
      return time_of(1) - start;
    };
    const double a = seconds(), b = seconds();
    first += a;
    again += b;
    extra.push_back((a - b) * 1e6);
  }
  record{part}
      .add("program", program)
      .add("numbers", most)
      .add("extra_us", spread_of(extra))
      .add("first_us", first / most * 1e6)
      .add("again_us", again / most * 1e6)
      .add("reserved_mb", static_cast<double>(xla::memory_reserved() - before) / 1e6)
      .add("plans_gone", static_cast<double>(xla::counter_value("EvictedCompile").value_or(0)))
      .print();
}
/// Of a scan, without and with its gradient, and of a fori_loop.
inline void measure_all_trips(const char* part, int most) {
  xla::Parameter<float, 1> w(xla::ones<float>({4}));
  auto forward = xla::compile(recurrence, {.name = "forward"});
  measure_trips(part, "scan", forward, w, most);
  auto train = xla::compile([](auto& w, const auto& xs) {
    auto loss = recurrence(w, xs);
    loss.backward();
    return loss;
  });
  measure_trips(part, "scan and its gradient", train, w, most);
  auto counted = xla::compile([](const auto& w, const auto& xs) {
    const auto step = [&](const auto&, const auto& c) { return c * w + 1; };
    return xla::fori_loop(0, xs.size(0), step, xla::zeros_like(w));
  });
  measure_trips(part, "fori_loop", counted, w, most);
}

}  // namespace bench
