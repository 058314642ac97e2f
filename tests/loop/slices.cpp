// SPDX-License-Identifier: Apache-2.0
// Maps of a loop's body read slices in place, also where their memory is used again.
#include <cstdint>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"

using test::numbers;

TEST_CASE("parts of a value whose memory is used again, and parts of parts") {
  auto parts = [](auto& w, auto& xs) {
    const auto step = [&](const auto& c, const auto& x) {
      const auto all = xla::tanh(xla::matmul(c, w) + x);
      const auto [a, b] = xla::chunk<2>(all, 1);
      const auto top = xla::slice(all, 0, 0, 1), deep = xla::slice(b, 1, 1, 3);
      const auto swapped = xla::concat({xla::exp(b) - a, a * b}, 1);
      const auto other = xla::slice(swapped, 1, 2, 8, 2) * xla::slice(all, 1, 2, 5);
      const auto [d, e] = xla::chunk<2>(matmul(swapped + top, w), 1);
      return std::pair(xla::concat({e - d, d * e}, 1), std::tuple(other, deep * 2, a + b));
    };
    return xla::scan(step, xla::select(xs, 0, 0), xs);
  };
  for (const std::int64_t rows : {1, 2, 5})
    test::check_modes(parts, numbers<float>({8, 8}), numbers<float>({4, rows, 8}));
}
