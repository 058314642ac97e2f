// SPDX-License-Identifier: Apache-2.0
// Custom passes, in compiled and in traced mode.
#include <functional>
#include <stdexcept>
#include <thread>

#include "catch.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/passes.hpp"
#include "xla/xla.hpp"

struct doubled : xla::op::map {
  static constexpr auto name = "user_passes_doubled";
  static constexpr auto kernel(auto x) { return x + x; }
};
XLA_ELEMENTWISE_OP(doubled);

namespace {

namespace op = xla::op;
using xla::tags::with;

/// x + x as x * 2: the same bits.
struct Twice {
  static constexpr auto name = "twice";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes())
      if (n.is<op::add>() && n.input(0) == n.input(1))
        graph.replace(n, graph.add<op::mul, float>({n.input(0), graph.constant(2.f)}));
  }
};
/// Replaces an op by another.
struct Swap {
  static constexpr auto name = "swap";
  static constexpr auto after = "dead";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes())
      if (n.op() == "cos") graph.replace(n, graph.add<op::sin, float>({n.input(0)}));
  }
};
/// What replaces a node may read it; the step's result is replaced like all that reads it.
struct Halve {
  static constexpr auto name = "halve";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes())
      if (n.is<op::sin>() || n.is<op::cos>())
        graph.replace(n, graph.add<op::mul, float>({n, graph.constant(0.5f)}));
  }
};
/// A product reads its transposed operand in place.
struct Reads {
  static constexpr auto name = "reads";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes())
      if (n.is<op::matmul>() && n.input(1).is<op::permute>())
        graph.replace(n, graph.add<op::matmul, float>({n.input(0), n.input(1).input(0)},
                                                      {.transpose_b = true}));
  }
};
/// Another way to 1 for a positive number: with each kind of op that a pass may add.
struct Kinds {
  static constexpr auto name = "kinds";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes()) {
      if (!n.is<op::exp>()) continue;
      const xla::Node most = graph.add<op::max, float>({n}, {.axes = {1}});
      const xla::Node less = graph.add<op::lt, bool, float>({n, most});
      const xla::Node chosen = graph.add<op::where, float>({less, n, most});
      const xla::Node wide = graph.add<op::cast, double, float>({chosen});
      const xla::Node own = graph.add<doubled, double>({wide});
      graph.replace(n, graph.add<op::cast, float, double>({own}));
    }
  }
};
/// What products a graph has.
struct Products {
  static constexpr auto name = "products";
  int nodes = 0, outputs = 0, products = 0, transposed = 0;
  std::int64_t rows = 0, columns = 0;
  constexpr void operator()(xla::Graph& graph) {
    for (xla::Node n : graph.nodes()) {
      ++nodes;
      outputs += graph.is_output(n);
      if (!n.is<op::matmul>()) continue;
      ++products;
      transposed += n.attributes<op::matmul>().transpose_b;
      rows = n.size(0);
      columns = n.size(n.rank() - 1);
    }
  }
};
struct ProductsLeft : Products {
  static constexpr auto after = "dead";
};

