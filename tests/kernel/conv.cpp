// SPDX-License-Identifier: Apache-2.0
// Convolutions of images whose channels are together, against sums in double.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/bfloat16_algorithms.hpp"
#include "support/emulated_amx.hpp"
#include "support/sanitized.hpp"
#include "support/threads.hpp"
#include "xla/kernel/convolution/algorithms.hpp"
#include "xla/kernel/convolution/rounded.hpp"
#include "xla/kernel/gemm/long_k.hpp"

using xla::kernel::conv_direction;
using xla::kernel::conv_sizes;
using xla::kernel::conv_weights;

namespace {

using count = std::int64_t;

/// A square kernel on images of one padding all around.
conv_sizes square(count batch, count height, count width, count in, count out, count kernel,
                  count stride, count padding, count dilation = 1, count groups = 1) {
  const auto size = [&](count n) {
    return (n + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  };
  return {batch,
          height,
          width,
          in,
          size(height),
          size(width),
          out,
          {kernel, kernel},
          {stride, stride},
          {padding, padding},
          {dilation, dilation},
          groups};
}

struct convolution : conv_sizes {
  count inputs() const { return batch * height * width * in; }
  count outputs() const { return batch * out_height * out_width * out; }
  count taps() const { return kernel[0] * kernel[1]; }
  count parameters() const { return out * (in / groups) * taps(); }

  /// Calls f(input pixel, tap, output pixel) for all that meet.
  template <class F>
  void each(F&& f) const {
    for (count i = 0; i < batch * out_height * out_width; ++i)
      for (count t = 0; t < taps(); ++t) {
        const count y =
            i / out_width % out_height * stride[0] + t / kernel[1] * dilation[0] - padding[0];
        const count x = i % out_width * stride[1] + t % kernel[1] * dilation[1] - padding[1];
        if (y >= 0 && y < height && x >= 0 && x < width)
          f((i / out_width / out_height * height + y) * width + x, t, i);
      }
  }
};

template <class T>
std::vector<T> numbers(count n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<float>(-1, 1)(random));
  return v;
}

/// The three directions in double: input, weight (out, in, taps), output.
struct exact {
  std::vector<double> x, w, y;
};
template <class T>
exact sums(const convolution& c, const std::vector<T>& x, const std::vector<T>& w,
           const std::vector<T>& dy) {
  const count in = c.in / c.groups, out = c.out / c.groups;
  exact e{std::vector<double>(x.size()), std::vector<double>(w.size()),
          std::vector<double>(dy.size())};
  const std::vector<double> wide_x(x.begin(), x.end()), d(dy.begin(), dy.end());
  // By taps, so that the loops run over what is together.
  std::vector<double> transposed(w.size()), dw(w.size());
  const auto place = [&](count o, count i, count t) { return (t * c.out + o) * in + i; };
  for (count o = 0; o < c.out; ++o)
    for (count i = 0; i < in; ++i)
      for (count t = 0; t < c.taps(); ++t)
        transposed[place(o, i, t)] = w[(o * in + i) * c.taps() + t];
  c.each([&](count pixel, count t, count at) {
    for (count o = 0; o < c.out; ++o) {
      const count from = pixel * c.in + o / out * in;
      const double *const row = &transposed[place(o, 0, t)], *const input = &wide_x[from];
      double *const dx = &e.x[from], *const drow = &dw[place(o, 0, t)];
      const double upper = d[at * c.out + o];
      double sum = 0;
      for (count i = 0; i < in; ++i) {
        sum += input[i] * row[i];
        dx[i] += upper * row[i];
        drow[i] += upper * input[i];
      }
      e.y[at * c.out + o] += sum;
    }
  });
  for (count o = 0; o < c.out; ++o)
    for (count i = 0; i < in; ++i)
      for (count t = 0; t < c.taps(); ++t) e.w[(o * in + i) * c.taps() + t] = dw[place(o, i, t)];
  return e;
}

/// The numbers that are convolved, the same as float and as double, and their sums.
template <class T>
struct operands {
  std::vector<T> x, w, dy;
  explicit operands(const convolution& c)
      : x(numbers<T>(c.inputs(), 1)),
        w(numbers<T>(c.parameters(), 2)),
        dy(numbers<T>(c.outputs(), 3)) {}
};
std::vector<float> rounded(std::vector<float> v) {
  for (float& f : v) f = xla::bfloat16{f};
  return v;
}
exact sums_of(const convolution& c, bool rounds = false) {
  const operands<float> of(c);
  if (rounds) return sums(c, rounded(of.x), rounded(of.w), rounded(of.dy));
  return sums(c, of.x, of.w, of.dy);
}

/// The largest difference, as a part of the largest element.
template <class T>
double error(const std::vector<T>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(got[i]) - want[i]));
    if (!(got[i] == got[i])) return 1e30;
    largest = std::max(largest, std::abs(want[i]));
  }
  return most / largest;
}

std::vector<int> numbers_of_threads() {
  return test::sanitized ? std::vector{5} : std::vector{1, 2, 5};
}

