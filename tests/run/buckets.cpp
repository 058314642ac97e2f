// SPDX-License-Identifier: Apache-2.0
// Exchanges with other replicas in a plan: bundled, started early, waited for late, in the same
// order everywhere, and with the same bits.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/mirror_replica.hpp"
#include "support/modes.hpp"
#include "support/replicas.hpp"
#include "support/sanitized.hpp"
#include "support/steps.hpp"
#include "support/threads.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::mirror_replica;
using test::numbers;
using xla::Stage;

namespace {

/// The environment says how large buckets are while it lives.
struct bucket_size {
  explicit bucket_size(const std::string& megabytes) {
    ::setenv("XLA_BUCKET_MB", megabytes.c_str(), 1);
  }
  static std::string of_bytes(int n) { return std::to_string(double(n) / (1 << 20)); }
  ~bucket_size() { ::unsetenv("XLA_BUCKET_MB"); }
  bucket_size(const bucket_size&) = delete;
};

constexpr int width = 48, layers = 4;

struct Net {
  std::array<xla::nn::Linear, layers> fc{
      xla::nn::Linear{width, width}, {width, width}, {width, width}, {width, width}};
  constexpr auto operator()(xla::Tensor<float, 2> h) const {
    for (const auto& f : fc) h = xla::relu(f(h));
    return h;
  }
  XLA_MODULE(fc)
};
constexpr auto average = [](auto& parameter) {
  parameter.set_grad(xla::all_reduce(parameter.grad(), xla::reduce_type::mean));
};
/// All gradients averaged after backward, the last layer's first; then the update.
constexpr auto learn = [](auto& net, auto& x, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = loss_fn(net(x), target);
  loss.backward();
  for (int i = layers - 1; i >= 0; --i) {
    average(net.fc[std::size_t(i)].weight);
    average(net.fc[std::size_t(i)].bias);
  }
  optimizer.step();
  return loss;
};
/// Gradients that are added up, clipped by their norm, which waits for all of them.
constexpr auto gather = [](auto& net, auto& x, auto& target, auto& loss_fn, auto& optimizer) {
  auto loss = loss_fn(net(x), target);
  loss.backward();
  for (auto& f : net.fc) {
    average(f.bias);
    average(f.weight);
  }
  xla::optim::clip_grad_norm_(net, 0.01f);
  optimizer.step();
  return loss;
};
/// Each layer's mean is another replica's, too: exchanges that the next steps wait for.
constexpr auto synchronized = [](auto& net, auto& x, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  xla::Tensor<float, 2> h = x;
  for (const auto& f : net.fc) {
    const auto y = f(h);
    const auto mean = xla::all_reduce(xla::mean(y, {0}, xla::keepdim), xla::reduce_type::mean);
    const auto square =
        xla::all_reduce(xla::mean(y * y, {0}, xla::keepdim), xla::reduce_type::mean);
    h = (y - mean) / xla::sqrt(square - mean * mean + 1.f);
  }
  auto loss = loss_fn(h, target);
  loss.backward();
  for (int i = layers - 1; i >= 0; --i) average(net.fc[std::size_t(i)].weight);
  optimizer.step();
  return loss;
};

struct training {
  Net net;
  xla::nn::MSELoss loss_fn;
  xla::optim::AdamW<Net> optimizer{net, {.lr = 1e-2f}};
  xla::Tensor<float, 2> x = numbers<float>({32, width}, 1), target = numbers<float>({32, width}, 2);

