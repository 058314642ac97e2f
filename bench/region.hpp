// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner kernel of a compiled function's only region, for the part fused. It uses details of the
// library.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <xla/xla.hpp>

namespace bench {

/// What the compiler made of a function of tensors.
template <class Body, class... T>
using program_of = xla::detail::static_program<std::remove_const_t<Body>, T&...>;

/// A region's inner loop. Its operands are in an order of its own: found by trying.
template <class Program>
class region {
 public:
  static constexpr auto key = xla::detail::key_at<Program::result, 0>::value;
  static_assert(Program::size.keys == 1, "the function is one region");
  using kernel = xla::kernel::map_kernel<key>;

  region(std::vector<const float*> tensors, std::vector<float> constants)
      : tensors_(std::move(tensors)), constants_(std::move(constants)) {
    std::sort(tensors_.begin(), tensors_.end());
    std::sort(constants_.begin(), constants_.end());
  }
  void run(float* out, std::int64_t n) const {
    void* pointers[sizeof(key) / sizeof(std::uint64_t) + 1];
    std::int64_t steps[sizeof(pointers) / sizeof(void*)] = {};
    int at = 0;
    std::size_t tensor = 0, constant = 0;
    for (int i = 0; i < key.size; ++i) {
      if (!key[i].input) continue;
      const float* p = key[i].invariant ? &constants_[constant++] : tensors_[tensor++];
      steps[at] = !key[i].invariant;
      pointers[at++] = const_cast<float*>(p);
    }
    steps[at] = 1;
    pointers[at] = out;
    kernel::run({pointers, steps, n});
  }
  /// Permutes the operands until the region's result is `expected`.
  bool match(const float* expected, float* out, std::int64_t n) {
    do {
      do {
        run(out, n);
        bool same = true;
        for (std::int64_t i = 0; same && i < n; ++i)
          same = std::abs(out[i] - expected[i]) <= 1e-5f + 1e-4f * std::abs(expected[i]);
        if (same) return true;
      } while (std::next_permutation(tensors_.begin(), tensors_.end()));
    } while (std::next_permutation(constants_.begin(), constants_.end()));
    return false;
  }

 private:
  std::vector<const float*> tensors_;
  std::vector<float> constants_;
};

}  // namespace bench
