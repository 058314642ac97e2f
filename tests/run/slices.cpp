// SPDX-License-Identifier: Apache-2.0
// Steps that run slice by slice: attention without its scores in memory, with the same bits.
#include <numeric>

#include "catch.hpp"
#include "support/modes.hpp"
#include "support/sanitized.hpp"
#include "support/slices.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::numbers;
using test::slices::attend;
using test::slices::attention;
using test::slices::check_all;
using test::slices::inputs;

namespace {

using threads = test::restore_threads;

constexpr auto only_forward = [](auto& q, auto& k, auto& v) { return attention(q, k, v); };

/// Two layers of causal attention, so that backward comes long after forward.
struct Layers {
  struct Layer {
    xla::nn::Linear q{64, 64}, k{64, 64}, v{64, 64};
    constexpr auto operator()(xla::Tensor<float, 3> x) const {
      const auto heads = [&](const auto& y) {
        return xla::transpose(xla::reshape(y, {x.size(0), x.size(1), 4, 16}), 1, 2);
      };
      const auto y = attention(heads(q(x)), heads(k(x)), heads(v(x)), {.causal = true});
      return x + xla::reshape(xla::transpose(y, 1, 2), {x.size(0), x.size(1), 64});
    }
    XLA_MODULE(q, k, v)
  };
  Layer a, b;
  constexpr auto operator()(xla::Tensor<float, 3> x) const { return b(a(x)); }
  XLA_MODULE(a, b)
};
constexpr auto learn = [](auto& model, auto& x) {
  auto loss = xla::mean(xla::tanh(model(x)));
  loss.backward();
  return loss;
};

/// The products of each group of steps, in the order of the groups.
std::vector<int> products(const xla::Profile& p) {
  std::vector<int> n;
  for (const xla::ProfileStep& s : p.steps())
    if (s.kind == "slices")
      n.push_back(static_cast<int>(std::count(s.ops.begin(), s.ops.end(), "matmul")));
  return n;
}
int products_alone(const xla::Profile& p) {
  int n = 0;
  for (const xla::ProfileStep& s : p.steps()) n += s.kind == "product";
  return n;
}

}  // namespace

TEST_CASE("attention's products run slice by slice, forward and backward") {
  const xla::eager_mode_guard eager;
  const threads two(2);
  inputs x(2, 4, 4, 64, 64, 32);
  auto forward = xla::compile(only_forward);
  const xla::Profile p = xla::profile(forward, x.q, x.k, x.v);
  CHECK(products(p) == std::vector<int>{2});
  auto both = xla::compile(attend<false>);
  const xla::Profile q = xla::profile(both, x.q, x.k, x.v);
  const auto found = products(q);
  REQUIRE(found.size() >= 2);
  CHECK(found.front() == 2);
  CHECK(found.back() == 3);
  CHECK(std::accumulate(found.begin(), found.end(), 0) == 6);
  CHECK(products_alone(q) == 0);
}

TEST_CASE("without slices a compiled function runs its steps whole, with the same bits") {
  const xla::eager_mode_guard eager;
  const threads two(2);
  inputs x(2, 4, 4, 64, 64, 32);
  auto whole = xla::compile<xla::tags::without<"slices">>(only_forward);
  const xla::Profile p = xla::profile(whole, x.q, x.k, x.v);
  CHECK(products(p).empty());
  CHECK(products_alone(p) == 2);
  auto f = xla::compile(only_forward);
  test::snapshot sliced, at_once;
  sliced.add(f(x.q, x.k, x.v));
  at_once.add(whole(x.q, x.k, x.v));
  CHECK(at_once.difference(sliced) == "");
}

TEST_CASE("a profile counts what a group does") {
  const xla::eager_mode_guard eager;
  const threads two(2);
  inputs x(2, 4, 4, 64, 64, 32);
  auto f = xla::compile(only_forward);
  const xla::Profile p = xla::profile({.calls = 3, .warmup = 1}, f, x.q, x.k, x.v);
  const xla::ProfileFunction& g = p.functions[0];
  int groups = 0;
  for (std::size_t i = 0; i < g.steps.size(); ++i) {
    const xla::ProfileStep& s = g.steps[i];
    for (int v : s.writes) CHECK((s.once || g.values[std::size_t(v)].first == int(i)));
    for (int v : s.reads) CHECK(g.values[std::size_t(v)].last >= int(i));
    if (s.kind != "slices") continue;
    ++groups;
    CHECK(s.seconds > 0);
    CHECK(s.flops > 2.0 * 2 * 8 * 64 * 64 * 32);
    CHECK(s.bytes_written == 4 * 8 * 64 * 32);
    CHECK(s.bytes_read >= 3 * 4 * 8 * 64 * 32);
    CHECK(s.bytes_read < 3 * 4 * 8 * 64 * 32 + 64);
  }
  CHECK(groups == 1);
  for (const xla::ProfileValue& v : g.values)
    if (v.storage == "arena") CHECK(v.offset + v.bytes <= g.arena_bytes);
  CHECK_THAT(p.to_json(), test::contains("slices"));
}

TEST_CASE("forward, attention needs memory for the scores of one head a thread") {
  const xla::eager_mode_guard eager;
  for (int n : {1, 2})
    for (std::int64_t length : {128, 256}) {
      const threads some(n);
      inputs x(2, 8, 8, length, length, 16);
      const std::int64_t head = 4 * length * length;
      auto g = xla::compile(only_forward);
      CHECK(g.memory_analysis(x.q, x.k, x.v).arena <= 2 * n * head + 1024);
    }
}

