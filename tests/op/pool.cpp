// SPDX-License-Identifier: Apache-2.0
// Pools over images and signals, against plain loops.
#include <algorithm>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/kernel/op/max_pool_index.hpp"
#include "xla/op/avg_pool.hpp"
#include "xla/op/derived/max_unpool.hpp"

using test::check_equal;
using test::numbers;
using xla::HeightWidth;
using index_t = std::int64_t;

namespace {

/// A pool as PyTorch's page has it.
struct pool {
  HeightWidth kernel, stride = kernel, padding = 0, dilation = 1;
  bool ceil_mode = false, count_include_pad = true;
  index_t divisor = 0;
};

/// Where the windows of an axis begin and end, in steps of dilation; the end may be in the
/// padding.
struct span {
  index_t begin, end;
};
std::vector<span> spans(index_t n, index_t k, index_t s, index_t p, index_t d, bool ceil_mode) {
  const index_t last = n + 2 * p - d * (k - 1) - 1;
  index_t count = (last + (ceil_mode ? s - 1 : 0)) / s + 1;
  if (ceil_mode && (count - 1) * s >= n + p) --count;
  std::vector<span> all;
  for (index_t i = 0; i < count; ++i) all.push_back({i * s - p, i * s - p + d * (k - 1) + 1});
  return all;
}

/// f(elements that exist, rows and columns of the window with padding) for each window.
template <class T, class F>
std::vector<T> windows(const xla::Tensor<T, 4>& x, const pool& p, F f) {
  const index_t h = x.size(2), w = x.size(3);
  const auto rows =
      spans(h, p.kernel.height, p.stride.height, p.padding.height, p.dilation.height, p.ceil_mode);
  const auto columns =
      spans(w, p.kernel.width, p.stride.width, p.padding.width, p.dilation.width, p.ceil_mode);
  std::vector<T> out;
  for (index_t plane = 0; plane < index_t(x.size(0) * x.size(1)); ++plane)
    for (const span& r : rows)
      for (const span& c : columns) {
        std::vector<T> under;
        for (index_t i = r.begin; i < r.end; i += p.dilation.height)
          for (index_t j = c.begin; j < c.end; j += p.dilation.width)
            if (i >= 0 && i < h && j >= 0 && j < w)
              under.push_back(x.data()[(plane * h + i) * w + j]);
        const index_t padded = (std::min(r.end, h + p.padding.height) - r.begin) *
                               (std::min(c.end, w + p.padding.width) - c.begin);
        out.push_back(f(under, padded));
      }
  return out;
}

template <class T>
void check_max(const xla::Tensor<T, 4>& x, const pool& p) {
  const auto y = max_pool2d(
      x, p.kernel,
      {.stride = p.stride, .padding = p.padding, .dilation = p.dilation, .ceil_mode = p.ceil_mode});
  const auto want = windows(x, p, [](const std::vector<T>& under, index_t) {
    T best = std::numeric_limits<T>::lowest();
    if constexpr (std::is_floating_point_v<T>) best = -std::numeric_limits<T>::infinity();
    for (T v : under)
      if (v > best || v != v) best = v;
    return best;
  });
  CAPTURE(y.sizes());
  test::check_elements(y.data(), y.numel(), want, 0, 1);
}

template <class T>
void check_mean(const xla::Tensor<T, 4>& x, const pool& p) {
  const auto y = avg_pool2d(x, p.kernel,
                            {.stride = p.stride,
                             .padding = p.padding,
                             .ceil_mode = p.ceil_mode,
                             .count_include_pad = p.count_include_pad,
                             .divisor_override = p.divisor});
  const auto want = windows(x, p, [&](const std::vector<T>& under, index_t padded) {
    double sum = 0;
    for (T v : under) sum += static_cast<double>(v);
    const index_t n = p.divisor             ? p.divisor
                      : p.count_include_pad ? padded
                                            : static_cast<index_t>(under.size());
    return static_cast<T>(sum / static_cast<double>(n));
  });
  test::check_elements(y.data(), y.numel(), want, 1e-6, 1);
}

const pool pools[] = {
    {.kernel = 2},
    {.kernel = 3, .stride = 2, .padding = 1},
    {.kernel = {3, 2}, .stride = 1, .padding = {1, 0}},
    {.kernel = {2, 3}, .stride = {3, 4}},
    {.kernel = 3, .stride = 2, .ceil_mode = true},
    {.kernel = 2, .stride = 3, .padding = 1, .ceil_mode = true},  // a last window begins in padding
    {.kernel = 1, .stride = 2},
    {.kernel = {5, 7}, .stride = 1, .padding = {2, 3}},
};

}  // namespace

