// SPDX-License-Identifier: Apache-2.0
// What makes images of images: other sizes, borders, windows as columns.
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/interpolate.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/pixel_shuffle.hpp"
#include "xla/op/unfold.hpp"

using test::check_equal;
using test::contains;
using test::numbers;
using index_t = std::int64_t;
using xla::Interpolation;
using xla::PadMode;

namespace {

/// Each element of a tensor of these sizes is f(batch * channel, row, column).
template <class T, class F>
std::vector<T> each(index_t planes, index_t height, index_t width, F f) {
  std::vector<T> all;
  for (index_t p = 0; p < planes; ++p)
    for (index_t i = 0; i < height; ++i)
      for (index_t k = 0; k < width; ++k) all.push_back(static_cast<T>(f(p, i, k)));
  return all;
}

/// The numbers of the two elements between which place i of n is, and how near the second is.
struct between {
  index_t a, b;
  double near;
  between(index_t i, index_t n, index_t from, double step, bool corners) {
    const double at =
        corners ? n > 1 ? static_cast<double>(i * (from - 1)) / static_cast<double>(n - 1) : 0
                : std::max((static_cast<double>(i) + 0.5) * step - 0.5, 0.0);
    a = std::min(static_cast<index_t>(at), from - 1);
    b = std::min(a + 1, from - 1);
    near = std::min(at - static_cast<double>(a), 1.0);
  }
};

void check_bilinear(const xla::Tensor<double, 4>& x, index_t height, index_t width, double down,
                    double right, bool corners, const xla::InterpolateOptions& options) {
  const index_t h = x.size(2), w = x.size(3), planes = x.size(0) * x.size(1);
  check_equal(
      interpolate(x, options), {x.size(0), x.size(1), height, width},
      each<double>(planes, height, width,
                   [&](index_t p, index_t i, index_t k) {
                     const between r(i, height, h, down, corners), c(k, width, w, right, corners);
                     const double* plane = x.data() + p * h * w;
                     const auto row = [&](index_t at) {
                       return (1 - c.near) * plane[at * w + c.a] + c.near * plane[at * w + c.b];
                     };
                     return (1 - r.near) * row(r.a) + r.near * row(r.b);
                   }),
      1e-13);
}

/// The weight of an element so far from a place, by Keys' convolution with a = -3/4.
double cubic(double away) {
  const double a = -0.75, x = std::abs(away);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

void check_bicubic(const xla::Tensor<double, 4>& x, index_t height, index_t width, double down,
                   double right, const xla::InterpolateOptions& options) {
  const index_t h = x.size(2), w = x.size(3), planes = x.size(0) * x.size(1);
  const auto place = [&](index_t i, index_t n, index_t from, double step) {
    if (!options.align_corners) return (static_cast<double>(i) + 0.5) * step - 0.5;
    return n > 1 ? static_cast<double>(i * (from - 1)) / static_cast<double>(n - 1) : 0;
  };
  check_equal(interpolate(x, options), {x.size(0), x.size(1), height, width},
              each<double>(planes, height, width,
                           [&](index_t p, index_t i, index_t k) {
                             const double y = place(i, height, h, down),
                                          z = place(k, width, w, right);
                             double sum = 0;
                             for (index_t a = -3; a < h + 3; ++a)
                               for (index_t b = -3; b < w + 3; ++b)
                                 sum += cubic(y - static_cast<double>(a)) *
                                        cubic(z - static_cast<double>(b)) *
                                        x.data()[(p * h + std::clamp<index_t>(a, 0, h - 1)) * w +
                                                 std::clamp<index_t>(b, 0, w - 1)];
                             return sum;
                           }),
              1e-13);
}

/// The op's result is the same, bit by bit, whether channels are the first axis or the last.
template <class Op>
void check_orders(typename Op::attributes a, const xla::detail::shape& from,
                  const xla::detail::shape& to) {
  using xla::detail::shape;
  const auto last = [](const shape& s) {
    return s.rank == 4 ? shape{4, {s[0], s[2], s[3], s[1]}} : s;
  };
  const auto move = [](const std::vector<float>& x, const shape& s, bool back) {
    if (s.rank != 4) return x;
    std::vector<float> y(x.size());
    for (index_t i = 0; i < s[0] * s[1]; ++i)
      for (index_t p = 0; p < s[2] * s[3]; ++p) {
        const auto first = static_cast<std::size_t>(i * s[2] * s[3] + p),
                   then = static_cast<std::size_t>((i / s[1] * s[2] * s[3] + p) * s[1] + i % s[1]);
        y[back ? first : then] = x[back ? then : first];
      }
    return y;
  };
  const auto x = numbers<float>({count(from)}).to_vector();
  const auto run = [&](const std::vector<float>& in, const shape& in_shape,
                       const shape& out_shape) {
    std::vector<float> out(static_cast<std::size_t>(count(out_shape)), 77);
    const void* const inputs[] = {in.data()};
    xla::detail::kernel_call call;
    call.out = out.data();
    call.in = inputs;
    call.in_shapes = &in_shape;
    call.out_shape = &out_shape;
    call.attr = pack(a, xla::detail::size_scope{nullptr, "images"});
    xla::detail::kernel_entry<Op, float, float>::run(call);
    return out;
  };
  const auto want = run(x, from, to);
  if constexpr (requires { a.channels_last; }) a.channels_last = true;
  else a.axis = a.axis == 0 ? 0 : a.axis == 1 ? 3 : a.axis - 1;  // its place
  CHECK(move(run(move(x, from, false), last(from), last(to)), to, true) == want);
}

}  // namespace

TEST_CASE("interpolate mixes neighbours") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({2, 3, 5, 7});
  const auto mode = Interpolation::bilinear;
  check_bilinear(x, 10, 14, 0.5, 0.5, false, {.scale_factor = 2, .mode = mode});
  check_bilinear(x, 8, 3, 5. / 8, 7. / 3, false, {.size = {8, 3}, .mode = mode});
  check_bilinear(x, 8, 3, 0, 0, true, {.size = {8, 3}, .mode = mode, .align_corners = true});
  check_bilinear(x, 1, 1, 0, 0, true, {.size = 1, .mode = mode, .align_corners = true});
  check_bilinear(x, 6, 4, 1 / 1.3, 1 / 0.6, false, {.scale_factor = {1.3, 0.6}, .mode = mode});
  check_bilinear(x, 5, 9, 1, 7. / 9, false, {.size = {xla::none, 9}, .mode = mode});
  check_bilinear(numbers<double>({1, 1, 1, 1}), 3, 4, 0, 0, false, {.size = {3, 4}, .mode = mode});
  check_bilinear(numbers<double>({0, 2, 3, 3}), 6, 6, 0, 0, false, {.size = 6, .mode = mode});
  const auto line = xla::select(x, 2, 0);
  check_equal(interpolate(line, {.size = 11, .mode = Interpolation::linear}),
              xla::squeeze<2>(interpolate(unsqueeze(line, 2), {.size = {1, 11}, .mode = mode})));
  check_equal(interpolate(x, {.size = {2, 3}, .mode = Interpolation::area}),
              adaptive_avg_pool2d(x, {2, 3}));
  check_equal(interpolate(line, {.scale_factor = 0.5, .mode = Interpolation::area}),
              adaptive_avg_pool1d(line, 3));
}