TEST_CASE("between forward and backward nothing grows with the square of the length") {
  const xla::eager_mode_guard eager;
  constexpr std::int64_t batch = 4, heads = 4, width = 16;
  const auto arena = [&](std::int64_t length, int n) {
    const threads some(n);
    Layers model;
    const auto x = numbers<float>({batch, length, heads * width});
    auto step = xla::compile(learn);
    const auto m = step.memory_analysis(model, x);
    if (!test::sanitized) {  // which sees these steps of shorter ones below
      const xla::Profile p = xla::profile(step, model, x);
      // Of each layer two products forward, and backward the scores again and four gradients.
      CHECK(products(p) == std::vector<int>{2, 2, 5, 5});
    }
    return m.arena;
  };
  for (int n : {1, 2}) {
    const std::int64_t most = arena(512, n);
    const auto rest = [&](std::int64_t length, std::int64_t of) {
      // Three tensors of one head for each thread, and the mask.
      return of - (3 * n * 4 + 1) * length * length;
    };
    CHECK(rest(512, most) <= 2 * rest(256, arena(256, n)) + 4096);
    CHECK(most < batch * heads * 4 * 512 * 512);  // the scores of one layer
  }
}

TEST_CASE("attention by kernels of its own needs no memory for scores, in no mode") {
  const xla::eager_mode_guard eager;
  constexpr auto step = [](auto& q, auto& k, auto& v) {
    auto y = xla::scaled_dot_product_attention(q, k, v, {.causal = true});
    xla::sum(xla::tanh(y)).backward();
    return y;
  };
  const auto check = [](auto f) {
    const auto arena = [&](std::int64_t length) {
      inputs x(1, 4, 2, length, length, 16);
      return f.memory_analysis(x.q, x.k, x.v).arena;
    };
    CHECK(arena(512) <= 2 * arena(256) + 1024);
    CHECK(arena(512) < 4 * 512 * 512);  // the scores of one head
  };
  check(xla::compile(step));
  check(xla::compile(xla::autocast(step)));
}

TEST_CASE("scores that are computed again are those of eager mode") {
  for (std::int64_t length : {1, 17, 33, 64}) {
    for (int n : {1, 2}) {
      const threads some(n);
      test::check_modes(learn, Layers{}, numbers<float>({2, length, 64}));
    }
  }
}

TEST_CASE("attention slice by slice has eager mode's bits") {
  SECTION("full") {
    check_all(attend<false>, inputs(2, 3, 3, 37, 41, 20));
    check_all(attend<false>, inputs(1, 2, 2, 64, 64, 64));
    check_all(attend<false>, inputs(5, 1, 1, 33, 64, 7));
    check_all(attend<false>, inputs(1, 1, 1, 40, 40, 8));
  }
  SECTION("causal") {
    check_all(attend<true>, inputs(2, 4, 4, 48, 48, 16));
    check_all(attend<true>, inputs(3, 2, 2, 65, 65, 9));
  }
  SECTION("heads that share keys") {
    check_all(attend<false>, inputs(2, 6, 2, 37, 41, 20));
    check_all(attend<true>, inputs(1, 8, 4, 33, 33, 8));
  }
  SECTION("nothing, one query, one key") {
    check_all(attend<false>, inputs(0, 2, 2, 33, 33, 8));
    check_all(attend<false>, inputs(2, 2, 2, 0, 33, 8));
    check_all(attend<false>, inputs(2, 2, 2, 1, 2000, 8));
    check_all(attend<false>, inputs(2, 2, 2, 2000, 1, 8));
  }
}

TEST_CASE("batches of products with maps between them") {
  constexpr auto f = [](auto& a, auto& b, auto& c) {
    auto h = xla::relu(xla::matmul(a, xla::unsqueeze(b, 0)) + 0.25);
    auto y = xla::matmul(h * h, c);
    auto z = xla::sum(y, {1}, xla::keepdim) + y;
    return std::tuple(y, z, xla::max(h, {2}));
  };
  for (int n : {1, 2, 3}) {
    const threads some(n);
    test::check_modes(f, numbers<float>({6, 50, 20}, 1), numbers<float>({20, 60}, 2),
                      numbers<float>({6, 60, 10}, 3));
  }
}

TEST_CASE("a plan that was made for fewer threads runs on more") {
  const xla::eager_mode_guard eager;
  inputs x(3, 4, 4, 64, 64, 32);
  auto f = xla::compile(only_forward);
  xla::Tensor<float, 4> y;
  {
    const threads one(1);
    y = f(x.q, x.k, x.v);
  }
  const threads four(4);
  for (int i = 0; i < 20; ++i) REQUIRE(f(x.q, x.k, x.v).to_vector() == y.to_vector());
}

TEST_CASE("an index out of range changes nothing, slice by slice or not") {
  const xla::eager_mode_guard eager;
  const threads two(2);
  inputs x(2, 2, 2, 40, 40, 16);
  auto f = xla::compile([](auto& q, auto& k, auto& v, auto& at, auto& kept) {
    auto y = attention(q, k, v);
    auto picked = xla::index_select(y, 2, at);
    kept.copy_(xla::index_select(xla::matmul(picked, xla::transpose(k)), 3, at));
    return xla::sum(y);
  });
  xla::Buffer<float, 4> kept{{2, 2, 2, 2}};
  kept.copy_(xla::full<float>({2, 2, 2, 2}, 5));
  auto bad = xla::tensor<std::int64_t>({1, 40});
  CHECK_THROWS_AS(f(x.q, x.k, x.v, bad, kept), xla::index_error);
  CHECK(kept.to_vector() == std::vector<float>(16, 5));
  auto good = xla::tensor<std::int64_t>({1, 39});
  f(x.q, x.k, x.v, good, kept);
  CHECK(kept.to_vector() != std::vector<float>(16, 5));
}
