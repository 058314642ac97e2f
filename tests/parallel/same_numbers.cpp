// SPDX-License-Identifier: Apache-2.0
// Replicas that share a batch give the numbers of one that has all of it, whatever a step does.
#include <atomic>
#include <ranges>

#if defined(__linux__)
#include <sched.h>
#endif

#include "support/moments.hpp"
#include "support/replicas.hpp"
#include "xla/data/distributed_sampler.hpp"
#include "xla/parallel.hpp"
#include "xla/xla.hpp"

using test::mode;
using test::replicate;
namespace nn = xla::nn;
namespace optim = xla::optim;

namespace {

/// A layer that is frozen, one that nothing uses, and a weight that is used twice.
template <class Norm>
struct Net {
  nn::Linear first{6, 5};
  Norm norm{5};
  nn::Linear frozen{5, 5}, unused{5, 5}, last{5, 3};

  Net() = default;
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    const auto h = xla::relu(frozen(norm(first(x))));
    return std::pair{last(h), xla::matmul(h, first.weight)};
  }
  XLA_MODULE(first, norm, frozen, unused, last)
};
using Synced = Net<nn::SyncBatchNorm>;
using Local = Net<nn::BatchNorm1d>;

constexpr auto loss_of = [](auto& model, const auto& x) {
  const auto [y, tied] = model(x);
  return xla::mean(xla::square(y)) + xla::mean(xla::square(tied - 1));
};

/// Two halves of a batch, one gradient.
constexpr auto accumulate = [](auto& model, const auto& x) {
  const xla::Size half = x.size(0) / 2;
  const auto loss = loss_of(model, xla::narrow(x, 0, 0, half)) * 0.5f;
  loss.backward();
  const auto other = loss_of(model, xla::narrow(x, 0, half, half)) * 0.5f;
  other.backward();
  return loss.detach() + other.detach();
};

constexpr auto rich_step = [](auto& model, const auto& x, auto& sgd, auto& adam) {
  sgd.zero_grad();
  adam.zero_grad();
  const auto loss = xla::all_reduce(accumulate(model, x), "mean");
  xla::reduce_gradients(sgd);
  xla::reduce_gradients(adam);
  const auto norm = optim::clip_grad_norm_(model, 0.3);
  sgd.step();
  adam.step();
  return std::pair{loss, norm};
};

/// The same weights on all replicas.
template <class Model>
Model make_model() {
  Model model;
  std::uint64_t seed = 11;
  xla::for_each_parameter(model, [&](auto& p) {
    p.copy_(reshape_as(test::numbers<float>({p.numel()}, seed++) * 0.5f, p));
  });
  model.frozen.weight.requires_grad_(false);
  model.frozen.bias.requires_grad_(false);
  xla::sync();
  return model;
}

/// A replica's part of 24 samples: of the first half of them, then of the second.
xla::Tensor<float, 2> part_of(int ordinal, int replicas) {
  const int size = 12 * 6 / replicas;
  std::vector<float> values;
  for (const int half : {0, 12 * 6})
    for (int i = 0; i < size; ++i)
      values.push_back(static_cast<float>((half + ordinal * size + i) * 37 % 101) / 50 - 1);
  return xla::from_blob(values.data(), {2 * size / 6, 6});
}

/// Some steps in a mode.
template <class Step, class... X>
test::snapshot run_steps(mode m, const Step& step, X&... x) {
  static auto compiled = xla::compile(step);  // one for all replicas
  test::snapshot all;
  for (int i = 0; i < 4; ++i) {
    if (m == mode::compiled) all.add(compiled(x...));
    else all.add(step(x...));
    if (m == mode::traced) xla::sync();
  }
  return all;
}

std::vector<float> values_of(auto& model) {
  std::vector<float> all;
  xla::visit_states(model, [&](auto& s, const auto&) {
    if constexpr (std::is_same_v<typename std::remove_cvref_t<decltype(s)>::value_type, float>)
      for (const float v : s.to_vector()) all.push_back(v);
  });
  return all;
}

