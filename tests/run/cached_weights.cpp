// SPDX-License-Identifier: Apache-2.0
// Weights as kernels read them, convolutions' and rounded ones: kept between calls that only read
// them.
#include <array>
#include <thread>
#include <vector>

#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::numbers;
namespace nn = xla::nn;

namespace {

/// Every way to pack weights: by taps, pieces of few channels, depthwise, as a matrix, phases of a
/// transposed convolution, Winograd's.
struct Net {
  nn::Conv2d<3, 1, 1> stem{3, 16};
  nn::Conv2d<3, 1, 1, 1, 16> depthwise{16, 16};
  nn::Conv2d<3, 1, 1> wide{16, 64};
  nn::Conv2d<1> point{64, 32};
  nn::ConvTranspose2d<3, 2, 1> up{32, 5};
  constexpr auto operator()(const xla::Tensor<float, 4>& x) const {
    return up(point(xla::relu(wide(depthwise(stem(x))))));
  }
  XLA_MODULE(stem, depthwise, wide, point, up)
};

constexpr auto call = [](auto& net, auto& x) { return net(x); };
constexpr auto training_step = [](auto& layer, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mean(layer(x));
  loss.backward();
  optimizer.step();
  return loss;
};
using compiled = decltype(xla::compile(call));

/// The same values in memory of their own, of which nothing is kept.
Net fresh(const Net& from) {
  Net to;
  to.stem.weight.copy_(from.stem.weight + 0.f);
  to.stem.bias.copy_(from.stem.bias + 0.f);
  to.depthwise.weight.copy_(from.depthwise.weight + 0.f);
  to.depthwise.bias.copy_(from.depthwise.bias + 0.f);
  to.wide.weight.copy_(from.wide.weight + 0.f);
  to.wide.bias.copy_(from.wide.bias + 0.f);
  to.point.weight.copy_(from.point.weight + 0.f);
  to.point.bias.copy_(from.point.bias + 0.f);
  to.up.weight.copy_(from.up.weight + 0.f);
  to.up.bias.copy_(from.up.bias + 0.f);
  return to;
}

std::vector<float> eager(const Net& net, const xla::Tensor<float, 4>& x) {
  const xla::eager_mode_guard guard;
  return net(x).to_vector();
}
/// Calls until all is kept, and once more.
std::vector<float> often(auto&& f) {
  const auto first = f();
  for (int i = 0; i < 2; ++i) CHECK(f() == first);
  return first;
}

constexpr int wide_taps = 16 * 64 * 9;

}  // namespace

TEST_CASE(
    "packed weights are cached from the second call on, counted, and freed with the weights") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({1, 3, 12, 12}, 1);
  compiled predict = xla::compile(call);
  auto other = numbers<float>({1, 3, 12, 11}, 2);
  const auto before = xla::memory_allocated();
  std::int64_t left = 0;
  {
    Net net;
    const auto weights = xla::memory_allocated();
    const auto kept = predict.memory_analysis(net, x).cached;
    CHECK(kept > 4 * wide_taps * 16 / 9);
    const auto y = predict(net, x).to_vector();
    const auto once = xla::memory_allocated();
    CHECK(predict(net, x).to_vector() == y);
    CHECK(xla::memory_allocated() == once + kept);
    CHECK(predict(net, x).to_vector() == y);
    CHECK(xla::memory_allocated() == once + kept);
    CHECK(y == eager(fresh(net), x));

    // Of images of another size they are the same.
    for (int i = 0; i < 3; ++i) predict(net, other);
    left = xla::memory_allocated() - weights - kept;
    CHECK(predict(net, other).to_vector() == eager(fresh(net), other));
  }
  CHECK(xla::memory_allocated() == before + left);  // arenas
}