/// With some numbers of threads; all results must have the same bits.
template <class T, class F>
std::vector<T> any_threads(count size, F&& f) {
  const test::restore_threads guard(1);
  std::vector<T> first;
  for (const int threads : numbers_of_threads()) {
    xla::set_num_threads(threads);
    std::vector<T> got(static_cast<std::size_t>(size), static_cast<T>(50 + threads));
    f(got.data());
    if (first.empty()) first = got;
    CHECK(got == first);
  }
  return first;
}

/// What comes after a kernel copies the rows of its result, each once: with any number of threads
/// it finds them as they are in the end.
template <class T, class F>
void told_of_rows(const std::vector<T>& want, count columns, F&& f) {
  struct {
    std::vector<T> made, copy;
    std::vector<int> times;
    count columns;
  } rows;
  const auto copy = [](const void* self, count first, count last) {
    auto& r = *static_cast<decltype(rows)*>(const_cast<void*>(self));
    for (count i = first; i < last; ++i) ++r.times[static_cast<std::size_t>(i)];
    std::copy(r.made.begin() + first * r.columns, r.made.begin() + last * r.columns,
              r.copy.begin() + first * r.columns);
  };
  const count n = columns == 0 ? 0 : static_cast<count>(want.size()) / columns;
  rows.columns = columns;
  const test::restore_threads guard(1);
  for (const int threads : numbers_of_threads()) {
    xla::set_num_threads(threads);
    rows.made.assign(want.size(), T{33});
    rows.copy.assign(want.size(), T{44});
    rows.times.assign(static_cast<std::size_t>(n), 0);
    constexpr count few_rows_a_part = 1 << 13;
    const xla::kernel::epilogue after(n, columns, few_rows_a_part, copy, &rows);
    f(rows.made.data(), &after);
    after.rest(columns);
    CHECK(rows.copy == want);
    CHECK(std::count(rows.times.begin(), rows.times.end(), 1) == n);
  }
}

/// One way to compute all three, and to pack weights for it.
template <class T>
struct algorithm {
  std::int64_t (*packed_size)(const conv_sizes&, conv_direction);
  void (*pack)(const conv_sizes&, conv_direction, conv_weights<T>, T* to);
  void (*forward)(const conv_sizes&, const T* x, conv_weights<T>, T* y,
                  const xla::kernel::epilogue*);
  void (*input_gradient)(const conv_sizes&, const T* dy, conv_weights<T>, T* dx,
                         const xla::kernel::epilogue*);
  void (*weight_gradient)(const conv_sizes&, const T* x, const T* dy, T* dw);
  bool rounds = false;  ///< operands to bfloat16
};
template <class T>
constexpr algorithm<T> chosen = {
    &xla::kernel::conv_packed_size<T>, &xla::kernel::conv_pack<T>, &xla::kernel::conv_forward<T>,
    &xla::kernel::conv_input_gradient<T>, &xla::kernel::conv_weight_gradient<T>};
template <class T, int M>
constexpr algorithm<T> winograd = {[](const conv_sizes& s, conv_direction) {
                                     return xla::kernel::detail::winograd_weights_size<M, T>(s);
                                   },
                                   &xla::kernel::detail::winograd_weights<M, T>,
                                   &xla::kernel::detail::winograd_forward<M, T>,
                                   &xla::kernel::detail::winograd_input_gradient<M, T>,
                                   &xla::kernel::detail::winograd_weight_gradient<M, T>};
template <class T, conv_direction D>
void multiply_rows(const conv_sizes& s, const T* x, conv_weights<T> w, T* y,
                   const xla::kernel::epilogue* after) {
  xla::kernel::detail::multiply_rows<T>(s, D, x, w, y, after);
}
template <class T>
constexpr algorithm<T> by_rows = {&xla::kernel::detail::rows_packed_size<T>,
                                  [](const conv_sizes& s, conv_direction d, conv_weights<T> w,
                                     T* to) { xla::kernel::detail::rows_pack(s, d, w, to); },
                                  &multiply_rows<T, conv_direction::forward>,
                                  &multiply_rows<T, conv_direction::input_gradient>,
                                  &xla::kernel::detail::direct_weight_gradient<T>};

constexpr algorithm<float> rounding = {
    &xla::kernel::conv_packed_size_bfloat16<>,     &xla::kernel::conv_pack_bfloat16<>,
    &xla::kernel::conv_forward_bfloat16<>,         &xla::kernel::conv_input_gradient_bfloat16<>,
    &xla::kernel::conv_weight_gradient_bfloat16<>, true};

#if XLA_HAS_AMX
using emulated = xla::kernel::detail::tile_patch_products<test::emulated_amx>;
constexpr algorithm<float> by_emulated_tiles = {
    [](const conv_sizes&, conv_direction) -> std::int64_t { return 0; },
    nullptr,
    &xla::kernel::detail::forward_directly<emulated, float>,
    &xla::kernel::detail::input_gradient_directly<emulated, float>,
    &emulated::weight_gradient,
    true};
