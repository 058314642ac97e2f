// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "catch.hpp"
#include "support/backends.hpp"
#include "support/mlp.hpp"
#include "xla/run/backend/interpret.hpp"
#include "xla/run/trace/compare_runs.hpp"
#include "xla/xla.hpp"

using test::numbers;
using test::on_backend;

namespace {

std::int64_t count(const char* name) { return xla::counter_value(name).value_or(0); }

/// A backend that cannot sort. One of the two runs the ops of eager mode too.
class unsorted final : public xla::detail::common_backend {
 public:
  explicit unsorted(const char* name, bool eager = false) : name_(name), eager_(eager) {}
  std::string_view name() const override { return name_; }
  bool runs_single_ops() const override { return eager_; }
  const xla::detail::op_info* lacks(const xla::detail::program& ops) const override {
    for (int v = 0; v < ops.count.values; ++v)
      if (xla::detail::is<xla::op::argsort>(ops.values[v])) return ops.values[v].op;
    return nullptr;
  }
  std::string_view why(const xla::detail::op_info&) const override {
    return eager_ ? "" : "it was made so";
  }
  std::unique_ptr<xla::detail::executable> make(xla::detail::sized_program&& p) const override {
    return std::make_unique<xla::detail::basic_interpreted<void>>(*this, std::move(p), false);
  }

 private:
  const char* name_;
  bool eager_;
};
unsorted without_sort("unsorted"), op_by_op("unsorted, eager", true);
const bool added = xla::detail::backend_list<void>::add(without_sort) &&
                   xla::detail::backend_list<void>::add(op_by_op);

struct seeded {
  seeded() { xla::manual_seed(5); }
};
struct trained : seeded {
  test::Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD<test::Mlp> optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};

  /// What three steps return and leave behind.
  template <class Step>
  test::snapshot train(Step& step) {
    test::snapshot losses;
    for (std::uint64_t i = 0; i < 3; ++i) {
      test::batch b(4, i);
      losses.add(step(model, b.data, b.target, loss_fn, optimizer));
    }
    return test::add_state(losses, model, optimizer);
  }
};

}  // namespace

TEST_CASE("a backend is chosen by name; what there is is in the error") {
  REQUIRE(added);
  CHECK(xla::backend_name() == "native");
  CHECK_THROWS_WITH(xla::set_backend("interpreted"),
                    test::contains("no backend interpreted; it has native, ") &&
                        test::contains("interpreter:double") && test::contains("unsorted") &&
                        test::contains("link"));
  CHECK(xla::backend_name() == "native");
  {
    const on_backend chosen("interpreter");
    CHECK(xla::backend_name() == "interpreter");
  }
  CHECK(xla::backend_name() == "native");
}

TEST_CASE("the step of the contract is the same on the interpreter, traced and compiled") {
  const auto traced = [](const char* backend) {
    const xla::eager_mode_guard mode(false);
    trained t;
    xla::sync();
    const on_backend chosen(backend);
    xla::clear_all();
    auto step = [](auto&... x) {
      auto loss = test::step_fn(x...);
      xla::sync();
      return loss;
    };
    return t.train(step);
  };
  const auto planned = traced("native");
  CHECK(count("Backend::interpreter") == 0);
  CHECK(traced("interpreter").difference(planned) == "");
  CHECK(count("Backend::interpreter") == 3);

  const xla::eager_mode_guard eager;
  auto step = xla::compile(test::step_fn);
  trained a, b;
  CHECK(a.train(step).difference(planned) == "");
  const on_backend chosen("interpreter");
  xla::clear_all();
  CHECK(b.train(step).difference(planned) == "");  // the same function, on another backend
  CHECK(count("Backend::interpreter") == 3);
  CHECK(count("UncachedCompile") == 1);
  CHECK(count("CachedCompile") == 2);
}

