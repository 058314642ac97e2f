// SPDX-License-Identifier: Apache-2.0
// Values are laid out as ops prefer; what a program means does not depend on it.
#include <Eigen/Core>
#include <algorithm>
#include <string>

#include "support/layouts.hpp"
#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/io/npy.hpp"
#include "xla/xla.hpp"

using test::numbers;
using xla::Tensor;

namespace {

/// x * (1 + c) for image n, channel c, row h and column w, and the last two exchanged with the
/// channels where it finds them innermost. A wrong order gives wrong numbers.
struct scaled_channels {
  static constexpr auto name = "scaled_channels";
  static constexpr auto kind = xla::detail::op_kind::library;
  static constexpr xla::detail::layout nhwc{0, 2, 3, 1};
  struct attributes {
    bool channels_last = false;
    XLA_ATTRIBUTES(channels_last)
  };
  static constexpr xla::detail::shape shape_of(const xla::detail::shape_rule& r) { return r.in[0]; }
  static constexpr void preferred_layout(xla::detail::op_record& n, xla::detail::layout* inputs,
                                         xla::detail::layout& result) {
    n.set<scaled_channels>({.channels_last = true});
    inputs[0] = result = nhwc;
  }
  static constexpr void gradient(auto& g);
};

template <class T, int R>
constexpr Tensor<T, R> scale_channels(const Tensor<T, R>& x) {
  return xla::detail::apply<scaled_channels, T, T, R>(xla::detail::plain, x);
}

constexpr void scaled_channels::gradient(auto& g) { g.to(0, scale_channels(g.grad())); }

/// a + 2 * b + 4 * c + 8 * d + 16 * e of images whose channels are innermost.
struct weighed {
  static constexpr auto name = "weighed";
  static constexpr auto kind = xla::detail::op_kind::library;
  static constexpr xla::detail::shape shape_of(const xla::detail::shape_rule& r) { return r.in[0]; }
  static constexpr void preferred_layout(xla::detail::op_record&, xla::detail::layout* inputs,
                                         xla::detail::layout& result) {
    for (int k = 0; k < 5; ++k) inputs[k] = scaled_channels::nhwc;
    result = scaled_channels::nhwc;
  }
};

template <class T>
constexpr Tensor<T, 4> weigh(const std::array<Tensor<T, 4>, 5>& x) {
  return xla::detail::apply<weighed, T, T, 4>(xla::detail::plain, x[0], x[1], x[2], x[3], x[4]);
}

int times(const std::string& word, const std::string& text) {
  int n = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

XLA_DETAIL_OP_ID(scaled_channels);
XLA_DETAIL_OP_ID(weighed);

template <class Out, class T>
struct xla::detail::kernel_of<scaled_channels, Out, T> {
  static void run(const kernel_call& call) {
    const shape& s = call.in_shapes[0];
    const bool last = call.attributes<scaled_channels>().channels_last;
    const std::int64_t channels = last ? s[3] : s[1], inner = last ? 1 : s[2] * s[3];
    for (std::int64_t i = 0; i < count(s); ++i)
      static_cast<T*>(call.out)[i] =
          static_cast<const T*>(call.in[0])[i] * static_cast<T>(1 + i / inner % channels);
  }
};

template <class Out, class T>
struct xla::detail::kernel_of<weighed, Out, T> {
  static void run(const kernel_call& call) {
    for (std::int64_t i = 0; i < count(*call.out_shape); ++i) {
      T sum{};
      for (int k = 4; k >= 0; --k) sum = 2 * sum + static_cast<const T*>(call.in[k])[i];
      static_cast<T*>(call.out)[i] = sum;
    }
  }
};

TEST_CASE("preferred layouts propagate through elementwise ops, with copies at the ends") {
  const auto net = [](auto& x, auto& bias, auto& rows) {
    const auto a = scale_channels(x);
    const auto b = xla::relu(a + reshape(bias, {-1, 1, 1})) * 0.5;
    const auto c = scale_channels(b) + a;
    const auto d = where(c > 0.25, c, rows);
    return std::tuple(xla::flatten<1>(scale_channels(d)), b);
  };
  const auto x = numbers<float>({2, 3, 4, 5});
  const auto bias = numbers<float>({3}, 1);
  const auto rows = numbers<float>({4, 5}, 2);
  test::check_modes<xla::tags::verified>(net, x, bias, rows);
  test::check_modes<xla::tags::verified>(net, numbers<float>({1, 1, 1, 7}), numbers<float>({1}),
                                   numbers<float>({1, 7}));
  const auto graph = xla::compile(net).graph("layouts", x, bias, rows);
  INFO(graph);
  // Of x and of both results; bias and rows, whose axes keep their order, only get others.
  CHECK(times(" = copy(", graph) == 3);
  CHECK(times("){1,3,2,0}", graph) == 12);

  const auto plain = xla::compile<xla::tags::without<"layouts">>(net);
  CHECK(times("copy(", plain.graph("sink_draws", x, bias, rows)) == 0);
}

namespace {

/// Copies that the pass puts into the graph of a function of tensors.
int copies(const auto& f, auto... x) {
  const auto graph = xla::compile(f).graph("layouts", x...);
  UNSCOPED_INFO(graph);
  return times(" = copy(", graph);
}

/// Each channel less its mean over all images and places, over its deviation.
template <class T>
constexpr Tensor<T, 4> normalize_channels(const Tensor<T, 4>& x) {
  const auto centered = x - mean(x, {0, 2, 3}, xla::keepdim);
  return centered * rsqrt(mean(centered * centered, {0, 2, 3}, xla::keepdim) + 1e-5);
}

}  // namespace

TEST_CASE("statistics of channels are sums of columns, and nothing is copied between") {
  const auto step = [](auto& x, auto& weight) {
    const auto per_channel = reshape(weight, {-1, 1, 1});
    const auto a = scale_channels(x.detach() * per_channel);
    const auto b = xla::relu(normalize_channels(a) * per_channel);
    const auto s = sum(square(scale_channels(b + a)), {0, 2, 3});
    sum(s).backward();
    return std::tuple(s);
  };
  const xla::eager_mode_guard eager;
  for (const auto& size :
       {test::sizes_t{2, 3, 4, 5}, {3, 35, 33, 31}, {1, 9, 7, 5}, {1, 1, 1, 2}, {5, 40, 1, 1}}) {
    const auto x = numbers<float>({size[0], size[1], size[2], size[3]});
    const auto w = test::parameter(numbers<float>({size[1]}, 1));
    test::check_modes<xla::tags::verified>(step, x, w);
  }
  // Of x times weight, and of x for the gradient of weight.
  const auto w = test::parameter(numbers<float>({3}, 1));
  const auto x = numbers<float>({2, 3, 4, 5});
  CHECK(copies(step, x, w) == 2);
  // They are made where their input is, but for those of what a copy makes.
  const auto lowered = xla::compile(step).graph(xla::Stage::lowered, x, w);
  CHECK(times("image_sum(", lowered) == 0);
  CHECK(times(": row kernel", lowered) >= 3);
}

TEST_CASE("sums over all but the channels do not depend on the number of threads") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({3, 70, 33, 31});
  const test::restore_threads guard(1);
  const auto want = sum(x, {0, 2, 3}).to_vector();
  for (const int threads : {2, 5}) {
    xla::set_num_threads(threads);
    CHECK(sum(x, {0, 2, 3}).to_vector() == want);
  }
  const auto exact = sum(xla::cast<double>(x), {0, 2, 3}).to_vector();
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(want[i] == Approx(exact[i]).margin(1e-4).epsilon(0));
}

TEST_CASE("an order goes on through parts, joins, borders and other numbers of axes") {
  const auto net = [](auto& x) {
    const auto a = scale_channels(x);
    const auto [left, right] = xla::chunk<2>(a, 1);
    const auto b = xla::cat({tanh(right), left, left * 0.5}, 1);
    const auto c = xla::pad(b, {{0, 0}, {0, 0}, {1, 2}, {0, 1}}, 0.25);
    const auto d = scale_channels(slice(flip(c, {3}), 2, 0, xla::none, 2));
    const auto lines = flatten<2>(d);
    const auto e = squeeze<2>(unsqueeze(lines - sum(lines, {0}, xla::keepdim), 2)) * 0.5;
    const auto f = scale_channels(reshape(e, {e.size(0), e.size(1), d.size(2), d.size(3)}));
    return std::tuple(argmax(f, 1, xla::keepdim), permute(f, {0, 2, 3, 1}));
  };
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 6, 4, 5});
  test::check_modes<xla::tags::verified>(net, x);
  test::check_modes<xla::tags::verified>(net, numbers<float>({1, 2, 1, 1}));
  CHECK(copies(net, x) == 1);

  const auto shuffle = [](auto& x) {
    const auto groups = unflatten(scale_channels(x), 1, {3, -1});
    return std::tuple(
        permute(scale_channels(flatten<1, 2>(transpose(groups, 1, 2))), {0, 2, 3, 1}));
  };
  test::check_modes<xla::tags::verified>(shuffle, x);
  CHECK(copies(shuffle, x) == 2);

  const auto flat = [](auto& x) {
    const auto a = scale_channels(x);
    return std::tuple(tanh(flatten<1>(a)), mean(a, {2, 3}),
                      flatten<1>(mean(a, {0, 2, 3}, xla::keepdim)));
  };
  test::check_modes<xla::tags::verified>(flat, x);
  CHECK(copies(flat, x) == 2);
}