TEMPLATE_TEST_CASE("max_pool2d takes the largest of each window", "", float, double, std::int32_t,
                   index_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (pool p : pools)
    for (const auto& x :
         {numbers<T>({2, 3, 7, 9}), numbers<T>({1, 1, 5, 37}), numbers<T>({0, 3, 7, 9})}) {
      check_max(x, p);
      p.dilation = {2, 1};
      if (p.kernel.height <= 3) check_max(x, p);
    }
  check_max(numbers<T>({3, 2, 4, 5}), {.kernel = {4, 5}});
  check_max(numbers<T>({1, 70, 1, 1}), {.kernel = 1});
  check_max(numbers<T>({1, 2, 1, 1}), {.kernel = 3, .padding = 1});
  // Every place of the window is outside of the image.
  check_max(numbers<T>({1, 1, 1, 4}), {.kernel = {2, 1}, .padding = {1, 0}, .dilation = {2, 1}});
}

TEMPLATE_TEST_CASE("avg_pool2d takes the mean of each window", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (pool p : pools)
    for (const auto& x :
         {numbers<T>({2, 3, 7, 9}), numbers<T>({1, 1, 5, 37}), numbers<T>({0, 3, 7, 9})}) {
      p.count_include_pad = true;
      check_mean(x, p);
      p.count_include_pad = false;
      check_mean(x, p);
      p.divisor = 7;
      check_mean(x, p);
      p.divisor = 0;
    }
  check_mean(numbers<T>({3, 2, 4, 5}), {.kernel = {4, 5}});
  check_mean(numbers<T>({2, 5, 40, 30}), {.kernel = {33, 30}, .stride = 1});
}

namespace {

/// Channels last: the same memory, seen so.
template <class T>
std::vector<T> reordered(const std::vector<T>& x, index_t n, index_t c, index_t pixels) {
  std::vector<T> y(x.size());
  for (index_t i = 0; i < n; ++i)
    for (index_t k = 0; k < c; ++k)
      for (index_t p = 0; p < pixels; ++p)
        y[static_cast<std::size_t>((i * pixels + p) * c + k)] =
            x[static_cast<std::size_t>((i * c + k) * pixels + p)];
  return y;
}

struct sizes4 {
  index_t n, c, h, w;
  xla::detail::shape shape(bool last) const {
    return last ? xla::detail::shape{4, {n, h, w, c}} : xla::detail::shape{4, {n, c, h, w}};
  }
};

/// The op's result is the same, bit by bit, whether channels are the first axis or the last.
template <class Op, class T>
void check_orders(typename Op::attributes a, const sizes4& to, std::initializer_list<sizes4> from) {
  std::vector<T> results[2];
  for (const bool last : {false, true}) {
    a.channels_last = last;
    std::vector<std::vector<T>> in;
    std::vector<const void*> pointers;
    std::vector<xla::detail::shape> shapes;
    for (const sizes4& s : from) {
      auto x = numbers<T>({s.n, s.c, s.h, s.w}, in.size()).to_vector();
      for (T& v : x) v = std::round(v * 2) / 2;  // with equals
      in.push_back(last ? reordered(x, s.n, s.c, s.h * s.w) : x);
      shapes.push_back(s.shape(last));
    }
    for (const auto& x : in) pointers.push_back(x.data());
    const xla::detail::shape out = to.shape(last);
    std::vector<T> y(static_cast<std::size_t>(count(out)), T(77));
    xla::detail::kernel_call call;
    call.out = y.data();
    call.in = pointers.data();
    call.in_shapes = shapes.data();
    call.out_shape = &out;
    call.attr = pack(a, xla::detail::size_scope{nullptr, "pool"});
    xla::detail::kernel_entry<Op, T, T>::run(call);
    results[last] = last ? y : reordered(y, to.n, to.c, to.h * to.w);
  }
  CHECK(results[0] == results[1]);
}

}  // namespace

