// SPDX-License-Identifier: Apache-2.0
// conv <threads>: measures one convolution, channels innermost. It answers `run <way> <batch>
// <height> <width> <in> <out> <kernel> <stride> <padding> <groups>`, where kernel, stride and
// padding are two numbers each, with its nanoseconds and the peak of multiply-adds in the same run.
// `mixed …` measures it in autocast and in float32, alternating. See conv.py.

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <xla/kernel/convolution/algorithms.hpp>
#include <xla/kernel/convolution/rounded.hpp>

#include "aligned.hpp"
#include "numbers.hpp"
#include "peak.hpp"

namespace {

using count = std::int64_t;
using numbers = std::vector<float, bench::aligned<float>>;

numbers drawn(std::uint32_t stream, count n, float scale) {
  numbers v(static_cast<std::size_t>(n));
  for (count i = 0; i < n; ++i)
    v[static_cast<std::size_t>(i)] = scale * (bench::uniform(stream, i) - 0.5f);
  return v;
}

/// One layer's images, weights and gradients.
class layer {
 public:
  explicit layer(const xla::kernel::conv_sizes& s)
      : s_(s),
        x_(drawn(1, s.batch * s.height * s.width * s.in, 1)),
        w_(drawn(2, s.out * (s.in / s.groups) * s.taps(), 0.1f)),
        y_(drawn(3, s.batch * s.out_height * s.out_width * s.out, 1)),
        made_{numbers(y_.size()), numbers(x_.size()), numbers(w_.size())} {}

  /// Forward, the input's gradient, the weight's.
  void run(int way, bool rounds = false) {
    using namespace xla::kernel;
    const conv_weights<float> w{w_.data(), s_.in / s_.groups * s_.taps(), s_.taps(), 1};
    const float *const x = x_.data(), *const y = y_.data();
    float* const to = made_[way].data();
    if (way == 0 && !rounds) conv_forward<float>(s_, x, w, to);
    if (way == 1 && !rounds) conv_input_gradient<float>(s_, y, w, to);
    if (way == 2 && !rounds) conv_weight_gradient<float>(s_, x, y, to);
    if (way == 0 && rounds) conv_forward_bfloat16(s_, x, w, to);
    if (way == 1 && rounds) conv_input_gradient_bfloat16(s_, y, w, to);
    if (way == 2 && rounds) conv_weight_gradient_bfloat16(s_, x, y, to);
    bench::touch(to);
  }
  /// What all contestants must agree on.
  double size_of(int way) const {
    double sum = 0;
    for (const float f : made_[way]) sum += std::abs(f);
    return sum;
  }

 private:
  xla::kernel::conv_sizes s_;
  numbers x_, w_, y_, made_[3];
};

count made(count size, const xla::kernel::conv_sizes& s, int axis) {
  return (size + 2 * s.padding[axis] - s.kernel[axis]) / s.stride[axis] + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  xla::set_num_threads(threads);
  std::cout << R"({"ready": "xla"})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command;
    int way = 0;
    xla::kernel::conv_sizes s{.dilation = {1, 1}};
    words >> command >> way >> s.batch >> s.height >> s.width >> s.in >> s.out;
    for (auto* pair : {s.kernel, s.stride, s.padding}) words >> pair[0] >> pair[1];
    words >> s.groups;
    const bool mixed = command == "mixed";
    if (!words || (command != "run" && !mixed)) break;
    s.out_height = made(s.height, s, 0);
    s.out_width = made(s.width, s, 1);
    layer one(xla::kernel::along_rows(s));
    // The least of float32 and, if that is asked for, of autocast.
    double least[2] = {1e9, 1e9};
    const auto sample = [&](bool rounds) {
      const double start = bench::time_of(threads);
      one.run(way, rounds);
      least[rounds] = std::min(least[rounds], bench::time_of(threads) - start);
    };
    one.run(way, mixed);
    const double peak = bench::fma_peak(threads), until = bench::now() + 0.05;
    for (int i = 0; i < 3 || bench::now() < until; ++i) {
      if (mixed) sample(true);
      sample(false);
    }
    std::cout.precision(9);
    std::cout << R"({"ns": )" << 1e9 * least[0] << R"(, "mixed_ns": )" << 1e9 * least[1]
              << R"(, "sum": )" << one.size_of(way) << R"(, "peak": )"
              << std::max(peak, bench::fma_peak(threads)) << "}" << std::endl;
  }
}
