// SPDX-License-Identifier: Apache-2.0
// products <threads>: measures products of float32 matrices, or with both operands rounded to
// bfloat16. It answers `check <rounded> <count> <m> <n> <k> <a transposed> <b transposed>` with the
// numbers on which all contestants must agree, and `run …` with the nanoseconds of that many
// products and the peak of float32's multiply-adds in the same run. See products.py.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <xla/kernel/gemm/bfloat16.hpp>
#include <xla/kernel/gemm/long_k.hpp>
#include <xla/kernel/threads/parallel.hpp>

#include "aligned.hpp"
#include "numbers.hpp"
#include "peak.hpp"

namespace {

using numbers = std::vector<float, bench::aligned<float>>;
using view = xla::kernel::matrix_view<float>;

/// Within 1 of 0.
float drawn(std::uint32_t stream, std::int64_t i) { return 2 * (bench::uniform(stream, i) - 0.5f); }

numbers matrices(std::uint32_t stream, std::int64_t n) {
  numbers v(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = drawn(stream, i);
  return v;
}

/// Some products of one size; a and b are converted in every call, as nothing is kept.
class products {
 public:
  explicit products(std::istream& words) {
    words >> rounded_ >> count_ >> m_ >> n_ >> k_ >> a_transposed_ >> b_transposed_;
    if (!words) return;
    a_ = matrices(1, count_ * m_ * k_);
    b_ = matrices(2, count_ * k_ * n_);
    c_ = numbers(static_cast<std::size_t>(count_ * m_ * n_));
  }

  void run() {
    if (count_ == 1) one(0);
    else xla::kernel::parallel_for(count_, [&](std::int64_t i) { one(i); });
    bench::touch(c_.data());
  }

  /// The sum of all sizes, and that of all numbers times signs and weights.
  void check() {
    run();
    double sum = 0, mixed = 0;
    for (std::size_t i = 0; i < c_.size(); ++i) {
      sum += std::abs(c_[i]);
      mixed += double(c_[i]) * drawn(3, static_cast<std::int64_t>(i));
    }
    constexpr const char* ways[] = {"fma", "dot", "amx"};
    std::cout << R"({"sum": )" << sum << R"(, "mixed": )" << mixed << R"(, "way": ")"
              << ways[static_cast<int>(xla::kernel::bfloat16_products())] << "\"}" << std::endl;
  }

  void time(int threads) {
    double least = 1e9;
    const double peak = bench::fma_peak(threads), until = bench::now() + 0.1;
    for (int i = 0; i < 3 || bench::now() < until; ++i) {
      const double start = bench::time_of(threads);
      run();
      least = std::min(least, bench::time_of(threads) - start);
    }
    std::cout << R"({"ns": )" << 1e9 * least << R"(, "peak": )"
              << std::max(peak, bench::fma_peak(threads)) << "}" << std::endl;
  }

 private:
  void one(std::int64_t i) {
    const float *const a = a_.data() + i * m_ * k_, *const b = b_.data() + i * k_ * n_;
    const view left = a_transposed_ ? view{a, 1, m_} : view{a, k_, 1};
    const view right = b_transposed_ ? view{b, 1, k_} : view{b, n_, 1};
    float* const c = c_.data() + i * m_ * n_;
    if (rounded_) xla::kernel::gemm_bfloat16(m_, n_, k_, left, right, c, n_);
    else xla::kernel::gemm<float>(m_, n_, k_, left, right, c, n_);
  }

  bool rounded_ = false, a_transposed_ = false, b_transposed_ = false;
  std::int64_t count_ = 0, m_ = 0, n_ = 0, k_ = 0;
  numbers a_, b_, c_;
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  xla::set_num_threads(threads);
  std::cout.precision(9);
  std::cout << R"({"ready": "xla"})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command;
    words >> command;
    if (command != "check" && command != "run") break;
    products all{words};
    if (!words) break;
    if (command == "check") all.check();
    else all.time(threads);
  }
}
