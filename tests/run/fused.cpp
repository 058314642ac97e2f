// SPDX-License-Identifier: Apache-2.0
// Eager mode that fuses: what a program sees is what eager mode shows, and its graphs come back.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/decoder.hpp"
#include "support/mlp.hpp"
#include "support/plans.hpp"
#include "xla/run/plan/known_regions.hpp"
#include "xla/xla.hpp"

using xla::Eager;

namespace {

struct graph_counts {
  std::int64_t made = test::count_of("UncachedCompile"), found = test::count_of("CachedCompile");
};
graph_counts since(const graph_counts& before) {
  const graph_counts now;
  graph_counts d;
  d.made = now.made - before.made;
  d.found = now.found - before.found;
  return d;
}

/// What a step does in addition to training.
enum class reads { nothing, loss_behind, loss_before_backward, prepared };

xla::Tensor<float, 0> train_step(test::Mlp& model, xla::optim::SGD<test::Mlp>& optimizer,
                                 const test::batch& b, reads what) {
  auto x = b.data;
  if (what == reads::prepared) x = (x - xla::mean(x)) * 0.5f + xla::rand_like(x) * 0.01f;
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(x), b.target);
  if (what == reads::loss_before_backward) loss.item();
  loss.backward();
  optimizer.step();
  if (what == reads::loss_behind) loss.item();
  return loss.detach();
}

struct outcome {
  test::snapshot state;
  std::vector<float> losses;
  graph_counts late;  ///< of the last ten steps
};
outcome train(Eager how, reads what, bool ragged) {
  const xla::eager_mode_guard mode(how);
  xla::manual_seed(3);
  test::Mlp model;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  std::vector<test::batch> batches;
  for (int i = 0; i < 5; ++i) batches.emplace_back(ragged && i == 4 ? 3 : 8, i);
  outcome o;
  std::vector<xla::Tensor<float, 0>> losses;
  graph_counts before;
  for (int i = 0; i < 25; ++i) {
    if (i == 15) before = {};
    losses.push_back(train_step(model, optimizer, batches[static_cast<std::size_t>(i % 5)], what));
  }
  o.late = since(before);
  o.state = test::state_of(model, optimizer);
  for (const auto& loss : losses) o.losses.push_back(loss.item());
  return o;
}

}  // namespace

TEST_CASE("a training loop that fuses has eager mode's bits, and at most two graphs a step") {
  for (const bool ragged : {false, true})
    for (const reads what :
         {reads::nothing, reads::loss_behind, reads::loss_before_backward, reads::prepared}) {
      CAPTURE(ragged, static_cast<int>(what));
      const outcome want = train(Eager::strict, what, ragged);
      const outcome got = train(Eager::fused, what, ragged);
      CHECK(got.state.difference(want.state) == "");
      CHECK(got.losses == want.losses);
      CHECK(want.late.made + want.late.found == 0);
      CHECK(got.late.made == 0);
      const bool one = what == reads::nothing || what == reads::loss_behind;
      CHECK(got.late.found == (one ? 10 : 20));
    }
}

TEST_CASE("a hand-written update ends a graph when the next forward pass begins") {
  const auto train = [](Eager how) {
    const xla::eager_mode_guard mode(how);
    xla::manual_seed(5);
    test::Mlp model;
    const test::batch b(8);
    graph_counts before;
    for (int i = 0; i < 12; ++i) {
      if (i == 4) before = {};
      model.zero_grad();
      xla::cross_entropy(model(b.data), b.target).backward();
      xla::no_grad(
          [&] { xla::for_each_parameter(model, [](auto& p) { p.copy_(p - p.grad() * 0.1f); }); });
    }
    const graph_counts late = since(before);
    return std::pair(test::state_of(model), late);
  };
  const auto [want, none] = train(Eager::strict);
  const auto [got, late] = train(Eager::fused);
  CHECK(got.difference(want) == "");
  CHECK(late.made == 0);
  CHECK(late.found == 8);
}

TEST_CASE("a step that fuses writes parameters, gradients and momentum over the old ones") {
  const xla::eager_mode_guard mode(Eager::fused);
  xla::manual_seed(3);
  test::Mlp model;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  const test::batch b(8);
  const auto step = [&] { return train_step(model, optimizer, b, reads::nothing); };
  const auto addresses = [&] {
    std::vector<const void*> all;
    xla::for_each_parameter(model, [&](auto& p) { all.push_back(p.data()); });
    optimizer.visit_state([&](auto& s, auto) {
      if (s.numel() > 1) all.push_back(s.data());
    });
    xla::for_each_parameter(model, [&](auto& p) { all.push_back(p.grad().data()); });
    return all;
  };
  for (int i = 0; i < 4; ++i) step();
  const auto before = addresses();
  step();
  CHECK(addresses() == before);
  CHECK(before.size() >= 12);

  const auto gradient = model.fc1.weight.grad();
  const auto weight = model.fc1.weight.detach();
  const auto was = gradient.to_vector(), weighed = weight.to_vector();
  step();
  CHECK(gradient.to_vector() == was);
  CHECK(weight.to_vector() == weighed);
  CHECK(model.fc1.weight.grad().to_vector() != was);
  CHECK(model.fc1.weight.to_vector() != weighed);
}

