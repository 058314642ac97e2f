// SPDX-License-Identifier: Apache-2.0
// Programs that are divided over the devices of a mesh.
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "support/backends.hpp"
#include "support/pjrt.hpp"
#include "support/pjrt_training.hpp"
#include "support/steps.hpp"
#include "xla/ext/pjrt.hpp"
#include "xla/ext/stablehlo.hpp"

using test::check_same;
using test::floats;
using test::largest_difference;
using test::on_backend;
using test::outcome;
using test::train;
using test::weights_of;
namespace nn = xla::nn;
namespace optim = xla::optim;

namespace {

struct Wide {
  nn::Linear fc1{17, 32}, fc2{32, 8};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};
constexpr xla::Mesh pair{{2}, {"data"}}, four{{4}, {"data"}};
constexpr xla::Mesh square{{2, 2}, {"data", "model"}};

/// The batch divided over the devices.
template <const xla::Mesh& mesh>
struct by_data {
  constexpr auto operator()(auto& model, auto& data, auto& target, auto& optimizer) const {
    xla::mark_sharding(data, mesh, {"data", {}});
    xla::mark_sharding(target, mesh, {"data"});
    return test::class_step(model, data, target, optimizer);
  }
};
/// The hidden layer too, and with it what the optimizer keeps.
struct by_both {
  constexpr auto operator()(auto& model, auto& data, auto& target, auto& optimizer) const {
    xla::mark_sharding(model.fc1.weight, square, {"model", {}});
    xla::mark_sharding(model.fc1.bias, square, {"model"});
    xla::mark_sharding(model.fc2.weight, square, {{}, "model"});
    return by_data<square>()(model, data, target, optimizer);
  }
};
template <class Step>
outcome train_wide(Step& step) {
  xla::manual_seed(7);
  Wide model;
  optim::AdamW optimizer{model, {.lr = 0.01}};
  return train(step, model, optimizer);
}
template <class Step>
outcome train_wide(const Step& step, const char* backend) {
  auto compiled = xla::compile(step, {.backend = backend});
  return train_wide(compiled);
}
}  // namespace

TEST_CASE("a mark changes nothing here, and is refused where it does not fit") {
  const xla::eager_mode_guard mode;
  const on_backend plan("native");
  const auto own = train_wide(test::class_step, "native");
  const by_both marked;
  CHECK(train_wide(marked, "native").bits == own.bits);
  CHECK(train_wide(marked).bits == own.bits);
  {
    const xla::eager_mode_guard traced(false);
    CHECK(train_wide(marked).bits == own.bits);
  }

  const auto x = test::numbers<float>({6, 4});
  const auto refused = [&](std::initializer_list<std::string_view> by, const char* why) {
    CHECK_THROWS_WITH(xla::mark_sharding(x, square, by), test::contains(why));
  };
  xla::mark_sharding(x, square, {"model", "data"});
  refused({"data"}, "(6, 4), and 1 names");
  refused({"data", "data"}, "\"data\" shards two axes");
  refused({"rows", {}}, "no axis \"rows\"");
  CHECK_THROWS_WITH(xla::mark_sharding(x, four, {"data", {}}),
                    test::contains("axis 0 of (6, 4)") && test::contains("4 equal parts"));
  CHECK_THROWS_WITH((xla::Mesh{{2, 2}, {"a", "a"}}), test::contains("a name of its own"));
  CHECK_THROWS_WITH((xla::Mesh{{2}, {"a", "b"}}), test::contains("a name for each"));
  CHECK_THROWS_WITH((xla::Mesh{{0}, {"a"}}), test::contains("1 to 64"));

  auto f = xla::compile([](auto& x) {
    xla::mark_sharding(x, four, {"data", {}});
    return x + 1;
  });
  auto y = x;
  CHECK_THROWS_AS(f(y), xla::shape_error);
}

TEST_CASE("marks are GSPMD's words in the text, a parameter's also of what goes with it") {
  Wide model;
  optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  test::batch b(4);
  const std::string text = xla::stablehlo(by_both(), model, b.data, b.target, optimizer);
  const auto count = [&](const std::string& words) {
    int n = 0;
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++n;
    return n;
  };
  const std::string last = " last_tile_dim_replicate}\"";
  CHECK(count("tensor<4x17xf32> {mhlo.sharding = \"{devices=[2,1,2]<=[4]" + last) == 1);
  CHECK(count("tensor<4xi64> {mhlo.sharding = \"{devices=[2,2]<=[4]" + last) == 1);
  // The weight and its momentum, as they come and as they go, and its gradient.
  CHECK(count("tensor<32x17xf32> {mhlo.sharding = \"{devices=[2,1,2]<=[2,2]T(1,0)" + last) == 5);
  CHECK(count("tensor<8x32xf32> {mhlo.sharding = \"{devices=[1,2,2]<=[2,2]T(1,0)" + last) == 5);
  CHECK(count("tensor<8xf32> {mhlo.sharding = \"{replicated}\"") == 5);
  CHECK(count("tensor<f32> {mhlo.sharding = \"{replicated}\"") >= 3);  // numbers, and the loss

  auto odd = [](auto& x) {
    constexpr xla::Mesh mesh{{2, 1, 3}, {"a", "b", "c"}};
    xla::mark_sharding(x, mesh, {"b", "c", "a"});
    return x + 1;
  };
  auto cube = test::numbers<float>({5, 3, 4});
  CHECK_THAT(xla::stablehlo(odd, cube), test::contains("\"{devices=[1,3,2]<=[2,1,3]T(2,0,1)}\""));

  auto two = [](auto& x, auto& y) {
    xla::mark_sharding(x, pair, {"data", {}});
    xla::mark_sharding(y, four, {"data", {}});
    return x + y;
  };
  auto x = test::numbers<float>({4, 4});
  auto y = x;
  CHECK_THROWS_WITH(xla::stablehlo(two, x, y), test::contains("by one mesh"));
}