#endif

/// Runs with weights that are packed, and not there otherwise; the bits have to be the same.
template <class T, class F>
void check_packed(const convolution& c, const algorithm<T>& way, conv_direction d,
                  conv_weights<T> w, const std::vector<T>& want, count columns, F&& run) {
  const count size = way.packed_size(c, d);
  if (size == 0) return;
  std::vector<T> packed(static_cast<std::size_t>(size) + 1, T{44});
  way.pack(c, d, w, packed.data());
  CHECK(packed.back() == 44);
  const std::vector<T> none(static_cast<std::size_t>(c.parameters()),
                            std::numeric_limits<T>::quiet_NaN());
  w.data = none.data();
  w.packed = packed.data();
  const auto got =
      any_threads<T>(static_cast<count>(want.size()), [&](T* to) { run(w, to, nullptr); });
  CHECK(got == want);
  told_of_rows(want, columns,
               [&](T* to, const xla::kernel::epilogue* after) { run(w, to, after); });
}

template <class T>
void check(const convolution& c, const algorithm<T>& way, double most, const exact& want) {
  CAPTURE(c.batch, c.height, c.width, c.in, c.out, c.kernel[0], c.kernel[1], c.stride[0],
          c.stride[1], c.padding[0], c.padding[1], c.dilation[0], c.dilation[1], c.groups);
  const operands<T> of(c);
  const auto &x = of.x, &w = of.w, &dy = of.dy;
  const conv_weights<T> weights{w.data(), c.in / c.groups * c.taps(), c.taps(), 1};
  const auto forward = [&](T* to, const xla::kernel::epilogue* after = nullptr) {
    way.forward(c, x.data(), weights, to, after);
  };
  const auto y = any_threads<T>(c.outputs(), forward);
  CHECK(error(y, want.y) < most);
  told_of_rows(y, c.out, forward);
  const auto input_gradient = [&](T* to, const xla::kernel::epilogue* after = nullptr) {
    way.input_gradient(c, dy.data(), weights, to, after);
  };
  const auto dx = any_threads<T>(c.inputs(), input_gradient);
  CHECK(error(dx, want.x) < most);
  told_of_rows(dx, c.in, input_gradient);
  const auto dw = any_threads<T>(c.parameters(),
                                 [&](T* to) { way.weight_gradient(c, x.data(), dy.data(), to); });
  CHECK(error(dw, want.w) < most);
  check_packed(c, way, conv_direction::forward, weights, y, c.out,
               [&](conv_weights<T> of, T* to, const xla::kernel::epilogue* after) {
                 way.forward(c, x.data(), of, to, after);
               });
  check_packed(c, way, conv_direction::input_gradient, weights, dx, c.in,
               [&](conv_weights<T> of, T* to, const xla::kernel::epilogue* after) {
                 way.input_gradient(c, dy.data(), of, to, after);
               });
}

}  // namespace