struct outcome {
  test::snapshot seen{true};
  std::vector<float> values;
};
outcome train_rich(mode m, int ordinal, int replicas) {
  auto model = make_model<Synced>();
  optim::SGD sgd{xla::part<&Synced::first>(model), {.lr = 0.1, .momentum = 0.9}};
  optim::AdamW adam{std::tuple{xla::part<&Synced::norm>(model), xla::part<&Synced::frozen>(model),
                               xla::part<&Synced::unused>(model), xla::part<&Synced::last>(model)},
                    {.lr = 0.05}};
  auto x = part_of(ordinal, replicas);
  outcome out{run_steps(m, rich_step, model, x, sgd, adam), values_of(model)};
  out.seen.add(model);
  adam.visit_state([&](auto& s, const auto&) { out.seen.add(s); });
  return out;
}

/// body(ordinal), in a mode, on every replica: what each returns.
template <class Body>
auto each_replica(int replicas, mode m, const Body& body) {
  std::vector<decltype(body(0))> all(static_cast<std::size_t>(replicas));
  replicate(replicas, [&](int ordinal) {
    const xla::eager_mode_guard guard(m != mode::traced);
    all[static_cast<std::size_t>(ordinal)] = body(ordinal);
  });
  return all;
}

}  // namespace

#if defined(__linux__)
TEST_CASE("a DataParallel's batches are loaded on all cores, while its devices keep to theirs") {
  xla::set_device_count(2);
  const auto cores = [] {
    cpu_set_t own;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    return CPU_COUNT(&own);
  };
  const int all = cores();
  std::atomic<int> loading = 0;
  auto batches = std::views::iota(0, 4) | std::views::transform([&](int i) {
                   loading = cores();
                   return i;
                 });
  xla::parallel::DataParallel two{nn::Linear{1, 1}};
  const auto working = two(
      [&](auto&, auto& loader, const auto&, auto&) {
        for ([[maybe_unused]] const int batch : loader) {}
        return cores();
      },
      batches);
  CHECK(loading == all);
  if (all % 2 == 0) CHECK(working == std::vector<int>{all / 2, all / 2});
}
#endif

TEST_CASE("accumulated, clipped, frozen, unused, tied, normed, of two optimizers: the same") {
  const auto one =
      each_replica(1, mode::eager, [](int i) { return train_rich(mode::eager, i, 1); });
  for (const int replicas : {1, 2, 3}) {
    INFO(replicas << " replicas");
    test::snapshot eager;
    for (const mode m : {mode::eager, mode::traced, mode::compiled}) {
      const auto all = each_replica(replicas, m, [&](int i) { return train_rich(m, i, replicas); });
      if (m == mode::eager) eager = all[0].seen;
      for (const auto& replica : all) CHECK(replica.seen.difference(eager) == "");
      REQUIRE(all[0].values.size() == one[0].values.size());
      for (std::size_t i = 0; i < one[0].values.size(); ++i)
        CHECK(all[0].values[i] == Approx(one[0].values[i]).margin(2e-5));
    }
  }
}

namespace {

constexpr auto plain_step = [](auto& model, const auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = accumulate(model, x);
  xla::optimizer_step(optimizer, {.barrier = false});
  return loss;
};
/// By the norm of the whole gradient.
constexpr auto clipped_step = [](auto& model, const auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto loss = accumulate(model, x);
  xla::reduce_gradients(optimizer);
  optim::clip_grad_norm_(model, 0.02);
  optimizer.step();
  return loss;
};

/// An optimizer whose biases and norms do not decay.
template <class Model>
auto make_adam(Model& model) {
  return optim::AdamW{model,
                      {.lr = 0.05, .weight_decay = 0.3},
                      optim::group([](std::string_view, int rank) { return rank < 2; },
                                   [](auto& o) { o.weight_decay = 0; })};
}
template <class Optimizer>
test::snapshot state_of(Optimizer& optimizer) {
  test::snapshot all;
  optimizer.visit_state([&](auto& s, const auto&) { all.add(s); });
  return all;
}

/// The model and the optimizer's whole state after some steps. Gradients are not compared: those of
/// ZeroRedundancy stay the replica's own.
template <class Optimizer, class Step>
test::snapshot train(mode m, int ordinal, int replicas, const Step& step, const auto& make) {
  auto model = make_model<Local>();
  auto x = part_of(ordinal, replicas);
  Optimizer optimizer = make(model);
  auto all = run_steps(m, step, model, x, optimizer);
  test::snapshot left(false);
  left.add(model);
  if constexpr (requires { optimizer.consolidate(); }) {
    auto whole = optimizer.consolidate();
    left.append(state_of(whole));
  } else {
    left.append(state_of(optimizer));
  }
  all.append(left);
  return all;
}
using Adam = decltype(make_adam(std::declval<Local&>()));

}  // namespace

