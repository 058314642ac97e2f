// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/mlp.hpp"
#include "support/replica_checks.hpp"
#include "xla/parallel.hpp"
#include "xla/xla.hpp"

namespace {

using test::bits_of;
using numbers = std::vector<std::int64_t>;

[[maybe_unused]] const bool counted = (xla::set_device_count(3), true);

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(data), target);
  loss.backward();
  xla::optimizer_step(optimizer);
  return loss;
};

// What two steps leave in the model of each replica, which has batches of its own.
template <class Step>
std::vector<std::size_t> trained(Step step) {
  xla::manual_seed(7);
  return xla::launch(
      [&](std::int64_t index, test::Mlp& model) {
        xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
        for (const std::uint64_t turn : {0, 1}) {
          test::batch b(4, 10 * turn + static_cast<std::uint64_t>(index));
          const auto data = b.data.to(xla::device());
          const auto target = b.target.to(xla::device());
          step(model, data, target, optimizer);
        }
        return bits_of(model, optimizer);
      },
      test::Mlp{});
}

std::int64_t graphs() {
  const auto sizes = xla::metric_data("TensorsGraphSize");
  return sizes ? sizes->total_samples : 0;
}

}  // namespace

TEST_CASE("launch calls the function on every device, with copies of its arguments") {
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    const auto mine = xla::tensor<float>({1, 2});
    std::atomic<int> calls = 0;
    const auto seen = xla::launch(
        [](std::int64_t index, auto& x, std::atomic<int>& count) {
          ++count;
          REPLICA_CHECK(xla::global_ordinal() == index);
          REPLICA_CHECK(xla::world_size() == 3);
          REPLICA_CHECK(xla::device() == x.device());
          REPLICA_CHECK(xla::is_master_ordinal() == (index == 0));
          x = x + static_cast<float>(index);
          return static_cast<std::int64_t>(xla::device().index * 100) +
                 static_cast<std::int64_t>(xla::sum(x).item());
        },
        mine, std::ref(calls));
    CHECK(seen == numbers{3, 105, 207});
    CHECK(calls == 3);
    CHECK(mine.to_vector() == std::vector<float>{1, 2});
    CHECK(xla::world_size() == 1);
    CHECK(xla::global_ordinal() == 0);
    CHECK(xla::device().index == 0);
  }
}

TEST_CASE("a launch leaves what it refers to where it is") {
  test::Mlp model;
  const auto devices = xla::launch(
      [](std::int64_t, const test::Mlp& shared, const test::Mlp& own) {
        REPLICA_CHECK(own.fc1.weight.device() == xla::device());
        return shared.fc1.weight.device().index;
      },
      std::cref(model), model);
  CHECK(devices == std::vector<int>{0, 0, 0});
  xla::launch([](std::int64_t, test::Mlp&) {}, std::ref(model));
  CHECK(model.fc1.weight.device().index == 0);
}

TEST_CASE("results of a launch live on their devices and can be read after it") {
  const auto parts = xla::launch([](std::int64_t index) {
    return xla::full<float>({2}, static_cast<float>(index)).to(xla::device()) * 2.f;
  });
  REQUIRE(parts.size() == 3);
  for (int i = 0; i < 3; ++i) {
    const auto& part = parts[static_cast<std::size_t>(i)];
    CHECK(part.device() == xla::device(i));
    CHECK(part.to_vector() == std::vector<float>(2, 2.f * static_cast<float>(i)));
  }
}

TEST_CASE("random numbers go on from the launching thread's, another stream for each replica") {
  const auto drawn = [](bool eager) {
    const xla::eager_mode_guard mode(eager);
    xla::manual_seed(3);
    xla::rand<float>({5}).to_vector();
    std::vector<std::vector<float>> all;
    for (int i = 0; i < 2; ++i)
      for (const auto& one : xla::launch(
               [](std::int64_t) { return xla::rand<float>({3}, xla::device()).to_vector(); }))
        all.push_back(one);
    all.push_back(xla::rand<float>({3}).to_vector());
    return all;
  };
  const auto all = drawn(true);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
  CHECK(drawn(true) == all);
  CHECK(drawn(false) == all);
}