TEST_CASE("a tensor that detach() gave collects gradients of its own") {
  for (const Eager how : {Eager::fused, Eager::strict}) {
    const xla::eager_mode_guard mode(how);
    auto x = xla::full<float>({4}, 2);
    auto y = x.detach();
    y.requires_grad_();
    CHECK(!x.requires_grad());
    xla::sum(y * 3.f).backward();
    CHECK(y.grad().to_vector() == std::vector<float>(4, 3));
    CHECK(!x.requires_grad());
  }
}

TEST_CASE("a graph that fails leaves gradients as they were") {
  const xla::eager_mode_guard mode(Eager::fused);
  const auto table = xla::tensor<float>({{1, 2}, {3, 4}});
  const auto outside = xla::tensor<std::int64_t>({5});
  auto weight = test::parameter(xla::full<float>({1000}, 2));
  xla::sum(weight * 3.f).backward();
  CHECK(weight.grad().to_vector() == std::vector<float>(1000, 3));
  for (const float want : {8.f, 13.f}) {
    xla::sum(weight * 5.f).backward();
    const auto rows = xla::embedding(outside - 1, table);  // what it checks is computed
    CHECK_THROWS_AS(rows.to_vector(), xla::index_error);
    CHECK(weight.grad().to_vector() == std::vector<float>(1000, want));
  }
  weight.zero_grad();
  xla::sum(weight * 7.f).backward();
  CHECK(weight.grad().to_vector() == std::vector<float>(1000, 7));
}

TEST_CASE("a program that never reads makes no graph without end, and finds its graphs again") {
  const auto simulate = [](Eager how, int steps) {
    const xla::eager_mode_guard mode(how);
    auto x = xla::tensor<float>({0.1f, 0.2f, 0.3f}), v = xla::zeros<float>({3});
    for (int i = 0; i < steps; ++i) {
      v = v * 0.75f - xla::sin(x) * 0.125f;
      x = x + v * 0.5f + 0.001f;
    }
    return x;
  };
  const auto want = simulate(Eager::strict, 12000).to_vector();
  const graph_counts before;
  const auto x = simulate(Eager::fused, 12000);
  const graph_counts made = since(before);
  CHECK(made.made <= 2);
  CHECK(made.found >= 10);
  CHECK(x.to_vector() == want);
}

TEST_CASE("errors about known indices are thrown at the op's call") {
  const xla::eager_mode_guard mode(Eager::fused);
  CHECK(xla::is_eager_mode());
  const auto table = xla::randn<float>({4, 2});
  const auto wrong = xla::tensor<std::int64_t>({0, 4});
  CHECK_THROWS_WITH(xla::embedding(wrong, table), test::contains("embedding"));
  const auto computed = wrong + 1;  // it waits
  const auto rows = xla::embedding(computed, table);
  CHECK_THROWS_WITH(rows.to_vector(), test::contains("embedding"));
  CHECK(xla::embedding(wrong - 1 + xla::tensor<std::int64_t>({1, 0}), table).size(0) == 2);
}

TEST_CASE("the modes of threads and of scopes are of three kinds") {
  const bool before = xla::is_eager_mode();
  {
    const xla::eager_mode_guard fused(Eager::fused);
    const auto y = xla::tensor<float>({1, 2}) + 1;
    CHECK(xla::is_eager_mode());
    {
      const xla::eager_mode_guard strict(Eager::strict);
      CHECK((y * 2).to_vector() == std::vector<float>{4, 6});
    }
    {
      const xla::eager_mode_guard traced(false);
      CHECK_FALSE(xla::is_eager_mode());
      CHECK((y * 3).to_vector() == std::vector<float>{6, 9});
    }
    CHECK(xla::is_eager_mode());
  }
  CHECK(xla::is_eager_mode() == before);
}

namespace {

/// Counts the regions of plans: those that are one loop, those with sums of columns, and the
/// others.
struct region_counts {
  int loops = 0, sums = 0, known_sums = 0, by_tiles = 0;
  void operator()(const xla::detail::plan& p) {
    for (const auto& s : p.steps) {
      if (s.kind == xla::detail::step_kind::map) ++(s.kernel.map ? loops : by_tiles);
      sums += s.kind == xla::detail::step_kind::row;
      known_sums += s.kernel.row != nullptr;
    }
  }
};

/// The parameters after some steps, and the regions of the last one.
template <class Optimizer>
std::pair<test::snapshot, std::pair<int, int>> updated(Eager how) {
  const xla::eager_mode_guard mode(how);
  xla::manual_seed(7);
  test::Mlp model;
  Optimizer optimizer{model, {.lr = 0.01f}};
  const test::batch b(8);
  std::pair<int, int> last;
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    xla::cross_entropy(model(b.data), b.target).backward();
    region_counts counts;
    const test::on_each_plan look(std::ref(counts));
    optimizer.step();
    xla::sync(true);
    last = {counts.loops, counts.by_tiles};
  }
  return {test::state_of(model, optimizer), last};
}

