// SPDX-License-Identifier: Apache-2.0
// Learning rates that differ from step to step of a loop of training steps: of groups, of replicas,
// from schedules. The bits are those of calls before which the options are set to them.
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "support/replicas.hpp"
#include "xla/loop.hpp"
#include "xla/optim/nadam.hpp"
#include "xla/parallel.hpp"
#include "xla/xla.hpp"

using test::mode;
using test::numbers;
namespace optim = xla::optim;

namespace {

struct mlp {
  xla::nn::Linear first{8, 16}, second{16, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return second(xla::tanh(first(x)));
  }
  XLA_MODULE(first, second)
};

constexpr auto is_bias = [](std::string_view, int rank) { return rank < 2; };
constexpr auto is_last = [](std::string_view name, int rank) {
  return name.starts_with("second.") && rank == 2;
};
/// With two groups.
constexpr auto adamw = [](auto& model) {
  return optim::AdamW{model,
                      {.lr = 0.02, .weight_decay = 0.1},
                      optim::group(is_bias, [](auto& o) { o.weight_decay = 0; }),
                      optim::group(is_last, [](auto& o) { o.lr = 0.005; })};
};
constexpr auto nadam = [](auto& model) {
  return optim::NAdam{model,
                      {.lr = 0.02},
                      optim::group(is_bias, [](auto& o) { o.beta1 = 0.5; }),
                      optim::group(is_last, [](auto& o) { o.lr = 0.005; })};
};
constexpr auto sgd = [](auto& model) { return optim::SGD{model, {.lr = 0.05, .momentum = 0.9}}; };

constexpr auto gradients = [](auto& model, auto& opt, const auto& x, const auto& y) {
  opt.zero_grad();
  auto loss = xla::mean(xla::square(model(x) - y));
  loss.backward();
  return loss.detach();
};

/// A scan of steps, with a row of `rates` for each, which Use makes the argument of step() of.
template <class Use>
struct scanned {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys, auto& rates) const {
    const auto body = [&](const auto&, const auto& given) {
      const auto& [x, y, rate] = given;
      const auto loss = gradients(model, opt, x, y);
      opt.step(Use()(rate));
      return std::pair(std::tuple<>(), loss);
    };
    return xla::scan(body, std::tuple<>(), std::tuple(xs, ys, rates)).second;
  }
};
/// The same by the number of a step.
template <class Use>
struct counted {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys, auto& rates) const {
    const auto body = [&](const auto& i, const auto& sum) {
      const auto loss = gradients(model, opt, xs[i], ys[i]);
      opt.step(Use()(rates[i]));
      return sum + loss;
    };
    return xla::fori_loop(0, xs.size(0), body, xla::tensor(0.0f));
  }
};
/// One of replicas.
template <class Use>
struct exchanged {
  constexpr auto operator()(auto& model, auto& opt, auto& xs, auto& ys, auto& rates) const {
    const auto body = [&](const auto&, const auto& given) {
      const auto& [x, y, rate] = given;
      const auto loss = gradients(model, opt, x, y);
      xla::optimizer_step(opt, Use()(rate), {.barrier = false});
      return std::pair(std::tuple<>(), loss);
    };
    return xla::scan(body, std::tuple<>(), std::tuple(xs, ys, rates)).second;
  }
};

struct as_given {
  constexpr auto operator()(const auto& rate) const { return rate; }
};
struct as_array {
  constexpr auto operator()(const auto& rate) const {
    return std::array{xla::select(rate, 0, 0), xla::select(rate, 0, 1), xla::select(rate, 0, 2)};
  }
};
struct as_tuple {
  constexpr auto operator()(const auto& rate) const {
    return std::tuple(xla::select(rate, 0, 0), xla::select(rate, 0, 1),
                      xla::cast<double>(xla::select(rate, 0, 2)));
  }
};
struct as_factor {
  constexpr auto operator()(const auto& rate) const { return optim::lr_factor(rate); }
};

/// What a run of steps leaves in a model and its optimizer, both made again.
template <class Model, class Make, class Rates, class Run>
test::snapshot trained(const Model& start, const Make& make, Rates rates, Run&& run,
                       float scale = 1) {
  Model model = start;
  auto opt = make(model);
  auto xs = numbers<float>({rates.size(0), 6, 8}) * scale;
  auto ys = numbers<float>({rates.size(0), 6, 4}) * 0.5f;
  run(model, opt, xs, ys, rates);
  test::snapshot s(false);
  s.add(model);
  opt.visit_state([&](auto& kept, const auto&) { s.add(kept); });
  return s;
}

