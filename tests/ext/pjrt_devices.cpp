// SPDX-License-Identifier: Apache-2.0
// Replicas on several devices of a plugin, in one executable.
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/backends.hpp"
#include "support/pjrt.hpp"
#include "support/pjrt_training.hpp"
#include "support/replica_checks.hpp"
#include "support/replicas.hpp"
#include "support/slow_world.hpp"
#include "xla/ext/pjrt.hpp"
#include "xla/loop.hpp"
#include "xla/optim/zero_redundancy.hpp"

using test::bits_of;
using test::check_same;
using test::count_of;
using test::floats;
using test::largest_difference;
using test::on_backend;
using test::outcome;
using test::train;
using test::weights_of;
namespace optim = xla::optim;

namespace {

[[maybe_unused]] const bool counted = (xla::set_device_count(4), true);

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::cross_entropy(model(data), target);
  loss.backward();
  xla::optimizer_step(optimizer);
  return xla::all_reduce(loss, xla::reduce_type::mean);
};

std::vector<xla::Device> first_devices(int n) {
  auto all = xla::devices();
  all.resize(static_cast<std::size_t>(n));
  return all;
}
/// body() on each of the first n devices, as replicas of one world.
template <class Body>
auto replicate(int n, const Body& body) {
  return xla::parallel::on_devices(first_devices(n), [&](std::size_t) { return body(); });
}
template <class Step>
std::vector<outcome> train_replicas(int n, Step step) {
  xla::manual_seed(7);
  xla::parallel::DataParallel all{test::Mlp{}, first_devices(n)};
  floats nothing;
  return all(
      [&](auto& model, auto&, const auto&, auto&) {
        optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
        return train(step, model, optimizer);
      },
      nothing);
}

/// What n replicas throw, whatever ends their world.
template <class Body>
std::vector<std::string> thrown(int n, const Body& body) {
  std::vector<std::string> said(static_cast<std::size_t>(n), "nothing");
  try {
    xla::parallel::on_devices(first_devices(n), [&](std::size_t i) {
      try {
        body(i);
      } catch (const xla::error& e) {
        said[i] = e.what();
        throw;
      }
    });
  } catch (const xla::error&) {}  // told by each
  return said;
}

/// Every exchange, and groups.
constexpr auto exchanges = [](auto& x, auto& whole) {
  auto a = xla::all_reduce(x) + xla::all_reduce(x, "mean") * xla::all_reduce(x, "max");
  auto b = xla::all_reduce(x, "min") - xla::all_reduce(x, "mul");
  auto c = xla::all_gather(x, 1);
  auto d = xla::reduce_scatter(x, 0, xla::reduce_type::mean);
  auto e = xla::all_to_all(x, 0, 1);
  auto f = xla::collective_permute(x, {{0, 1}, {1, 0}});
  auto g = xla::broadcast(x > 1, 1);
  auto h = xla::local_shard(x);
  auto i = xla::all_reduce(whole, "max") + xla::broadcast(whole, 1);
  return std::tuple(a, b, c, d, e, f, g, h, i);
};

}  // namespace

TEST_CASE("replicas that share no memory exchange by plans alone: a compiled step says so") {
  auto f = xla::compile([](auto& x) { return all_reduce(exp(x)); }, {.backend = xla::pjrt("CPU")});
  auto part = xla::compile([](auto& x) { return local_shard(x); }, {.backend = xla::pjrt("CPU")});
  std::string told[2], of_part[2];
  test::slow_world apart(2, 0, 1e9);
  test::replicate(apart, [&](int ordinal) {
    auto x = test::numbers<float>({3}).to(xla::device());
    const auto call = [&](auto& step, std::string& said) {
      try {
        step(x);
      } catch (const xla::runtime_error& e) {
        said = e.what();
      }
    };
    call(f, told[ordinal]);
    call(part, of_part[ordinal]);
  });
  for (const std::string& what : told)
    CHECK_THAT(what, test::contains("pjrt:CPU has no all_reduce"));
  for (const std::string& what : of_part)
    CHECK_THAT(what, test::contains("pjrt:CPU has no local_shard"));
}

