// SPDX-License-Identifier: Apache-2.0
// Each pass by the graph that it makes, as text.
#include <ctime>

#include "catch.hpp"
#include "support/modes.hpp"
#include "xla/xla.hpp"

namespace {

using xla::Stage;

int occurrences(const std::string& s, const std::string& what) {
  int n = 0;
  for (std::size_t at = 0; (at = s.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}
int steps(const std::string& s) { return occurrences(s, "step "); }

xla::Tensor<float, 2> a, b, c;

}  // namespace

TEST_CASE("simplify: a product reads its transposed operand in place") {
  auto f = xla::compile([](auto& x, auto& y) { return xla::matmul(x, xla::transpose(y)); });
  CHECK(occurrences(f.graph(Stage::captured, a, b), "permute") == 1);
  const auto simple = f.graph(Stage::simplified, a, b);
  CHECK(occurrences(simple, "permute") == 0);
  CHECK_THAT(simple, test::contains("matmul(%0, %1) transpose_b"));
}

TEST_CASE("simplify: double negation, times one, reshapes of reshapes, detach") {
  auto f = xla::compile([](auto& x) {
    const auto y = -(-x) * 1.f / 1.f;
    return xla::reshape(xla::reshape(y.detach(), {-1}), {x.size(0), x.size(1)}) + 2.f;
  });
  const auto simple = f.graph(Stage::simplified, a);
  for (const char* gone : {"neg", "mul", "div", "reshape", "detach"})
    CHECK(occurrences(simple, gone) == 0);
  CHECK(occurrences(simple, "add(%0, ") == 1);
}

TEST_CASE("simplify: what is hidden is not hidden again in a gradient") {
  auto f = xla::compile([](auto& x) {
    const auto seen = x > 0;
    return xla::where(seen, 1, 0 * x) * xla::where(seen, x, 0) +
           xla::where(seen, xla::ones_like(x), 0) * xla::where(seen, x, 0) -
           xla::where(seen, xla::ones_like(x), 0) * -xla::where(seen, x, 0) +
           xla::where(seen, xla::ones_like(x), 0) * xla::where(x > 1, x, 0);
  });
  const auto simple = f.graph(Stage::simplified, a);
  CHECK(occurrences(simple, "= mul(") == 3);
}

TEST_CASE("simplify: a broadcast that a map does anyway is left out") {
  auto f = xla::compile([](auto& x) {
    return xla::expand(xla::sum(x, {1}, xla::keepdim), {x.size(0), x.size(1)}) * x;
  });
  CHECK(occurrences(f.graph(Stage::simplified, a), "expand") == 0);
}

TEST_CASE("share: equal nodes become one, commuted ones too, random ones never") {
  auto f = xla::compile([](auto& x, auto& y) { return (x + y) * (y + x) - (x - y) * (y - x); });
  const auto shared = f.graph(Stage::shared, a, b);
  CHECK(occurrences(shared, "= add(") == 1);
  CHECK(occurrences(shared, "= sub(") == 3);
  auto g = xla::compile([](auto& x) {
    const auto u = xla::rand_like(x);
    return u - xla::rand_like(x);
  });
  CHECK(occurrences(g.graph(Stage::shared, a), "= uniform(") == 2);
}

TEST_CASE("dead code goes, checks stay") {
  auto f = xla::compile([](auto& x, auto& index) {
    [[maybe_unused]] const auto unused = xla::exp(x) * 3.f;
    [[maybe_unused]] const auto checked = xla::embedding(index, x);
    return x + 1.f;
  });
  xla::Tensor<std::int64_t, 1> index;
  CHECK(occurrences(f.graph(Stage::captured, a, index), "exp") == 1);
  const auto shared = f.graph(Stage::shared, a, index);
  CHECK(occurrences(shared, "exp") == 0);
  CHECK(occurrences(shared, "check_index") == 1);
  CHECK(occurrences(shared, "embedding(") == 0);
}

TEST_CASE("fuse: a chain of elementwise ops is one step, with several results if need be") {
  auto f = xla::compile([](auto& x, auto& y) {
    const auto s = xla::tanh(x * y + 1.f);
    return std::pair{s, xla::relu(s - y)};
  });
  const auto lowered = f.graph(Stage::lowered, a, b);
  CHECK(steps(lowered) == 1);
  CHECK_THAT(lowered, test::contains("mul add tanh sub relu"));
  CHECK(occurrences(lowered, "return") == 2);
}

TEST_CASE("fuse: softmax is one pass over the rows") {
  auto f = xla::compile([](auto& x) { return xla::softmax(x * 0.5f); });
  const auto lowered = f.graph(Stage::lowered, a);
  CHECK(steps(lowered) == 1);
  CHECK_THAT(lowered, test::contains("row kernel 0") && test::contains("mul max sub exp sum div"));
}

TEST_CASE("fuse: cross-entropy forward and backward are one pass over the rows") {
  auto f = xla::compile([](auto& p, auto& t) {
    auto loss = xla::cross_entropy(p, t);
    loss.backward();
    return loss;
  });
  auto p = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 3}));
  xla::Tensor<std::int64_t, 1> t;
  const auto lowered = f.graph(Stage::lowered, p, t);
  CHECK(occurrences(lowered, "row kernel") == 1);
  CHECK_THAT(lowered, test::contains("sum log gather mul mul add where div mul scatter_add") &&
                          test::contains("slot 0 gradient = "));
}