TEST_CASE("a step on a mesh equals one device's up to rounding", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const auto own = train_wide(test::class_step, "native");
  check_same(train_wide(by_data<pair>(), "pjrt:CPU"), own);
  check_same(train_wide(by_data<four>(), "pjrt:CPU"), own);
  check_same(train_wide(by_both(), "pjrt:CPU"), own);
}

TEST_CASE("parts of every shape come together, and old values stay", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto f = xla::compile(
      [](auto& x, auto& i) {
        xla::mark_sharding(x, square, {"model", {}, "data"});
        xla::mark_sharding(i, square, {"data"});
        x += 1;
        return std::tuple(sum(x, {1}), index_select(x, 2, i), rand_like(x));
      },
      {.backend = xla::pjrt("CPU")});
  auto x = test::numbers<double>({4, 3, 6});
  auto i = xla::tensor<std::int64_t>({5, 0, 3, 3});
  const auto old = x;
  const auto before = x.to_vector();
  xla::manual_seed(1);
  const auto [total, chosen, drawn] = f(x, i);
  CHECK(old.to_vector() == before);
  CHECK(x.to_vector() == (old + 1).to_vector());
  CHECK(chosen.to_vector() == index_select(x, 2, i).to_vector());
  const auto sums = sum(x, {1}).to_vector(), got = total.to_vector();
  for (std::size_t k = 0; k < sums.size(); ++k) CHECK(std::abs(got[k] - sums[k]) < 1e-13);
  xla::manual_seed(1);
  CHECK(drawn.to_vector() == rand_like(x).to_vector());
  auto wrong = xla::tensor<std::int64_t>({5, 0, 6, 3});
  const auto now = x.to_vector();
  CHECK_THROWS_WITH(f(x, wrong), test::contains("6"));
  CHECK(x.to_vector() == now);
}

TEST_CASE("tensors sharded over a mesh stay on its devices until they are read", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  const on_backend host("native");
  const auto make = [](auto& step) {
    xla::manual_seed(7);
    struct result {
      floats losses;
      Wide model;
    } out;
    optim::AdamW optimizer{out.model, {.lr = 0.01}};
    for (int i = 0; i < test::steps; ++i) {
      test::batch b(test::batch_size, static_cast<std::uint64_t>(i));
      if (i == 1) xla::clear_all();
      out.losses.push_back(step(out.model, b.data, b.target, optimizer).item());
    }
    return out;
  };
  auto plan = xla::compile(test::class_step);
  auto step = xla::compile(by_both(), {.backend = xla::pjrt("CPU")});
  auto own = make(plan);
  auto there = make(step);
  // A device of the mesh has half of a batch, and so each half goes to two; a loss of each comes.
  constexpr int later = test::steps - 1, batch = test::batch_size * (17 * 4 + 8);
  CHECK(test::bytes_sent() == 2 * later * batch);
  CHECK(test::bytes_received() == later * 4);
  CHECK(largest_difference(there.losses, own.losses) < 2e-6);

  // Read, held while it is written, used by other programs, and written by the host.
  optim::AdamW first{own.model, {.lr = 0.01}}, second{there.model, {.lr = 0.01}};
  const auto train_on = [&](std::uint64_t seed) {
    test::batch b(test::batch_size, seed);
    plan(own.model, b.data, b.target, first);
    step(there.model, b.data, b.target, second);
  };
  const auto same = [&] {
    CHECK(largest_difference(weights_of(there.model), weights_of(own.model)) < 5e-6);
  };
  same();
  train_on(20);
  const xla::Tensor<float, 2> held = there.model.fc1.weight, mine = own.model.fc1.weight;
  train_on(21);
  same();
  CHECK(largest_difference(held.to_vector(), mine.to_vector()) < 5e-6);
  CHECK(largest_difference(held.to_vector(), there.model.fc1.weight.to_vector()) > 1e-4);
  auto predict = xla::compile(there.model, {.backend = xla::pjrt("CPU")});
  const test::batch b(test::batch_size, 22);
  CHECK(largest_difference(predict(b.data).to_vector(), own.model(b.data).to_vector()) < 1e-5);
  there.model.fc1.weight.copy_(there.model.fc1.weight * 0.5f);
  own.model.fc1.weight.copy_(own.model.fc1.weight * 0.5f);
  train_on(23);
  auto wrong = xla::tensor<std::int64_t>({0, 1, 99, 2, 0, 1, 3, 2});
  auto data = b.data;
  const auto before = weights_of(there.model);
  CHECK_THROWS_WITH(step(there.model, data, wrong, second), test::contains("99"));
  CHECK(weights_of(there.model) == before);
  train_on(24);
  same();
}