namespace {

/// As in detectors: two heads of few channels, whose results are joined.
struct heads {
  xla::nn::Conv2d<1> face{6, 2}, box{6, 4};
  constexpr auto operator()(const Tensor<float, 4>& x) const {
    return xla::cat({xla::softmax(face(x), 1), box(x)}, 1);
  }
  XLA_MODULE(face, box)
};

}  // namespace

TEST_CASE("rows of few channels are copied where an operand has one channel, or they are joined") {
  const auto net = [](auto& model, auto& x) { return std::tuple(model(x)); };
  const xla::eager_mode_guard eager;
  heads model;
  const auto x = numbers<float>({2, 6, 5, 7});
  test::check_modes<xla::tags::verified>(net, model, x);
  CHECK(copies(net, model, x) == 3);  // of x and of both heads
  const auto graph = xla::compile(net).graph("layouts", model, x);
  INFO(graph);
  CHECK(graph.find("){0,2,3,1}", graph.rfind(" = copy(")) == graph.npos);
}

TEST_CASE("an op of more than three inputs prefers an order of each") {
  const auto net = [](auto& x, auto& y) {
    const auto a = scale_channels(x);
    return std::tuple(weigh<float>({y, a, y * 0.5, tanh(a), x}), sum(x));
  };
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4, 5}), y = numbers<float>({2, 3, 4, 5}, 1);
  test::check_modes<xla::tags::verified>(net, x, y);
  CHECK(copies(net, x, y) == 4);  // of x, y, y * 0.5 and the result
}