TEST_CASE("an exception on one replica ends all of them, and is rethrown with its ordinal") {
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    std::atomic<int> ended = 0, went_on = 0;
    struct counting {
      std::atomic<int>& ended;
      ~counting() { ++ended; }
    };
    const auto failing = [&](std::int64_t index) {
      const counting at_end{ended};
      const auto sum = xla::all_reduce(xla::full<float>({1}, 1.f));
      REPLICA_CHECK(sum.item() == 3);
      if (index == 1) throw std::out_of_range("sample 17 is missing");
      xla::all_reduce(sum).item();
      ++went_on;
    };
    try {
      xla::launch(failing);
      FAIL("launch did not throw");
    } catch (const xla::replica_error& e) {
      CHECK(std::string(e.what()) == "replica 1 of 3: sample 17 is missing");
      CHECK(e.ordinal() == 1);
      CHECK_THROWS_AS(std::rethrow_exception(e.cause()), std::out_of_range);
    }
    CHECK(ended == 3);
    CHECK(went_on == 0);
    CHECK(xla::launch([](std::int64_t index) { return index; }) == numbers{0, 1, 2});
  }
}

TEST_CASE("a replica that ends early, and a launch within a launch, are errors") {
  const xla::eager_mode_guard eager;
  const auto early = [](std::int64_t index) {
    if (index != 2) xla::all_reduce(xla::full<float>({1}, 1.f)).item();
  };
  CHECK_THROWS_WITH(xla::launch(early), test::contains("barrier"));
  const auto nested = [](std::int64_t) { xla::launch([](std::int64_t) {}); };
  CHECK_THROWS_WITH(xla::launch(nested), test::contains("is used by another launch"));
  CHECK(xla::launch([](std::int64_t index) { return index; }) == numbers{0, 1, 2});
}

TEST_CASE("a launch within a launch is blamed on the replica that makes it") {
  auto doubled = xla::compile([](auto& x) { return xla::all_reduce(x * 2); });
  for (const bool eager : {true, false})
    for (const std::int64_t guilty : {0, 1, 2}) {
      const xla::eager_mode_guard mode(eager);
      const auto nested = [&](std::int64_t index) {
        auto x = xla::ones<float>({2}).to(xla::device());
        for (int i = 0; i < 3; ++i) {
          if (i == 1 && index == guilty) xla::launch([](std::int64_t) {});
          doubled(x).to_vector();
          xla::all_reduce(x).to_vector();
        }
      };
      try {
        xla::launch(nested);
        FAIL("launch did not throw");
      } catch (const xla::replica_error& e) {
        CHECK(e.ordinal() == guilty);
        CHECK(std::string(e.what()) ==
              "replica " + std::to_string(guilty) +
                  " of 3: xla::launch: device 0 is used by another launch: nested or concurrent "
                  "launches need devices of their own");
      }
      CHECK(xla::launch([](std::int64_t index) { return index; }) == numbers{0, 1, 2});
    }
}

TEST_CASE("rendezvous brings texts together, and tells other names") {
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    xla::launch([](std::int64_t index) {
      const auto texts =
          xla::rendezvous("hello", std::string(static_cast<std::size_t>(index), 'x'));
      REPLICA_CHECK(texts == std::vector<std::string>{"", "x", "xx"});
    });
    const auto wrong = [](std::int64_t index) {
      xla::rendezvous(index == 1 ? "epoch 2" : "epoch 1");
    };
    CHECK_THROWS_WITH(xla::launch(wrong),
                      test::contains("\"epoch 1\"") && test::contains("\"epoch 2\""));
  }
  CHECK(xla::rendezvous("alone", "me") == std::vector<std::string>{"me"});
}

TEST_CASE("mesh_reduce brings values together by ordinal") {
  const auto sums = xla::launch([](std::int64_t index) {
    const auto text = xla::mesh_reduce("text", std::string(1, static_cast<char>('a' + index)),
                                       [](const auto& all) { return all[0] + all[1] + all[2]; });
    REPLICA_CHECK(text == "abc");
    const auto lists = xla::mesh_reduce("lists", numbers(static_cast<std::size_t>(index), index),
                                        [](const auto& all) { return all; });
    REPLICA_CHECK(lists == std::vector<numbers>{{}, {1}, {2, 2}});
    return xla::mesh_reduce("sum", 0.5 * static_cast<double>(index), [](const auto& all) {
      double sum = 0;
      for (const double x : all) sum += x;
      return sum;
    });
  });
  CHECK(sums == std::vector<double>(3, 1.5));
}

TEST_CASE("save writes on the first replica, before the others go on") {
  std::atomic<int> written = 0;
  xla::launch([&](std::int64_t) {
    xla::save([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++written;
    });
    REPLICA_CHECK(written == 1);
  });
  CHECK(written == 1);
  const auto full = [](std::int64_t) {
    xla::save([] { throw xla::io_error("the disk is full"); });
  };
  CHECK_THROWS_WITH(xla::launch(full), test::contains("replica 0 of 3: the disk is full"));
  xla::save([&] { ++written; });  // in a world of one
  CHECK(written == 2);
}