TEST_CASE("ZeroRedundancy gives the bits of its optimizer, and keeps a part of the state") {
  for (const int replicas : {1, 2, 3, 4})
    for (const mode m : {mode::eager, mode::traced, mode::compiled}) {
      INFO(replicas << " replicas, mode " << static_cast<int>(m));
      const auto whole = each_replica(replicas, m, [&](int i) {
        return train<Adam>(m, i, replicas, plain_step,
                           [](auto& model) { return make_adam(model); });
      });
      const auto parts = each_replica(replicas, m, [&](int i) {
        return train<optim::ZeroRedundancy<Adam>>(m, i, replicas, plain_step, [](auto& model) {
          return optim::ZeroRedundancy{make_adam(model)};
        });
      });
      for (std::size_t i = 0; i < parts.size(); ++i) CHECK(parts[i].difference(whole[i]) == "");
    }
  std::atomic<std::int64_t> kept = 0;
  replicate(4, [&](int) {
    auto model = make_model<Local>();
    optim::ZeroRedundancy adam{make_adam(model)};
    adam.visit_state([&](auto& s, const auto&) { kept += s.numel(); });
  });
  // Two for each of the parameters, and the count of steps on each replica: 35 + 10 + 30 + 30 + 18.
  CHECK(kept == 2 * (32 + 8 + 8 + 8 + 28 + 8 + 28 + 8 + 16 + 4) + 4);
}

TEST_CASE("ZeroRedundancy goes on in a world of another size") {
  static constexpr auto steps = [](auto& model, auto& optimizer, int ordinal, int replicas) {
    const auto x = part_of(ordinal, replicas);
    for (int i = 0; i < 3; ++i) plain_step(model, x, optimizer);
  };
  const auto eager = mode::eager;
  auto train_on = [&](const xla::StateDict& model_now, const xla::StateDict& state_now,
                      int replicas, auto wrap) {
    std::pair<xla::StateDict, xla::StateDict> after;
    each_replica(replicas, eager, [&](int ordinal) {
      auto model = make_model<Local>();
      auto adam = make_adam(model);
      if (!model_now.empty()) {
        xla::load_state_dict(model, model_now);
        xla::load_state_dict(adam, state_now);
      }
      auto optimizer = wrap(std::move(adam));
      steps(model, optimizer, ordinal, replicas);
      auto whole = [&]() -> auto {
        if constexpr (requires { optimizer.consolidate(); }) return optimizer.consolidate();
        else return std::move(optimizer);
      }();
      if (ordinal == 0) after = {xla::state_dict(model), xla::state_dict(whole)};
      return 0;
    });
    return after;
  };
  const auto alone = [](auto&& o) { return std::move(o); };
  const auto shared = [](auto&& o) { return optim::ZeroRedundancy{std::move(o)}; };
  const auto [model, state] = train_on({}, {}, 2, alone);
  const auto [model_parts, state_parts] = train_on({}, {}, 2, shared);
  const auto want = train_on(model, state, 3, alone);
  const auto got = train_on(model_parts, state_parts, 3, shared);
  const auto same = [](const xla::StateDict& a, const xla::StateDict& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i].name == b[i].name);
      CHECK(a[i].bytes == b[i].bytes);
    }
  };
  same(want.first, got.first);
  same(want.second, got.second);
}