TEST_CASE("convolutions of any shape are sums") {
  const convolution cases[] = {
      {square(1, 5, 7, 3, 5, 3, 1, 1)},
      {square(2, 9, 8, 16, 33, 3, 2, 1)},
      {square(1, 12, 11, 64, 40, 3, 1, 1)},
      {square(2, 14, 14, 8, 16, 1, 1, 0)},
      {square(1, 33, 30, 3, 20, 7, 2, 3)},       // a stem
      {square(1, 27, 27, 3, 64, 11, 4, 2)},      // AlexNet's
      {square(1, 6, 6, 300, 16, 3, 1, 1)},       // blocks of channels
      {square(1, 4, 4, 1300, 20, 1, 2, 0)},      // stride beyond the kernel
      {square(1, 7, 7, 5, 6, 2, 3, 0)},          // pixels that nobody sees
      {square(1, 2, 2, 7, 9, 5, 1, 2)},          // a kernel larger than the image
      {square(2, 10, 9, 12, 10, 3, 1, 2, 2)},    // dilated
      {square(1, 11, 13, 3, 7, 3, 2, 3, 2)},     // dilated, few channels
      {square(2, 8, 8, 48, 32, 3, 1, 1, 1, 2)},  // groups
      {square(1, 9, 9, 6, 12, 3, 2, 1, 1, 6)},
      {square(2, 5, 4, 96, 120, 3, 1, 1, 1, 3)},  // panels of a group that are not full
      {square(1, 5, 3, 1280, 64, 1, 2, 0, 1, 2)},
      {square(1, 6, 5, 1536, 96, 3, 2, 1, 1, 48)},  // more channels than the zeros outside
      {square(1, 9, 7, 3, 20, 3, 1, 1)},            // the gradient as sums of taps
      {square(1, 70, 66, 3, 5, 7, 1, 3)},           // of some lines at a time
      {{3, 1, 71, 20, 1, 8, 24, {1, 64}, {1, 1}, {0, 0}, {1, 1}, 1}},    // channel by channel
      {{1, 1, 130, 32, 1, 67, 40, {1, 64}, {1, 1}, {0, 0}, {1, 1}, 1}},  // some pixels at a time
      {square(2, 10, 9, 1, 8, 4, 2, 1)},
      {square(1, 8, 9, 2, 6, 5, 3, 4)},
      {square(2, 5, 5, 36, 20, 1, 1, 0, 1, 2)},
      {square(2, 9, 9, 24, 24, 3, 1, 1, 1, 24)},  // depthwise
      {square(1, 9, 8, 12, 24, 3, 2, 1, 1, 12)},
      {square(1, 1, 1, 1, 1, 1, 1, 0)},
      {square(1, 5, 4, 300, 260, 1, 1, 0)},  // one tap of many channels
      {square(2, 5, 4, 270, 250, 1, 2, 0)},
      {square(2, 9, 8, 40, 24, 1, 1, 0)},  // columns that fill half of a vector
      {square(1, 11, 9, 72, 16, 1, 1, 0)},
      {square(1, 10, 7, 600, 40, 1, 1, 0)},
      // Where maps follow, threads take rows, unless the packed weights are larger than a cache.
      {square(1, 18, 17, 48, 56, 1, 1, 0)},
      {square(1, 14, 13, 40, 88, 1, 1, 0)},
      {square(1, 5, 8, 320, 1280, 1, 1, 0)},
      // Groups of a vector, and of less: lines of columns that neighbours share, or not.
      {square(1, 13, 11, 64, 48, 3, 1, 1, 1, 4)},
      {square(2, 5, 17, 48, 48, 3, 1, 1, 1, 3)},
      {square(1, 4, 30, 20, 32, 3, 1, 0, 1, 2)},
      {square(1, 2, 28, 32, 32, 3, 1, 2, 1, 2)},
      {square(1, 40, 36, 24, 24, 1, 1, 0)},
      {square(8, 28, 28, 1, 8, 3, 1, 0)},  // parts of the weight's gradient
      {square(0, 5, 5, 4, 4, 3, 1, 1)},    // an empty batch
      {{1, 1, 1400, 4, 1, 1396, 18, {1, 5}, {1, 1}, {0, 0}, {1, 1}, 1}},  // one line of pieces
      {{1, 1, 1400, 20, 1, 701, 18, {1, 3}, {1, 2}, {0, 2}, {1, 1}, 1}},
      {{2, 9, 6, 18, 5, 7, 20, {3, 2}, {2, 1}, {1, 1}, {1, 1}, 1}},
      // Taps that only see padding, for some tiles or for most.
      {{2, 1, 16, 24, 1, 16, 40, {1, 64}, {1, 1}, {0, 31}, {1, 1}, 1}},
      {square(1, 20, 17, 20, 16, 5, 1, 2)},
      {square(1, 6, 9, 18, 24, 5, 1, 4, 2)},
      // Pixels a page apart.
      {{1, 1, 40, 1024, 1, 40, 20, {1, 17}, {1, 1}, {0, 8}, {1, 1}, 1}},
      {square(2, 5, 4, 1024, 16, 3, 2, 1)},
      {square(2, 5, 40, 3, 64, 3, 1, 1)},  // lines of few channels
      {square(1, 9, 37, 5, 33, 3, 2, 2)},
      {{1, 6, 30, 2, 8, 17, 40, {3, 4}, {1, 2}, {3, 3}, {2, 1}, 1}},
  };
  for (const convolution& c : cases) {
    const exact want = sums_of(c);
    check(c, chosen<float>, 1e-5, want);
    if (!test::sanitized || (&c - cases) % 3 == 0) check(c, chosen<double>, 1e-14, want);
  }
}

TEST_CASE("Winograd's algorithm has the error of sums") {
  const convolution cases[] = {
      {square(1, 9, 11, 16, 48, 3, 1, 1)},
      {square(2, 8, 6, 48, 16, 3, 1, 0)},
      {square(3, 5, 13, 32, 32, 3, 1, 2)},
      {square(1, 3, 3, 64, 16, 3, 1, 0)},
      {square(1, 1, 2, 16, 32, 3, 1, 1)},
      {square(2, 17, 16, 32, 64, 3, 1, 1)},
      // Weights that are transformed panel by panel, in chunks of channels.
      {square(2, 6, 5, 288, 96, 3, 1, 1)},
      {square(1, 7, 3, 704, 48, 3, 1, 1)},
  };
  const auto check_all = [](const convolution& c) {
    const exact want = sums_of(c);
    check(c, winograd<float, 2>, 1e-5, want);
    check(c, winograd<float, 4>, 1e-5, want);
    if (!test::sanitized || c.in < 256) check(c, winograd<double, 4>, 1e-14, want);
  };
  for (const convolution& c : cases) check_all(c);
  // For groups of tiles, where vectors are so wide that these are more than one.
  const convolution many{square(200, 1, 1, 256, 96, 3, 1, 1)};
  if (xla::kernel::detail::winograd_chunks<float, 4>::max_tiles() < many.batch) check_all(many);
}