TEST_CASE("a step of replicas is one executable: compiled and traced, two and four", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  outcome one;
  {
    const on_backend plan("native");
    const xla::eager_mode_guard mode;
    xla::manual_seed(7);
    test::Mlp model;
    optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
    auto step = xla::compile(step_fn);
    one = train(step, model, optimizer);
  }
  const on_backend xla("pjrt:CPU");
  const auto check = [&](const std::vector<outcome>& all) {
    for (const outcome& replica : all) {
      CHECK(replica.bits == all[0].bits);
      CHECK(replica.losses == all[0].losses);
      check_same(replica, one);
    }
  };
  for (const int n : {2, 4}) {
    INFO(n << " replicas");
    const xla::eager_mode_guard mode(false);
    xla::clear_all();
    check(train_replicas(n, xla::compile(step_fn)));
    CHECK(count_of("UncachedCompile") >= n);
    CHECK(count_of("Backend::pjrt:CPU") >= n * test::steps);
    CHECK(xla::metric_data("Pjrt::CompileTime")->total_samples > 0);
    check(train_replicas(n, step_fn));
    CHECK(count_of("fallback::all_reduce") == 0);
  }
  const xla::eager_mode_guard mode;  // its exchanges are this library's
  check(train_replicas(2, step_fn));
}

TEST_CASE("every exchange gives what this library's gives", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto own = xla::compile(exchanges, {.backend = "native"});
  auto there = xla::compile(exchanges, {.backend = xla::pjrt("CPU")});
  for (const int n : {2, 4})
    replicate(n, [&] {
      const auto seed = static_cast<std::uint64_t>(xla::global_ordinal());
      auto x = test::numbers<float>({8, 4}, seed).to(xla::device());
      auto whole = test::numbers<std::int64_t>({3}, seed).to(xla::device());
      const auto wanted = own(x, whole), got = there(x, whole);
      const auto same = [](const auto& a, const auto& b) {
        const auto p = a.to_vector(), q = b.to_vector();
        for (std::size_t i = 0; i < q.size(); ++i)
          REPLICA_CHECK(std::abs(double(p[i]) - double(q[i])) <=
                        1e-5 * (1 + std::abs(double(q[i]))));
        return p.size() == q.size();
      };
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        REPLICA_CHECK((same(std::get<I>(got), std::get<I>(wanted)) && ...));
      }(std::make_index_sequence<9>());
    });
}

TEST_CASE("replicas exchange in the steps of a loop", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  constexpr auto reduced = [](auto& w, auto& xs) {
    const auto step = [&](const auto& seen, const auto& x) {
      w.zero_grad();
      auto loss = xla::mean(xla::square(xla::tanh(xla::matmul(x, w)) - 0.5f));
      loss.backward();
      w.copy_(w.detach() - xla::all_reduce(w.grad(), xla::reduce_type::mean) * 0.1f);
      return std::pair(seen + xla::all_reduce(loss.detach()), loss.detach());
    };
    return xla::scan(step, xla::sum(xs) * 0.0f, xs);
  };
  auto own = xla::compile(reduced, {.backend = "native"});
  auto there = xla::compile(reduced, {.backend = xla::pjrt("CPU")});
  for (const int n : {2, 4}) {
    const auto all = replicate(n, [&] {
      const auto seed = static_cast<std::uint64_t>(xla::global_ordinal());
      auto xs = test::numbers<float>({4, 5, 8}, seed).to(xla::device());
      const auto run = [&](auto& f) {
        auto w = xla::Parameter<float, 2>(test::numbers<float>({8, 3}).to(xla::device()));
        const auto [sum_of, losses] = f(w, xs);
        auto made = losses.to_vector();
        made.push_back(sum_of.item());
        for (const float x : w.to_vector()) made.push_back(x);
        return made;
      };
      return std::pair(run(there), run(own));
    });
    for (const auto& [got, want] : all) CHECK(largest_difference(got, want) < 2e-6);
  }
}

TEST_CASE("an optimizer's distributed state, and random numbers of each replica", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const auto run = [](const char* backend) {
    const on_backend here(backend);
    const xla::eager_mode_guard mode(false);
    xla::manual_seed(3);
    const test::Mlp model;
    auto step = xla::compile([](auto& model, auto& x, auto& optimizer) {
      optimizer.zero_grad();
      const auto noise = xla::rand_like(x);
      xla::mean(xla::square(model(x + noise))).backward();
      xla::optimizer_step(optimizer);
      return noise;
    });
    return replicate(2, [&] {
      test::Mlp mine = model;
      mine.to(xla::device());
      optim::ZeroRedundancy optimizer{optim::AdamW{mine, {.lr = 0.01}}};
      auto x = test::numbers<float>({4, 17}).to(xla::device());
      step(mine, x, optimizer);
      const auto noise = step(mine, x, optimizer).to_vector();
      xla::check_replicas(mine);
      return std::pair(noise, weights_of(mine));
    });
  };
  const auto own = run("native"), there = run("pjrt:CPU");
  for (const std::size_t r : {0u, 1u}) {
    CHECK(there[r].first == own[r].first);
    CHECK(largest_difference(there[r].second, own[r].second) < 2e-6);
  }
  CHECK(there[0].first != there[1].first);
}