// Gradients that a traced graph was to make are gone, as with any backend.
TEST_CASE("a check that fails in the interpreter leaves everything as it was") {
  const on_backend chosen("interpreter");
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    trained t;
    test::batch b(4);
    auto step = xla::compile(test::step_fn);
    auto run = [&](auto& target) {
      if (eager) return step(t.model, b.data, target, t.loss_fn, t.optimizer);
      auto loss = test::step_fn(t.model, b.data, target, t.loss_fn, t.optimizer);
      xla::sync();
      return loss;
    };
    run(b.target);
    const auto before = test::add_state(test::snapshot(eager), t.model, t.optimizer);
    auto wrong = xla::tensor<std::int64_t>({0, 1, 99, 2});
    CHECK_THROWS_WITH(run(wrong), test::contains("99"));
    CHECK(test::add_state(test::snapshot(eager), t.model, t.optimizer).difference(before) == "");
  }
}

TEST_CASE("an op that a backend lacks is an error by name, or runs as planned and is counted") {
  const on_backend chosen("unsorted");
  auto x = numbers<float>({3, 5});
  auto both = [](auto& x) { return sort(x, 1).first + exp(x); };
  {
    const xla::eager_mode_guard eager;
    auto f = xla::compile(both);
    CHECK_THROWS_WITH(f(x),
                      test::contains("the backend unsorted has no argsort, which the function "
                                     "uses: it was made so. It runs with set_backend(\"native\")"));
    auto silent = xla::compile(both, {.backend = "unsorted, eager"});
    CHECK_THROWS_WITH(silent(x), test::contains("which the function uses; it runs with"));
    auto g = xla::compile([](auto& x) { return exp(x) * 2; });
    CHECK(g(x).to_vector() == (exp(x) * 2).to_vector());
    const on_backend plan("native");
    CHECK(f(x).to_vector() == both(x).to_vector());
  }
  const xla::eager_mode_guard traced(false);
  xla::clear_all();
  for (int i = 1; i < 3; ++i) {
    auto y = both(x);
    xla::sync();
    CHECK(count("fallback::unsorted::argsort") == i);
  }
  CHECK(count("Backend::unsorted") == 0);
  const auto y = (exp(x) * 2).to_vector();
  CHECK(count("Backend::unsorted") == 1);
}

TEST_CASE("a compiled function's own backend, whatever runs the others") {
  const xla::eager_mode_guard eager;
  auto f = [](auto& x) { return exp(x) * 2; };
  auto x = numbers<float>({3, 5});
  const auto wanted = f(x).to_vector();
  xla::clear_all();
  auto planned = xla::compile(f, {.backend = "native"});
  auto interpreted = xla::compile(f, {.backend = xla::Backend("interpreter")});
  CHECK(interpreted(x).to_vector() == wanted);
  CHECK(count("Backend::interpreter") == 1);
  const on_backend chosen("interpreter");
  CHECK(planned(x).to_vector() == wanted);
  CHECK(count("Backend::interpreter") == 1);
  const on_backend given("unsorted");
  xla::set_backend(xla::Backend("native"));
  CHECK(xla::backend_name() == "native");
  CHECK(interpreted(x).to_vector() == wanted);
  CHECK(count("Backend::interpreter") == 2);
  CHECK_THROWS_WITH(xla::compile(f, {.backend = "none"}), test::contains("no backend none"));
}

