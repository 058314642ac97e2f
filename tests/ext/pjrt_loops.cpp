// SPDX-License-Identifier: Apache-2.0
// Loops on XLA: what this library's backends make of them, with every gradient.
#include <array>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/backends.hpp"
#include "support/pjrt.hpp"
#include "support/pjrt_training.hpp"
#include "support/random_loop.hpp"
#include "xla/loop/scan_layers.hpp"

namespace {

using arrays = std::vector<std::vector<float>>;

/// The backend: XLA through its plugin, or the one that XLA_BACKEND names.
const char* there() {
  const char* const named = std::getenv("XLA_BACKEND");
  return named ? named : "pjrt:CPU";
}

template <class... T>
arrays all_of(const std::tuple<T...>& results) {
  return std::apply([](const auto&... t) { return arrays{t.to_vector()...}; }, results);
}

/// What a function returns, then the gradients of its arguments, which are its own; of one without
/// a gradient nothing.
template <class F, class... A>
arrays made_on(const char* backend, const F& f, A... arguments) {
  const xla::eager_mode_guard eager;
  const test::on_backend plan("native");
  auto compiled = xla::compile(f, {.backend = backend});
  arrays all = all_of(compiled(arguments...));
  const auto add = [&](const auto& grad) {
    all.push_back(grad.defined() ? grad.to_vector() : std::vector<float>());
  };
  (add(arguments.grad()), ...);
  return all;
}
template <class F, class... A>
void check_there(const F& f, const A&... arguments) {
  const arrays got = made_on(there(), f, arguments...),
               want = made_on("native", f, arguments...);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("array " << i);
    CHECK(test::largest_difference(got[i], want[i]) < 1e-4);
  }
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("random loops there", "", ((unsigned Seed), Seed), 1, 2, 3) {
  if (!test::plugin_is_there()) return;
  for (const auto& [n, steps] : {std::pair{4, 3}, {1, 1}, {3, 0}}) {
    const test::loop_arguments a(n, steps);
    INFO("size " << n);
    check_there(test::fixed_loop<Seed, 6>(), a.v, a.w, a.xs);
  }
}

TEST_CASE("a recurrence of many steps, forwards and back") {
  if (!test::plugin_is_there()) return;
  const auto network = [](auto& xs, auto& w) {
    const auto step = [&](const auto& h, const auto& x) {
      const auto next = tanh(matmul(h, w) + x);
      return std::pair(next, next * x);
    };
    const auto h = xla::zeros_like(xla::select(xs, 0, 0));
    const auto [a, there] = xla::scan(step, h, xs);
    const auto [b, back] = xla::scan(step, h, xs, {.reverse = true});
    const auto loss = mean(there * back) + sum(a * b);
    loss.backward();
    return std::tuple(loss, there, back);
  };
  const auto xs = test::parameter(test::numbers<float>({100, 3, 4}, 1));
  const auto w = test::parameter(test::numbers<float>({4, 4}, 2) * 0.5f);
  check_there(network, xs, w);
}

TEST_CASE("branches there, with gradients, and loops with a condition") {
  if (!test::plugin_is_there()) return;
  const auto f = [](auto& p, auto& w, auto& x) {
    const auto y = xla::cond(
        sum(p) > 0, [&] { return tanh(matmul(x, w)) * x; }, [&] { return x * x - w; });
    const auto [grown, n] = xla::while_loop(
        [&](const auto& c) { return sum(c.first * c.first) < 50; },
        [&](const auto& c) { return std::pair(c.first * 1.5f + 1, c.second + 1); },
        std::pair(x.detach(), xla::zeros_like(sum(p))));
    const auto loss = sum(y * w * grown);
    loss.backward();
    return std::tuple(loss, y, grown, n);
  };
  const auto w = test::parameter(test::numbers<float>({4, 4}, 1));
  const auto x = test::parameter(test::numbers<float>({4, 4}, 2));
  for (float p : {-1.0f, 1.0f}) check_there(f, test::parameter(xla::full<float>({2}, p)), w, x);
}

namespace {

struct noisy {
  xla::nn::Linear first{8, 16}, second{16, 4};
  xla::nn::BatchNorm1d norm{16};
  xla::nn::Dropout drop{0.25};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return second(drop(xla::relu(norm(first(x)))));
  }
  XLA_MODULE(first, second, norm, drop)
};

/// Whole steps, in a loop in a loop, each taken where its loss is finite.
constexpr auto epochs = [](auto& model, auto& opt, auto& xs, auto& ys) {
  const auto step = [&](const auto&, const auto& batch) {
    const auto& [x, y] = batch;
    opt.zero_grad();
    auto loss = xla::mean(xla::square(model(x) - y));
    loss.backward();
    xla::cond(
        xla::isfinite(loss.detach()), [&] { opt.step(); }, [&] {});
    return std::pair(std::tuple<>(), loss.detach());
  };
  const auto epoch = [&](const auto&, const auto& sum_of) {
    return sum_of + sum(xla::scan(step, std::tuple<>(), std::tuple(xs, ys)).second);
  };
  return xla::fori_loop(0, 2, epoch, xla::zeros_like(sum(xs)));
};

}  // namespace