TEST_CASE("every way to write weights is seen") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({1, 3, 12, 12}, 1);
  compiled predict = xla::compile(call);
  Net net;
  const auto run = [&] { return predict(net, x).to_vector(); };
  auto last = often(run);
  const auto is_seen = [&] {
    CHECK(run() != last);
    last = often(run);
    CHECK(last == eager(fresh(net), x));
  };

  net.wide.weight.copy_(net.wide.weight * 0.5f);
  is_seen();
  const auto all = net.wide.weight.detach();
  net.wide.weight.copy_(all);  // the same elements, which now have two owners
  CHECK(run() == last);

  Net other;
  xla::load_state_dict(net, xla::state_dict(other));
  is_seen();
  net = Net{};
  is_seen();

  // In place, where what was kept goes at once.
  auto half = xla::compile([](auto& n) {
    n.wide.weight.copy_(n.wide.weight * 0.5f);
    n.up.weight.copy_(n.up.weight * 0.5f);
  });
  half(net);  // makes room
  is_seen();
  const float* const place = net.wide.weight.data();
  const auto holding = xla::memory_allocated();
  half(net);
  CHECK(net.wide.weight.data() == place);
  CHECK(xla::memory_allocated() < holding - 4 * wide_taps * 16 / 9);
  is_seen();

  auto train = xla::compile(training_step);
  xla::optim::SGD optimizer{net, {.lr = 0.1f}};
  train(net, x, optimizer);
  is_seen();
  CHECK(train.memory_analysis(net, x, optimizer).cached == 0);
  const auto trained = xla::memory_allocated();
  train(net, x, optimizer);
  CHECK(xla::memory_allocated() < trained);  // what predict() has kept, and nothing of its own
  train(net, x, optimizer);
  is_seen();

  // A functional copy's weights are others, and the model's stay.
  auto copied = xla::compile([](auto& n, auto& image) {
    auto fast = xla::functional_copy(n);
    fast.wide.weight.copy_(fast.wide.weight * 2);
    return fast(image);
  });
  const auto doubled = often([&] { return copied(net, x).to_vector(); });
  CHECK(run() == last);
  net.wide.weight.copy_(net.wide.weight * 2);
  CHECK(eager(fresh(net), x) == doubled);
  CHECK(run() == doubled);
}

TEST_CASE("eager and traced mode keep as compiled functions do") {
  auto x = numbers<float>({1, 3, 12, 12}, 1);
  for (const bool eagerly : {true, false}) {
    CAPTURE(eagerly);
    const xla::eager_mode_guard guard(eagerly);
    Net net;
    xla::sync();
    const auto run = [&] { return net(x).to_vector(); };
    run();
    const auto once = xla::memory_allocated();
    const auto y = run();
    CHECK(xla::memory_allocated() > once + 4 * wide_taps * 16 / 9);
    CHECK(y == eager(fresh(net), x));
    for (int i = 0; i < 2; ++i) {
      net.wide.weight.copy_(net.wide.weight * 0.5f);
      xla::sync();
      const auto halved = often(run);
      CHECK(halved != y);
      CHECK(halved == eager(fresh(net), x));
    }
  }
  // A tensor that is written in place.
  const xla::eager_mode_guard guard;
  auto w = numbers<float>({32, 16, 3, 3}, 2);
  auto image = numbers<float>({1, 16, 14, 14}, 3);
  const auto run = [&] { return xla::conv2d(image, w, {.padding = 1}).to_vector(); };
  const auto y = often(run);
  const float* const place = w.data();
  w[0][0] = 7.f;
  CHECK(w.data() == place);
  const auto changed = often(run);
  CHECK(changed != y);
  w = w + 0.f;
  CHECK(run() == changed);
}

TEST_CASE("threads share what is kept") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({1, 3, 12, 12}, 1);
  compiled predict = xla::compile(call);
  for (int round = 0; round < 3; ++round) {
    Net net;
    const auto want = eager(fresh(net), x);
    std::array<std::thread, 4> threads;
    std::array<bool, 4> same{};
    for (std::size_t i = 0; i < threads.size(); ++i)
      threads[i] = std::thread([&, i] {
        same[i] = true;
        for (int k = 0; k < 4; ++k) same[i] = same[i] && predict(net, x).to_vector() == want;
      });
    for (auto& t : threads) t.join();
    for (const bool s : same) CHECK(s);
    CHECK(predict(net, x).to_vector() == want);
  }
}