TEST_CASE("a backend runs the ops of eager mode, each as a program of its own") {
  const xla::eager_mode_guard eager;
  trained plan_trained;
  auto step = [](auto&... x) { return test::step_fn(x...); };
  const auto planned = plan_trained.train(step);
  auto x = numbers<float>({3, 5});
  const auto joined = [&] { return xla::cat<1>(x, exp(x), x + 1, x * x, x).to_vector(); };
  const auto wanted = joined();
  const auto draw = [] {
    xla::manual_seed(3);
    return (xla::rand({4}) + xla::rand({4})).to_vector();
  };
  const auto drawn = draw();

  const on_backend chosen("unsorted, eager");
  xla::clear_all();
  trained t;
  CHECK(t.train(step).difference(planned) == "");
  const auto runs = count("Backend::unsorted, eager");
  CHECK(runs > 30);
  CHECK(count("UncachedCompile") < runs / 2);  // each op of each shape once
  CHECK(joined() == wanted);
  CHECK(draw() == drawn);
  CHECK(sort(x, 1).first.to_vector().size() == 15);
  CHECK(count("fallback::unsorted, eager::argsort") == 1);

  auto w = x + 0;
  auto old = w;
  w += 1;
  CHECK(old.to_vector() == x.to_vector());
  CHECK(w.to_vector() == (x + 1).to_vector());
  CHECK_THROWS_WITH(index_select(x, 0, xla::tensor<std::int64_t>({1, 7})), test::contains("7"));
}

TEST_CASE("sizes, frozen parameters, random numbers and what a call needs of memory") {
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& model, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    auto y = model(x + randn_like(x) * 0.1);
    auto loss = sum(square(y)) / (x.size(0) * 2);
    loss.backward();
    optimizer.step();
    return std::tuple(loss, y);
  });
  const auto run = [&](const char* backend, std::int64_t n) {
    trained t;
    t.model.fc2.bias.requires_grad_(false);
    auto x = numbers<float>({n, 17});
    const on_backend chosen(backend);
    test::snapshot s;
    s.add(f(t.model, x, t.optimizer));
    s.add(xla::rand<float>({2}));  // the generator has gone on by as much
    return test::add_state(s, t.model, t.optimizer);
  };
  for (const std::int64_t n : {3, 1})
    CHECK(run("interpreter", n).difference(run("native", n)) == "");
  trained t;
  auto x = numbers<float>({3, 17});
  const auto planned = f.memory_analysis(t.model, x, t.optimizer);
  const on_backend chosen("interpreter");
  const auto own = f.memory_analysis(t.model, x, t.optimizer);
  CHECK(own.arguments == planned.arguments);
  CHECK(own.outputs == planned.outputs);
  CHECK(own.arena > planned.arena);
  CHECK(own.aliased == 0);
}

