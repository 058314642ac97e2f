// SPDX-License-Identifier: Apache-2.0
// Loops on XLA: what this library's engines make of them, with every gradient.
#include "support/engines.hpp"
#include "support/pjrt.hpp"
#include "support/pjrt_training.hpp"
#include "support/random_loop.hpp"

namespace {

using arrays = std::vector<std::vector<float>>;

template <class... T>
arrays all_of(const std::tuple<T...>& results) {
  return std::apply([](const auto&... t) { return arrays{t.to_vector()...}; }, results);
}

/// What a function returns, then the gradients of its arguments, which are its own; of one without
/// a gradient nothing.
template <class F, class... A>
arrays made_on(const char* engine, const F& f, A... arguments) {
  const xla::eager_mode_guard eager;
  const test::on_engine plan("plan");
  auto compiled = xla::compile(f, {.engine = engine});
  arrays all = all_of(compiled(arguments...));
  const auto add = [&](const auto& grad) {
    all.push_back(grad.defined() ? grad.to_vector() : std::vector<float>());
  };
  (add(arguments.grad()), ...);
  return all;
}
template <class F, class... A>
void check_there(const F& f, const A&... arguments) {
  const arrays got = made_on("pjrt:CPU", f, arguments...), want = made_on("plan", f, arguments...);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("array " << i);
    CHECK(test::largest_difference(got[i], want[i]) < 1e-4);
  }
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("random loops there", "", ((unsigned Seed), Seed), 1, 2, 3) {
  if (!test::plugin_is_there()) return;
  for (const auto& [n, steps] : {std::pair{4, 3}, {1, 1}, {3, 0}}) {
    const test::loop_arguments a(n, steps);
    INFO("size " << n);
    check_there(test::fixed_loop<Seed, 6>(), a.v, a.w, a.xs);
  }
}

TEST_CASE("a recurrence of many steps, forwards and back") {
  if (!test::plugin_is_there()) return;
  const auto network = [](auto& xs, auto& w) {
    const auto step = [&](const auto& h, const auto& x) {
      const auto next = tanh(matmul(h, w) + x);
      return std::pair(next, next * x);
    };
    const auto h = xla::zeros_like(xla::select(xs, 0, 0));
    const auto [a, there] = xla::scan(step, h, xs);
    const auto [b, back] = xla::scan(step, h, xs, {.reverse = true});
    const auto loss = mean(there * back) + sum(a * b);
    loss.backward();
    return std::tuple(loss, there, back);
  };
  const auto xs = test::parameter(test::numbers<float>({100, 3, 4}, 1));
  const auto w = test::parameter(test::numbers<float>({4, 4}, 2) * 0.5f);
  check_there(network, xs, w);
}

TEST_CASE("branches there, with gradients, and loops with a condition") {
  if (!test::plugin_is_there()) return;
  const auto f = [](auto& p, auto& w, auto& x) {
    const auto y = xla::cond(
        sum(p) > 0, [&] { return tanh(matmul(x, w)) * x; }, [&] { return x * x - w; });
    const auto [grown, n] = xla::while_loop(
        [&](const auto& c) { return sum(c.first * c.first) < 50; },
        [&](const auto& c) { return std::pair(c.first * 1.5f + 1, c.second + 1); },
        std::pair(x.detach(), xla::zeros_like(sum(p))));
    const auto loss = sum(y * w * grown);
    loss.backward();
    return std::tuple(loss, y, grown, n);
  };
  const auto w = test::parameter(test::numbers<float>({4, 4}, 1));
  const auto x = test::parameter(test::numbers<float>({4, 4}, 2));
  for (float p : {-1.0f, 1.0f}) check_there(f, test::parameter(xla::full<float>({2}, p)), w, x);
}