TEST_CASE("a transposed convolution keeps one form of its weights for images of every size") {
  const xla::eager_mode_guard guard;
  nn::ConvTranspose2d<3, 2, 1> up{64, 32};
  const auto once = xla::memory_allocated();
  std::int64_t kept = 0;
  for (const xla::Size size : {4, 5, 6, 7}) {
    {
      const auto x = numbers<float>({1, 64, size, size}, 1);
      const auto want = up(x).to_vector();
      for (int i = 0; i < 2; ++i) CHECK(up(x).to_vector() == want);
    }
    const auto now = xla::memory_allocated() - once;
    if (size == 4) kept = now;
    CHECK(now == kept);
  }
  CHECK(kept >= 4 * 64 * 32 * 9);
}

TEST_CASE("Winograd's algorithm is forbidden to one compiled function") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({1, 3, 12, 12}, 1);
  Net net;
  compiled fast = xla::compile(call), plain = xla::compile(call, {.winograd = false});
  const auto with = fast(net, x), without = plain(net, x);
  xla::set_winograd(false);
  const auto want = net(x);
  xla::sum(want).backward();
  const auto gradient = net.wide.weight.grad().to_vector();
  const auto before = net.stem.weight.grad().to_vector();
  xla::set_winograd(true);
  CHECK(without.to_vector() == want.to_vector());
  CHECK(with.to_vector() != want.to_vector());
  // backward() outside takes no other way.
  for (auto* p : {&net.stem.weight, &net.depthwise.weight, &net.wide.weight}) p->zero_grad();
  xla::sum(without).backward();
  CHECK(net.wide.weight.grad().to_vector() == gradient);
  CHECK(net.stem.weight.grad().to_vector() == before);
  {
    const test::on_backend interpreter("interpreter");
    CHECK(plain(net, x).to_vector() == want.to_vector());
    CHECK(fast(net, x).to_vector() == with.to_vector());
  }

  // Which way each step takes, and in which order images are, is to be seen.
  CHECK_THAT(fast.graph(xla::Stage::planned, net, x),
             contains("channels_last : float32 (1, 12, 12, 64) by winograd") &&
                 contains(" by small groups, caches ") && contains("map") && contains(" relu") &&
                 !contains("direct : "));
  CHECK_THAT(plain.graph(xla::Stage::planned, net, x),
             contains("channels_last direct : float32 (1, 12, 12, 64) by direct, caches 36864 "
                      "bytes") &&
                 !contains("by winograd"));
  const xla::Profile p = xla::profile(fast, net, x);
  bool seen = false;
  for (const xla::ProfileStep& s : p.steps()) {
    if (!contains("144x64x144").match(s.name)) continue;
    seen = true;
    CHECK_THAT(s.algorithm, contains("winograd"));
    CHECK_THAT(s.name, contains("convolution 144x64x144 winograd") && contains(" channels_last"));
    CHECK_THAT(s.attributes, contains("stride (1, 1) padding (1, 1, 1, 1)"));
    CHECK(s.cached > 4 * wide_taps * 16 / 9);
  }
  CHECK(seen);
  CHECK_THAT(p.to_json(), contains("\"algorithm\":\"winograd"));
}