TEST_CASE("interpolate by a cubic convolution") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({2, 3, 5, 7});
  const auto mode = Interpolation::bicubic;
  check_bicubic(x, 10, 14, 0.5, 0.5, {.scale_factor = 2, .mode = mode});
  check_bicubic(x, 8, 3, 5. / 8, 7. / 3, {.size = {8, 3}, .mode = mode});
  check_bicubic(x, 8, 3, 0, 0, {.size = {8, 3}, .mode = mode, .align_corners = true});
  check_bicubic(x, 1, 1, 0, 0, {.size = 1, .mode = mode, .align_corners = true});
  check_bicubic(x, 5, 7, 1 / 1.1, 1, {.scale_factor = {1.1, 1}, .mode = mode});
  check_bicubic(x, 5, 9, 1, 7. / 9, {.size = {xla::none, 9}, .mode = mode});
  check_bicubic(numbers<double>({1, 1, 1, 1}), 3, 4, 1. / 3, 0.25, {.size = {3, 4}, .mode = mode});
  check_bicubic(numbers<double>({0, 2, 3, 3}), 6, 6, 0, 0, {.size = 6, .mode = mode});
}

TEMPLATE_TEST_CASE("interpolate takes the nearest", "", float, index_t, std::uint8_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({2, 3, 5, 7});
  const auto check = [&](index_t h, index_t w, double down, double right, double middle,
                         const xla::InterpolateOptions& options) {
    check_equal(interpolate(x, options), {2, 3, h, w},
                each<T>(6, h, w, [&](index_t p, index_t i, index_t k) {
                  const auto at = [&](index_t place, double step, index_t n) {
                    return std::min(
                        static_cast<index_t>((static_cast<double>(place) + middle) * step), n - 1);
                  };
                  return x.data()[(p * 5 + at(i, down, 5)) * 7 + at(k, right, 7)];
                }));
  };
  check(15, 21, 1. / 3 + 1e-9, 1. / 3 + 1e-9, 0, {.scale_factor = 3});
  check(10, 14, 0.5, 0.5, 0, {.scale_factor = 2});
  check(3, 9, 5. / 3, 7. / 9, 0, {.size = {3, 9}});
  check(7, 4, 1 / 1.5, 1 / 0.6, 0, {.scale_factor = {1.5, 0.6}});
  check(3, 9, 5. / 3, 7. / 9, 0.5, {.size = {3, 9}, .mode = Interpolation::nearest_exact});
  check(5, 7, 1 / 1.1, 1 / 1.1, 0.5, {.scale_factor = 1.1, .mode = Interpolation::nearest_exact});
}

