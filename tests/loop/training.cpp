// SPDX-License-Identifier: Apache-2.0
// The body of a loop is a whole training step: n steps in one call are n calls, bit by bit.
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"
#include "xla/nn/batch_norm.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/clip.hpp"
#include "xla/optim/nadam.hpp"
#include "xla/optim/sgd.hpp"

using test::numbers;

namespace {

struct mlp {
  xla::nn::Linear first{8, 16}, second{16, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return second(xla::tanh(first(x)));
  }
  XLA_MODULE(first, second)
};

struct noisy {
  xla::nn::Linear first{8, 16}, second{16, 4};
  xla::nn::BatchNorm1d norm{16};
  xla::nn::Dropout drop{0.25};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return second(drop(xla::relu(norm(first(x)))));
  }
  XLA_MODULE(first, second, norm, drop)
};

constexpr auto loss_of = [](auto& model, const auto& x, const auto& y) {
  return xla::mean(xla::square(model(x) - y));
};

/// One step.
constexpr auto step = [](auto& model, auto& opt, const auto& x, const auto& y) {
  opt.zero_grad();
  auto loss = loss_of(model, x, y);
  loss.backward();
  opt.step();
  return loss.detach();
};
/// The gradients are dropped after it.
constexpr auto step_and_drop = [](auto& model, auto& opt, const auto& x, const auto& y) {
  auto loss = loss_of(model, x, y);
  loss.backward();
  xla::optim::clip_grad_norm_(model, 0.5f);
  opt.step();
  opt.zero_grad();
  return loss.detach();
};
/// They are dropped nowhere: those of all steps are added up.
constexpr auto step_on = [](auto& model, auto& opt, const auto& x, const auto& y) {
  auto loss = loss_of(model, x, y);
  loss.backward();
  opt.step();
  return loss.detach();
};

/// Steps as a scan over batches, and by their number.
template <class Step>
struct scanned {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys) const {
    const auto body = [&](const auto&, const auto& batch) {
      const auto& [x, y] = batch;
      return std::pair(std::tuple<>(), Step()(model, opt, x, y));
    };
    return xla::scan(body, std::tuple<>(), std::tuple(xs, ys)).second;
  }
};
template <class Step>
struct counted {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys) const {
    const auto body = [&](const auto& i, const auto& sum_of) {
      const auto row = xla::reshape(i, {1});
      const auto x = xla::squeeze<0>(xla::index_select(xs, 0, row));
      const auto y = xla::squeeze<0>(xla::index_select(ys, 0, row));
      return sum_of + Step()(model, opt, x, y);
    };
    return xla::fori_loop(0, xs.size(0), body, xla::tensor(0.0f));
  }
};

/// Several steps in each turn.
template <class Step>
struct scanned_in_turns {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys) const {
    const auto body = [&](const auto& n, const auto& batch) {
      const auto& [x, y] = batch;
      return std::pair(n + 1, Step()(model, opt, x, y));
    };
    const auto n = xla::tensor<std::int64_t>(0);
    return xla::scan(body, n, std::tuple(xs, ys), {.unroll = 2}).second;
  }
};
template <class Step>
struct counted_in_turns {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys) const {
    const auto body = [&](const auto& i, const auto& sum_of) {
      const auto row = xla::reshape(i, {1});
      const auto x = xla::squeeze<0>(xla::index_select(xs, 0, row));
      const auto y = xla::squeeze<0>(xla::index_select(ys, 0, row));
      return sum_of + Step()(model, opt, x, y);
    };
    return xla::fori_loop(0, xs.size(0), body, xla::tensor(0.0f), {.unroll = 3});
  }
};

/// What a run leaves in a model and its optimizer, both made again, and in what follows in the
/// stream of random numbers.
template <class Model, class Make, class Run>
test::snapshot trained(const Model& start, const Make& make, std::int64_t steps, Run&& run) {
  xla::manual_seed(11);
  Model model = start;
  auto opt = make(model);
  auto xs = numbers<float>({steps, 6, 8});
  auto ys = numbers<float>({steps, 6, 4}) * 0.5f;
  test::snapshot s;
  s.add(run(model, opt, xs, ys));
  s.add(model);
  opt.visit_state([&](auto& kept, const auto&) { s.add(kept); });
  s.add(xla::rand<float>({3}));
  return s;
}

template <class>
inline constexpr bool adds_up = false;
template <class Step>
inline constexpr bool adds_up<counted<Step>> = true;
template <class Step>
inline constexpr bool adds_up<counted_in_turns<Step>> = true;
/// Losses as Many gives them.
template <class Many>
auto given_by(const std::vector<float>& losses) {
  if constexpr (!adds_up<Many>) return xla::tensor(losses);
  else return xla::tensor(std::accumulate(losses.begin(), losses.end(), 0.0f));
}