TEST_CASE("an exception on one replica ends the call on all, and changes nothing", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  const xla::eager_mode_guard mode;
  auto step = xla::compile(step_fn);
  std::vector<test::Mlp> models(3);
  const auto train = [&](std::size_t i, std::int64_t bad) {
    test::Mlp& model = models[i];
    optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
    test::batch b(4);
    auto data = b.data.to(xla::device());
    auto target = b.target.to(xla::device());
    step(model, data, target, optimizer);
    const auto before = bits_of(model, optimizer);
    auto wrong = xla::tensor<std::int64_t>({0, 1, bad, 2}).to(xla::device());
    try {
      step(model, data, wrong, optimizer);
    } catch (...) {
      if (bits_of(model, optimizer) != before) throw xla::runtime_error("changed");
      throw;
    }
  };
  for (int i = 0; i < 3; ++i) models[static_cast<std::size_t>(i)].to(xla::device(i));
  const auto said = thrown(3, [&](std::size_t i) { train(i, i == 1 ? 99 : 1); });
  for (const std::string& what : said) CHECK_THAT(what, test::contains("99"));
  for (const std::size_t i : {0u, 2u}) CHECK_THAT(said[i], test::contains("replica 1 of 3"));
  CHECK(thrown(3, [&](std::size_t i) { train(i, 1); }) == std::vector<std::string>(3, "nothing"));
}

TEST_CASE("an index that replicas compute is looked at before the call, on all", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const xla::eager_mode_guard mode;
  auto f = xla::compile(
      [](auto& x, auto& i) {
        x += xla::all_reduce(x);
        return index_select(x, 0, xla::all_reduce(i, "max")) + index_select(x, 0, i + 1);
      },
      {.backend = xla::pjrt("CPU")});
  const auto call = [&](std::size_t replica, std::int64_t largest) {
    auto x = test::numbers<float>({4, 2}, replica).to(xla::device());
    auto i = xla::tensor<std::int64_t>({0, replica == 1 ? largest : 1}).to(xla::device());
    const auto before = x.to_vector();
    try {
      return f(x, i).to_vector();
    } catch (...) {
      REPLICA_CHECK(x.to_vector() == before);
      throw;
    }
  };
  std::vector<floats> got(2);
  CHECK(thrown(2, [&](std::size_t r) { got[r] = call(r, 2); }) ==
        std::vector<std::string>(2, "nothing"));
  const auto a = test::numbers<float>({4, 2}, 0), b = test::numbers<float>({4, 2}, 1);
  const auto most = xla::tensor<std::int64_t>({0, 2}), one = xla::tensor<std::int64_t>({1, 2});
  const auto x = a + (a + b);
  CHECK(largest_difference(
            got[0], (index_select(x, 0, most) + index_select(x, 0, one)).to_vector()) < 1e-6);
  for (const std::int64_t wrong : {3, 4})  // after the end by the second, by both
    for (const std::string& said : thrown(2, [&](std::size_t r) { call(r, wrong); }))
      CHECK_THAT(said, test::contains("4"));
}