TEST_CASE("Winograd's algorithm along rows has the error of sums") {
  const convolution cases[] = {
      {square(2, 9, 11, 16, 48, 5, 1, 2)},
      {square(1, 6, 5, 32, 16, 5, 1, 0)},
      {square(1, 2, 1, 16, 32, 5, 1, 4)},  // a kernel larger than the image
      {square(3, 10, 9, 32, 16, 7, 1, 3)},
      {square(1, 7, 8, 16, 16, 4, 1, 0)},
      {square(1, 9, 9, 272, 48, 6, 1, 2)},  // blocks of channels
      {{2, 1, 40, 64, 1, 40, 48, {1, 64}, {1, 1}, {0, 31}, {1, 1}, 1}},
      {{1, 1, 70, 16, 1, 7, 16, {1, 64}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {{1, 1, 3, 16, 1, 3, 32, {1, 17}, {1, 1}, {0, 8}, {1, 1}, 1}},
      {{1, 1, 21, 1024, 1, 22, 16, {1, 18}, {1, 1}, {0, 9}, {1, 1}, 1}},
      {{2, 8, 10, 16, 8, 12, 32, {3, 5}, {1, 1}, {2, 3}, {2, 1}, 1}},  // rows dilated
      {{1, 5, 9, 32, 6, 10, 16, {2, 7}, {1, 1}, {1, 4}, {1, 1}, 1}},
  };
  const auto check_all = [](const convolution& c, double times = 1) {
    const exact want = sums_of(c);
    check(c, by_rows<float>, times * 1e-5, want);
    if (!test::sanitized) check(c, by_rows<double>, times * 1e-14, want);
  };
  for (const convolution& c : cases) check_all(c);
  // Images that are transformed some lines at a time; a weight's gradient has a long sum.
  if (!test::sanitized) check_all({square(1, 180, 190, 16, 16, 5, 1, 2)}, 4);
}

TEST_CASE("Winograd's algorithm is chosen where it takes less, unless it is forbidden") {
  using xla::kernel::algorithm_of;
  using xla::kernel::conv_algorithm;
  const auto way = [](count batch, count size, count channels, count kernel = 3, count stride = 1) {
    return algorithm_of<float>(
        square(batch, size, size, channels, channels, kernel, stride, kernel / 2));
  };
  CHECK(way(1, 56, 64) == conv_algorithm::winograd_4);
  CHECK(way(8, 14, 256) == conv_algorithm::winograd_4);
  CHECK(way(1, 4, 64) == conv_algorithm::direct);
  CHECK(way(1, 7, 512) == conv_algorithm::direct);
  CHECK(way(2, 7, 512) == conv_algorithm::winograd_2);
  CHECK(way(2, 14, 256) == conv_algorithm::winograd_4);
  CHECK(way(8, 7, 512) == conv_algorithm::winograd_4);
  CHECK(way(8, 56, 24) == conv_algorithm::direct);
  CHECK(way(1, 56, 64, 5) == conv_algorithm::winograd_rows);
  CHECK(way(1, 2, 64, 5) == conv_algorithm::direct);
  CHECK(way(1, 56, 64, 5, 2) == conv_algorithm::direct);
  CHECK(way(1, 56, 24, 5) == conv_algorithm::direct);
  const auto line = [](count batch, count size, count in, count out, count taps) {
    const conv_sizes s{batch,  1, size, in, 1, size, out, {1, taps}, {1, 1}, {0, (taps - 1) / 2},
                       {1, 1}, 1};
    return algorithm_of<float>(s);
  };
  CHECK(line(1, 128, 1024, 128, 64) == conv_algorithm::winograd_rows);
  CHECK(line(1, 8, 256, 512, 64) == conv_algorithm::direct);
  CHECK(line(1, 500, 64, 64, 5) == conv_algorithm::direct);  // one piece of one row
  CHECK(way(1, 56, 64, 3, 2) == conv_algorithm::direct);
  CHECK(way(1, 14, 256) == conv_algorithm::winograd_2);

  convolution c{square(1, 28, 28, 64, 64, 3, 1, 1)};
  REQUIRE(algorithm_of<float>(c) == conv_algorithm::winograd_4);
  check(c, chosen<float>, 1e-5, sums_of(c));
  const auto x = numbers<float>(c.inputs(), 1), w = numbers<float>(c.parameters(), 2);
  const auto run = [&] {
    std::vector<float> y(static_cast<std::size_t>(c.outputs()));
    xla::kernel::conv_forward<float>(c, x.data(), {w.data(), 64 * 9, 9, 1}, y.data());
    return y;
  };
  const auto fast = run();
  c.direct = true;
  CHECK(algorithm_of<float>(c) == conv_algorithm::direct);
  const auto plain = run();
  c.direct = false;
  CHECK(plain != fast);
  CHECK(run() == fast);
  c = convolution{square(1, 20, 20, 32, 32, 7, 1, 3)};
  REQUIRE(algorithm_of<float>(c) == conv_algorithm::winograd_rows);
  check(c, chosen<float>, 1e-5, sums_of(c));
  c.direct = true;
  CHECK(algorithm_of<float>(c) == conv_algorithm::direct);
}

TEST_CASE("convolutions at bfloat16's precision are sums of rounded numbers") {
  const convolution cases[] = {
      {square(2, 9, 8, 5, 33, 3, 2, 1)},
      {square(1, 14, 14, 64, 64, 3, 1, 1)},
      {square(1, 14, 14, 32, 48, 5, 1, 2)},
      {square(2, 7, 6, 40, 50, 1, 1, 0)},
      {square(1, 9, 9, 24, 32, 1, 2, 0)},
      {square(1, 8, 8, 12, 24, 3, 1, 1, 1, 3)},
      {square(1, 21, 20, 3, 40, 7, 2, 3)},     // a row of a kernel together, and 0 around images
      {square(1, 6, 7, 261, 20, 3, 2, 1)},     // blocks of channels, one more than there would be
      {square(2, 7, 7, 5, 6, 2, 3, 0)},        // pixels that nobody sees
      {square(2, 10, 9, 12, 10, 3, 1, 2, 2)},  // dilated
      {square(1, 9, 7, 3, 20, 3, 1, 1)},       // blocks of an image's pixels
      {square(1, 6, 6, 48, 600, 3, 2, 1)},     // more columns than stay in a cache
      {square(1, 131, 126, 1, 9, 3, 1, 1)},    // more pixels than are added up plainly
      {square(0, 5, 5, 4, 4, 3, 2, 1)},        // an empty batch
      {{2, 9, 6, 18, 5, 7, 20, {3, 2}, {2, 1}, {1, 1}, {1, 1}, 1}},
  };
  std::vector<exact> want;
  for (const convolution& c : cases) want.push_back(sums_of(c, rounding.rounds));
  const auto check_all = [&](const algorithm<float>& way, const convolution& c) {
    check(c, way, 1e-5, want[static_cast<std::size_t>(&c - cases)]);
  };
  test::each_bfloat16_algorithm([&] {
    for (const convolution& c : cases) check_all(rounding, c);
  });
#if XLA_HAS_AMX
  if (!xla::kernel::detail::has_dot()) return;  // by whose instructions tiles are packed
  int by_tiles = 0;
  for (const convolution& c : cases) {
    if (!xla::kernel::detail::sees_pairs(c)) continue;
    check_all(by_emulated_tiles, c);
    ++by_tiles;
  }
  CHECK(by_tiles == 5);
  CHECK(test::emulated_amx::told() == "");
  CHECK(test::emulated_amx::held() == 0);
#endif
}

namespace {

/// NaN by NaN, an infinity by itself, others to a part of what was added up.
template <class T>
bool is_near(T got, double want, double added, double part) {
  if (std::isnan(want)) return std::isnan(got);
  const T nearest = static_cast<T>(want);
  if (std::isinf(nearest)) return got == nearest;
  return std::abs(got - want) <= part * added;
}

/// How many elements are not.
template <class T>
count wrong(const std::vector<T>& got, const std::vector<double>& want,
            const std::vector<double>& added, double part) {
  REQUIRE(got.size() == want.size());
  count n = 0;
  for (std::size_t i = 0; i < got.size(); ++i) n += !is_near(got[i], want[i], added[i], part);
  return n;
}

template <class T>
std::vector<T> magnitudes(std::vector<T> v) {
  for (T& x : v) x = std::abs(x);
  return v;
}

/// One number in x, or in dy, is like no other.
template <class T>
operands<T> with_outlier(const convolution& c, float outlier, bool in_x) {
  operands<T> of(c);
  auto& with = in_x ? of.x : of.dy;
  with[with.size() / 2 + 3] = static_cast<T>(outlier);
  return of;
}
/// All three directions; the error is a part of what a pixel sees, each times the largest weight.
struct outlier_sums {
  exact want, added;
  outlier_sums(const convolution& c, const operands<float>& of)
      : want(sums(c, of.x, of.w, of.dy)),
        added(sums(c, magnitudes(of.x), std::vector<float>(of.w.size(), 1), magnitudes(of.dy))) {}
};
template <class T>
void check_outlier(const convolution& c, const algorithm<T>& way, float outlier, bool in_x,
                   const outlier_sums& known) {
  CAPTURE(c.batch, c.height, c.width, c.in, c.out, c.padding[0], outlier, in_x);
  const operands<T> of = with_outlier<T>(c, outlier, in_x);
  const auto &x = of.x, &w = of.w, &dy = of.dy;
  const exact &want = known.want, &added = known.added;
  const conv_weights<T> weights{w.data(), c.in * c.taps(), c.taps(), 1};
  const double part = std::is_same_v<T, float> ? 2e-5 : 1e-13;
  const auto with_threads = [&](count size, auto run) {
    if (std::isfinite(outlier)) return any_threads<T>(size, [&](T* to) { run(to); });
    std::vector<T> made(static_cast<std::size_t>(size));  // NaN is not equal to itself
    run(made.data());
    return made;
  };
  const auto forward = [&](T* to, const xla::kernel::epilogue* after = nullptr) {
    way.forward(c, x.data(), weights, to, after);
  };
  const auto y = with_threads(c.outputs(), forward);
  CHECK(wrong(y, want.y, added.y, part) == 0);
  const auto input_gradient = [&](T* to, const xla::kernel::epilogue* after = nullptr) {
    way.input_gradient(c, dy.data(), weights, to, after);
  };
  const auto dx = with_threads(c.inputs(), input_gradient);
  CHECK(wrong(dx, want.x, added.x, part) == 0);
  const auto dw =
      with_threads(c.parameters(), [&](T* to) { way.weight_gradient(c, x.data(), dy.data(), to); });
  CHECK(wrong(dw, want.w, added.w, part) == 0);
  if (!std::isfinite(outlier)) return;
  told_of_rows(y, c.out, forward);
  told_of_rows(dx, c.in, input_gradient);
}

}  // namespace

TEST_CASE("Winograd's algorithm keeps what is not finite, or is large, where it is seen") {
  const convolution cases[] = {
      {square(1, 9, 11, 16, 48, 3, 1, 1)},
      {square(2, 13, 6, 32, 16, 3, 1, 0)},
      {square(1, 6, 5, 288, 96, 3, 1, 1)},  // by panels, in chunks of channels
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const convolution& c : cases)
    for (const bool in_x : {true, false})
      for (const float outlier : {std::nanf(""), infinity, -infinity, 3e38f, -1e30f, 1e10f, 3e4f}) {
        // Infinities and what overflows when it is squared take the steps of a NaN.
        if (test::sanitized && std::abs(outlier) > 1e10f) continue;
        const outlier_sums known(c, with_outlier<float>(c, outlier, in_x));
        check_outlier(c, winograd<float, 4>, outlier, in_x, known);
        if (std::isfinite(outlier) && outlier != 1e10f) continue;
        check_outlier(c, winograd<float, 2>, outlier, in_x, known);
        check_outlier(c, winograd<double, 4>, outlier, in_x, known);
      }
  const convolution rows[] = {
      {square(2, 9, 11, 16, 32, 5, 1, 2)},
      {{2, 1, 40, 32, 1, 40, 16, {1, 12}, {1, 1}, {0, 5}, {1, 1}, 1}},
  };
  for (const convolution& c : rows)
    for (const bool in_x : {true, false})
      for (const float outlier : {std::nanf(""), infinity, 3e38f, 1e10f, 3e4f, 3e3f}) {
        if (test::sanitized && std::abs(outlier) > 1e10f) continue;
        const outlier_sums known(c, with_outlier<float>(c, outlier, in_x));
        check_outlier(c, by_rows<float>, outlier, in_x, known);
        if (!test::sanitized) check_outlier(c, by_rows<double>, outlier, in_x, known);
      }
}

TEST_CASE("Winograd's algorithm along rows changes no bits of other images") {
  const convolution c{square(3, 8, 9, 16, 16, 5, 1, 2)};
  auto x = numbers<float>(c.inputs(), 1);
  const auto w = numbers<float>(c.parameters(), 2);
  const conv_weights<float> weights{w.data(), 16 * 25, 25, 1};
  const auto run = [&] {
    std::vector<float> y(static_cast<std::size_t>(c.outputs()));
    multiply_rows<float, conv_direction::forward>(c, x.data(), weights, y.data(), nullptr);
    return y;
  };
  const auto plain = run();
  const count image = c.outputs() / 3;
  x[static_cast<std::size_t>(c.inputs() / 3 + 100)] = 1e6f;  // the second image is summed directly
  const auto got = run();
  for (count i = 0; i < c.outputs(); ++i)
    if (i / image != 1 && got[i] != plain[i]) FAIL_CHECK("element " << i);
  CHECK(!std::equal(got.begin() + image, got.begin() + 2 * image, plain.begin() + image));
}

TEST_CASE("Winograd's algorithm changes no bits of tiles that do not see a large number") {
  const convolution c{square(2, 16, 16, 32, 32, 3, 1, 1)};
  auto x = numbers<float>(c.inputs(), 1);
  const auto w = numbers<float>(c.parameters(), 2);
  const auto run = [&] {
    std::vector<float> y(static_cast<std::size_t>(c.outputs()));
    xla::kernel::detail::winograd_forward<4, float>(c, x.data(), {w.data(), 32 * 9, 9, 1}, y.data(),
                                                    nullptr);
    return y;
  };
  const auto plain = run();
  x[(5 * 16 + 6) * 32 + 7] = 1e6f;  // which the tiles of rows and columns 4 ... 7 see alone
  const auto got = run();
  for (count i = 0; i < c.outputs(); ++i) {
    const count pixel = i / 32, row = pixel / 16, column = pixel % 16;
    const bool same_tile = row / 4 == 1 && column / 4 == 1;
    if (!same_tile && got[i] != plain[i]) FAIL_CHECK("row " << row << ", column " << column);
  }
  // Numbers of one size are transformed, however large.
  for (float& v : x) v *= 1 << 20;
  x[(5 * 16 + 6) * 32 + 7] = 1 << 20;
  const auto large = run();
  for (float& v : x) v /= 1 << 20;
  const auto small = run();
  for (count i = 0; i < c.outputs(); ++i) CHECK(large[i] == small[i] * (1 << 20));
}

TEST_CASE("Winograd's algorithm makes of weights that are not finite what direct sums make") {
  for (const float outlier : {std::nanf(""), std::numeric_limits<float>::infinity(), 3e38f}) {
    const convolution c{square(1, 9, 10, 32, 32, 3, 1, 1)};
    const auto x = numbers<float>(c.inputs(), 1);
    auto w = numbers<float>(c.parameters(), 2);
    w[5 * 9 + 2] = outlier;  // of the first result's channels alone
    const conv_weights<float> weights{w.data(), 32 * 9, 9, 1};
    std::vector<float> packed(
        static_cast<std::size_t>(xla::kernel::detail::winograd_weights_size<4, float>(c)));
    xla::kernel::detail::winograd_weights<4>(c, conv_direction::forward, weights, packed.data());
    auto kept = weights;
    kept.packed = packed.data();
    std::vector<float> y(static_cast<std::size_t>(c.outputs())), again = y, want = y;
    xla::kernel::detail::winograd_forward<4>(c, x.data(), weights, y.data(), nullptr);
    xla::kernel::detail::winograd_forward<4>(c, x.data(), kept, again.data(), nullptr);
    xla::kernel::detail::direct_forward(c, x.data(), weights, want.data(), nullptr);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double added = std::max(1.0, std::abs(double{want[i]}));
      CHECK(is_near(y[i], want[i], added, 1e-4));
      CHECK(is_near(again[i], want[i], added, 1e-4));
    }
  }
  const convolution c{square(1, 9, 10, 16, 16, 5, 1, 2)};
  const auto x = numbers<float>(c.inputs(), 1);
  auto w = numbers<float>(c.parameters(), 2);
  w[5 * 25 + 2] = 3e38f;
  const conv_weights<float> weights{w.data(), 16 * 25, 25, 1};
  std::vector<float> y(static_cast<std::size_t>(c.outputs())), want = y;
  multiply_rows<float, conv_direction::forward>(c, x.data(), weights, y.data(), nullptr);
  xla::kernel::detail::direct_forward(c, x.data(), weights, want.data(), nullptr);
  CHECK(y == want);
}

TEST_CASE("Winograd's algorithm rounds what it reads as copies would") {
  // Weights transformed at once, and by panels; a weight's gradient in groups, and by panels.
  const convolution cases[] = {{square(1, 9, 10, 32, 48, 3, 1, 1)},
                               {square(2, 14, 13, 64, 64, 3, 1, 1)},
                               {square(1, 12, 12, 176, 160, 3, 1, 0)}};
  // Tiles with the large one are summed directly.
  for (const auto& [c, outlier] :
       {std::pair(cases[0], 1.5f), std::pair(cases[1], 1.5f), std::pair(cases[2], 1.5f),
        std::pair(cases[0], 1e9f), std::pair(cases[2], 1e9f)}) {
    CAPTURE(c.in, c.out, outlier);
    CHECK(std::string_view(xla::kernel::conv_algorithm_name<float>(c)).starts_with("winograd"));
    auto x = numbers<float>(c.inputs(), 1), dy = numbers<float>(c.outputs(), 3);
    const auto w = numbers<float>(c.parameters(), 2);
    x[x.size() / 2] = dy[dy.size() / 2] = outlier;
    const auto near_x = rounded(x), near_w = rounded(w), near_dy = rounded(dy);
    const auto lies = [&](const std::vector<float>& v) {
      return conv_weights<float>{v.data(), c.in * c.taps(), c.taps(), 1};
    };
    std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
    auto want_y = y, want_dx = dx, want_dw = dw;
    xla::kernel::conv_forward_bfloat16<>(c, x.data(), lies(w), y.data());
    xla::kernel::conv_forward<float>(c, near_x.data(), lies(near_w), want_y.data(), nullptr);
    CHECK(y == want_y);
    xla::kernel::conv_input_gradient_bfloat16<>(c, dy.data(), lies(w), dx.data());
    xla::kernel::conv_input_gradient<float>(c, near_dy.data(), lies(near_w), want_dx.data(),
                                            nullptr);
    CHECK(dx == want_dx);
    xla::kernel::conv_weight_gradient_bfloat16<>(c, x.data(), dy.data(), dw.data());
    xla::kernel::conv_weight_gradient<float>(c, near_x.data(), near_dy.data(), want_dw.data());
    CHECK(dw == want_dw);
  }
}