namespace {

/// Ranks, element types, broadcasts and sums of all kinds.
struct mixture {
  template <class W>
  constexpr auto operator()(W& w, Tensor<float, 3>& x, Tensor<double, 2>& y,
                            Tensor<std::int64_t, 1>& i) const {
    const auto h = tanh(x * w + 0.5) - sum(x, {2}, xla::keepdim) * 0.125;
    const auto d = xla::cast<double>(h) * y + xla::cast<double>(i);
    const auto big = where(d > 0 && xla::cast<bool>(i), d, y);
    const auto e = h.detach() * max(h, {2}, xla::keepdim) + softmax(h);
    (sum(e * e * w) * 0.01).backward();
    x += e;
    w.copy_(w * 0.5 + sum(e, {0, 1}));
    const auto six = xla::unsqueeze(xla::unsqueeze(xla::unsqueeze(e, 0), 2), 0);
    return std::tuple(xla::cast<float>(big) + e, mean(d, {0, 2}), six * 2 + six, i * 3 - i, i > 1,
                      gather(e, 2, xla::cast<std::int64_t>(e > 0)));
  }
};

/// What goes over axes in some way, and results that other ops read in another.
struct images {
  template <class W>
  constexpr auto operator()(W& w, Tensor<float, 4>& x, Tensor<float, 4>& y) const {
    const auto a = tanh(x * reshape(w, {-1, 1, 1}) + y);
    const auto b = xla::cat({a, y * 0.5, slice(a, 1, 0, 1)}, 1);
    const auto c = xla::pad(flip(b, {2}), {{1, 0}, {0, 0}, {2, 1}, {0, 1}}, 0.25);
    const auto d = narrow(c, 0, 0, x.size(0)) *
                   expand(mean(c, {0, 2, 3}, xla::keepdim), {-1, -1, c.size(2), c.size(3)});
    const auto e = flatten<2>(permute(d, {0, 2, 1, 3}) * 0.5);
    const auto f = unflatten(e - max(e, {1}, xla::keepdim), 2, {d.size(1), -1});
    const auto g = squeeze<3>(unsqueeze(f + 1, 3) * 2);
    (sum(square(d)) * 0.01 + sum(a * g.size(1)) * 0.25).backward();
    x += a;
    return std::tuple(sum(d, {0}), sum(d, {1}), sum(d, {2, 3}), sum(d, {0, 2, 3}), sum(d, {0, 1}),
                      sum(d, {0, 1, 2}), sum(d, {1, 2, 3}), sum(d, {3}), sum(d), max(f, {0, 2, 3}),
                      xla::prod(tanh(g), {1}), argmax(g * 2, 1), g, transpose(e) + 1,
                      weigh<float>({x, a, y, a * y, y - a}),
                      sum(xla::cast<std::int64_t>(d * 8), {0, 2}));
  }
};

}  // namespace