TEMPLATE_TEST_CASE("pools read channels first and channels last alike", "", float, double) {
  using T = TestType;
  namespace op = xla::op;
  const xla::eager_mode_guard eager;
  const op::pooling::attributes by_2{.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 1}},
      dense{.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}, shared{.adaptive = true};
  for (const index_t channels : {1, 3, 37, 130}) {
    const sizes4 x{2, channels, 9, 12}, small{2, channels, 5, 7}, same = x, few{2, channels, 4, 5};
    for (const auto& [a, y] : {std::pair(by_2, small), {dense, same}, {shared, few}}) {
      check_orders<op::max_pool, T>(a, y, {x});
      check_orders<op::max_pool_scatter, T>(a, x, {y, x});
      check_orders<op::max_pool_gather, T>(a, y, {x, x});
      check_orders<op::avg_pool, T>(a, y, {x});
      check_orders<op::avg_pool_backward, T>(a, x, {y});
    }
  }
  // Long rows: planes that are turned, and planes that no cache has.
  for (const auto& [x, y] : {std::pair(sizes4{1, 6, 5, 70}, sizes4{1, 6, 3, 36}),
                             {sizes4{1, 5, 200, 170}, sizes4{1, 5, 101, 86}}}) {
    check_orders<op::max_pool, T>(by_2, y, {x});
    check_orders<op::max_pool_scatter, T>(by_2, x, {y, x});
    check_orders<op::avg_pool, T>(by_2, y, {x});
  }
}

TEMPLATE_TEST_CASE("pools of maxima say where these are", "", float, double, std::int32_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (const auto& x :
       {numbers<T>({2, 3, 7, 9}), numbers<T>({1, 1, 5, 37}), numbers<T>({0, 3, 7, 9})})
    for (const pool& p : pools) {
      const auto [y, i] = max_pool2d_with_indices(
          x, p.kernel, {.stride = p.stride, .padding = p.padding, .ceil_mode = p.ceil_mode});
      check_equal(y,
                  max_pool2d(x, p.kernel,
                             {.stride = p.stride, .padding = p.padding, .ceil_mode = p.ceil_mode}));
      check_equal(gather(xla::flatten<2>(x), 2, xla::flatten<2>(i)), xla::flatten<2>(y));
    }
  const auto line = numbers<T>({2, 3, 11});
  const auto [y, i] = max_pool1d_with_indices(line, 3, {.stride = 2});
  check_equal(gather(line, 2, i), y);
  const auto [shares, where] = adaptive_max_pool1d_with_indices(line, 4);
  check_equal(gather(line, 2, where), shares);
  check_equal(adaptive_max_pool2d_with_indices(unsqueeze(line, 2), {1, 4}).second,
              unsqueeze(where, 2));
  // The first of equals; 0 where every place of the window is outside of the image.
  const auto equals = xla::tensor<T>({{{1, 2, 2, 2}, {2, 1, 2, 0}}});
  check_equal(max_pool2d_with_indices(equals, 2).second, {1, 1, 2}, std::vector<index_t>{1, 2});
  check_equal(max_pool2d_with_indices(xla::tensor<T>({{{1, 2, 3, 4}}}), {2, 1},
                                      {.padding = {1, 0}, .dilation = {2, 1}})
                  .second,
              {1, 1, 4}, std::vector<index_t>{0, 0, 0, 0});
}