TEMPLATE_TEST_CASE("pad with a mirror, with borders, around a ring", "", float, std::int32_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const auto x = numbers<T>({3, 4, 5});
  const auto check = [&](PadMode mode, auto source) {
    check_equal(pad(x, {{0, 0}, {2, 3}, {1, 4}}, mode), {3, 9, 10},
                each<T>(3, 9, 10, [&](index_t p, index_t i, index_t k) {
                  return x.data()[(p * 4 + source(i - 2, 4)) * 5 + source(k - 1, 5)];
                }));
  };
  check(PadMode::reflect, [](index_t i, index_t n) {
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  });
  check(PadMode::replicate, [](index_t i, index_t n) { return std::clamp<index_t>(i, 0, n - 1); });
  check(PadMode::circular, [](index_t i, index_t n) { return (i + n) % n; });
  check_equal(pad(x, {{0, 0}, {0, 0}, {0, 0}}, PadMode::reflect), x);
  check_equal(pad(numbers<T>({1}), {{3, 2}}, PadMode::replicate), {6},
              std::vector<T>(6, numbers<T>({1}).data()[0]));
}

TEST_CASE("pixels are shuffled into squares, and back") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 18, 3, 5});
  const auto y = pixel_shuffle(x, 3);
  check_equal(y, {2, 2, 9, 15}, each<float>(4, 9, 15, [&](index_t p, index_t i, index_t k) {
                return x.data()[((p * 9 + i % 3 * 3 + k % 3) * 3 + i / 3) * 5 + k / 3];
              }));
  check_equal(pixel_unshuffle(y, 3), x);
  const auto one = xla::select(x, 0, 1);
  check_equal(pixel_shuffle(one, 3), xla::select(y, 0, 1));
  check_equal(pixel_unshuffle(pixel_shuffle(one, 3), 3), one);
}