TEST_CASE("a capture that copies make larger has room for them") {
  const auto chain = [](auto& x, auto& y) {
    auto h = x;
    for (int i = 0; i < 100; ++i) h = tanh(h) * y;
    return std::tuple(test::shuffled(h, 3));
  };
  test::check_modes<xla::tags::verified>(chain, numbers<float>({2, 3}), numbers<float>({2, 3}, 1));
}

TEST_CASE("any order of any value gives the same bits") {
  const xla::eager_mode_guard eager;
  const auto w = test::parameter(numbers<float>({5}, 1));
  const auto y = numbers<double>({4, 5});
  const auto i = numbers<std::int64_t>({5});
  for (const std::int64_t n : {3, 1}) {
    const auto x = numbers<float>({n, 4, 5}) * 0.25;
    test::check_modes<xla::tags::verified>(test::fixed_shuffled_program<1, mixture>{}, w, x, y, i);
    const auto want = test::run_mode<test::mode::eager>(mixture{}, w, x, y, i);
    for (unsigned seed = 0; seed < 50; ++seed) {
      INFO("seed " << seed);
      const test::shuffled_program<mixture> f{{}, seed};
      REQUIRE(test::run_mode<test::mode::traced>(f, w, x, y, i).difference(want) == "");
    }
  }
}

TEST_CASE("any order of images, their parts and sums gives the same bits") {
  const xla::eager_mode_guard eager;
  for (const auto& size : {test::sizes_t{2, 3, 4, 5}, {3, 1, 6, 1}, {1, 17, 1, 2}}) {
    const auto x = numbers<float>({size[0], size[1], size[2], size[3]});
    const auto y = numbers<float>({size[0], size[1], size[2], size[3]}, 1);
    const auto w = test::parameter(numbers<float>({size[1]}, 1));
    test::check_modes<xla::tags::verified>(test::fixed_shuffled_program<2, images>{}, w, x, y);
    const auto want = test::run_mode<test::mode::eager>(images{}, w, x, y);
    for (unsigned seed = 0; seed < 50; ++seed) {
      INFO("seed " << seed);
      const test::shuffled_program<images> f{{}, seed};
      REQUIRE(test::run_mode<test::mode::traced>(f, w, x, y).difference(want) == "");
    }
  }
}

namespace {

/// A residual block of convolutions, each with the normalisation of its channels, between a stem
/// and a classifier.
struct residual_net {
  template <class W>
  constexpr auto operator()(W& stem, W& a, W& b, W& shortcut, Tensor<float, 4>& x) const {
    const auto y = relu(normalize_channels(conv2d(x.detach(), stem, {.padding = 1})));
    const auto h = relu(normalize_channels(conv2d(y, a, {.stride = 2, .padding = 1})));
    const auto side = normalize_channels(conv2d(y, shortcut, {.stride = 2}));
    const auto z = relu(normalize_channels(conv2d(h, b, {.padding = 1})) + side);
    const auto scores = flatten<1>(mean(z, {2, 3}, xla::keepdim));
    auto loss = cross_entropy(scores, xla::cast<std::int64_t>(max(flatten<1>(x), {1}) > 0.5));
    loss.backward();
    stem -= stem.grad() * 0.1;
    return std::tuple(loss, scores);
  }
};

/// The same as a residual net's first block on lines.
struct line_net {
  template <class W>
  constexpr auto operator()(W& a, W& b, Tensor<float, 3>& x) const {
    const auto h = relu(conv1d(x.detach(), a, {.padding = 1}));
    const auto y = tanh(conv1d(h * 0.5, b, {.padding = 1}) + h);
    const auto s = sum(square(y));
    s.backward();
    return std::tuple(s);
  }
};

}  // namespace