TEST_CASE("interpreter:double rounds sums once") {
  const xla::eager_mode_guard eager;
  const on_backend chosen("interpreter:double");
  auto total = xla::compile([](auto& x) { return sum(x); });
  auto product = xla::compile([](auto& a, auto& b) { return matmul(a, b); });
  auto x = numbers<float>({100'000});
  double exact = 0;
  for (float v : x.to_vector()) exact += v;
  CHECK(total(x).item() == static_cast<float>(exact));
  auto a = numbers<float>({3, 3000}, 1), b = numbers<float>({3000, 2}, 2);
  const auto c = product(a, b).to_vector();
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 2; ++k) {
      double dot = 0;
      for (int j = 0; j < 3000; ++j)
        dot += double{a.data()[3000 * i + j]} * double{b.data()[2 * j + k]};
      CHECK(std::abs(c[static_cast<std::size_t>(2 * i + k)] - dot) <= 6e-8 * std::abs(dot));
    }
  const auto near = [](const auto& t) { return xla::cast<float>(xla::cast<xla::bfloat16>(t)); };
  auto rounded = xla::compile(xla::autocast([](auto& a, auto& b) { return matmul(a, b); }));
  auto near_a = near(a), near_b = near(b);
  CHECK(rounded(a, b).to_vector() == product(near_a, near_b).to_vector());
  auto images = numbers<float>({1, 32, 3, 3}, 3), kernels = numbers<float>({32, 32, 1, 2}, 4);
  auto narrow = numbers<float>({31, 32, 1, 2}, 4);
  const auto convolve = [](auto& x, auto& w) { return conv2d(x, w); };
  auto plain = xla::compile(convolve);
  auto mixed = xla::compile(xla::autocast(convolve));
  auto near_images = near(images), near_kernels = near(kernels);
  CHECK(mixed(images, kernels).to_vector() == plain(near_images, near_kernels).to_vector());
  CHECK(mixed(images, narrow).to_vector() == plain(images, narrow).to_vector());
  // Attention is float's own: its second result is read by its gradient alone.
  auto q = test::parameter(numbers<float>({1, 2, 7, 5}, 5));
  auto attended = xla::compile([](auto& q) {
    const auto y = scaled_dot_product_attention(q, q, q);
    sum(y * y).backward();
    return y;
  });
  const auto attention = attended(q).to_vector(), gradient = q.grad().to_vector();
  q.zero_grad();
  const auto y = scaled_dot_product_attention(q, q, q);
  sum(y * y).backward();
  CHECK(attention == y.to_vector());
  CHECK(gradient == q.grad().to_vector());
  auto at = xla::compile([](auto& i, auto& s) { return index_add(xla::zeros_like(s), 0, i, s); });
  auto into = xla::zeros<std::int64_t>({100'000});
  CHECK(at(into, x).to_vector()[0] == static_cast<float>(exact));
}

TEST_CASE("two runs are compared op by op: the first that differs is named with its line") {
  using xla::RunMode;
  const auto x = test::numbers<float>({6, 300}), w = test::numbers<float>({300, 4});
  const auto start = test::parameter(w);
  const auto f = [=] {
    auto p = start;
    auto y = xla::matmul(x + 1.0f, p);
    auto loss = xla::sum(xla::relu(y) * y);
    loss.backward();
    return std::tuple(loss, p.grad());
  };
  const std::string line = "backend.cpp:" + std::to_string(__LINE__ - 5);
  for (const RunMode mode : {RunMode::eager, RunMode::fused, RunMode::traced})
    for (const char* backend : {"native", "interpreter"}) {
      const auto same = xla::compare_runs({}, {mode, backend}, f);
      CHECK((!same.first && same.ops > 5 && same.unmatched == 0));
      CHECK(same.to_string() == std::to_string(same.ops) + " ops have the same values");
    }
  CHECK(xla::backend_name() == "native");
  const auto other = xla::compare_runs({}, {RunMode::traced, "interpreter:double"}, f);
  REQUIRE(other.first);
  const xla::RunDifference& d = *other.first;
  CHECK((d.op == "matmul" && d.source == line && d.shape == "float32 (6, 4)"));
  CHECK((d.elements == 24 && d.different > 0 && d.largest > 0 && d.largest < 1e-2));
  CHECK_THAT(other.to_string(), test::contains("matmul") && test::contains("(" + line + ")") &&
                                    test::contains(", is the first that differs: ") &&
                                    test::contains(" of 24 elements of float32 (6, 4), by "));
  CHECK(!xla::compare_runs({}, {RunMode::traced, "interpreter:double"}, f, {.rtol = 1, .atol = 1})
             .first);
  // Ops that one run alone has are counted; compiled functions show what they return.
  auto g = xla::compile([](const auto& v) { return xla::exp(v) * v; });
  const auto plain = xla::compare_runs(
      {}, [=] { return xla::exp(x) * x; }, {}, [&g, x] { return g(x); });
  CHECK((!plain.first && plain.ops == 0 && plain.unmatched == 2));
  const auto wrong = xla::compare_runs(
      {}, [=] { return x; }, {}, [=] { return x + 1.0f; });
  REQUIRE(wrong.first);
  CHECK((wrong.first->op == "result 0" && wrong.first->largest > 0.99));
  CHECK_THROWS_WITH(xla::compare_runs(
                        {}, [=] { return x; }, {}, [=] { return w; }),
                    "compare_runs: result 0 is float32 (6, 300) of one run and float32 (300, 4) of "
                    "the other; return the same from both");
}