TEST_CASE("ZeroRedundancy clips by the norm of all gradients' averages") {
  for (const int replicas : {1, 3}) {
    test::snapshot first(false);
    for (const mode m : {mode::eager, mode::traced, mode::compiled}) {
      INFO(replicas << " replicas, mode " << static_cast<int>(m));
      each_replica(replicas, m, [&](int ordinal) {
        auto model = make_model<Local>(), clipped = make_model<Local>();
        auto x = part_of(ordinal, replicas);
        optim::SGD sgd{clipped, {.lr = 0.5, .momentum = 0.9}};
        run_steps(m, clipped_step, clipped, x, sgd);
        optim::ZeroRedundancy parts{optim::SGD{model, {.lr = 0.5, .momentum = 0.9}},
                                    {.max_norm = 0.02}};
        run_steps(m, plain_step, model, x, parts);
        const auto a = values_of(model), b = values_of(clipped);
        for (std::size_t i = 0; i < a.size(); ++i)
          if (std::abs(a[i] - b[i]) > 1e-6f) throw std::runtime_error("clipped otherwise");
        if (ordinal > 0) return 0;
        test::snapshot now(false);
        now.add(model);
        if (m == mode::eager) first = now;
        else CHECK(now.difference(first) == "");
        return 0;
      });
    }
  }
}

TEST_CASE("ZeroRedundancy tells that it was made in another world") {
  const xla::eager_mode_guard eager;
  auto model = make_model<Local>();
  optim::ZeroRedundancy adam{make_adam(model)};
  CHECK_THROWS_WITH(replicate(2,
                              [&](int ordinal) {
                                if (ordinal > 0) return;
                                loss_of(model, part_of(0, 2)).backward();
                                adam.step();
                              }),
                    test::contains("made in a world of 1, it steps in one of 2"));
  auto other = make_model<Local>();
  CHECK_THROWS_WITH((optim::ZeroRedundancy{make_adam(other), {.max_norm = -1}}),
                    test::contains("the bound is -1"));
}

TEST_CASE("a batch norm of their own leaves replicas with equal parameters and own statistics") {
  struct left {
    std::vector<float> parameters, mean;
  };
  const auto all = each_replica(2, mode::eager, [](int ordinal) {
    auto model = make_model<Local>();
    auto x = part_of(ordinal, 2);
    auto adam = make_adam(model);
    run_steps(mode::eager, plain_step, model, x, adam);
    left out;
    xla::for_each_parameter(model, [&](auto& p) {
      for (const float v : p.to_vector()) out.parameters.push_back(v);
    });
    out.mean = model.norm.running_mean.to_vector();
    return out;
  });
  CHECK(all[0].parameters == all[1].parameters);
  CHECK(all[0].mean != all[1].mean);
}

TEST_CASE("SyncBatchNorm normalizes pictures by the batches of all replicas") {
  static constexpr auto normed = [](auto& norm, auto& x) {
    const auto y = norm(x);
    xla::sum(y * y * y).backward();
    return std::pair{y, x.grad()};
  };
  struct left {
    std::vector<float> values, gradients, mean, variance;
  };
  const auto run = [](mode m, int ordinal, int replicas) {
    nn::SyncBatchNorm norm{3};
    const auto x = test::numbers<float>({6, 3, 2, 5}, 4);
    auto own = test::parameter(xla::narrow(x, 0, ordinal * 6 / replicas, 6 / replicas) + 0.f);
    xla::sync();  // what differs between replicas is no part of the graph that is one for all
    auto compiled = xla::compile(normed);
    const auto [y, gradient] = m == mode::compiled ? compiled(norm, own) : normed(norm, own);
    return left{y.to_vector(), gradient.to_vector(), norm.running_mean.to_vector(),
                norm.running_var.to_vector()};
  };
  const auto near = [](const std::vector<float>& part, const std::vector<float>& all,
                       std::size_t from) {
    for (std::size_t i = 0; i < part.size(); ++i)
      CHECK(part[i] == Approx(all[from + i]).margin(1e-5));
  };
  nn::BatchNorm2d whole{3};
  auto x = test::parameter(test::numbers<float>({6, 3, 2, 5}, 4));
  const auto [y, gradient] = normed(whole, x);
  for (const int replicas : {1, 2, 3})
    for (const mode m : {mode::eager, mode::traced, mode::compiled}) {
      const auto parts = each_replica(replicas, m, [&](int i) { return run(m, i, replicas); });
      for (std::size_t i = 0; i < parts.size(); ++i) {
        near(parts[i].values, y.to_vector(), i * parts[i].values.size());
        near(parts[i].gradients, gradient.to_vector(), i * parts[i].gradients.size());
        near(parts[i].mean, whole.running_mean.to_vector(), 0);
        near(parts[i].variance, whole.running_var.to_vector(), 0);
        CHECK(parts[i].mean == parts[0].mean);
      }
      if (replicas == 1) CHECK(parts[0].values == y.to_vector());
    }
}