TEST_CASE("fuse: what is before and after a product stays separate") {
  auto f = xla::compile([](auto& x, auto& w) {
    const auto y = xla::exp(x);
    return y + xla::matmul(y, w);
  });
  const auto lowered = f.graph(Stage::lowered, a, b);
  CHECK(steps(lowered) == 3);
  CHECK(lowered.find("exp") < lowered.find("matmul"));
  CHECK(lowered.find("matmul") < lowered.find(": add"));
}

TEST_CASE("fuse: backward through a softmax is one pass over the rows") {
  auto f = xla::compile([](auto& x, auto& w, auto& y) {
    const auto z = xla::matmul(xla::softmax(xla::matmul(x.detach(), w)), y);
    xla::sum(z * z.detach()).backward();
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto y = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  const auto lowered = f.graph(Stage::lowered, a, w, y);
  CHECK(occurrences(lowered, "row kernel") == 2);
  CHECK(occurrences(lowered, "kernel") == 4);  // two add to the gradients
}

TEST_CASE("fuse: backward through a norm is one pass over the rows") {
  auto f = xla::compile([](auto& norm, auto& w, auto& x) {
    const auto y = xla::matmul(norm(xla::matmul(x, w)), w);
    xla::sum(y * y.detach()).backward();
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({4, 4}));
  xla::nn::RMSNorm rms{4};
  xla::nn::LayerNorm layer{4};
  for (const auto& lowered :
       {f.graph(Stage::lowered, rms, w, a), f.graph(Stage::lowered, layer, w, a)}) {
    CHECK(occurrences(lowered, "row kernel") == 2);
    CHECK(occurrences(lowered, "map kernel") == occurrences(lowered, ": add reads") + 1);
    CHECK(occurrences(lowered, ": add add reads") == 1);  // to the gradients
  }
}

TEST_CASE("fuse: AdamW with clipping is one kernel for each parameter") {
  auto f = xla::compile([](auto& model, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    xla::sum(xla::relu(model(x.detach()))).backward();
    xla::optim::clip_grad_norm_(model, 1);
    optimizer.step();
  });
  xla::nn::Linear model{3, 2};
  xla::optim::AdamW optimizer{model};
  const auto lowered = f.graph(Stage::lowered, model, a, optimizer);
  CHECK(occurrences(lowered, ": mul mul mul add mul mul mul add sqrt add div mul mul sub") == 2);
  CHECK(occurrences(lowered, "map kernel 5 over (s2, s1)") == 1);
  CHECK(occurrences(lowered, "map kernel 5 over (s2,)") == 1);
  // Squares are summed where they are made.
  CHECK_THAT(lowered, test::contains("over (s2, s1): mul sum reads"));
}

TEST_CASE("fuse: an operand that is used often counts once") {
  auto f = xla::compile([](auto& x, auto& y) {
    auto s = x;
    for (int i = 0; i < 30; ++i) s = s * y + x;
    return s;
  });
  CHECK(steps(f.graph(Stage::lowered, a, b)) == 2);  // 60 ops, 40 in a kernel
  auto g = xla::compile([](auto& x) {
    auto s = x[0];
    for (int i = 1; i < 24; ++i) s = s + xla::exp(x[i]);
    return s;
  });
  std::array<xla::Tensor<float, 2>, 24> many;
  CHECK(steps(g.graph(Stage::lowered, many)) == 2);
}

TEST_CASE("fuse: maps that read the same value are one step") {
  auto f = xla::compile([](auto& x, auto& y) {
    return std::array{xla::exp(x), x * y, xla::exp(y) * 2.f};
  });
  CHECK(steps(f.graph(Stage::lowered, a, b)) == 1);
  auto g = xla::compile([](auto& x, auto& w) {
    const auto y = xla::matmul(xla::exp(x), w);
    return std::pair{y, xla::tanh(x) + y};
  });
  const auto lowered = g.graph(Stage::lowered, a, b);
  CHECK(steps(lowered) == 3);
  CHECK_THAT(lowered, test::contains("exp reads") && test::contains("tanh add reads"));
}

TEST_CASE("fuse: values that only backward needs are made there") {
  auto f = xla::compile([](auto& x, auto& v, auto& w) {
    const auto y = xla::matmul(xla::sigmoid(xla::matmul(x, v)), w);
    xla::sum(y * y.detach()).backward();
  });
  auto v = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  const auto lowered = f.graph(Stage::lowered, a, v, w);
  CHECK_THAT(lowered, test::contains(": sigmoid reads") && test::contains(": sub mul mul reads"));
}

TEST_CASE("regions that differ in the order of a commutative op share a kernel") {
  auto f = xla::compile([](auto& x, auto& y) {
    const auto early = xla::sum(y);
    const auto p = xla::matmul(x, y);
    const auto u = xla::exp(p * early);
    const auto q = xla::matmul(u, y);
    const auto late = xla::sum(u);
    return xla::matmul(xla::exp(q * late), y);
  });
  const auto lowered = f.graph(Stage::lowered, a, b);
  CHECK(occurrences(lowered, ": mul exp reads") == 2);
  CHECK(occurrences(lowered, "map kernel 0 over (s0, s2): mul exp") == 2);
}

TEST_CASE("regions of the same structure share a kernel") {
  auto f = xla::compile([](auto& x, auto& y, auto& z) {
    return std::array{xla::exp(x) * 2.f, xla::exp(y) * 3.f, xla::exp(z) * 4.f};
  });
  const auto lowered = f.graph(Stage::lowered, a, b, c);
  CHECK(occurrences(lowered, "map kernel 0 ") == 3);
}

TEST_CASE("a size known at run time is a term over the arguments' sizes") {
  auto f = xla::compile([](auto& x) { return xla::flatten(x) / (x.numel() * 2); });
  CHECK_THAT(f.graph(Stage::captured, a), test::contains("reshape(%0) : float32 (s2,)"));
  const xla::eager_mode_guard eager;
  auto x = xla::full<float>({3, 5}, 60.f);
  CHECK(f(x).to_vector() == std::vector<float>(15, 2.f));
}

TEST_CASE("recompute: backward makes activations again from what is kept anyway") {
  auto f = xla::compile([](auto& x, auto& w, auto& v) {
    const auto gate = xla::matmul(x, w), up = xla::matmul(x, v);
    const auto h = xla::silu(gate) * up;
    xla::sum(xla::square(xla::matmul(xla::matmul(h, w), v))).backward();
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto v = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  const auto lowered = f.graph(Stage::lowered, a, w, v);
  CAPTURE(lowered);
  // Forward; and beside the gradients of gate and up for that of a weight.
  CHECK(occurrences(lowered, "sigmoid") == 2);
  CHECK(occurrences(lowered, ": sigmoid mul mul reads %3 %4 writes %5") == 1);
  CHECK(occurrences(lowered, ": sigmoid mul mul mul") == 1);
}

TEST_CASE("recompute: a batch norm's masked gradient is made again after its sums") {
  auto f = xla::compile([](auto& x, auto& w, auto& scale, auto& bias, auto& v) {
    const auto h = xla::relu(xla::batch_norm(xla::matmul(x, w), scale, bias));
    xla::sum(xla::square(xla::matmul(h, v))).backward();
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto v = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto scale = xla::Parameter<float, 1>::like(xla::zeros<float>({2}));
  auto bias = xla::Parameter<float, 1>::like(xla::zeros<float>({2}));
  const auto lowered = f.graph(Stage::lowered, a, w, scale, bias, v);
  CAPTURE(lowered);
  // The step that sums it stores the sums alone; the one after reads the same values again.
  CHECK(occurrences(lowered,
                    "where sum center_scale sum reads %5 %11 %17 %3 %25 %21 writes %26 "
                    "%30\n") == 1);
  CHECK(occurrences(lowered, "where mul add add reads %5 %11 %38 %17 %3 %25 %21 %40 writes") == 1);
}

TEST_CASE("recompute: what would need more to be kept is kept itself") {
  auto f = xla::compile([](auto& x, auto& w, auto& v) {
    const auto h = xla::tanh(xla::matmul(x, w) + xla::matmul(x, v));
    xla::sum(xla::square(xla::matmul(xla::matmul(h, w), v))).backward();
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto v = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  CHECK(occurrences(f.graph(Stage::lowered, a, w, v), "tanh") == 1);
}

TEST_CASE("recompute: what is made of three kept values is kept itself") {
  auto f = xla::compile([](auto& x, auto& w, auto& v) {
    const auto gate = xla::matmul(x, w), up = xla::matmul(x, v), third = xla::matmul(gate, v);
    const auto h = xla::silu(gate) * up * third;
    xla::sum(xla::square(xla::matmul(xla::matmul(h, w), v))).backward();
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  auto v = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  const auto lowered = f.graph(Stage::lowered, a, w, v);
  CAPTURE(lowered);
  // Forward, and for the gradients of gate, up and third, but not for that of a weight.
  CHECK(occurrences(lowered, "sigmoid") == 2);
}

TEST_CASE("planning takes a time that follows the number of ops") {
  const xla::eager_mode_guard traced(false);
  const auto x = xla::ones<float>({4, 4});
  const auto planned = [&](int n) {
    std::vector<xla::Parameter<float, 2>> cells;
    std::vector<xla::Tensor<float, 2>> kept;
    for (int i = 0; i < n / 4; ++i) cells.push_back(xla::Parameter<float, 2>::like(x));
    auto y = x;
    xla::sync(true);
    for (auto& c : cells) c.copy_(c - x);
    for (int i = 0; i < n / 4; ++i) kept.push_back(x * static_cast<float>(i));
    for (int i = 0; i < n / 4; ++i) y = i % 3 ? xla::matmul(y, x) : xla::softmax(y);
    const std::clock_t start = std::clock();
    xla::sync(true);
    return static_cast<double>(std::clock() - start);
  };
  const double few = std::max(planned(3'000), 100.), many = planned(60'000);
  CHECK(many < 100 * few);  // 20 if it were the same for each op, 400 if it grew with their number
}

namespace {

/// What products in autocast read: h no one else does, through a reshape, too; e a sum reads.
constexpr auto products = [](auto& x, auto& w, auto& v) {
  const auto h = xla::softmax(x * w);
  const auto e = xla::exp(x);
  const auto all = [](auto& m) { return xla::reshape(m, {1, m.size(0), m.size(1)}); };
  const auto y = xla::matmul(all(h), all(v));
  return xla::sum(y) + xla::sum(xla::matmul(h, v)) + xla::sum(xla::matmul(e, v) + e);
};

}  // namespace

TEST_CASE(
    "bfloat16_storage: what only products in autocast read is stored as bfloat16 where it is "
    "made") {
  auto f = xla::compile(xla::autocast(products));
  CHECK(occurrences(f.graph("recompute", a, b, c), "cast(") == 0);
  const auto graph = f.graph("bfloat16_storage", a, b, c),
             lowered = f.graph(Stage::lowered, a, b, c);
  CAPTURE(graph, lowered);
  CHECK(occurrences(graph, "= cast(") == 1);
  CHECK(occurrences(graph, " half_a : float32") == 2);
  CHECK(occurrences(graph, " half_") == 2);
  CHECK(occurrences(graph, " : bfloat16 ") == 2);  // and its reshape
  CHECK_THAT(lowered, test::contains("exp sum div mul cast"));
  auto without = xla::compile<xla::tags::without<"bfloat16_storage">>(xla::autocast(products));
  CHECK(occurrences(without.graph("bfloat16_storage", a, b, c), " half_") == 0);
  CHECK(steps(without.graph(Stage::lowered, a, b, c)) == steps(lowered));
}

TEST_CASE("bfloat16_storage: nothing of results, of one number per row, or outside of autocast") {
  auto kept = xla::compile(xla::autocast([](auto& x, auto& w) {
    const auto h = xla::exp(x), s = xla::exp(xla::sum(x, {1}, xla::keepdim));
    return std::tuple(h, xla::matmul(h, w), xla::matmul(s, xla::reshape(s, {1, -1})));
  }));
  CHECK(occurrences(kept.graph("bfloat16_storage", a, b), "cast(") == 0);
  auto f = xla::compile(products);
  CHECK(occurrences(f.graph("bfloat16_storage", a, b, c), "cast(") == 0);
}

TEST_CASE("sink_draws: random numbers are drawn just before the first step that reads them") {
  auto f = xla::compile([](auto& x, auto& y) {
    const auto noise = xla::rand_like(x);
    return xla::matmul(xla::matmul(x, y), y) + noise;
  });
  const auto lowered = f.graph(Stage::lowered, a, b);
  CAPTURE(lowered);
  CHECK_THAT(lowered, test::contains("step 1: %2 = uniform()"));
  CHECK_THAT(f.graph("fuse", a, b), test::contains("stage 1: %2 = uniform()"));
  CHECK_THAT(f.graph("sink_draws", a, b), test::contains("stage 2: %2 = uniform()"));
}

TEST_CASE("gradient_uses: what a step makes of a parameter's gradient alone") {
  auto f = xla::compile([](auto& w, auto& x) {
    xla::sum(xla::square(xla::matmul(x, w))).backward();
    w -= w.grad() * 0.5;
    return xla::matmul(x, w);
  });
  auto w = xla::Parameter<float, 2>::like(xla::zeros<float>({2, 2}));
  CHECK(occurrences(f.graph(Stage::captured, w, a), "updated(") == 0);
  CHECK(occurrences(f.graph("gradient_uses", w, a), "updated(") == 1);
}

TEST_CASE("passes are in the order of their names, and the sized ones follow") {
  using xla::detail::passes, xla::detail::pass_labels;
  for (std::size_t i = 0; i < std::size(pass_labels); ++i) {
    const bool sized = pass_labels[i].is == xla::detail::pass_label::kind::sized;
    REQUIRE(sized == (i >= std::size(passes)));
    if (!sized) CHECK(passes[i].name == pass_labels[i].name);
  }
}

TEST_CASE("an unknown stage is refused with a list of the stages") {
  auto f = xla::compile([](auto& x) { return x + x; });
  std::string all;
  for (const auto& p : xla::detail::pass_labels)
    if (p.is != xla::detail::pass_label::kind::sized) all += std::string(p.name) + ", ";
  CHECK_THROWS_WITH(
      f.graph("shared", a),
      "xla: no stage of a graph is called \"shared\"; there are captured, " + all + "lowered");
}

namespace {

using xla::detail::pass_state;

/// The error of a pass that does this to: %0 = input, %1 = detach(%0), %2 = detach(%1).
constexpr xla::detail::text said_of(void (*bad)(pass_state&)) {
  using namespace xla::detail;
  graph_storage<8> g;
  slot input;
  input.leaf = g.add_leaf(g.add_slot(input), false, xla::dtype::float32, {});
  g.add(g.detached(0, {}, false));
  int result = g.add(g.detached(1, {}, false));
  pass_state s(g, {&result, 1, nullptr, 0}, false);
  const pass list[] = {{"good", &drop_dead}, {"bad", bad}};
  run_passes(list, 2, s, xla::tags::verified);
  return s.wrong;
}
constexpr void reads_ahead(pass_state& s) { s.g.nodes[1].in[0] = 2; }
constexpr void waits_for_itself(pass_state& s) { s.g.nodes[1].after[0] = 1; }
constexpr void forgets_the_op(pass_state& s) { s.g.nodes[1].op = nullptr; }
constexpr void replaces_by_later(pass_state& s) { s.replace(0, 1); }
constexpr void replaces_twice(pass_state& s) {
  s.replace(2, 1);
  s.replace(1, 0);
}
constexpr void replaces_by_another_type(pass_state& s) {
  s.g.nodes[1].type = xla::dtype::float64;
  s.replace(2, 1);
}
constexpr void leaves_out_what_is_read(pass_state& s) { s.live[0] = false; }
constexpr void leaves_out_a_result(pass_state& s) { s.live[2] = false; }
constexpr void runs_too_early(pass_state& s) {
  s.place_alone();
  s.stage[2] = 0;
}

}  // namespace

TEST_CASE("a pass that leaves an illegal graph behind is named, also in constant evaluation") {
  static_assert(said_of(&xla::detail::drop_dead).empty());
  static_assert(said_of(&reads_ahead).view() ==
                "xla: the pass bad made an illegal graph: node 1 reads a node that does not come "
                "before it");
  const auto said = [](void (*bad)(pass_state&)) { return std::string(said_of(bad).view()); };
  CHECK_THAT(said(&waits_for_itself), test::contains("node 1 waits for a node that does not"));
  CHECK_THAT(said(&forgets_the_op), test::contains("node 1 has no op"));
  CHECK_THAT(said(&replaces_by_later), test::contains("node 0 is replaced by a later node"));
  CHECK_THAT(said(&replaces_twice), test::contains("node 2 is replaced by a node that is itself"));
  CHECK_THAT(said(&replaces_by_another_type), test::contains("node 2 is replaced by another"));
  CHECK_THAT(said(&leaves_out_what_is_read),
             test::contains("node 1 reads a node that was removed"));
  CHECK_THAT(said(&leaves_out_a_result), test::contains("result 0 was removed"));
  CHECK_THAT(said(&runs_too_early), test::contains("node 2 runs before the nodes that it reads"));
}