TEMPLATE_TEST_CASE("unfold takes windows apart, fold adds them up", "", float, std::int32_t) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  struct example {
    index_t n, c, h, w, k[2], s[2], p[2], d[2];
  };
  for (const example& e : {example{2, 3, 6, 7, {3, 2}, {1, 1}, {0, 0}, {1, 1}},
                           {2, 3, 6, 7, {3, 2}, {2, 3}, {2, 1}, {1, 2}},
                           {1, 1, 1, 1, {1, 1}, {5, 5}, {3, 0}, {1, 1}},
                           {0, 2, 4, 4, {2, 2}, {1, 1}, {0, 0}, {1, 1}},
                           {1, 2, 4, 5, {4, 5}, {1, 1}, {0, 0}, {1, 1}}}) {
    const auto x = numbers<T>({e.n, e.c, e.h, e.w});
    const auto out = [&](index_t n, int i) {
      return (n + 2 * e.p[i] - e.d[i] * (e.k[i] - 1) - 1) / e.s[i] + 1;
    };
    const index_t rows = out(e.h, 0), columns = out(e.w, 1), taps = e.k[0] * e.k[1];
    std::vector<T> sums(static_cast<std::size_t>(e.n * e.c * e.h * e.w));
    const auto want =
        each<T>(e.n * e.c, taps, rows * columns, [&](index_t p, index_t tap, index_t window) {
          const index_t i = window / columns * e.s[0] - e.p[0] + tap / e.k[1] * e.d[0],
                        k = window % columns * e.s[1] - e.p[1] + tap % e.k[1] * e.d[1];
          if (i < 0 || i >= e.h || k < 0 || k >= e.w) return T(0);
          const index_t at = (p * e.h + i) * e.w + k;
          sums[static_cast<std::size_t>(at)] += x.data()[at];
          return x.data()[at];
        });
    const xla::UnfoldOptions options{
        .dilation = {e.d[0], e.d[1]}, .padding = {e.p[0], e.p[1]}, .stride = {e.s[0], e.s[1]}};
    const auto y = unfold(x, {e.k[0], e.k[1]}, options);
    check_equal(y, {e.n, e.c * taps, rows * columns}, want);
    check_equal(fold(y, {e.h, e.w}, {e.k[0], e.k[1]}, options), x.sizes(), sums, 1e-6);
  }
  const auto one = numbers<T>({2, 4, 5});
  check_equal(unfold(one, 2), xla::squeeze<0>(unfold(unsqueeze(one, 0), 2)));
  check_equal(fold(unfold(one, 2, {.stride = 2}), {4, 5}, 2, {.stride = 2})[0][0][0], one[0][0][0]);
}

TEST_CASE("images are read channels first and channels last alike") {
  namespace op = xla::op;
  using xla::detail::resampling;
  const xla::eager_mode_guard eager;
  for (const index_t channels : {1, 5}) {
    const xla::detail::shape x{4, {2, channels, 6, 7}}, tall{4, {2, channels, 9, 7}},
        wide{4, {2, channels, 6, 11}}, more{4, {3, channels, 6, 7}},
        deep{4, {2, channels + 1, 6, 7}}, columns{3, {2, 6 * channels, 12}};
    for (const auto way :
         {resampling::linear, resampling::cubic, resampling::nearest, resampling::replicate})
      for (const auto& [axis, y] : {std::pair(0, more), {1, deep}, {2, tall}, {3, wide}}) {
        const op::resample::attributes a{.axis = axis, .way = static_cast<int>(way), .before = 1};
        check_orders<op::resample>(a, x, y);
        check_orders<op::resample_backward>(a, y, x);
      }
    const op::unfold::attributes a{.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 1}};
    check_orders<op::unfold>(a, x, columns);
    check_orders<op::fold>(a, columns, x);
  }
}

TEST_CASE("the gradients of what makes images, and theirs") {
  const auto x = numbers<double>({2, 4, 3, 4});
  const auto check = [&](auto f) {
    test::check_gradient(f, x);
    test::check_gradient(
        [f](auto& a) {
          const auto y = f(a);
          return xla::grad(sum(y * y * y), a, {.create_graph = true});
        },
        x);
  };
  check([](auto& a) {
    return interpolate(a, {.scale_factor = {2, 0.75}, .mode = Interpolation::bilinear});
  });
  check([](auto& a) { return interpolate(a, {.size = {5, 3}, .mode = Interpolation::bicubic}); });
  check([](auto& a) { return interpolate(a, {.size = {7, 3}}) * 2; });
  check([](auto& a) {
    return pad(pad(a, {{0, 0}, {0, 0}, {1, 2}, {0, 3}}, PadMode::reflect),
               {{1, 0}, {0, 0}, {0, 2}, {1, 1}}, PadMode::circular);
  });
  check([](auto& a) {
    return fold(unfold(a, {2, 3}, {.padding = 1}) * 2, {3, 4}, {2, 3}, {.padding = 1});
  });
  check([](auto& a) { return pixel_shuffle(a, 2); });
}