TEST_CASE("between convolutions nothing is copied, forward and backward") {
  const xla::eager_mode_guard eager;
  const auto weight = [](std::int64_t out, std::int64_t in, std::int64_t k) {
    return test::parameter(numbers<float>({out, in, k, k}, static_cast<int>(out)) * 0.25);
  };
  const auto stem = weight(6, 3, 3), a = weight(8, 6, 3), b = weight(8, 8, 3), c = weight(8, 6, 1);
  const auto x = numbers<float>({2, 3, 9, 7});
  test::check_modes<xla::tags::verified>(residual_net{}, stem, a, b, c, x);
  test::check_modes<xla::tags::verified>(residual_net{}, stem, a, b, c,
                                         numbers<float>({1, 3, 1, 1}));
  CHECK(copies(residual_net{}, stem, a, b, c, x) == 1);  // of x
  {
    const auto want = test::run_mode<test::mode::eager>(residual_net{}, stem, a, b, c, x);
    const test::traced_without layouts("-layouts");
    CHECK(test::run_mode<test::mode::traced>(residual_net{}, stem, a, b, c, x).difference(want) ==
          "");
  }

  const auto w = test::parameter(numbers<float>({4, 3, 3}) * 0.25);
  const auto v = test::parameter(numbers<float>({4, 4, 3}, 1) * 0.25);
  const auto line = numbers<float>({2, 3, 10});
  test::check_modes<xla::tags::verified>(line_net{}, w, v, line);
  CHECK(copies(line_net{}, w, v, line) == 2);  // of x, and of what is summed whole
}

TEST_CASE("eager mode keeps the order that an op makes, and every reader finds rows") {
  const auto net = [](auto& x, auto& w, auto& v, auto& bias) {
    const auto a = relu(conv2d(x, w, bias, {.padding = 1})) * 0.5;
    const auto b = conv2d(max_pool2d(xla::cat({a, a + 1}, 1), 2), v, {.groups = 4});
    const auto smooth = xla::interpolate(avg_pool2d(b, {2, 1}),
                                         {.size = {3, 4}, .mode = xla::Interpolation::bilinear});
    const auto c = conv2d(normalize_channels(smooth) + 0.5, v, {.groups = 4});
    return std::tuple(a, c, permute(b, {0, 2, 3, 1}), sum(a, {0, 2, 3}), slice(c, 1, 1, 3));
  };
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 6, 5}), w = numbers<float>({4, 3, 3, 3}),
             v = numbers<float>({8, 2, 1, 1}, 1);
  const auto bias = numbers<float>({4}, 2);
  test::check_modes<xla::tags::verified>(net, x, w, v, bias);
  const auto want = test::run_mode<test::mode::eager>(net, x, w, v, bias);
  {
    const test::traced_without layouts("-layouts");
    CHECK(test::run_mode<test::mode::traced>(net, x, w, v, bias).difference(want) == "");
  }
  const auto copies = [] { return xla::counter_value("layout::copy").value_or(0); };
  const auto before = copies();
  const auto [a, c, turned, sums, part] = net(x, w, v, bias);
  CHECK(copies() == before + 1);  // of x
  const auto values = a.to_vector();
  CHECK(flatten(a).to_vector() == values);
  CHECK(a.to_vector() == values);
  CHECK(copies() == before + 3);  // a for the host, and flat
  const std::int64_t h = c.size(2), k = c.size(3);
  const auto rows = xla::from_blob(c.data(), {2, 8, h, k});
  CHECK(xla::io::to_npy(c) == xla::io::to_npy(rows));
  CHECK(part.to_vector() == slice(rows, 1, 1, 3).to_vector());
  CHECK(xla::as_eigen(c[1][2]).isApprox(xla::as_eigen(rows[1][2]), 0));
  CHECK(c[1][2][0][1].item() == rows[1][2][0][1].item());
  const auto images = permute(xla::from_blob(turned.data(), {2, 3, 2, 8}), {0, 3, 1, 2});
  CHECK(permute(turned, {0, 3, 1, 2}).to_vector() == images.to_vector());
}