TEST_CASE("numbers drawn in loops there are the library's own") {
  if (!test::plugin_is_there()) return;
  const auto draws = [](auto& x, auto& xs) {
    const auto body = [&](const auto& c, const auto& row) {
      const auto noise = xla::rand_like(row);
      const auto inner = [&](const auto&, const auto& d) { return d * noise + xla::rand_like(d); };
      return std::pair(xla::fori_loop(0, 2, inner, c), noise);
    };
    const auto [last, ys] = xla::scan(body, x + xla::rand_like(x), xs, {.reverse = true});
    return std::tuple(last, ys, xla::rand_like(x));
  };
  for (const std::int64_t steps : {0, 1, 4}) {
    const auto made = [&](const char* backend) {
      xla::manual_seed(5);
      return made_on(backend, draws, test::numbers<float>({7}), test::numbers<float>({steps, 7}));
    };
    const arrays got = made(there()), want = made("native");
    CHECK(got[1] == want[1]);
    CHECK(got[2] == want[2]);
    CHECK(test::largest_difference(got[0], want[0]) < 1e-6);
  }
}

TEST_CASE("training steps there, with dropout, running statistics and branches that write") {
  if (!test::plugin_is_there()) return;
  xla::manual_seed(1);
  const noisy start;
  const auto trained = [&](const char* backend, bool frozen) {
    const test::on_backend here("native");
    auto compiled = xla::compile(epochs, {.backend = backend});
    xla::manual_seed(2);
    noisy model = start;
    model.first.weight.requires_grad_(!frozen);
    xla::optim::SGD opt{model, {.lr = 0.05f, .momentum = 0.9f}};
    auto xs = test::numbers<float>({3, 6, 8}), ys = test::numbers<float>({3, 6, 4}) * 0.5f;
    arrays all{compiled(model, opt, xs, ys).to_vector(), model.norm.running_mean.to_vector()};
    all.push_back(test::weights_of(model));
    return all;
  };
  for (const bool frozen : {false, true}) {
    const arrays got = trained(there(), frozen), want = trained("native", frozen);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("array " << i << ", frozen " << frozen);
      CHECK(test::largest_difference(got[i], want[i]) < 1e-4);
    }
  }
}

namespace {

struct block {
  xla::nn::Linear up{6, 10}, down{10, 6};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    const auto h = xla::tanh(up(x));
    return std::pair(x + down(h), h);
  }
  XLA_MODULE(up, down)
};
struct deep {
  std::array<block, 3> blocks;
  XLA_MODULE(blocks)
};
constexpr auto deep_step = [](auto& model, auto& opt, auto& x) {
  opt.zero_grad();
  const auto [y, kept] = xla::scan_layers(model.blocks, x, {.checkpoint_every = 1});
  auto loss = xla::mean(xla::square(y)) + xla::mean(kept);
  loss.backward();
  opt.step();
  return std::pair(y.detach(), kept.detach());
};

}  // namespace

TEST_CASE("steps of blocks in a loop over their parameters there, with checkpoints") {
  if (!test::plugin_is_there()) return;
  xla::manual_seed(3);
  const deep start;
  const auto trained = [&](const char* backend) {
    const test::on_backend here("native");
    auto compiled = xla::compile(deep_step, {.backend = backend});
    deep model = start;
    xla::optim::SGD opt{model, {.lr = 0.1f}};
    auto x = test::numbers<float>({4, 6});
    compiled(model, opt, x);
    const auto [y, kept] = compiled(model, opt, x);
    return arrays{y.to_vector(), kept.to_vector(), test::weights_of(model)};
  };
  const arrays got = trained(there()), want = trained("native");
  CHECK(want[2] != test::weights_of(start));
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("array " << i);
    CHECK(test::largest_difference(got[i], want[i]) < 1e-5);
  }
}