TEST_CASE("images are made the same in every mode") {
  const auto train = [](auto& w, const auto& x) {
    const auto wide =
        interpolate(w * 2, {.scale_factor = {2, 1.5}, .mode = Interpolation::bilinear});
    const auto near = interpolate(x + w, {.size = {x.size(2) + 3, 3}}) +
                      interpolate(w, {.size = {x.size(2) + 3, 3}, .mode = Interpolation::bicubic});
    const auto bordered = pad(w, {{0, 0}, {0, 0}, {1, 2}, {0, 1}}, PadMode::replicate);
    const auto columns = unfold(w, {2, 1}, {.dilation = 1, .padding = {1, 0}, .stride = {1, 2}});
    const auto back = fold(columns * columns, {x.size(2), x.size(3)}, {2, 1},
                           {.dilation = 1, .padding = {1, 0}, .stride = {1, 2}});
    const auto first = xla::grad(sum(wide * wide * wide), w, {.create_graph = true});
    const auto loss = sum(first * first) + sum(near * near) + sum(bordered * bordered) + sum(back);
    loss.backward();
    return std::tuple(loss, wide, near, bordered, columns, back, pixel_unshuffle(wide, 1) - 1,
                      pixel_shuffle(xla::cat({x, x, x, x}, 1), 2) + 1,
                      pad(x, {{0, 0}, {0, 0}, {1, 0}, {0, 1}}, PadMode::circular) * 2);
  };
  const auto check = [&](const auto& a, const auto& b) {
    test::check_modes(train, test::parameter(a), b);
  };
  check(numbers<float>({2, 3, 7, 10}), numbers<float>({2, 3, 7, 10}, 1));
  check(numbers<float>({0, 3, 2, 4}), numbers<float>({0, 3, 2, 4}, 1));
  check(numbers<float>({1, 1, 1, 1}), numbers<float>({1, 1, 1, 1}, 1));
}

TEST_CASE("the nearest by a fractional scale is PyTorch's, of signals, small images and others") {
  const xla::eager_mode_guard eager;
  const auto line = [](index_t n) { return xla::cast<float>(xla::arange(n)); };
  const auto signal = [&](index_t n, double scale, const std::vector<float>& wanted) {
    const auto y = interpolate(reshape(line(n), {1, 1, n}), {.scale_factor = scale});
    CHECK(y.to_vector() == wanted);
  };
  const auto image = [&](index_t h, index_t w, const xla::ScaleFactor& by,
                         const std::vector<float>& wanted) {
    const auto x = xla::expand(reshape(line(w), {1, 1, 1, w}), {1, 2, h, w});
    const auto y = interpolate(x, {.scale_factor = by});
    CHECK(select(select(y, 1, 1), 1, 1).to_vector() == wanted);
    const auto turned = interpolate(transpose(x, 2, 3), {.scale_factor = {by.width, by.height}});
    check_equal(transpose(turned, 2, 3), y);
  };
  const std::vector<float> by_scale{0, 0, 0, 1, 1, 2}, by_sizes{0, 0, 1, 1, 2, 2};
  signal(4, 1.2, {0, 0, 1, 2});
  signal(3, 2.25, by_scale);
  image(11, 4, {2, 1.2}, {0, 1, 2, 3});
  image(11, 4, {18, 1.2}, {0, 0, 1, 2});
  image(5, 3, {2.25, 2.25}, by_sizes);
  image(60, 3, {2.25, 2.25}, by_scale);
  image(122, 3, {1, 2.25}, by_sizes);
  image(123, 3, {1, 2.25}, by_scale);
  // A size by its number goes by the sizes.
  check_equal(interpolate(reshape(line(3), {1, 1, 3}), {.size = 6}), {1, 1, 6}, by_sizes);
}

