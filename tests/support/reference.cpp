// SPDX-License-Identifier: Apache-2.0
// What every test compares with, once for all of them.
#include "support/reference.hpp"

#include <algorithm>
#include <cstdlib>

namespace test {

std::int64_t product(const sizes_t& sizes) {
  std::int64_t n = 1;
  for (auto s : sizes) n *= s;
  return n;
}

sizes_t broadcast(const sizes_t& a, const sizes_t& b) {
  sizes_t out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i < a.size() && a[a.size() - 1 - i] != 1) out[out.size() - 1 - i] = a[a.size() - 1 - i];
    if (i < b.size() && b[b.size() - 1 - i] != 1) out[out.size() - 1 - i] = b[b.size() - 1 - i];
  }
  return out;
}

std::size_t source_of(std::int64_t i, const sizes_t& to, const sizes_t& from) {
  std::int64_t at = 0, step = 1;
  for (std::size_t k = 1; k <= to.size(); ++k) {
    const std::int64_t c = i % to[to.size() - k];
    i /= to[to.size() - k];
    if (k > from.size()) continue;
    if (from[from.size() - k] != 1) at += c * step;
    step *= from[from.size() - k];
  }
  return static_cast<std::size_t>(at);
}

double rounding() {
  static const char* const said = std::getenv("XLA_TEST_ROUNDING");
  return said ? std::strtod(said, nullptr) : 0;
}

template void check_tensor(const float*, const sizes_t&, const sizes_t&, const std::vector<float>&,
                           double, double);
template void check_tensor(const double*, const sizes_t&, const sizes_t&,
                           const std::vector<double>&, double, double);
template void check_tensor(const std::int64_t*, const sizes_t&, const sizes_t&,
                           const std::vector<std::int64_t>&, double, double);
template void check_tensor(const std::int32_t*, const sizes_t&, const sizes_t&,
                           const std::vector<std::int32_t>&, double, double);
template void check_tensor(const bool*, const sizes_t&, const sizes_t&, const std::vector<bool>&,
                           double, double);

void check_sizes(const sizes_t& got, const sizes_t& want) { CHECK(got == want); }

}  // namespace test