  training() { xla::manual_seed(3); }
  auto call(auto& step) { return step(net, x, target, loss_fn, optimizer); }
  std::string plan(auto& step) {
    return step.graph(Stage::planned, net, x, target, loss_fn, optimizer);
  }
};

/// What three steps leave, of the losses, the net and its gradients.
template <test::mode M, xla::Passes Wanted = xla::tags::verified, class Step>
test::snapshot train(Step step) {
  const xla::eager_mode_guard as_told(M == test::mode::eager);
  mirror_replica world;
  training t;
  test::snapshot s;
  const auto run = [&](auto& f) {
    for (int i = 0; i < 3; ++i) {
      auto loss = t.call(f);
      if constexpr (M == test::mode::traced) xla::sync();
      s.add(loss);
    }
  };
  if constexpr (M == test::mode::compiled) {
    auto compiled = xla::compile<Wanted>(step);
    run(compiled);
  } else {
    run(step);
  }
  s.add(t.net);
  CHECK(world.disturbed == 0);
  CHECK(!world.sizes.empty());
  return s;
}

/// The lines of a plan, without what is before the step.
std::vector<std::string> lines(const std::string& plan) {
  std::vector<std::string> all;
  for (std::size_t at = 0, end; (end = plan.find('\n', at)) != std::string::npos; at = end + 1)
    all.push_back(plan.substr(at, end - at));
  return all;
}
std::vector<int> places(const std::string& plan, const std::string& word) {
  std::vector<int> at;
  const auto all = lines(plan);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].find(word) != std::string::npos) at.push_back(int(i));
  return at;
}

}  // namespace

TEST_CASE("a bucket starts when its last gradient is there, and is waited for by its update") {
  const xla::eager_mode_guard eager;
  const test::restore_threads one(1);
  mirror_replica world;
  training t;
  const bucket_size of_a_layer(bucket_size::of_bytes(4 * width * (width + 1)));
  auto step = xla::compile<xla::tags::verified>(learn);
  const std::string plan = t.plan(step);
  CAPTURE(plan);
  const auto starts = places(plan, ": start "), waits = places(plan, ": wait "),
             products = places(plan, "matmul"), updates = places(plan, "sqrt add");
  REQUIRE(starts.size() == layers);
  REQUIRE(waits.size() == layers);
  REQUIRE(products.size() == 3 * layers - 1);
  REQUIRE(updates.size() == 2 * layers);
  // Backward goes on between the starts, and no step of it waits.
  for (int i = 0; i + 1 < layers; ++i) {
    const auto between = std::count_if(products.begin(), products.end(), [&](int p) {
      return p > starts[std::size_t(i)] && p < starts[std::size_t(i + 1)];
    });
    CHECK(between >= 1);
  }
  CHECK(products.back() < waits[0]);
  CHECK(starts.back() < waits[0]);
  // Two updates after each wait.
  for (int i = 0; i < layers; ++i) {
    CHECK(updates[std::size_t(2 * i)] == waits[std::size_t(i)] + 1);
    CHECK(updates[std::size_t(2 * i + 1)] == waits[std::size_t(i)] + 2);
  }
  t.call(step);
  CHECK(world.sizes == std::vector<std::int64_t>(layers, 4 * width * (width + 1)));
  CHECK(world.pieces == std::vector<int>(layers, 2));
}

TEST_CASE("XLA_BUCKET_MB says how large buckets are") {
  const xla::eager_mode_guard eager;
  const auto exchanges = [](const char* megabytes) {
    mirror_replica world;
    training t;
    const bucket_size some(megabytes);
    auto step = xla::compile<xla::tags::verified>(learn);
    t.call(step);
    return world.pieces;
  };
  CHECK(exchanges("25") == std::vector<int>{2 * layers});
  CHECK(exchanges("") == std::vector<int>{2 * layers});
  CHECK(exchanges("0") == std::vector<int>(2 * layers, 1));
  CHECK(exchanges("0.01") == std::vector<int>{4, 4});
}

TEST_CASE("bits do not depend on buckets") {
  const test::snapshot learned = train<test::mode::eager>(learn),
                       gathered = train<test::mode::eager>(gather),
                       agreed = train<test::mode::eager>(synchronized);
  for (const char* megabytes : {"25", "0", "0.01", "0.02"})
    for (int n : {1, 2, 3}) {
      const test::restore_threads some(n);
      const bucket_size size(megabytes);
      CAPTURE(megabytes, n);
      CHECK(train<test::mode::traced>(learn).difference(learned) == "");
      CHECK(train<test::mode::compiled>(learn).difference(learned) == "");
      CHECK(train<test::mode::traced>(gather).difference(gathered) == "");
      CHECK(train<test::mode::compiled>(gather).difference(gathered) == "");
      CHECK(train<test::mode::traced>(synchronized).difference(agreed) == "");
      CHECK(train<test::mode::compiled>(synchronized).difference(agreed) == "");
    }
  constexpr auto without = xla::tags::without<"buckets"> & xla::tags::verified;
  CHECK(train<test::mode::compiled, without>(learn).difference(learned) == "");
  const test::traced_without one("-buckets");
  CHECK(train<test::mode::traced>(learn).difference(learned) == "");
}