template <class Optimizer>
void check_updates() {
  const auto [want, none] = updated<Optimizer>(Eager::strict);
  const auto [got, regions] = updated<Optimizer>(Eager::fused);
  CHECK(got.difference(want) == "");
  int parameters = 0;
  test::Mlp model;
  xla::for_each_parameter(model, [&](auto&) { ++parameters; });
  CHECK(regions.first == (xla::detail::has_known_regions ? parameters : 0));
  CHECK(regions.second > 0);
}

}  // namespace

TEST_CASE(
    "an optimizer's update of a parameter is one loop with xla::runtime, with the same bits") {
  check_updates<xla::optim::SGD<test::Mlp>>();
  check_updates<xla::optim::Adam<test::Mlp>>();
  check_updates<xla::optim::AdamW<test::Mlp>>();
}

namespace {

/// Convolutions with batch norms, one of them with a shortcut, as of residual networks.
struct NormedBlock {
  xla::nn::Conv2d<xla::nn::Conv2dConfig{.kernel_size = 3, .padding = 1, .bias = false}> first{3,
                                                                                              24};
  xla::nn::BatchNorm2d first_norm{24};
  xla::nn::Conv2d<xla::nn::Conv2dConfig{.kernel_size = 1, .bias = false}> second{24, 24};
  xla::nn::BatchNorm2d second_norm{24};
  constexpr auto operator()(const xla::Tensor<float, 4>& x) const {
    const auto y = xla::hardtanh(first_norm(first(x)), 0, 6);
    return y + second_norm(second(y));
  }
  XLA_MODULE(first, first_norm, second, second_norm)
};

/// What training steps leave, and how many regions of the last one sum columns; of these, those
/// that are one loop.
std::pair<test::snapshot, std::pair<int, int>> trained_block(Eager how) {
  const xla::eager_mode_guard mode(how);
  xla::manual_seed(7);
  NormedBlock model;
  xla::optim::SGD optimizer{model, {.lr = 0.01f, .momentum = 0.9f}};
  const auto x = test::numbers<float>({4, 3, 25, 25});
  std::pair<int, int> sums;
  for (int i = 0; i < 3; ++i) {
    region_counts counts;
    const test::on_each_plan look(std::ref(counts));
    optimizer.zero_grad();
    const auto y = model(x);
    xla::mean(y * y).backward();
    optimizer.step();
    xla::sync(true);
    sums = {counts.sums, counts.known_sums};
  }
  return {test::state_of(model, optimizer), sums};
}

}  // namespace

TEST_CASE(
    "a batch norm's sums are made with their terms with xla::runtime, with the bits of eager "
    "mode") {
  const auto [want, none] = trained_block(Eager::strict);
  const auto [got, sums] = trained_block(Eager::fused);
  CHECK(got.difference(want) == "");
  CHECK(none.first == 0);
  CHECK((sums.first >= 4) == xla::detail::has_known_regions);
  CHECK((sums.second > 0) == xla::detail::has_known_regions);
}

namespace {

constexpr xla::nn::DecoderConfig small_decoder = [] {
  auto c = test::tiny_gpt;
  c.dropout = false;
  return c;
}();

struct decoder_regions {
  int loops = 0, sums = 0, known_sums = 0;
};

std::pair<test::snapshot, decoder_regions> trained_decoder(Eager how) {
  const xla::eager_mode_guard mode(how);
  xla::manual_seed(7);
  xla::nn::Decoder<small_decoder> model;
  xla::optim::AdamW optimizer{model, {.lr = 0.01f}};
  const auto tokens = test::text_batch(3, 8, 0, 0), next = test::text_batch(3, 8, 0, 1);
  decoder_regions last;
  for (int i = 0; i < 3; ++i) {
    region_counts counts;
    const test::on_each_plan look(std::ref(counts));
    optimizer.zero_grad();
    xla::cross_entropy(xla::reshape(model(tokens), {-1, small_decoder.vocabulary}),
                       xla::reshape(next, {-1}))
        .backward();
    optimizer.step();
    xla::sync(true);
    last = {counts.loops, counts.sums, counts.known_sums};
  }
  return {test::state_of(model, optimizer), last};
}

}  // namespace

TEST_CASE(
    "a decoder's layer norms and GELU, forward and backward, are loops with xla::runtime, with the "
    "bits of eager mode") {
  const auto [want, none] = trained_decoder(Eager::strict);
  const auto [got, regions] = trained_decoder(Eager::fused);
  CHECK(got.difference(want) == "");
  constexpr int layers = small_decoder.layers, norms = 2 * layers + 1;
  if (!xla::detail::has_known_regions) return;
  CHECK(regions.sums == norms + norms - 1 + layers);  // what each norm has, and GELU's bias
  CHECK(regions.known_sums == regions.sums);
  CHECK(regions.loops >= norms + layers);
}