TEST_CASE("broadcast_master_param makes models equal, buffers too") {
  struct Net {
    xla::nn::Linear fc{3, 2};
    xla::nn::BatchNorm1d norm{2};
    XLA_MODULE(fc, norm)
  };
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    const auto all = xla::launch([](std::int64_t index) {
      Net net;
      net.to(xla::device());
      net.norm.running_mean.copy_(xla::full<float>({2}, static_cast<float>(index + 1)));
      const auto before = bits_of(net);
      xla::broadcast_master_param(net);
      REPLICA_CHECK(net.fc.weight.device() == xla::device());
      REPLICA_CHECK(net.norm.running_mean.to_vector() == std::vector<float>{1, 1});
      REPLICA_CHECK((bits_of(net) == before) == (index == 0));
      return bits_of(net);
    });
    CHECK(all[1] == all[0]);
    CHECK(all[2] == all[0]);
  }
}

TEST_CASE("optimizer_step: replicas stay equal, with the same bits in every mode") {
  std::vector<std::size_t> eager;
  {
    const xla::eager_mode_guard mode;
    eager = trained(step_fn);
    CHECK(eager[1] == eager[0]);
    CHECK(eager[2] == eager[0]);
    CHECK(trained(xla::compile(step_fn)) == eager);
  }
  {
    const xla::eager_mode_guard mode(false);
    CHECK(trained(step_fn) == eager);
  }
}

TEST_CASE("optimizer_step takes the mean of the gradients, in groups their sums over the world") {
  const xla::eager_mode_guard mode;
  struct Number {
    xla::Parameter<float, 1> w = xla::tensor<float>({0.f, 0.f});
    XLA_MODULE(w)
  };
  const auto moved = [](const xla::ReplicaGroups& groups) {
    return xla::launch(
        [&](std::int64_t index, Number& model) {
          xla::optim::SGD optimizer{model, {.lr = 1}};
          xla::sum(model.w * static_cast<float>(3 << index)).backward();  // 3, 6, 12
          xla::optimizer_step(optimizer, {.groups = groups});
          return -model.w.to_vector()[1];
        },
        Number{});
  };
  const auto shared = [](std::int64_t, Number& model) {
    xla::optim::ZeroRedundancy optimizer{xla::optim::SGD{model, {.lr = 1}}};
    xla::sum(model.w).backward();
    xla::optimizer_step(optimizer, {.groups = {{0, 1, 2}}});
  };
  CHECK_THROWS_WITH(xla::launch(shared, Number{}), test::contains("it has no groups"));
  using floats = std::vector<float>;
  CHECK(moved({}) == floats{7, 7, 7});
  CHECK(moved({{0, 2}, {1}}) == floats{5, 2, 5});
  CHECK(moved({{0, 1, 2}}) == floats{7, 7, 7});
  CHECK_THROWS_WITH(moved({{0, 1}}), test::contains("has to be in one group"));
  CHECK_THROWS_WITH(moved({{0, 1}, {1, 2}}), test::contains("has to be in one group"));
  CHECK_THROWS_WITH(moved({{0, 1, 2, 3}}), test::contains("has to be in one group"));
}

TEST_CASE("without its barrier the pending graph grows, with it each step is one graph") {
  const xla::eager_mode_guard traced(false);
  test::Mlp model;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  test::batch b(4);
  const auto steps = [&](int count, bool barrier) {
    xla::sync(true);
    xla::clear_metrics();
    for (int i = 0; i < count; ++i) {
      optimizer.zero_grad();
      xla::cross_entropy(model(b.data), b.target).backward();
      xla::optimizer_step(optimizer, {.barrier = barrier});
    }
  };
  steps(1, true);
  REQUIRE(graphs() == 1);
  const double one = xla::metric_data("TensorsGraphSize")->accumulator;
  steps(3, true);
  CHECK(graphs() == 3);
  CHECK(xla::metric_data("TensorsGraphSize")->accumulator == 3 * one);
  steps(3, false);
  CHECK(graphs() == 0);
  xla::sync(true);
  CHECK(graphs() == 1);
  CHECK(xla::metric_data("TensorsGraphSize")->accumulator > 2 * one);
  steps(1, true);
  CHECK(xla::metric_data("TensorsGraphSize")->accumulator == one);
}
