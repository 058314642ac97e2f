// SPDX-License-Identifier: Apache-2.0
// L-BFGS against PyTorch's results, in double, on Rosenbrock's function of pairs.
#include "xla/optim/lbfgs.hpp"

#include "data/optim.inc"
#include "support/modes.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/op/index.hpp"

using test::numbers;
namespace optim = xla::optim;

namespace {

template <class T>
struct Pairs {
  xla::Parameter<T, 2> w{{2, 3}};
  xla::Parameter<T, 1> b{{4}};
  XLA_MODULE(w, b)
};

template <class T>
Pairs<T> make_pairs() {
  Pairs<T> m;
  m.w.copy_(numbers<T>({2, 3}, 1));
  m.b.copy_(numbers<T>({4}, 2));
  return m;
}

/// The loss, with its gradients.
constexpr auto valley = [](auto& m) {
  xla::for_each_parameter(m, [](auto& p) { p.zero_grad(); });
  const auto x = reshape(xla::cat({flatten(m.w), m.b * 1}, 0) / 4, {5, 2});
  const auto a = select(x, 1, 0), b = select(x, 1, 1);
  const auto off = b - a * a, from_one = 1 - a;
  auto loss = sum(off * off * 100 + from_one * from_one);
  loss.backward();
  return loss;
};

/// The parameters, then the losses of the steps, then how often the loss was evaluated.
template <class T, class Loss = decltype(valley)>
std::vector<double> descend(const optim::LBFGSOptions& options, int steps, Loss loss_of = valley) {
  auto model = make_pairs<T>();
  optim::LBFGS optimizer{model, options};
  std::vector<double> losses;
  int evaluations = 0;
  for (int i = 0; i < steps; ++i) {
    const auto loss = optimizer.step([&] {
      ++evaluations;
      return loss_of(model);
    });
    losses.push_back(static_cast<double>(loss.item()));
  }
  std::vector<double> all;
  for (const T v : model.w.to_vector()) all.push_back(static_cast<double>(v));
  for (const T v : model.b.to_vector()) all.push_back(static_cast<double>(v));
  all.insert(all.end(), losses.begin(), losses.end());
  all.push_back(evaluations);
  return all;
}

}  // namespace

TEST_CASE("LBFGS is PyTorch's, eagerly, traced and with a compiled loss") {
  const std::tuple<optim::LBFGSOptions, int, const std::vector<double>*> cases[] = {
      {{.lr = 0.01}, 3, &reference::lbfgs},
      {{.max_iter = 15, .history_size = 4, .line_search_fn = optim::strong_wolfe},
       2,
       &reference::lbfgs_wolfe},
      {{.max_iter = 6, .max_eval = 5, .history_size = 2, .line_search_fn = optim::strong_wolfe},
       4,
       &reference::lbfgs_few}};
  for (const auto& [options, steps, want] : cases) {
    xla::eager_mode_guard mode(true);
    const auto eager = descend<double>(options, steps);
    test::check_elements(eager.data(), std::int64_t(eager.size()), *want, 1e-6, 1);
    xla::eager_mode(false);
    CHECK(descend<double>(options, steps) == eager);
    auto compiled = xla::compile([](auto& m) { return valley(m); });
    CHECK(descend<double>(options, steps, [&](auto& m) { return compiled(m); }) == eager);
  }
  const auto in_float = descend<float>({.line_search_fn = optim::strong_wolfe}, 6);
  CHECK(in_float[15] < 1e-6);
}

TEST_CASE("a step of LBFGS that throws changes nothing, and its state is kept") {
  const xla::eager_mode_guard eager;
  auto model = make_pairs<double>(), same = make_pairs<double>();
  optim::LBFGS optimizer{model, {.max_iter = 4, .line_search_fn = optim::strong_wolfe}};
  optim::LBFGS other{same, {.max_iter = 4, .line_search_fn = optim::strong_wolfe}};
  int left = 100;
  const auto step = [&left](auto& o) {
    const auto closure = [&] {
      if (left-- == 0) throw std::runtime_error("interrupted");
      return valley(o.model());
    };
    return o.step(closure).item();
  };
  step(optimizer);
  const auto before = model.w.to_vector();
  for (const int n : {0, 1, 3}) {
    left = n;
    CHECK_THROWS_WITH(step(optimizer), "interrupted");
    CHECK(model.w.to_vector() == before);
  }
  left = 100;
  xla::load_state_dict(same, xla::state_dict(model));
  xla::load_state_dict(other, xla::state_dict(optimizer));
  CHECK(xla::state_dict(other).size() == 5);
  for (int i = 0; i < 2; ++i) CHECK(step(optimizer) == step(other));
  CHECK(model.b.to_vector() == same.b.to_vector());
}

TEST_CASE("LBFGS moves with its model, and is not copied") {
  static_assert(!std::is_copy_constructible_v<optim::LBFGS<decltype(make_pairs<float>())>>);
  const xla::eager_mode_guard eager;
  const auto made = [] {
    auto model = make_pairs<float>();
    optim::LBFGS optimizer{model};
    return std::pair{std::move(model), std::move(optimizer)};
  };
  auto [model, optimizer] = made();
  CHECK(&optimizer.model() == &model);
}

TEST_CASE("LBFGS refuses bad options; what has no gradient stays") {
  const xla::eager_mode_guard eager;
  auto model = make_pairs<float>();
  using optim::LBFGS;
  CHECK_THROWS_WITH((LBFGS{model, {.lr = -1}}), "optim::LBFGS: lr is -1, and has to be at least 0");
  CHECK_THROWS_WITH((LBFGS{model, {.lr = std::nan("")}}),
                    "optim::LBFGS: lr is nan, and has to be at least 0");
  CHECK_THROWS_WITH((LBFGS{model, {.max_iter = 0}}),
                    "optim::LBFGS: max_iter is 0, and has to be at least 1");
  CHECK_THROWS_AS((LBFGS{model, {.max_eval = -1}}), xla::error);
  CHECK_THROWS_AS((LBFGS{model, {.history_size = 0}}), xla::error);
  CHECK_THROWS_AS((LBFGS{model, {.tolerance_grad = -1}}), xla::error);
  CHECK_THROWS_AS((LBFGS{model, {.tolerance_change = -1}}), xla::error);
  LBFGS optimizer{model};
  const auto before = model.w.to_vector();
  optimizer.step([&] {
    optimizer.zero_grad();
    auto loss = sum(model.b * model.b);
    loss.backward();
    return loss;
  });
  CHECK(model.w.to_vector() == before);
  CHECK(std::abs(model.b.to_vector()[0]) < 1e-6);
  LBFGS of_part{xla::part<&Pairs<float>::w>(model), {.lr = 0.5, .max_iter = 1}};
  of_part.step([&] { return valley(model); });
  CHECK(model.w.to_vector() != before);
  CHECK(std::abs(model.b.to_vector()[0]) < 1e-6);
}
