// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "xla/xla.hpp"

namespace {

namespace nn = xla::nn;

/// Two of its states are large enough to wait until they are read.
struct Net {
  nn::Embedding table{300, 200, 7};
  nn::Linear fc{200, 300};
  nn::BatchNorm1d norm{300};
  constexpr auto operator()(const xla::Tensor<std::int64_t, 1>& x) const { return fc(table(x)); }
  XLA_MODULE(table, fc, norm)
};
constexpr std::int64_t table_bytes = 300 * 200 * 4, fc_bytes = 200 * 300 * 4;

std::int64_t drawn() {
  std::int64_t n = 0;
  for (const char* op : {"xla::uniform", "xla::normal"}) n += xla::counter_value(op).value_or(0);
  return n;
}

/// What a model of a seed begins with, by name.
xla::StateDict begun(int seed) {
  xla::manual_seed(static_cast<std::uint64_t>(seed));
  Net net;
  return xla::state_dict(net);
}

}  // namespace

TEST_CASE("a large parameter takes no memory and no time before it is read") {
  const xla::eager_mode_guard eager;
  const auto before = xla::memory_allocated(), draws = drawn();
  Net net;
  CHECK(xla::memory_allocated() - before < 10'000);
  CHECK(drawn() - draws == 1);  // of fc.bias
  CHECK(net.fc.weight.requires_grad());
  const float first = net.fc.weight.to_vector()[0];
  CHECK(xla::memory_allocated() - before >= fc_bytes);
  CHECK(xla::memory_allocated() - before < fc_bytes + table_bytes);
  CHECK(drawn() - draws == 2);
  CHECK(net.fc.weight.to_vector()[0] == first);
  CHECK(drawn() - draws == 2);
}

TEST_CASE("numbers are those of the moment that they were asked for, in every mode") {
  const xla::eager_mode_guard eager;
  const auto now = begun(3);
  xla::manual_seed(3);
  Net late;
  const auto between = xla::rand<float>({1000}).to_vector();
  const auto weight = late.fc.weight.to_vector();  // before the table, which was drawn first
  CHECK(xla::state_dict(late) == now);
  CHECK(weight == late.fc.weight.to_vector());
  xla::manual_seed(3);
  {
    const xla::eager_mode_guard traced(false);
    Net net;
    CHECK(xla::rand<float>({1000}).to_vector() == between);
    CHECK(xla::state_dict(net) == now);
  }
  for (const float x : late.table.weight[7].to_vector()) REQUIRE(x == 0);
  CHECK(late.table.weight[8].to_vector() != late.table.weight[9].to_vector());
}

TEST_CASE("a model that is filled from a state draws no weights; what the state lacks is drawn") {
  const xla::eager_mode_guard eager;
  auto state = begun(1);
  const auto before = xla::memory_allocated(), draws = drawn();
  Net net;
  xla::load_state_dict(net, state);
  CHECK(drawn() - draws == 1);
  CHECK(xla::memory_allocated() - before < table_bytes + fc_bytes + 20'000);
  CHECK(xla::state_dict(net) == state);

  state.erase(state.begin());
  xla::manual_seed(5);
  Net tuned;
  CHECK(xla::load_state_dict(tuned, state, false).missing_keys ==
        std::vector<std::string>{"table.weight"});
  CHECK(xla::state_dict(tuned)[0] == begun(5)[0]);
  CHECK(xla::state_dict(tuned)[1] == state[0]);
}

TEST_CASE("copies, moves and writes see what a parameter begins with") {
  const xla::eager_mode_guard eager;
  const auto state = begun(2);
  xla::manual_seed(2);
  Net net;
  const xla::Tensor<float, 2> old = net.fc.weight;
  net.fc.weight.copy_(2.f * net.fc.weight);
  Net moved = std::move(net), copied = moved;
  CHECK(xla::state_dict(copied)[0] == state[0]);
  net = moved;
  moved.fc.reset_parameters();
  CHECK(net.fc.weight.to_vector() == (2.f * old).to_vector());
  CHECK(moved.fc.weight.to_vector() != net.fc.weight.to_vector());
  xla::Buffer<float, 2> zeros({200, 300});
  CHECK(zeros.to_vector() == std::vector<float>(60'000, 0));
  nn::init::ones_(zeros);
  xla::fill_row_(zeros, 1, 2.f);
  CHECK(xla::sum(zeros).item() == 60'300);
}

TEST_CASE("rows that are written one after the other are, and in place from the third on") {
  const xla::eager_mode_guard eager;
  xla::Buffer<float, 2> table({300, 200});
  const auto before = xla::memory_allocated();
  xla::fill_row_(table, 0, 1.f);
  CHECK(xla::memory_allocated() - before < 10'000);
  for (int i = 1; i < 300; ++i) xla::fill_row_(table, i, static_cast<float>(i + 1));
  CHECK(xla::memory_allocated() - before >= table_bytes);
  CHECK(xla::memory_allocated() - before < 2 * table_bytes);
  const auto all = table.to_vector();
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == static_cast<float>(i / 200 + 1));
}

TEST_CASE("steps in every mode begin with the same weights, and leave the same") {
  const auto step = [](auto& net, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    const auto y = net(x);
    const auto loss = xla::mean(y * y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  std::vector<xla::StateDict> results;
  const auto run = [&](bool eager, auto f) {
    const xla::eager_mode_guard mode(eager);
    xla::manual_seed(6);
    Net net;
    xla::optim::SGD optimizer{net, {.lr = 0.1f, .momentum = 0.9f}};
    auto x = xla::arange(20);
    f(net, x, optimizer);
    f(net, x, optimizer);
    results.push_back(xla::state_dict(net));
  };
  run(true, step);
  run(false, step);
  run(true, xla::compile(step));
  CHECK(results[1] == results[0]);
  CHECK(results[2] == results[0]);
  CHECK(results[0] != begun(6));
}

TEST_CASE("a traced graph that fails leaves a parameter with what it began with") {
  const xla::eager_mode_guard traced(false);
  xla::Buffer<float, 2> table({200, 300});
  auto index = xla::tensor<std::int64_t>({1, 200});
  table.copy_(table + xla::sum(xla::index_select(table, 0, index)));
  CHECK_THROWS_AS(xla::sync(true), xla::index_error);
  CHECK(table.to_vector() == std::vector<float>(60'000, 0));
}

TEST_CASE("threads that read a parameter for the first time at once see the same") {
  const xla::eager_mode_guard eager;
  const auto state = begun(4);
  for (int round = 0; round < 3; ++round) {
    xla::manual_seed(4);
    Net net;
    std::vector<std::vector<float>> seen(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < seen.size(); ++i)
      threads.emplace_back([&, i] {
        const xla::eager_mode_guard mode(i % 2 == 0);
        seen[i] = (i < 2 ? net.fc.weight : net.table.weight).to_vector();
      });
    for (auto& t : threads) t.join();
    CHECK(seen[0] == seen[1]);
    CHECK(seen[2] == seen[3]);
    CHECK(xla::state_dict(net) == state);
  }
}