TEST_CASE("replicas that run other programs, other sizes, or none get an error", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const on_backend xla("pjrt:CPU");
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    auto f = xla::compile([](auto& x) { return xla::all_reduce(exp(x)); });
    auto g = xla::compile([](auto& x) { return xla::all_reduce(sin(x)); });
    const auto told = [&](const char* what, const auto& body) {
      CHECK_THAT(thrown(2, body)[0], test::contains(what));
    };
    const auto x_of = [](std::int64_t n) { return test::numbers<float>({n}).to(xla::device()); };
    told("runs another program than", [&](std::size_t i) {
      auto x = x_of(3);
      (i == 0 ? f(x) : g(x)).to_vector();
    });
    told("has other sizes", [&](std::size_t i) {
      auto x = x_of(i == 0 ? 3 : 4);
      f(x).to_vector();
    });
    told("a program of all replicas", [&](std::size_t i) {
      auto x = x_of(3);
      if (i == 0) f(x).to_vector();
    });
    told("replica 1 of 2: the disk", [&](std::size_t i) {
      auto x = x_of(3);
      if (i == 1) throw xla::io_error("the disk is full");
      f(x).to_vector();
    });
  }
  const xla::eager_mode_guard mode(false);
  // To bring a batch to its device is no part of a traced graph: the first one has it there.
  CHECK(thrown(2, [](std::size_t) {
          const auto x = test::numbers<float>({3}).to(xla::device());
          xla::all_reduce(exp(x)).to_vector();
        }) == std::vector<std::string>(2, "nothing"));
  // One replica reads a part of it earlier.
  for (const std::string& said : thrown(2, [](std::size_t i) {
         const auto x = test::numbers<float>({3}).to(xla::device());
         auto y = xla::all_reduce(exp(x));
         if (i == 0) y.to_vector();
         auto z = xla::all_reduce(sin(y));
         z.to_vector();
       }))
    CHECK_THAT(said, test::contains("another program"));
}

TEST_CASE("a function of replicas has no mesh", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  auto f = xla::compile(
      [](auto& x) {
        constexpr xla::Mesh pair{{2}, {"data"}};
        xla::mark_sharding(x, pair, {"data"});
        return xla::all_reduce(x);
      },
      {.backend = xla::pjrt("CPU")});
  for (const std::string& said : thrown(2, [&](std::size_t) {
         auto x = test::numbers<float>({4}).to(xla::device());
         f(x);
       }))
    CHECK_THAT(said, test::contains("has no mesh"));
}

TEST_CASE("the state of replicas moves with them to other devices of the plugin", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const auto run = [](const char* backend) {
    const on_backend here(backend);
    const xla::eager_mode_guard mode;
    xla::manual_seed(7);
    const test::Mlp first;
    std::vector<test::Mlp> models(3, first);
    for (int i = 0; i < 3; ++i) models[static_cast<std::size_t>(i)].to(xla::device(i));
    auto step = xla::compile(step_fn);
    std::vector<floats> weights(3);
    const auto all = xla::devices();
    // Device 1 is replica 1, then 0, then 1: what it holds lay on the plugin's device of that.
    for (const auto& [a, b] : {std::pair{0u, 1u}, {1u, 0u}, {2u, 1u}, {0u, 1u}})
      xla::parallel::on_devices({all[a], all[b]}, [&](std::size_t i) {
        const std::size_t device = i == 0 ? a : b;
        optim::SGD optimizer{models[device], {.lr = 0.1, .momentum = 0.9}};
        const auto held = models[device].fc1.weight.detach();
        const auto before = held.to_vector();
        train(step, models[device], optimizer);
        REPLICA_CHECK(held.to_vector() == before);
        weights[device] = weights_of(models[device]);
      });
    return weights;
  };
  const auto own = run("native"), there = run("pjrt:CPU");
  for (std::size_t i = 0; i < 3; ++i) CHECK(largest_difference(there[i], own[i]) < 5e-6);
}

// With XLA_PJRT_MEMORY=device.
TEST_CASE("the state of replicas stays on their devices", "[.device_memory]") {
  if (!test::plugin_is_there()) return;
  const on_backend host("native");
  const xla::eager_mode_guard mode;
  const auto train_two = [] {
    return train_replicas(2, xla::compile(step_fn, {.backend = xla::pjrt("CPU")}));
  };
  const std::vector<outcome> first = train_two();
  constexpr int batch = test::batch_size * (17 * 4 + 8),
                state = 2 * 4 * (17 * 33 + 33 + 33 * 5 + 5);
  xla::clear_all();
  const std::vector<outcome> again = train_two();
  for (const outcome& replica : again) CHECK(replica.bits == first[0].bits);
  // Each replica's weights and momenta once, with a few numbers; then what a step is given.
  const double sent = test::bytes_sent() - test::steps * batch;
  CHECK(sent >= 2 * state);
  CHECK(sent < 2 * state + 200);
  // Losses, and in the end the weights, momenta and gradients that are compared.
  CHECK(test::bytes_received() < 2 * (test::steps * 4 + 3 * state));
}
