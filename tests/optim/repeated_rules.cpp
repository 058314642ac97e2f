// SPDX-License-Identifier: Apache-2.0
// Behind scan_layers() a compiled step records the rules for the parameters of equal blocks once.
// It runs the steps, in the memory, of rules that are recorded for each.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/loop/scan_layers.hpp"
#include "xla/optim/average.hpp"
#include "xla/xla.hpp"

using test::numbers;
namespace optim = xla::optim;

namespace {

struct scaled {
  xla::Parameter<float, 1> by{{20}}, shift{{20}};
  constexpr auto operator()(const xla::Tensor<float, 1>& x) const { return x * by + shift; }
  XLA_MODULE(by, shift)
};
struct network {
  xla::Parameter<float, 1> in{{20}};
  std::array<scaled, 3> blocks;
  XLA_MODULE(in, blocks)
};

/// Reads what is made of gradients, and parameters again after their update.
constexpr auto rich_step = [](auto& model, auto& x, auto& optimizer, auto& average) {
  optimizer.zero_grad();
  sum(xla::square(xla::scan_layers(model.blocks, x * model.in))).backward();
  const auto first = sum(model.blocks[0].by.grad() * model.in.grad());
  optim::clip_grad_value_(model, 30);
  const auto norm = optim::clip_grad_norm_(model, 4);
  optimizer.step();
  average.update();
  xla::no_grad(model, [&] {
    auto& by = model.blocks[1].by;
    by.copy_(clamp(by.detach(), -0.9f, 0.9f));
  });
  return std::tuple(first, norm, sum(xla::scan_layers(model.blocks, x)),
                    model.blocks[2].shift.detach());
};

/// Reads one clipped gradient, and nothing else of what is written.
constexpr auto plain_step = [](auto& model, auto& x, auto& optimizer, auto&) {
  optimizer.zero_grad();
  const auto loss = sum(xla::square(xla::scan_layers(model.blocks, x * model.in)));
  loss.backward();
  optim::clip_grad_norm_(model, 4);
  const auto clipped = model.blocks[0].by.grad();
  optimizer.step();
  return std::tuple(loss, clipped);
};

network make_network() {
  network model;
  unsigned seed = 0;
  xla::for_each_parameter(model, [&](auto& p) { p.copy_(numbers<float>({20}, ++seed)); });
  return model;
}

/// What steps leave behind, in some of which a block is frozen: not the one whose gradient is read.
template <class Make>
test::snapshot train(auto&& step, const Make& make) {
  network model = make_network();
  auto optimizer = make(model);
  optim::ExponentialMovingAverage average{model, {.decay = 0.5}};
  test::snapshot all;
  for (unsigned i = 0; i < 4; ++i) {
    model.blocks[1].by.requires_grad_(i != 1);
    model.blocks[2].shift.requires_grad_(i != 2);
    auto x = numbers<float>({20}, 10 + i);
    all.add(step(model, x, optimizer, average));
    all.add(model);
    optimizer.visit_state([&](auto& kept, const auto&) { all.add(kept); });
    average.visit_state([&](auto& kept, const auto&) { all.add(kept); });
  }
  return all;
}

std::ptrdiff_t roots_in(const std::string& graph) {
  std::ptrdiff_t n = 0;
  for (auto at = graph.find("sqrt("); at != graph.npos; at = graph.find("sqrt(", at + 1)) ++n;
  return n;
}
/// How many square roots a step has: one for the norm, one for each group, and one for each rule of
/// AdamW; and the bytes of its memory.
template <class Make>
std::pair<std::ptrdiff_t, std::int64_t> roots_and_bytes(const Make& make) {
  network model = make_network();
  auto optimizer = make(model);
  optim::ExponentialMovingAverage average{model, {.decay = 0.5}};
  auto x = numbers<float>({20}, 1);
  auto step = xla::compile<xla::tags::verified>(rich_step);
  return {roots_in(step.graph(xla::Stage::captured, model, x, optimizer, average)),
          step.memory_analysis(model, x, optimizer, average).arena};
}
template <class Make, class... Step>
void check(const Make& make, const Step&... steps) {
  const xla::eager_mode_guard eager;
  const auto one = [&](const auto& step) {
    CHECK(train(xla::compile<xla::tags::verified>(step), make).difference(train(step, make)) == "");
  };
  (one(steps), ...);
}

template <class T>
struct affine {
  xla::Parameter<T, 1> by{{20}}, shift{{20}};
  constexpr auto operator()(const xla::Tensor<T, 1>& x) const { return x * by + shift; }
  XLA_MODULE(by, shift)
};
template <class T>
struct two_rows {
  std::array<affine<T>, 13> first;  // more numbers than a kernel adds up
  xla::Parameter<T, 1> between{{20}};
  std::array<affine<T>, 2> second;
  XLA_MODULE(first, between, second)
};
constexpr auto norm_step = [](auto& model, auto& x) {
  xla::for_each_parameter(model, [](auto& p) { p.zero_grad(); });
  const auto y = xla::scan_layers(model.first, x) * model.between;
  sum(xla::square(xla::scan_layers(model.second, y))).backward();
  return optim::clip_grad_norm_(model, 0.5);
};
template <class T, xla::Passes Wanted>
void check_norms() {
  const xla::eager_mode_guard eager;
  two_rows<T> model;
  unsigned seed = 0;
  xla::for_each_parameter(model, [&](auto& p) { p.copy_(numbers<T>({20}, ++seed)); });
  auto x = numbers<T>({20}, 99);
  auto step = xla::compile<Wanted>(norm_step);
  const auto graph = step.graph(xla::Stage::captured, model, x);
  CHECK(graph.find("repeat_sum(") < graph.rfind("repeat_sum("));
  for (const bool frozen : {false, true}) {
    model.first[3].by.requires_grad_(!frozen);
    const T norm = step(model, x).item();
    CHECK(norm > 0);
    CHECK(norm == norm_step(model, x).item());
  }
}

constexpr auto whole = [](auto& model) { return optim::AdamW{model, {.lr = 0.1}}; };
constexpr auto by_name = [](auto& model) {
  return optim::AdamW{
      model,
      {.lr = 0.1, .weight_decay = 0.3},
      optim::group([](std::string_view name, int) { return name.ends_with("shift"); },
                   [](auto& o) { o.weight_decay = 0; })};
};
constexpr auto apart = [](auto& model) {
  return optim::AdamW{model,
                      {.lr = 0.1},
                      optim::group([](std::string_view name, int) { return name == "blocks.1.by"; },
                                   [](auto& o) { o.lr = 0.01; })};
};

}  // namespace

TEST_CASE("rules of equal blocks are recorded once, and groups by name keep that") {
  CHECK(roots_and_bytes(whole).first == 2 + 3);
  check(whole, rich_step, plain_step);
  CHECK(roots_and_bytes(by_name).first == 3 + 3);
  check(by_name, rich_step);
}

TEST_CASE("a group that splits the blocks has rules for each parameter, in no less memory") {
  const auto [roots, bytes] = roots_and_bytes(apart);
  CHECK(roots == 3 + 5);
  CHECK(roots_and_bytes(whole).second <= bytes);
  check(apart, rich_step, plain_step);
}

TEST_CASE("a norm adds up the parts of equal blocks in the order of their parameters") {
  check_norms<float, xla::tags::verified>();
  check_norms<double, xla::tags::verified>();
  check_norms<float, xla::tags::without<"rows", "fuse">>();
}