/// Many(step) in every mode against calls of the step.
template <template <class> class Many, class Step, class Model, class Make>
void check_steps(const Step& one, const Model& start, const Make& make) {
  constexpr Many<Step> many;
  auto compiled = xla::compile(many);
  for (std::int64_t steps : {1, 2, 5}) {
    CAPTURE(steps);
    const auto calls = [&](auto& model, auto& opt, auto& xs, auto& ys) {
      const xla::eager_mode_guard eager;
      std::vector<float> all;
      for (std::int64_t i = 0; i < steps; ++i)
        all.push_back(one(model, opt, select(xs, 0, i), select(ys, 0, i)).item());
      return given_by<Many<Step>>(all);
    };
    const auto expected = trained(start, make, steps, calls);
    for (bool eager : {true, false}) {
      const xla::eager_mode_guard mode(eager);
      INFO((eager ? "eager" : "traced"));
      CHECK(trained(start, make, steps, many).difference(expected) == "");
    }
    const auto again = test::run_again([&] { return trained(start, make, steps, compiled); });
    INFO("compiled");
    CHECK(again.difference(expected) == "");
  }
}

constexpr auto momentum = [](auto& model) {
  return xla::optim::SGD{model, {.lr = 0.05f, .momentum = 0.9f, .nesterov = true}};
};
constexpr auto adamw = [](auto& model) { return xla::optim::AdamW{model, {.lr = 0.02f}}; };

}  // namespace

TEST_CASE("steps of a perceptron, scanned") {
  xla::manual_seed(1);
  check_steps<scanned>(step, mlp(), momentum);
}

TEST_CASE("running statistics and dropout, in a scan and by the steps' numbers") {
  xla::manual_seed(3);
  check_steps<scanned>(step, noisy(), adamw);
  check_steps<counted>(step, noisy(), momentum);
}

TEST_CASE("gradients that are dropped after the step, or nowhere") {
  xla::manual_seed(4);
  check_steps<scanned>(step_and_drop, mlp(), momentum);
  check_steps<scanned>(step_on, mlp(), adamw);
}

TEST_CASE("several steps in each turn of a loop are those steps, whatever number is left over") {
  xla::manual_seed(8);
  check_steps<scanned_in_turns>(step, noisy(), adamw);
  check_steps<counted_in_turns>(step_on, noisy(), momentum);
}

TEST_CASE("a rate that differs from step to step is that of the optimizer's options in each call") {
  constexpr auto scheduled = [](auto& model, auto& opt, auto& xs, auto& ys) {
    const auto body = [&](const auto& i, const auto& batch) {
      const auto& [x, y] = batch;
      opt.zero_grad();
      auto loss = loss_of(model, x, y);
      loss.backward();
      opt.step(0.05f / (xla::cast<float>(i) + 1));
      return std::pair(i + 1, loss.detach());
    };
    const auto n = xla::tensor<std::int64_t>(0);
    return xla::scan(body, n, std::tuple(xs, ys)).second;
  };
  constexpr auto calls = [](auto& model, auto& opt, auto& xs, auto& ys) {
    std::vector<float> all;
    const double before = opt.options.lr.value();
    for (std::int64_t i = 0; i < xs.size(0); ++i) {
      opt.options.lr = 0.05f / (static_cast<float>(i) + 1);
      all.push_back(step(model, opt, select(xs, 0, i), select(ys, 0, i)).item());
    }
    opt.options.lr = before;
    return xla::tensor(all);
  };
  auto compiled = xla::compile(scheduled);
  xla::manual_seed(9);
  const mlp start;
  const auto check = [&](const auto& make) {
    const auto run = [&](bool eager, auto& f) {
      const xla::eager_mode_guard mode(eager);
      return trained(start, make, 4, f);
    };
    const auto expected = run(true, calls);
    CHECK(run(true, scheduled).difference(expected) == "");
    CHECK(run(false, scheduled).difference(expected) == "");
    CHECK(run(false, compiled).difference(expected) == "");
  };
  check(momentum);
  check(adamw);
  check([](auto& model) { return xla::optim::NAdam{model}; });
}

TEST_CASE("steps of epochs: a loop of them in a loop") {
  constexpr auto epochs = [](auto& model, auto& opt, auto& xs, auto& ys) {
    const auto epoch = [&](const auto& i, const auto& sum_of) {
      const scanned<std::remove_const_t<decltype(step)>> all;
      const auto losses = all(model, opt, xs, ys);
      return sum_of + xla::sum(losses) * xla::cast<float>(i);
    };
    return xla::fori_loop(1, 4, epoch, xla::zeros_like(xla::sum(xs)));
  };
  auto compiled = xla::compile(epochs);
  xla::manual_seed(5);
  const noisy start;
  const auto run = [&](bool eager, auto& f) {
    const xla::eager_mode_guard mode(eager);
    return trained(start, momentum, 3, f);
  };
  const auto expected = run(true, epochs);
  CHECK(run(false, epochs).difference(expected) == "");
  const auto again = test::run_again([&] { return run(false, compiled); });
  CHECK(again.difference(expected) == "");
}