TEST_CASE("replicas with other numbers of threads exchange in the same order") {
  const xla::eager_mode_guard eager;
  const bucket_size small("0.01");
  const auto order = [](int threads, auto f) {
    const test::restore_threads some(threads);
    mirror_replica world;
    training t;
    auto step = xla::compile<xla::tags::verified>(f);
    t.call(step);
    return world.sizes;
  };
  const auto learned = order(1, learn), agreed = order(1, synchronized);
  CHECK(learned.size() == 2);
  for (int n : {2, 3, 7}) {
    CHECK(order(n, learn) == learned);
    CHECK(order(n, synchronized) == agreed);
  }
}

TEST_CASE("sums that steps wait for share no bucket with sums that only updates need") {
  const xla::eager_mode_guard eager;
  mirror_replica world;
  training t;
  auto step = xla::compile<xla::tags::verified>(synchronized);
  const std::string plan = t.plan(step);
  CAPTURE(plan);
  t.call(step);
  // A layer's mean and square go together, there and back; all gradients of weights together.
  CHECK(world.pieces.size() == 2 * layers + 1);
  CHECK(std::count(world.pieces.begin(), world.pieces.end(), 2) == 2 * layers);
  CHECK(std::count(world.pieces.begin(), world.pieces.end(), layers) == 1);
  CHECK(world.sizes.back() == layers * 4 * width * width);
  const auto waits = places(plan, ": wait "), products = places(plan, "matmul");
  CHECK(products.back() < waits.back());
}

TEST_CASE("a gradient is made where its sum will be") {
  const xla::eager_mode_guard eager;
  const test::restore_threads one(1);
  training t;
  auto alone = xla::compile(test::step_fn);
  const auto before = alone.memory_analysis(t.net, t.x, t.target, t.loss_fn, t.optimizer);
  mirror_replica world;
  auto step = xla::compile<xla::tags::verified>(learn);
  const auto with = step.memory_analysis(t.net, t.x, t.target, t.loss_fn, t.optimizer);
  CHECK(with.arguments == before.arguments);
  // Every update still is where the old value lay; the count of steps is written in the end.
  CHECK(with.outputs == before.outputs - 4);
  CHECK(with.aliased == before.aliased - 4);
  // Gradients of biases, which are sums under another shape, are copied.
  CHECK(with.arena <= before.arena + layers * 4 * (width + 64));
  const std::string plan = t.plan(step);
  CAPTURE(plan);
  CHECK(places(plan, ": start ").size() == 1);
}

TEST_CASE("a value that others read, an argument and a result are summed separately from it") {
  const xla::eager_mode_guard eager;
  constexpr auto body = [](auto x, auto& parameter) {
    const auto y = x * 2.f;
    const auto sum = xla::all_reduce(y);
    const auto of_argument = xla::all_reduce(x);
    const auto again = xla::all_reduce(y, xla::reduce_type::max);
    parameter.copy_(xla::all_reduce(parameter.detach(), xla::reduce_type::mean));
    return std::tuple{y + 1.f, sum, of_argument, again, xla::all_reduce(sum)};
  };
  const auto x = numbers<float>({5, 7}, 1);
  const auto run = [&](auto m) {
    mirror_replica world;
    auto p = test::parameter(numbers<float>({3}, 2));
    auto s = test::run_mode<decltype(m)::value>(body, x, p);
    CHECK(world.disturbed == 0);
    return s;
  };
  const auto eager_bits = run(std::integral_constant<test::mode, test::mode::eager>{});
  CHECK(run(std::integral_constant<test::mode, test::mode::traced>{}).difference(eager_bits) == "");
  CHECK(run(std::integral_constant<test::mode, test::mode::compiled>{}).difference(eager_bits) ==
        "");
}