/// Calls of one step, before which set(options of all, options of groups, row of rates).
template <class Set>
auto calls(const Set& set) {
  return [set](auto& model, auto& opt, auto& xs, auto& ys, auto& rates) {
    const xla::eager_mode_guard eager;
    for (std::int64_t i = 0; i < xs.size(0); ++i) {
      gradients(model, opt, xla::select(xs, 0, i), xla::select(ys, 0, i));
      const auto before = opt.options;
      const auto of_groups = opt.group_options;
      set(opt, xla::select(rates, 0, i));
      opt.step();
      opt.options = before;
      opt.group_options = of_groups;
    }
  };
}
constexpr auto one_for_all = [](auto& opt, const auto& rate) {
  opt.options.lr = rate.item();
  for (auto& o : opt.group_options) o.lr = rate.item();
};
constexpr auto one_each = [](auto& opt, const auto& rate) {
  const auto all = rate.to_vector();
  opt.options.lr = all[0];
  for (std::size_t g = 0; g < opt.groups; ++g) opt.group_options[g].lr = all[g + 1];
};
constexpr auto times_each = [](auto& opt, const auto& rate) {
  const auto scaled = [&](const xla::Scalar& lr) {
    return static_cast<float>(lr.value()) * rate.item();
  };
  opt.options.lr = scaled(opt.options.lr);
  for (auto& o : opt.group_options) o.lr = scaled(o.lr);
};

/// Many steps in every mode against calls.
template <class Many, class Make, class Rates, class Set>
void check(const Many& many, const Make& make, const Rates& rates, const Set& set) {
  xla::manual_seed(1);
  const mlp start;
  const auto expected = trained(start, make, rates, calls(set));
  for (bool eager : {true, false}) {
    const xla::eager_mode_guard as_told(eager);
    INFO((eager ? "eager" : "traced"));
    CHECK(trained(start, make, rates, many).difference(expected) == "");
  }
  auto compiled = xla::compile(many);
  INFO("compiled");
  const auto again = test::run_again([&] { return trained(start, make, rates, compiled); });
  CHECK(again.difference(expected) == "");
}

const auto falling = [] { return xla::tensor({0.05f, 0.03f, 0.02f, 0.001f}); };
const auto of_groups = [] {
  return xla::tensor({{0.05f, 0.04f, 0.01f}, {0.03f, 0.0f, 0.02f}, {0.01f, 0.5f, 0.07f}});
};

}  // namespace

TEST_CASE("one learning rate for all groups in each step of a loop") {
  check(scanned<as_given>(), adamw, falling(), one_for_all);
  check(counted<as_given>(), nadam, falling(), one_for_all);
}

TEST_CASE("a learning rate for each group in each step of a loop") {
  check(scanned<as_given>(), adamw, of_groups(), one_each);
  check(scanned<as_array>(), nadam, of_groups(), one_each);
  check(counted<as_tuple>(), nadam, of_groups(), one_each);
}

TEST_CASE("a factor of each group's own learning rate in each step of a loop") {
  check(scanned<as_factor>(), adamw, falling(), times_each);
  check(counted<as_factor>(), nadam, falling(), times_each);
  check(scanned<as_factor>(), sgd, falling(), times_each);
}

TEST_CASE("after step(lr) the optimizer has its own learning rates again, where it throws, too") {
  mlp model;
  auto opt = adamw(model);
  CHECK_THROWS_AS(opt.step(xla::tensor(0.5f)), xla::error);  // no gradients
  gradients(model, opt, numbers<float>({2, 8}), numbers<float>({2, 4}));
  opt.step(xla::tensor(0.5f));
  CHECK(opt.options.lr.value() == 0.02);
  CHECK(opt.group_options[0].lr.value() == 0.02);
  CHECK(opt.group_options[1].lr.value() == 0.005);
}

TEST_CASE("another number of learning rates than of groups is refused") {
  mlp model;
  auto opt = adamw(model);
  auto x = numbers<float>({2, 8}), y = numbers<float>({2, 4});
  auto rates = xla::tensor({0.5f, 0.1f});
  const auto step = [](auto& m, auto& o, auto& in, auto& out, auto& lr) {
    gradients(m, o, in, out);
    o.step(lr);
  };
  const auto said = "2 learning rates for 3: of the parameters in no group, then of each group";
  CHECK_THROWS_WITH(step(model, opt, x, y, rates), Catch::Contains(said));
  auto compiled = xla::compile(step);
  CHECK_THROWS_AS(compiled(model, opt, x, y, rates), xla::shape_error);
}

