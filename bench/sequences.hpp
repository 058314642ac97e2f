// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include <xla/loop.hpp>
#include <xla/xla.hpp>

#include "measure.hpp"
#include "numbers.hpp"

// What the programs of sequences.cpp have in common; as in peers/sequences_task.py.
namespace bench {

/// The least time of a call in some seconds, in nanoseconds, and what all contestants must agree
/// on.
struct sequence_answer {
  double ns = 0, sum = 0;
};

/// Times f; sum() is looked up after the first call.
template <class F, class Sum>
sequence_answer least_time(int threads, F&& f, Sum&& sum) {
  constexpr int fewest = 3;
  constexpr double seconds = 0.3;
  sequence_answer a{1e18};
  f();
  a.sum = sum();
  const double until = now() + seconds;
  for (int i = 0; i < fewest || now() < until; ++i) {
    const double start = time_of(threads);
    f();
    a.ns = std::min(a.ns, 1e9 * (time_of(threads) - start));
  }
  return a;
}

/// Numbers within `bound` of zero, drawn from a stream.
template <class T, int R>
xla::Tensor<T, R> drawn(std::uint32_t stream, const xla::Size (&sizes)[R], double bound) {
  std::int64_t n = 1;
  for (const xla::Size& s : sizes) n *= std::int64_t(s);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] =
        static_cast<T>(bound * (2 * double{uniform(stream, i)} - 1));
  return xla::from_blob(values.data(), sizes);
}

/// The sum of a tensor's absolute numbers.
template <class X>
double magnitude(const X& x) {
  double sum = 0;
  for (const auto v : x.to_vector()) sum += std::abs(static_cast<double>(v));
  return sum;
}

/// The same of the gradients of all parameters.
template <class Model>
double gradient_magnitude(Model& model) {
  double sum = 0;
  xla::for_each_parameter(model, [&](auto& p) { sum += magnitude(p.grad()); });
  return sum;
}

/// Programs whose carries are single numbers: "lorenz", "hand", which is the same without this
/// library, and "scalars".
sequence_answer run_numbers(std::string_view task, int threads);

}  // namespace bench