TEST_CASE("a step that fails ends what is under way, and gives the first reason") {
  const xla::eager_mode_guard eager;
  constexpr auto body = [](auto x, auto index, auto table) {
    const auto sum = xla::all_reduce(x);
    return sum + xla::sum(xla::embedding(index, table));
  };
  const auto x = numbers<float>({64}, 1);
  const auto table = numbers<float>({4, 3}, 2);
  auto f = xla::compile(body);
  mirror_replica world;
  const auto good = xla::tensor<std::int64_t>({0, 3}), bad = xla::tensor<std::int64_t>({0, 4});
  const auto sum = f(x, good, table).to_vector();
  CHECK(!world.aborted);
  CHECK_THROWS_AS(f(x, bad, table), xla::index_error);
  REQUIRE(world.aborted);
  CHECK_THROWS_AS(std::rethrow_exception(world.aborted), xla::index_error);
  world.aborted = nullptr;
  CHECK(f(x, good, table).to_vector() == sum);
  CHECK(!world.aborted);

  training t;
  const bucket_size each("0");
  auto step = xla::compile<xla::tags::verified>(learn);
  world.fails_at = int(world.sizes.size()) + 3;
  CHECK_THROWS_WITH(t.call(step), "the line is cut");
  REQUIRE(world.aborted);
}

namespace {

/// With statistics, and an optimizer that counts its steps.
struct Normed {
  XLA_MODULE(fc, norm, head)
  xla::nn::Linear fc{6, 5};
  xla::nn::BatchNorm1d norm{5};
  xla::nn::Linear head{5, 2};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return head(norm(fc(x))); }
};
constexpr auto learn_normed = [](auto& net, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mean(xla::square(net(x)));
  loss.backward();
  xla::for_each_parameter(net, average);
  optimizer.step();
  return loss;
};

}  // namespace

TEST_CASE("a step that waits in vain for the others leaves all state as it was") {
  // But for statistics in eager mode, where the forward pass has been.

  auto compiled = xla::compile<xla::tags::verified>(learn_normed);
  for (const test::mode m : {test::mode::eager, test::mode::traced, test::mode::compiled})
    for (const char* megabytes : {"25", "0"}) {
      CAPTURE(static_cast<int>(m), megabytes);
      const xla::eager_mode_guard mode(m != test::mode::traced);
      const bucket_size size(megabytes);
      mirror_replica world;
      Normed net;
      xla::optim::AdamW<Normed> optimizer{net, {.lr = 1e-2f}};
      auto x = numbers<float>({8, 6}, 1);
      const auto step = [&] {
        if (m == test::mode::compiled) compiled(net, x, optimizer);
        else learn_normed(net, x, optimizer);
        if (m == test::mode::traced) xla::sync();
      };
      const auto state = [&] {
        test::snapshot all(false);
        if (m != test::mode::eager) all.add(net.norm);
        all.add(net.fc);
        all.add(net.head);
        optimizer.visit_state([&](auto& s, const auto&) { all.add(s); });
        return all;
      };
      step();
      const auto before = state();
      world.waits_in_vain = true;
      CHECK_THROWS_WITH(step(), "nobody comes");
      CHECK(state().difference(before) == "");
      world.waits_in_vain = false;
      step();
      CHECK(state().difference(before) != "");
    }
}

TEST_CASE("a transport that does not go on alone is called between steps") {
  const xla::eager_mode_guard eager;
  mirror_replica world;
  world.progresses = false;
  training t;
  auto step = xla::compile<xla::tags::verified>(learn);
  t.call(step);
  CHECK(world.pushed >= 3 * layers);
}

TEST_CASE("the profile shows exchanges from their start to their wait") {
  const xla::eager_mode_guard eager;
  mirror_replica world;
  training t;
  const bucket_size small("0.01");
  auto step = xla::compile<xla::tags::verified>(learn);
  const xla::Profile p = xla::profile(step, t.net, t.x, t.target, t.loss_fn, t.optimizer);
  std::vector<int> started;
  for (const xla::ProfileStep& s : p.steps()) {
    if (s.kind == "start") CHECK(s.bytes_read > 0);
    CHECK((s.started >= 0) == (s.kind == "wait"));
    if (s.kind != "wait") continue;
    const xla::ProfileStep& from = p.steps()[std::size_t(s.started)];
    CHECK(from.kind == "start");
    CHECK(from.start < s.start);
    CHECK(std::find(s.after.begin(), s.after.end(), s.started) != s.after.end());
    CHECK(s.ops == std::vector<std::string>{"all_reduce"});
    started.push_back(s.started);
  }
  CHECK(started.size() == 2);
  CHECK(std::string_view(p.to_json()).find("wait 1: all_reduce of 4 values") != std::string::npos);
}