TEST_CASE("replicas in loops: optimizer_step(optimizer, lr) and ZeroRedundancy") {
  const auto make_model = [] {  // on the replica's device
    mlp model;
    std::uint64_t seed = 11;
    xla::for_each_parameter(model, [&](auto& p) {
      p.copy_(reshape_as(numbers<float>({p.numel()}, seed++) * 0.5f, p));
    });
    return model;
  };
  const auto shared_out = [](auto& model) { return optim::ZeroRedundancy{adamw(model)}; };
  const auto state = [&](mode m, int ordinal, const auto& make, auto& run) {
    const xla::eager_mode_guard as_told(m != mode::traced);
    return trained(
        make_model(), make, of_groups(),
        [&](auto&... x) {
          run(x...);
          xla::sync();
        },
        static_cast<float>(ordinal + 1));
  };
  const auto one_by_one = [](auto& model, auto& opt, auto& xs, auto& ys, auto& rates) {
    for (std::int64_t i = 0; i < xs.size(0); ++i) {
      gradients(model, opt, xla::select(xs, 0, i), xla::select(ys, 0, i));
      one_each(opt, xla::select(rates, 0, i));
      xla::optimizer_step(opt);
    }
  };
  const auto check_with = [&]<class Use>(Use, const auto& make) {
    const exchanged<Use> many;
    auto compiled = xla::compile(many);
    for (int replicas : {1, 2, 3}) {
      const auto each = [&](mode m, auto& run) {
        std::vector<test::snapshot> all(static_cast<std::size_t>(replicas));
        test::replicate(replicas,
                        [&](int i) { all[static_cast<std::size_t>(i)] = state(m, i, make, run); });
        return all;
      };
      const auto expected = each(mode::eager, one_by_one);
      for (const mode m : {mode::eager, mode::traced, mode::compiled}) {
        INFO(replicas << " replicas, mode " << static_cast<int>(m));
        const auto all = m == mode::compiled ? each(m, compiled) : each(m, many);
        for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].difference(expected[i]) == "");
      }
    }
  };
  check_with(as_given(), adamw);
  check_with(as_array(), shared_out);
}

TEST_CASE("a schedule's next learning rates train as the schedule does between calls") {
  const auto scheduled = [](auto& opt) {
    return optim::SequentialLR{
        opt,
        std::tuple{optim::LinearLR{opt, {.start_factor = 0.1, .total_iters = 2}},
                   optim::CosineAnnealingLR{opt, {.T_max = 6}}},
        {.milestones = {2}}};
  };
  constexpr std::int64_t steps = 5;
  const auto check_with = [&](const auto& make) {
    xla::manual_seed(3);
    const mlp start;
    const auto none = xla::zeros<float>({steps});
    double last = 0;
    const auto between = [&](auto& model, auto& opt, auto& xs, auto& ys, auto&) {
      const xla::eager_mode_guard eager;
      auto schedule = scheduled(opt);
      for (std::int64_t i = 0; i < steps; ++i) {
        gradients(model, opt, xla::select(xs, 0, i), xla::select(ys, 0, i));
        opt.step();
        schedule.step();
      }
      last = schedule.last_lr();
    };
    const auto expected = trained(start, make, none, between);
    const auto in_one = [&](auto& many) {
      return [&](auto& model, auto& opt, auto& xs, auto& ys, auto&) {
        auto schedule = scheduled(opt);
        auto rates = optim::next_lr(schedule, steps);
        CHECK(schedule.last_epoch() == steps);
        CHECK(schedule.last_lr() == last);
        many(model, opt, xs, ys, rates);
      };
    };
    const scanned<as_given> many;
    auto compiled = xla::compile(many);
    CHECK(trained(start, make, none, in_one(compiled)).difference(expected) == "");
    CHECK(trained(start, make, none, in_one(many)).difference(expected) == "");
    // In a body the schedule itself steps with it, where no function is compiled.
    const auto inside = [&](auto& model, auto& opt, auto& xs, auto& ys, auto&) {
      auto schedule = scheduled(opt);
      const auto body = [&](const auto&, const auto& given) {
        const auto& [x, y] = given;
        schedule.step();
        const auto loss = gradients(model, opt, x, y);
        opt.step();
        return std::pair(std::tuple<>(), loss);
      };
      xla::scan(body, std::tuple<>(), std::tuple(xs, ys));
      CHECK(schedule.last_epoch() == steps);
    };
    const auto run = [&](bool eager) {
      const xla::eager_mode_guard as_told(eager);
      return trained(start, make, none, inside);
    };
    CHECK(run(false).difference(run(true)) == "");
  };
  check_with(adamw);
  check_with(sgd);
}