TEST_CASE("max_unpool puts maxima back") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{{1, 5, 2, 0, 9}, {3, 4, 8, 7, 9}, {6, 6, 6, 6, 6}}});
  const auto [y, i] = max_pool2d_with_indices(x, 2);
  check_equal(i, {1, 1, 2}, std::vector<index_t>{1, 7});
  const auto back = max_unpool2d(y, i, 2, {.output_size = {3, 5}});
  check_equal(back, {1, 3, 5}, std::vector<float>{0, 5, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0});
  check_equal(max_unpool2d(y, xla::tensor<index_t>({{{0, 6}}}), 2), {1, 2, 4},
              std::vector<float>{5, 0, 0, 0, 0, 0, 8, 0});
  check_equal(max_unpool1d(xla::tensor<float>({{3, 4}}), xla::tensor<index_t>({{0, 0}}), 2), {1, 4},
              std::vector<float>{4, 0, 0, 0});
  check_equal(max_unpool2d(numbers<float>({0, 2, 2, 2}), xla::zeros<index_t>({0, 2, 2, 2}), 2),
              numbers<float>({0, 2, 4, 4}));
  CHECK_THROWS_AS(max_unpool2d(y, xla::tensor<index_t>({{{0, 8}}}), 2), xla::index_error);
  CHECK_THROWS_WITH(max_unpool2d(y, xla::tensor<index_t>({{{0, 8}}}), 2),
                    test::contains("max_unpool2d: "));
  CHECK_THROWS_WITH(max_unpool2d(y, i, 2, {.output_size = {4, 5}}),
                    test::contains("max_unpool2d: an output_size of 4 along the height is not "
                                   "within a stride of (1 - 1) * 2 - 2 * 0 + 2 = 2"));
  CHECK_THROWS_WITH(max_unpool1d(xla::select(y, 0, 0), xla::select(i, 0, 0), 2, {.padding = 2}),
                    test::contains("max_unpool1d: nothing is left along the length: (2 - 1) * 2 - "
                                   "2 * 2 + 2 is below 1"));
  CHECK_THROWS_WITH(
      max_unpool2d(x, i, 2),
      test::contains("indices of shape (1, 1, 1, 2) for a tensor of shape (1, 1, 3, 5)"));
}

TEST_CASE("pools of signals, and without a batch") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 11});
  const auto image = unsqueeze(x, 2);
  check_equal(max_pool1d(x, 3, {.stride = 2, .padding = 1, .dilation = 2, .ceil_mode = true}),
              xla::squeeze<2>(max_pool2d(
                  image, {1, 3},
                  {.stride = {1, 2}, .padding = {0, 1}, .dilation = {1, 2}, .ceil_mode = true})));
  check_equal(
      avg_pool1d(x, 4, {.padding = 2, .count_include_pad = false}),
      xla::squeeze<2>(avg_pool2d(image, {1, 4}, {.padding = {0, 2}, .count_include_pad = false})));
  check_equal(adaptive_max_pool1d(x, 4), xla::squeeze<2>(adaptive_max_pool2d(image, {1, 4})));
  check_equal(adaptive_avg_pool1d(x, xla::none), x);
  const auto one = xla::select(x, 0, 1);
  check_equal(max_pool1d(one, 3), xla::select(max_pool1d(x, 3), 0, 1));
  check_equal(avg_pool1d(one, 3), xla::select(avg_pool1d(x, 3), 0, 1));
  check_equal(adaptive_avg_pool1d(one, 2), xla::select(adaptive_avg_pool1d(x, 2), 0, 1));
  check_equal(adaptive_max_pool1d(one, 2), xla::select(adaptive_max_pool1d(x, 2), 0, 1));
  check_equal(max_pool2d(x, {3, 2}), xla::squeeze<0>(max_pool2d(unsqueeze(x, 0), {3, 2})));
  check_equal(avg_pool2d(x, {3, 2}), xla::squeeze<0>(avg_pool2d(unsqueeze(x, 0), {3, 2})));
  check_equal(adaptive_avg_pool2d(x, {2, xla::none}),
              xla::squeeze<0>(adaptive_avg_pool2d(unsqueeze(x, 0), {2, 11})));
  check_equal(adaptive_max_pool2d(x, 2), xla::squeeze<0>(adaptive_max_pool2d(unsqueeze(x, 0), 2)));
}