int occurrences(const std::string& s, const std::string& what) {
  int n = 0;
  for (std::size_t at = 0; (at = s.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

xla::Tensor<float, 1> three() { return xla::tensor<float>({0.1f, 1, -3}); }

constexpr auto train = [](auto& w, const auto& x) {
  const auto y = xla::tanh(w * x);
  auto loss = xla::sum((y + y) * (x + x));
  loss.backward();
  return loss;
};
constexpr auto circle = [](const auto& x) { return xla::cos(x) + xla::sin(x + 1); };

/// In traced mode, with some passes registered.
template <class F, class... P>
auto traced(F f, const P&... passes) {
  const xla::eager_mode_guard on(false);
  [[maybe_unused]] const std::tuple handles{xla::register_pass(passes)...};
  return f();
}
xla::Node find(xla::Graph& graph, std::string_view op) {
  for (xla::Node n : graph.nodes())
    if (n.op() == op) return n;
  FAIL("no " << op);
  return {};
}
std::int64_t graphs_made() { return xla::counter_value("UncachedCompile").value_or(0); }

}  // namespace

TEST_CASE("a pass rewrites a step with its gradients, and every bit stays, in both modes") {
  const auto handle = xla::register_pass(Twice{});
  test::check_modes<with<Twice> & xla::tags::verified>(train, test::parameter(three()), three());
  test::check_modes<with<Twice> & xla::tags::without<"simplify", "share", "dead">>(
      train, test::parameter(three()), three());
}

TEST_CASE("graph(stage) shows what a pass has made, at its place") {
  auto f = xla::compile<with<Twice, Swap>>([](const auto& x) { return xla::cos(x + x); });
  const auto x = three();
  CHECK(occurrences(f.graph("captured", x), "= add(") == 1);
  CHECK(occurrences(f.graph("twice", x), "= add(") == 0);
  CHECK(occurrences(f.graph("twice", x), "= mul(") == 1);
  CHECK(occurrences(f.graph("share", x), "= cos(") == 1);
  CHECK(occurrences(f.graph("swap", x), "= sin(") == 1);
  CHECK_THAT(f.graph("lowered", x), test::contains(": mul sin reads"));
  CHECK_THROWS_WITH(f.graph("thrice", x), test::contains("sink_draws, twice, swap, lowered"));
}

TEST_CASE("a pass swaps an op, and one reads what it replaces") {
  const auto x = three();
  const auto swapped = (xla::sin(x) + xla::sin(x + 1)).to_vector();
  const auto halved = (xla::cos(x) * 0.5f + xla::sin(x + 1) * 0.5f).to_vector();
  const auto both = (xla::sin(x) * 0.5f + xla::sin(x + 1) * 0.5f).to_vector();
  CHECK(xla::compile<with<Swap>>(circle)(x).to_vector() == swapped);
  CHECK(xla::compile<with<Halve>>(circle)(x).to_vector() == halved);
  CHECK(xla::compile<with<Swap, Halve>>(circle)(x).to_vector() == both);
  const auto step = [&] { return circle(x).to_vector(); };
  CHECK(traced(step, Swap{}) == swapped);
  CHECK(traced(step, Halve{}) == halved);
  CHECK(traced(step, Halve{}, Swap{}) == both);
  CHECK(traced(step) == step());
}

TEST_CASE("backends run what a pass has made, after whichever stage") {
  const auto x = three();
  const auto swapped = (xla::sin(x) + xla::sin(x + 1)).to_vector();
  auto f = xla::compile<with<Swap>>(circle, {.backend = xla::Backend("interpreter")});
  CHECK(f(x).to_vector() == swapped);
}

TEST_CASE("a pass adds an op with attributes") {
  const auto x = xla::randn<float>({3, 4}), w = xla::randn<float>({2, 4});
  const auto f = [](const auto& x, const auto& w) { return xla::matmul(x, xla::transpose(w)); };
  auto g = xla::compile<with<Reads>>(f);
  CHECK_THAT(g.graph("reads", x, w), test::contains("matmul(%0, %1) transpose_b"));
  const auto plain = f(x, w).to_vector();
  CHECK(g(x, w).to_vector() == plain);
  CHECK(traced([&] { return f(x, w).to_vector(); }, Reads{}) == plain);
}

TEST_CASE("a pass adds comparisons, choices, reductions, casts and ops of its own") {
  const auto x = xla::randn<float>({3, 4});
  const auto f = [](const auto& x) { return xla::exp(x); };
  const auto want = (f(x) * 2.f).to_vector();
  CHECK(xla::compile<with<Kinds>>(f)(x).to_vector() == want);
  CHECK(traced([&] { return f(x).to_vector(); }, Kinds{}) == want);
}

TEST_CASE("a pass may make a graph much larger than its step") {
  constexpr auto many = [](const auto& x) {
    auto y = x + 0;
    for (int i = 0; i < 120; ++i) y = xla::sin(y);
    return y;
  };
  const auto x = three();
  auto want = x;
  for (int i = 0; i < 120; ++i) want = xla::sin(want) * 0.5f;
  CHECK(xla::compile<with<Halve>>(many)(x).to_vector() == want.to_vector());
  CHECK(traced([&] { return many(x).to_vector(); }, Halve{}) == want.to_vector());
}

namespace {

constexpr auto powers = [](const auto& x) {
  return xla::fori_loop(0, x.size(0), [](const auto&, const auto& c) { return xla::cos(c) + c; }, x);
};
/// What is in the steps of loops.
struct InLoops {
  static constexpr auto name = "in_loops";
  int cosines = 0, outside = 0;
  constexpr void operator()(xla::Graph& graph) {
    for (xla::Node n : graph.nodes()) {
      cosines += n.is<op::cos>() && n.loop() == 1;
      outside += n.op() == "last_step" && n.loop() == 0;
    }
  }
};
}  // namespace

TEST_CASE("a pass sees and changes the steps of a loop") {
  const auto x = three();
  const InLoops found = xla::observe<InLoops>(xla::compile(powers), x);
  CHECK((found.cosines == 1 && found.outside == 1));
  const auto y = [](auto c, auto step) {
    for (int i = 0; i < 3; ++i) c = step(c) + c;
    return c.to_vector();
  };
  CHECK(xla::compile<with<Swap> & xla::tags::verified>(powers)(x).to_vector() ==
        y(x, [](const auto& c) { return xla::sin(c); }));
  CHECK(xla::compile<with<Halve> & xla::tags::verified>(powers)(x).to_vector() ==
        y(x, [](const auto& c) { return xla::cos(c) * 0.5f; }));
  CHECK(traced([&] { return powers(x).to_vector(); }, Swap{}) ==
        y(x, [](const auto& c) { return xla::sin(c); }));
}

TEST_CASE("nodes know their users and the sizes of any axis") {
  const auto x = xla::ones<float>({3, 4});
  xla::sync(true);
  const xla::eager_mode_guard on(false);
  int users = 0, size = 0;
  const auto handle = xla::register_pass("users", [&](xla::Graph& g) {
    const xla::Node e = find(g, "exp"), s = find(g, "sin");
    users = e.users().size();
    size = static_cast<int>(e.size(-1) * 10 + e.size(0));
    CHECK(s.users().empty());
    for (xla::Node user : e.users()) CHECK((user.op() == "mul" || user.op() == "sin"));
    CHECK(!g.is_output(e));
    CHECK(g.is_output(s));
  });
  const auto [y, z] = [&] {
    const auto e = xla::exp(x);
    return std::pair(e * e, xla::sin(e));
  }();
  xla::sync(true);
  CHECK((users == 2 && size == 43));
}

TEST_CASE("observe() returns the findings of a pass as a value") {
  auto f = xla::compile([](const auto& x, const auto& w) {
    [[maybe_unused]] const auto unused = xla::exp(x);
    return xla::matmul(x, xla::transpose(w));
  });
  const auto x = xla::ones<float>({3, 4}), w = xla::ones<float>({2, 4});
  const Products all = xla::observe<Products>(f, x, w);
  CHECK((all.nodes == 4 && all.outputs == 1 && all.products == 1 && all.transposed == 0));
  CHECK((all.rows == -1 && all.columns == -1));  // each call decides
  const Products left = xla::observe<ProductsLeft>(f, x, w);
  CHECK((left.nodes == 3 && left.transposed == 1));

  xla::nn::Linear layer{4, 2};
  auto module = xla::compile(layer);
  const Products linear = xla::observe<Products>(module, x);
  CHECK((linear.products == 1 && linear.rows == -1 && linear.columns == -1));
}

TEST_CASE("a registered pass sees each graph that is made, with the sizes of the call") {
  const auto x = xla::ones<float>({3, 4}), w = xla::ones<float>({2, 4});
  xla::sync(true);
  Products found;
  const xla::eager_mode_guard on(false);
  const auto handle = xla::register_pass("products", std::ref(found), "dead");
  const auto y = xla::matmul(x, xla::transpose(w));
  CHECK(y.to_vector()[0] == 4);
  CHECK((found.nodes == 3 && found.transposed == 1));
  CHECK((found.rows == 3 && found.columns == 2));
}

TEST_CASE("graphs are made again where another set of passes is registered") {
  const auto x = three();
  const xla::eager_mode_guard on(false);
  const auto plain = (xla::cos(x) * 3.f).to_vector(), swapped = (xla::sin(x) * 3.f).to_vector();
  const auto step = [&](const std::vector<float>& want, int graphs) {
    const auto before = graphs_made();
    CHECK((xla::cos(x) * 3.f).to_vector() == want);
    CHECK(graphs_made() - before == graphs);
  };
  step(plain, 0);
  auto first = xla::register_pass(Swap{});
  step(swapped, 1);
  step(swapped, 0);
  {
    const auto second = xla::register_pass(Twice{});
    step(swapped, 1);
    xla::PassHandle moved = std::move(first);
    moved.remove();
    step(plain, 1);
  }
  step(plain, 0);  // made before any was registered
  first.remove();  // removes nothing more
  first = xla::register_pass(Swap{});
  step(swapped, 1);
  std::thread([&] {
    const xla::eager_mode_guard traced(false);
    step(swapped, 0);  // a pass is for all threads
  }).join();
}

TEST_CASE("eager mode has no graphs, and compiled functions have the passes that they name") {
  const xla::eager_mode_guard eager;
  int calls = 0;
  const auto handle = xla::register_pass("counts", [&](xla::Graph&) { ++calls; });
  const auto x = three();
  CHECK(xla::cos(x).to_vector().size() == 3);
  CHECK(xla::compile(circle)(x).to_vector().size() == 3);
  CHECK(calls == 0);
}

TEST_CASE("a pass may remove itself, and throw: the values are there when it is gone") {
  const auto x = three();
  const auto plain = xla::exp(x).to_vector();
  const xla::eager_mode_guard on(false);
  int calls = 0;
  xla::PassHandle once = xla::register_pass("once", [&](xla::Graph&) {
    ++calls;
    once.remove();
  });
  CHECK(xla::exp(x).to_vector() == plain);
  CHECK((xla::exp(x) + 1).to_vector().size() == 3);
  CHECK(calls == 1);

  auto throws = xla::register_pass("throws",
                                   [](xla::Graph&) { throw std::domain_error("not this one"); });
  const auto y = xla::exp(x);
  CHECK_THROWS_WITH(y.to_vector(), "not this one");
  throws.remove();
  CHECK(y.to_vector() == plain);
}

TEST_CASE("a pass that another removes while it runs, runs no more") {
  const auto x = three();
  const xla::eager_mode_guard on(false);
  int calls = 0;
  xla::PassHandle second;
  const auto first = xla::register_pass("first", [&](xla::Graph&) { second.remove(); });
  second = xla::register_pass("second", [&](xla::Graph&) { ++calls; });
  CHECK(xla::exp(x * x).to_vector().size() == 3);
  CHECK(calls == 0);
}

namespace {

/// The error of a pass over a traced graph of %0 = input, its exp, and its sum.
std::string said_of(std::function<void(xla::Graph&)> bad, std::string after = "captured") {
  const auto x = three();
  const xla::eager_mode_guard on(false);
  auto handle = xla::register_pass("bad", std::move(bad), std::move(after));
  const auto y = xla::exp(x);
  const auto z = xla::sum(y, {0});
  std::string said;
  try {
    xla::sync(true);
  } catch (const xla::runtime_error& e) {
    said = e.what();
  }
  handle.remove();
  CHECK(z.item() > 0);  // as if nothing had been
  return said;
}

}  // namespace

TEST_CASE("a pass that makes a bad graph gets a sentence with its name") {
  using G = xla::Graph&;
  const auto exp = [](G g) { return find(g, "exp"); };
  CHECK(said_of([](G) {}).empty());
  CHECK(said_of([&](G g) { g.replace(exp(g), find(g, "sum")); }) ==
        "xla: the pass bad: %1 is replaced by %2 of another element type or other sizes");
  CHECK(said_of([&](G g) { g.add<op::add, double>({exp(g), exp(g)}); }) ==
        "xla: the pass bad: add of float64 is added to %1, which is float32");
  CHECK(said_of([&](G g) { g.add<op::add, float>({exp(g), exp(g), exp(g), exp(g)}); }) ==
        "xla: the pass bad: add takes 2 inputs, not 4");
  CHECK(said_of([&](G g) { g.add<op::exp, float>({exp(g), exp(g)}); }) ==
        "xla: the pass bad: exp takes 1 input, not 2");
  CHECK(said_of([&](G g) { g.add<op::sum, float>({exp(g)}, {.axes = {1}}); }) ==
        "xla: the pass bad: sum over axis 1 of %1, which has 1");
  CHECK(said_of([&](G g) { g.add<op::matmul, float>({exp(g), exp(g)}); }) ==
        "xla: the pass bad: matmul of %1, which has fewer than 2 axes");
  CHECK(said_of([&](G g) { g.replace(exp(g), g.add<op::neg, float>({exp(g)})); }, "fuse") ==
        "xla: the pass bad: the graph cannot be changed after fuse, but up to the stage dead");
  CHECK(said_of([](G g) { g.refuse("there is no product"); }, "fuse") ==
        "xla: the pass bad: there is no product");
}

TEST_CASE("a pass that asks a node for an attribute that it lacks is refused") {
  using G = xla::Graph&;
  const auto exp = [](G g) { return find(g, "exp"); };
  CHECK(said_of([&](G g) { exp(g).input(1).op(); }) ==
        "xla: the pass bad: %1 has 1 inputs, and none of number 1");
  CHECK(said_of([&](G g) { exp(g).size(-2); }) ==
        "xla: the pass bad: %1 has 1 axes, and none of number -2");
  CHECK(said_of([&](G g) { exp(g).attributes<op::matmul>(); }) ==
        "xla: the pass bad: %1 is exp, and has no attributes of matmul");
  CHECK(said_of([](G) { xla::Node().op(); }) ==
        "xla::Node: this one was made by Node() and is no node of a graph");
  CHECK(said_of([&](G g) { g.replace(exp(g), xla::Node()); }) ==
        "xla: the pass bad: a node was made by Node() and is no node of a graph");
}

TEST_CASE("a pass that makes shapes which do not fit gets the op's sentence") {
  const auto x = xla::ones<float>({2, 3});
  xla::sync(true);
  const xla::eager_mode_guard on(false);
  const auto handle = xla::register_pass("bad", [](xla::Graph& g) {
    g.add<op::matmul, float>({find(g, "exp"), find(g, "exp")});
  });
  const auto y = xla::exp(x);
  CHECK_THROWS_WITH(xla::sync(true), test::contains("xla: the pass bad: ") &&
                                         test::contains("cannot multiply (2, 3) by (2, 3)"));
}

TEST_CASE("a pass that waits for the graph is refused; known values it may compute with") {
  const auto x = three();
  const auto message = test::contains("xla: a registered pass needs tensors that are pending");
  const xla::eager_mode_guard on(false);
  const auto pending = xla::exp(x);
  float most = 0;
  auto pass = xla::register_pass("waits", [&](xla::Graph&) { pending.to_vector(); });
  CHECK_THROWS_WITH(xla::sync(true), message);
  pass = xla::register_pass("waits", [&](xla::Graph&) { (pending + 1).to_vector(); });
  CHECK_THROWS_WITH(xla::sync(true), message);
  pass = xla::register_pass("syncs", [&](xla::Graph&) { xla::sync(); });
  CHECK_THROWS_WITH(xla::sync(true), message);
  pass = xla::register_pass("computes", [&](xla::Graph&) { most = xla::max(x).item(); });
  xla::sync(true);
  CHECK(most == 1);
  CHECK(pending.to_vector() == xla::exp(x).to_vector());
}

TEST_CASE("a pass keeps the order of what draws, and results that belong together") {
  const auto x = three();
  const xla::eager_mode_guard on(false);
  auto handle = xla::register_pass("bad", [](xla::Graph& g) {
    xla::Node last;
    for (xla::Node n : g.nodes())
      if (n.is<op::uniform>()) last = n;
    g.replace(find(g, "exp"), last);
  });
  const auto y = -xla::exp(x), u = xla::rand<float>({3}), v = xla::rand<float>({3});
  CHECK_THROWS_WITH(xla::sync(true), test::contains("(uniform) would come after what follows it"));
  handle.remove();
  xla::sync(true);
  handle = xla::register_pass("bad", [](xla::Graph& g) {
    g.replace(find(g, "attention"), find(g, "exp"));
  });
  const auto q = xla::exp(xla::reshape(x, {1, 1, 3, 1}));
  const auto attended = xla::scaled_dot_product_attention(q, q, q);
  CHECK_THROWS_WITH(xla::sync(true), test::contains("has several results"));
  handle.remove();
  xla::sync(true);
  CHECK(attended.size(2) == 3);
}

TEST_CASE("names that a pass cannot have, and stages that are not there, are refused") {
  const auto pass = [](xla::Graph&) {};
  CHECK_THROWS_WITH(xla::register_pass("mine", pass, "shared"),
                    test::contains("xla::register_pass: the pass mine runs after \"shared\", which "
                                   "is no stage; there are captured, "));
  for (const auto& p : xla::detail::pass_labels) {
    if (p.is == xla::detail::pass_label::kind::sized) {
      CHECK_THROWS_WITH(xla::register_pass("mine", pass, std::string(p.name)),
                        test::contains("no stage"));
    } else {
      CHECK_THROWS_WITH(xla::register_pass("mine", pass, "x"), test::contains(std::string(p.name)));
      CHECK_THROWS_WITH(xla::register_pass(std::string(p.name), pass), test::contains("its own"));
    }
  }
  CHECK_THROWS_WITH(xla::register_pass("", pass), test::contains("a name of its own"));
  CHECK_THROWS_WITH(xla::register_pass("mine", nullptr),
                    "xla::register_pass: the pass mine is an empty function");
}