TEST_CASE("a loop of no steps writes nothing and draws nothing") {
  constexpr scanned<std::remove_const_t<decltype(step)>> many;
  auto compiled = xla::compile(many);
  xla::manual_seed(6);
  const noisy start;
  const auto untouched = trained(start, adamw, 0, [](auto&, auto&, auto& xs, auto&) {
    return xla::sum(xs, {1, 2});
  });
  for (bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    CHECK(trained(start, adamw, 0, many).difference(untouched) == "");
  }
  noisy model = start;
  xla::optim::AdamW opt{model, {.lr = 0.02f}};
  auto xs = numbers<float>({0, 6, 8}), ys = numbers<float>({0, 6, 4});
  test::snapshot before(false), after(false);
  before.add(model);
  compiled(model, opt, xs, ys);
  after.add(model);
  CHECK(after.difference(before) == "");
  CHECK(model.first.weight.grad().to_vector() == std::vector<float>(16 * 8, 0.0f));
}

TEST_CASE("random numbers differ from step to step, in loops in loops, last step first, unread") {
  constexpr auto draws = [](auto& x, auto& xs) {
    const auto before = xla::rand_like(x);
    const auto body = [&](const auto& c, const auto& row) {
      const auto noise = xla::rand_like(row);
      [[maybe_unused]] const auto unread = xla::randn_like(c);
      const auto inner = [&](const auto&, const auto& d) { return d * noise + xla::rand_like(d); };
      const auto next = xla::fori_loop(0, 2, inner, c);
      return std::pair(next + xla::randn_like(c), noise);
    };
    const auto [last, ys] = xla::scan(body, x + before, xs, {.reverse = true});
    const auto unread = xla::scan(
        [](const auto& c, const auto& row) { return std::pair(c, xla::rand_like(row)); }, x, xs);
    return std::tuple(last, ys, unread.first, xla::rand_like(x));
  };
  for (std::int64_t steps : {0, 1, 2, 5})
    test::check_modes(draws, numbers<float>({7}), numbers<float>({steps, 7}));
  auto x = numbers<float>({7});
  auto xs = numbers<float>({2, 7});
  const auto ys = std::get<1>(xla::compile(draws)(x, xs));
  CHECK(select(ys, 0, 0).to_vector() != select(ys, 0, 1).to_vector());
}

TEST_CASE("a check that fails in any step leaves what was there") {
  constexpr auto looked_up = [](auto& model, auto& opt, auto& xs, auto& ys, auto& places) {
    const auto body = [&](const auto& i, const auto& sum_of) {
      const auto row = xla::index_select(places, 0, xla::reshape(i, {1}));
      const auto x = xla::squeeze<0>(xla::index_select(xs, 0, row));
      const auto y = xla::squeeze<0>(xla::index_select(ys, 0, row));
      return sum_of + step(model, opt, x, y);
    };
    return xla::fori_loop(0, places.size(0), body, xla::tensor(0.0f));
  };
  auto compiled = xla::compile(looked_up);
  mlp model;
  auto opt = momentum(model);
  auto xs = numbers<float>({4, 6, 8}), ys = numbers<float>({4, 6, 4});
  auto fine = xla::tensor<std::int64_t>({3, 0, 1}), wrong = xla::tensor<std::int64_t>({3, 0, 4});
  compiled(model, opt, xs, ys, fine);
  test::snapshot before, after;
  before.add(model);
  CHECK_THROWS_WITH(compiled(model, opt, xs, ys, wrong), Catch::Contains("4"));
  after.add(model);
  CHECK(after.difference(before) == "");
}

TEST_CASE("the errors of training steps in a loop") {
  constexpr counted<std::remove_const_t<decltype(step)>> many;
  auto compiled = xla::compile(many);
  mlp model;
  auto opt = momentum(model);
  auto xs = numbers<float>({3, 6, 8}), ys = numbers<float>({3, 6, 4});
  xs.requires_grad_();
  CHECK_THROWS_WITH(compiled(model, opt, xs, ys),
                    Catch::Contains("calls backward() in a loop, which ends at arguments"));
}