TEST_CASE("replicas get the same bits from buckets of any size") {
  constexpr auto body = [](auto x, auto& v, auto& w, auto& b) {
    auto loss = xla::sum(xla::relu(xla::matmul(xla::tanh(xla::matmul(x, v)), w) + b));
    loss.backward();
    average(b);
    average(w);
    average(v);
    v.copy_(v.detach() - v.grad() * 0.1f);
    w.copy_(w.detach() - w.grad() * 0.1f);
    b.copy_(b.detach() - b.grad() * 0.1f);
    return loss;
  };
  const auto make = [](int ordinal) {
    return std::tuple{
        numbers<float>({9, 17}, ordinal), test::parameter(numbers<float>({17, 33}, 8)),
        test::parameter(numbers<float>({33, 5}, 9)), test::parameter(numbers<float>({5}, 10))};
  };
  for (const char* megabytes : {"25", "0", "0.001"})
    for (int n : {2, 3}) {
      CAPTURE(megabytes, n);
      const bucket_size size(megabytes);
      test::check_replicas(n, body, make);
    }
}

namespace {

constexpr int wide = 256, deep = 6;

struct Wide {
  std::array<xla::nn::Linear, deep> fc{xla::nn::Linear{wide, wide},
                                       {wide, wide},
                                       {wide, wide},
                                       {wide, wide},
                                       {wide, wide},
                                       {wide, wide}};
  constexpr auto operator()(xla::Tensor<float, 2> h) const {
    for (const auto& f : fc) h = xla::relu(f(h));
    return h;
  }
  XLA_MODULE(fc)
};
constexpr auto learn_wide = [](auto& net, auto& x, auto& target, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = loss_fn(net(x), target);
  loss.backward();
  for (int i = deep - 1; i >= 0; --i) average(net.fc[std::size_t(i)].weight);
  optimizer.step();
  return loss;
};

}  // namespace

TEST_CASE("a step takes as long as computing or exchanging, and one bucket") {
  if (test::sanitized) return;  // it would measure the sanitizer
  const xla::eager_mode_guard eager;
  const test::restore_threads one(1);
  Wide net;
  xla::nn::MSELoss loss_fn;
  xla::optim::SGD<Wide> optimizer{net, {.lr = 1e-3f}};
  const auto x = numbers<float>({192, wide}, 1), target = numbers<float>({192, wide}, 2);
  constexpr double bytes = 4.0 * wide * wide * deep;
  const bucket_size of_a_layer(bucket_size::of_bytes(4 * wide * wide));
  auto step = xla::compile(learn_wide);
  auto one_by_one = xla::compile<xla::tags::without<"buckets">>(learn_wide);
  const auto seconds = [&](auto& f, double bandwidth) {
    mirror_replica world(0, bandwidth);
    const double from = world.now();
    f(net, x, target, loss_fn, optimizer);
    return world.now() - from;
  };
  constexpr double at_once = std::numeric_limits<double>::infinity();
  seconds(one_by_one, at_once);
  for (double share : {0.5, 3.0}) {  // what exchanging takes, of what computing does
    CAPTURE(share);
    double computing = 1e9, whole = 1e9, bound = 0, apart = 1e9;
    seconds(step, at_once);
    const bool differs = share < 1;  // from one after the other by more than the bound
    for (int round = 0; round < 40 && (round < 3 || whole > bound || (differs && apart <= bound));
         ++round) {
      computing = std::min(computing, seconds(step, at_once));
      const double exchanging = share * computing;
      whole = std::min(whole, seconds(step, bytes / exchanging));
      apart = std::min(apart, seconds(one_by_one, bytes / exchanging));
      bound = 1.1 * std::max(computing, exchanging) + exchanging / deep;
    }
    CAPTURE(computing, apart);
    CHECK(whole <= bound);
    if (differs) CHECK(apart > bound);
  }
}