TEST_CASE("adaptive pools share images out") {
  const xla::eager_mode_guard eager;
  for (const HeightWidth size : {HeightWidth(1), {3, 2}, {7, 9}, {10, 4}}) {
    const auto x = numbers<double>({2, 3, 7, 9});
    std::vector<double> means, largest;
    for (index_t plane = 0; plane < 6; ++plane)
      for (index_t i = 0; i < size.height; ++i)
        for (index_t j = 0; j < size.width; ++j) {
          double sum = 0, best = -9;
          const index_t r = i * 7 / size.height, c = j * 9 / size.width;
          const index_t r_end = ((i + 1) * 7 + size.height - 1) / size.height,
                        c_end = ((j + 1) * 9 + size.width - 1) / size.width;
          for (index_t a = r; a < r_end; ++a)
            for (index_t b = c; b < c_end; ++b) {
              sum += x.data()[(plane * 7 + a) * 9 + b];
              best = std::max(best, x.data()[(plane * 7 + a) * 9 + b]);
            }
          means.push_back(sum / static_cast<double>((r_end - r) * (c_end - c)));
          largest.push_back(best);
        }
    const xla::ImageSize to(size.height, size.width);
    check_equal(adaptive_avg_pool2d(x, to), {2, 3, size.height, size.width}, means, 1e-14);
    check_equal(adaptive_max_pool2d(x, to), {2, 3, size.height, size.width}, largest);
  }
}

TEST_CASE("a long mean is exact, NaN wins and has the gradient") {
  const xla::eager_mode_guard eager;
  const auto all = xla::full<float>({1, 1, 1000, 1000}, 0.1f);
  CHECK(std::abs(adaptive_avg_pool2d(all, 1).to_vector()[0] - 0.1f) < 2e-8f);
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  auto x = test::parameter(xla::tensor<float>({{{1, nan, 5, nan, 2, 2, -inf, -inf}}}));
  const auto y = max_pool1d(x, 4);
  check_equal(y, {1, 1, 2}, std::vector<float>{nan, 2});
  sum(y * xla::tensor<float>({3, 4})).backward();
  check_equal(x.grad(), {1, 1, 8}, std::vector<float>{0, 0, 0, 3, 4, 0, 0, 0});
  x.zero_grad();
  sum(max_pool1d(x, 2, {.stride = 6})).backward();
  check_equal(x.grad(), {1, 1, 8}, std::vector<float>{0, 1, 0, 0, 0, 0, 1, 0});
}