namespace {

/// Reads parameters again after the update, and what the loop has left of them after it.
constexpr auto looks_again = [](auto& model, auto& opt, auto& xs, auto& ys) {
  const auto body = [&](const auto&, const auto& batch) {
    const auto& [x, y] = batch;
    const auto before = step_and_drop(model, opt, x, y);
    return std::pair(std::tuple<>(), std::tuple(before, loss_of(model, x, y).detach()));
  };
  const auto twice = [&](const auto&, const auto& sum_of) {
    const auto [before, after] = xla::scan(body, std::tuple<>(), std::tuple(xs, ys)).second;
    return sum_of + before + after;
  };
  const auto losses = xla::fori_loop(0, 2, twice, xla::zeros_like(xla::sum(xs, {1, 2})));
  return std::tuple(losses, xla::sum(model.first.weight.detach()));
};
constexpr auto in_branches = [](auto& model, auto& opt, auto& xs, auto& ys) {
  const auto body = [&](const auto&, const auto& batch) {
    const auto& [x, y] = batch;
    opt.zero_grad();
    auto loss = loss_of(model, x, y);
    loss.backward();
    xla::cond(
        xla::isfinite(loss.detach()), [&] { opt.step(); }, [&] {});
    return std::pair(std::tuple<>(), loss.detach());
  };
  return xla::scan(body, std::tuple<>(), std::tuple(xs, ys)).second;
};

constexpr int all_frozen = 4;
/// Calls in which a parameter, another one, both, and none are frozen.
template <class Many>
void check_frozen(const Many& many) {
  auto compiled = xla::compile(many);
  mlp start;
  const auto run = [&](bool eager, auto& f) {
    const xla::eager_mode_guard mode(eager);
    mlp model = start;
    auto opt = adamw(model);
    test::snapshot s;
    for (int frozen = 0; frozen < all_frozen; ++frozen) {
      model.first.weight.requires_grad_((frozen & 1) == 0);
      model.second.bias.requires_grad_((frozen & 2) == 0);
      opt.zero_grad();
      auto xs = numbers<float>({3, 6, 8}), ys = numbers<float>({3, 6, 4}) * 0.5f;
      const auto before = model.first.weight.to_vector();
      s.add(f(model, opt, xs, ys));
      s.add(model);
      opt.visit_state([&](auto& kept, const auto&) { s.add(kept); });
      CHECK((model.first.weight.to_vector() == before) == ((frozen & 1) != 0));
    }
    return s;
  };
  const auto expected = run(true, many);
  CHECK(run(false, many).difference(expected) == "");
  CHECK(run(false, compiled).difference(expected) == "");
}

}  // namespace

TEST_CASE("a frozen parameter stays what it is in every step, and so does what is kept for it") {
  xla::manual_seed(7);
  check_frozen(scanned<std::remove_const_t<decltype(step)>>());
  check_frozen(looks_again);
  check_frozen(in_branches);
}

TEST_CASE("a step has the work of parameters that train") {
  constexpr scanned<std::remove_const_t<decltype(step)>> many;
  auto compiled = xla::compile(many);
  mlp model;
  auto opt = momentum(model);
  auto xs = numbers<float>({3, 6, 8}), ys = numbers<float>({3, 6, 4});
  const auto all = compiled.memory_analysis(model, opt, xs, ys);
  model.first.weight.requires_grad_(false);
  const auto less = compiled.memory_analysis(model, opt, xs, ys);
  CHECK(all.outputs - less.outputs == 3 * 4 * 8 * 16);  // it, its gradient and velocity
}

TEST_CASE("a loop refuses to mix a frozen parameter's gradient with other things") {
  constexpr auto mixes = [](auto& model, auto& opt, auto& xs, auto& ys) {
    const auto body = [&](const auto& seen, const auto& batch) {
      const auto& [x, y] = batch;
      const auto loss = step(model, opt, x, y);
      return std::pair(seen + xla::sum(model.first.weight.grad()), loss);
    };
    return xla::scan(body, xla::zeros_like(xla::sum(xs)), std::tuple(xs, ys));
  };
  auto compiled = xla::compile(mixes);
  mlp model;
  auto opt = momentum(model);
  auto xs = numbers<float>({3, 6, 8}), ys = numbers<float>({3, 6, 4});
  compiled(model, opt, xs, ys);
  model.first.weight.requires_grad_(false);
  opt.zero_grad();
  CHECK_THROWS_WITH(compiled(model, opt, xs, ys),
                    Catch::Contains("first.weight does not require a gradient, but the function "
                                    "uses it for more than the update of this parameter"));
}

TEST_CASE("a step's backward() ends at what its loop has given it, in every mode") {
  constexpr auto inside = [](auto& w, auto& h, auto& xs) {
    w.zero_grad();
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          auto loss = xla::sum(w * c * x);
          loss.backward();
          return std::pair(xla::tanh(c * w.detach()), loss);
        },
        h * 2, xs * 3);
    return std::tuple(last, ys, w.grad());
  };
  for (std::int64_t steps : {1, 4})
    test::check_modes(inside, test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({steps, 5})));
}