#if defined(XLA_EXTERN_RUNTIME)  // programs of headers alone do not pack matrices
TEST_CASE("a matrix by which some rows are multiplied is cached packed: the same bits") {
  const xla::eager_mode_guard guard;
  constexpr std::int64_t in = 97, out = 200;
  nn::LinearNoBias layer{in, out};
  auto predict = xla::compile(layer);
  // By the same values in memory of their own, of which nothing is kept.
  const auto want = [&](const auto& rows) {
    const auto weight = layer.weight.detach() + 0.f;
    return xla::matmul(rows, xla::transpose(weight)).to_vector();
  };
  auto few = numbers<float>({4, in}, 1), some = numbers<float>({10, in}, 2),
       more = numbers<float>({256, in}, 3), many = numbers<float>({257, in}, 4);
  const auto kept = predict.memory_analysis(some).cached;
  CHECK(kept >= 4 * in * out);
  CHECK(predict.memory_analysis(more).cached == kept);
  CHECK(predict.memory_analysis(few).cached == 0);
  CHECK(predict.memory_analysis(many).cached == 0);
  CHECK(predict(some).to_vector() == want(some));
  const auto once = xla::memory_allocated();
  for (int i = 0; i < 2; ++i) CHECK(predict(some).to_vector() == want(some));
  CHECK(xla::memory_allocated() == once + kept);
  for (auto* const rows : {&few, &more, &many})  // of other numbers of rows it is the same
    for (int i = 0; i < 2; ++i) CHECK(predict(*rows).to_vector() == want(*rows));
  for (std::int64_t m = 5; m < 30; ++m) {
    auto rows = numbers<float>({m, in}, 5);
    CHECK(layer(rows).to_vector() == want(rows));
  }

  // It goes with what it was made of.
  layer.weight.copy_(layer.weight * 3);
  for (int i = 0; i < 3; ++i) CHECK(predict(some).to_vector() == want(some));
  // As it is, next to transposed, and with a left operand that is transposed.
  auto square = numbers<float>({in, in}, 6);
  auto pair = xla::compile([](auto& w, auto& a, auto& b) {
    return std::tuple(matmul(a, w), matmul(a, transpose(w)), matmul(transpose(b), w));
  });
  auto column = numbers<float>({in, 10}, 7);
  const auto first = pair(square, some, column);
  for (int i = 0; i < 2; ++i) {
    const auto again = pair(square, some, column);
    CHECK(std::get<0>(again).to_vector() == std::get<0>(first).to_vector());
    CHECK(std::get<1>(again).to_vector() == std::get<1>(first).to_vector());
    CHECK(std::get<2>(again).to_vector() == std::get<2>(first).to_vector());
  }
  const auto turned = xla::transpose(square) + 0.f;
  CHECK(std::get<1>(first).to_vector() == xla::matmul(some, turned).to_vector());

  // A step that writes the weights keeps nothing.
  auto train = xla::compile(training_step);
  xla::optim::SGD optimizer{layer, {.lr = 0.1f}};
  train(layer, some, optimizer);
  CHECK(train.memory_analysis(layer, some, optimizer).cached == 0);
  for (int i = 0; i < 3; ++i) CHECK(predict(some).to_vector() == want(some));
}
#endif

TEST_CASE("weights of small m in autocast are cached rounded: half the bytes, the same bits") {
  const xla::eager_mode_guard guard;
  constexpr std::int64_t in = 97, out = 200;
  nn::LinearNoBias layer{in, out};
  auto x = numbers<float>({2, in}, 1), many = numbers<float>({5, in}, 2);
  auto predict = xla::compile(xla::autocast(layer));
  const auto want = [&](const auto& rows) { return xla::autocast(layer)(rows).to_vector(); };
  CHECK(predict.memory_analysis(x).cached == 2 * in * out);
  CHECK(predict.memory_analysis(many).cached == 0);
  CHECK(predict(x).to_vector() == want(x));
  const auto once = xla::memory_allocated();
  for (int i = 0; i < 2; ++i) CHECK(predict(x).to_vector() == want(x));
  CHECK(xla::memory_allocated() == once + 2 * in * out);
  CHECK(predict(many).to_vector() == want(many));
  CHECK_THAT(predict.graph(xla::Stage::planned, x), contains("caches 38800 bytes"));

  // They go with what they were made of.
  layer.weight.copy_(layer.weight * 3);
  for (int i = 0; i < 3; ++i) CHECK(predict(x).to_vector() == want(x));
  // Read transposed, as one column, and where more than one product reads them.
  auto pair = xla::compile(xla::autocast([](auto& l, auto& a, auto& column) {
    return std::tuple(matmul(a, transpose(l.weight)), matmul(l.weight, column), l(a));
  }));
  auto column = numbers<float>({in}, 3);
  const auto first = pair(layer, x, column);
  for (int i = 0; i < 2; ++i) {
    const auto again = pair(layer, x, column);
    CHECK(std::get<0>(again).to_vector() == want(x));
    CHECK(std::get<1>(again).to_vector() == std::get<1>(first).to_vector());
    CHECK(std::get<2>(again).to_vector() == want(x));
  }
  // A step that writes them keeps nothing.
  auto train = xla::compile(xla::autocast(training_step));
  xla::optim::SGD optimizer{layer, {.lr = 0.1f}};
  train(layer, x, optimizer);
  CHECK(train.memory_analysis(layer, x, optimizer).cached == 0);
  for (int i = 0; i < 3; ++i) CHECK(predict(x).to_vector() == want(x));
}