TEST_CASE("dropout differs between replicas, and is the same each time and in every mode") {
  static constexpr auto drop = [](auto& x) { return xla::dropout(x, 0.5f); };
  const auto masks = [](mode m) {
    return each_replica(3, m, [m](int) {
      xla::manual_seed(5);
      auto x = xla::full<float>({4, 16}, 1);
      auto compiled = xla::compile(drop);
      std::vector<float> all;
      for (int i = 0; i < 2; ++i)
        for (const float v : (m == mode::compiled ? compiled(x) : drop(x)).to_vector())
          all.push_back(v);
      return all;
    });
  };
  const auto first = masks(mode::eager);
  CHECK(first[0] != first[1]);
  CHECK(first[1] != first[2]);
  CHECK(std::vector(first[0].begin(), first[0].begin() + 64) !=
        std::vector(first[0].begin() + 64, first[0].end()));
  for (const mode m : {mode::eager, mode::traced, mode::compiled}) CHECK(masks(m) == first);
}

TEST_CASE("launched replicas read their parts of the data and share the optimizer's state") {
  const xla::eager_mode_guard eager;
  if (xla::device_count() < 2) xla::set_device_count(2);
  const auto replicas = static_cast<std::size_t>(xla::device_count());
  std::vector<std::vector<float>> read(replicas), weights(replicas);
  xla::launch([&](int index) {
    const auto place = static_cast<std::size_t>(index);
    auto model = make_model<Local>();
    optim::ZeroRedundancy adam{make_adam(model)};
    const auto data = xla::data::TensorDataset{xla::cat({part_of(0, 1), part_of(0, 1)}, 0)};
    xla::data::DataLoader loader{
        data, {.batch_size = 4, .shuffle = true, .seed = 2}, xla::data::DistributedSampler{}};
    for (auto& [x] : loader) {
      for (const float v : x.to_vector()) read[place].push_back(v);
      plain_step(model, x, adam);
    }
    xla::for_each_parameter(model, [&](auto& p) {
      for (const float v : p.to_vector()) weights[place].push_back(v);
    });
  });
  std::size_t all = 0;
  for (std::size_t i = 0; i < replicas; ++i) {
    all += read[i].size();
    CHECK(weights[i] == weights[0]);
    if (i > 0) CHECK(read[i] != read[0]);
  }
  CHECK(all == 48 * 6);
}

TEST_CASE("alone in the world, steps have the steps of those without it") {
  const auto steps = [](auto& model, auto optimizer) {
    auto x = part_of(0, 1);
    auto compiled = xla::compile(plain_step);
    const std::string plan = compiled.graph(xla::Stage::planned, model, x, optimizer);
    std::size_t n = 0, at = 0;
    for (; (at = plan.find("step ", at)) != plan.npos; ++at) ++n;
    return n;
  };
  auto local = make_model<Local>();
  auto synced = make_model<Synced>();
  const auto whole = steps(local, make_adam(local));
  CHECK(whole > 0);
  CHECK(steps(local, optim::ZeroRedundancy{make_adam(local)}) == whole);
  CHECK(steps(synced, make_adam(synced)) == whole);
}