TEST_CASE("the gradients of pools, and theirs") {
  const auto x = numbers<double>({2, 2, 5, 6});
  const auto twice = [](auto f) {
    return [f](auto& a) {
      const auto y = f(a);
      return xla::grad(sum(y * y * y), a, {.create_graph = true});
    };
  };
  const auto largest = [](auto& a) {
    return max_pool2d(a, {3, 2}, {.stride = {1, 2}, .padding = 1, .dilation = {1, 2}});
  };
  const auto mean = [](auto& a) {
    return avg_pool2d(a, 3,
                      {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
  };
  const auto shared = [](auto& a) {
    return adaptive_avg_pool2d(a, {3, 4}) * adaptive_max_pool2d(a, {3, 4});
  };
  const auto scaled = [](auto& a) {
    return avg_pool2d(a, {2, 3}, {.stride = 1, .padding = {1, 1}, .divisor_override = 5});
  };
  test::check_gradient(largest, x);
  test::check_gradient(twice(largest), x);
  test::check_gradient(twice(twice(largest)), x);
  test::check_gradient(mean, x);
  test::check_gradient(twice(mean), x);
  test::check_gradient(shared, x);
  test::check_gradient(twice(shared), x);
  test::check_gradient(scaled, x);
  const auto back = [](auto& a) {
    const auto [y, i] = max_pool2d_with_indices(a, 2, {.stride = {1, 2}});
    return max_unpool2d(y, i, 2, {.stride = {1, 2}});
  };
  test::check_gradient(back, x);
  test::check_gradient(twice(back), x);
}

TEST_CASE("pools are the same in every mode") {
  const auto train = [](auto& w, auto& x) {
    const auto y = max_pool2d(w * 2, 3, {.stride = 2, .padding = 1});
    const auto z = avg_pool2d(x * w, {3, 2}, {.stride = 1, .padding = {1, 0}, .ceil_mode = true});
    const auto s = adaptive_avg_pool2d(w, 1) + adaptive_max_pool2d(x + w, {xla::none, 1});
    const auto first = xla::grad(sum(y * y * y), w, {.create_graph = true});
    const auto loss = sum(first * first) + sum(z * z) + sum(s * s);
    loss.backward();
    const auto [most, where] = max_pool2d_with_indices(x * 2, {1, 2});
    const auto [shares, places] = adaptive_max_pool2d_with_indices(x, {xla::none, 1});
    return std::tuple(loss, y, z, s, where, places,
                      max_unpool2d(most, where, {1, 2}, {.output_size = {x.size(2), x.size(3)}}),
                      max_pool2d(x, 1, {.stride = 3}) + 1,
                      max_pool2d(x, 3, {.stride = 2, .padding = 1, .ceil_mode = true}),
                      avg_pool1d(flatten<0, 1>(x), 2, {.padding = 1}));
  };
  const auto check = [&](const auto& a, const auto& b) {
    test::check_modes(train, test::parameter(a), b);
  };
  check(numbers<float>({2, 3, 7, 9}), numbers<float>({2, 3, 7, 9}, 1));
  check(numbers<float>({1, 37, 4, 5}), numbers<float>({1, 37, 4, 5}, 1));
  check(numbers<float>({0, 3, 7, 9}), numbers<float>({0, 3, 7, 9}, 1));
  check(numbers<float>({3, 1, 1, 2}), numbers<float>({3, 1, 1, 2}, 1));
}

TEST_CASE("sizes that are known when a compiled pool is called") {
  auto net = xla::compile([](const auto& x) {
    return std::tuple(
        max_pool2d(x, 3, {.stride = 2, .padding = 1}) + avg_pool2d(x, {1, 1}, {.stride = 2}),
        avg_pool2d(x, 5, {.stride = 3, .ceil_mode = true}),
        adaptive_avg_pool2d(x, {x.size(2) - 2, 3}));
  });
  const auto [a, b, c] = net(numbers<float>({2, 3, 9, 12}));
  CHECK(a.sizes() == test::sizes_t{2, 3, 5, 6});
  CHECK(b.sizes() == test::sizes_t{2, 3, 3, 4});
  CHECK(c.sizes() == test::sizes_t{2, 3, 7, 3});
  CHECK_THROWS_WITH(net(numbers<float>({2, 3, 2, 12})),
                    test::contains("avg_pool2d") && test::contains("has to be at least 3"));
  CHECK_THROWS_AS(net(numbers<float>({2, 3, 9, 0})), xla::shape_error);
}

TEST_CASE("pools that do not fit are refused with the formula") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4, 5});
  CHECK_THROWS_WITH(max_pool2d(x, 5),
                    test::contains("max_pool2d: no window fits along the height: (4 + 2 * 0 - 1 * "
                                   "(5 - 1) - 1) / 5 + 1 is below 1; take a smaller kernel"));
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.stride = 1, .dilation = {1, 5}}),
                    test::contains("along the width: (5 + 2 * 0 - 5 * (2 - 1) - 1) / 1 + 1"));
  CHECK_THROWS_WITH(avg_pool2d(x, 3, {.padding = 2}),
                    test::contains("avg_pool2d: a padding of 2 along the height is more than half "
                                   "of a kernel of 3"));
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.stride = 0}),
                    test::contains("max_pool2d: stride is 0, and has to be from 1 to 65536"));
  CHECK_THROWS_WITH(avg_pool2d(x, 0), test::contains("avg_pool2d: kernel is 0"));
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.padding = -1}), test::contains("padding is -1"));
  CHECK_THROWS_WITH(max_pool1d(xla::select(x, 0, 0), 6), test::contains("along the length: (5 +"));
  CHECK_THROWS_WITH(max_pool2d(numbers<float>({1, 1, 0, 3}), {2, 1}, {.padding = {1, 0}}),
                    test::contains("no window fits"));
  CHECK_THROWS_WITH(
      adaptive_avg_pool2d(x, {2, 0}),
      test::contains("adaptive_avg_pool2d: a size of 0 was asked for; it has to be at "
                     "least 1"));
  CHECK_THROWS_WITH(adaptive_max_pool1d(numbers<float>({2, 3, 0}), 2),
                    test::contains("adaptive_max_pool1d: an image of (2, 3, 1, 0) is empty"));
}