TEST_CASE("an image of which a call tells one size has the same nearest elements in every mode") {
  auto f = [](auto& x) {
    auto y = interpolate(xla::narrow(x, 3, 0, 4), {.scale_factor = {2, 1.2}});
    sum(y * y).backward();
    return y;
  };
  for (const index_t height : {5, 80})
    test::check_modes(f, test::parameter(numbers<float>({1, 2, height, 6})));
}

TEST_CASE("a compiled interpolation of a size that only a call tells") {
  auto net = xla::compile([](const auto& x) {
    return std::tuple(interpolate(x, {.scale_factor = 1.5}),
                      pad(x, {{0, 0}, {0, 0}, {0, 2}, {2, 0}}, PadMode::reflect),
                      pixel_unshuffle(x, 2));
  });
  const auto [a, b, c] = net(numbers<float>({2, 3, 4, 6}));
  CHECK(a.sizes() == test::sizes_t{2, 3, 6, 9});
  CHECK(b.sizes() == test::sizes_t{2, 3, 6, 8});
  CHECK(c.sizes() == test::sizes_t{2, 12, 2, 3});
  CHECK_THROWS_WITH(net(numbers<float>({2, 3, 2, 6})), contains("pad") && contains("at least 3"));
  CHECK_THROWS_AS(net(numbers<float>({2, 3, 5, 6})), xla::shape_error);
}

TEST_CASE("images that cannot be made are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4, 5});
  const auto bilinear = Interpolation::bilinear;
  CHECK_THROWS_WITH(interpolate(x, {}),
                    contains("interpolate: give either a size or a scale_factor"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 3, .scale_factor = 2}), contains("either"));
  CHECK_THROWS_WITH(interpolate(x, {.size = {0, 3}}),
                    contains("axis 2 of (2, 3, 4, 3) becomes 0; it has to be at least 1"));
  CHECK_THROWS_WITH(interpolate(x, {.scale_factor = 0.1}), contains("becomes 0"));
  CHECK_THROWS_WITH(interpolate(x, {.scale_factor = -1}), contains("has to be above 0"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 3, .mode = Interpolation::linear}),
                    contains("by mode bilinear or bicubic"));
  CHECK_THROWS_WITH(interpolate(xla::select(x, 0, 0), {.size = 3, .mode = bilinear}),
                    contains("by mode linear"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 3, .align_corners = true}), contains("align_corners"));
  CHECK_THROWS_WITH(interpolate(xla::cast<index_t>(x), {.size = 3, .mode = bilinear}),
                    contains("need float or double"));
  CHECK_THROWS_WITH(interpolate(numbers<float>({1, 1, 0, 2}), {.size = 3}), contains("are empty"));
  CHECK_THROWS_WITH(pad(x, {{0, 0}, {0, 0}, {4, 0}, {0, 0}}, PadMode::reflect),
                    contains("pad: {4, 0} for axis 2 of (2, 3, 4, 5) needs 5 elements there"));
  CHECK_THROWS_WITH(pad(x, {{0, 0}, {0, 0}, {0, 5}, {0, 0}}, PadMode::circular),
                    contains("needs 5"));
  CHECK_THROWS_WITH(pad(x, {{0, 0}, {0, 0}, {-1, 0}, {0, 0}}, PadMode::replicate),
                    contains("sizes of 0 or more"));
  CHECK_THROWS_WITH(pixel_shuffle(x, 2),
                    contains("pixel_shuffle: channels of 3 do not divide by 4"));
  CHECK_THROWS_WITH(pixel_unshuffle(x, 2), contains("columns of 5 do not divide by 2"));
  CHECK_THROWS_WITH(pixel_shuffle(x, 0), contains("a factor of 0"));
  CHECK_THROWS_WITH(unfold(x, 5), contains("unfold: no window fits along the height: (4 + 2 * 0"));
  CHECK_THROWS_WITH(unfold(x, 0), contains("unfold: kernel is 0"));
  CHECK_THROWS_WITH(
      fold(xla::select(x, 0, 0), {4, 5}, 2),
      contains("fold: columns of shape (3, 4, 5) are not those of a kernel of 2 * 2 at "
               "3 * 4 places"));
}
