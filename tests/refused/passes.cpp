// Custom passes that a compiled function cannot run.
// error: xla::tags::with: a pass is a class with a static constexpr name, a default constructor, and constexpr
// error: xla::tags::with: a pass of a compiled function runs in the compiler: its operator\(\) is constexpr
// error: xla::tags::with: the pass late_one runs after .*fused.*which is no stage
// error: xla::tags::with: a pass is called .*fuse.*: give it a name of its own
// error: xla: the pass rows_alone: %2 is replaced by %0 of another element type or other sizes
// error: xla: the pass wide: exp takes 1 input, not 2
// error: xla: the pass leaks: %.* is replaced by %.*, which each step of a loop makes, and which would be used outside of it
// error: xla: the pass needs_product: there is no product
// error: xla::Graph::add: a pass adds elementwise ops, reductions and op::matmul
// error: xla::Graph::add<Op, T, In>: from In the op makes other elements than T
#include <xla/loop.hpp>
#include <xla/passes.hpp>
#include <xla/xla.hpp>

#include <cstdio>

namespace op = xla::op;
using Tensor = xla::Tensor<float, 2>;
constexpr auto step = [](auto& x) { return xla::sum(-x, {1}); };

struct Nameless {
  constexpr void operator()(xla::Graph&) const {}
};
struct Prints {
  static constexpr auto name = "prints";
  void operator()(xla::Graph&) const { std::puts("a graph"); }
};
struct Late {
  static constexpr auto name = "late_one";
  static constexpr auto after = "fused";
  constexpr void operator()(xla::Graph&) const {}
};
struct Fuse {
  static constexpr auto name = "fuse";
  constexpr void operator()(xla::Graph&) const {}
};
struct Rows {
  static constexpr auto name = "rows_alone";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes())
      if (n.is<op::sum>()) graph.replace(n, n.input(0).input(0));
  }
};
struct Wide {
  static constexpr auto name = "wide";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node n : graph.nodes())
      if (n.is<op::neg>()) graph.add<op::exp, float>({n, n});
  }
};
struct Leaks {
  static constexpr auto name = "leaks";
  constexpr void operator()(xla::Graph& graph) const {
    xla::Node step, after;
    for (xla::Node n : graph.nodes()) {
      if (n.is<op::cos>()) step = n;
      if (n.op() == "last_step") after = n;
    }
    graph.replace(after, step);
  }
};
constexpr auto loops = [](auto& x) {
  return xla::fori_loop(0, x.size(0), [](const auto&, const auto& c) { return xla::cos(c); }, x);
};
struct NeedsProduct {
  static constexpr auto name = "needs_product";
  constexpr void operator()(xla::Graph& graph) const { graph.refuse("there is no product"); }
};

void nameless(Tensor& x) { xla::compile<xla::tags::with<Nameless>>(step)(x); }
void prints(Tensor& x) { xla::compile<xla::tags::with<Prints>>(step)(x); }
void late(Tensor& x) { xla::compile<xla::tags::with<Late>>(step)(x); }
void fuse(Tensor& x) { xla::compile<xla::tags::with<Fuse>>(step)(x); }
void rows(Tensor& x) { xla::compile<xla::tags::with<Rows>>(step)(x); }
void wide(Tensor& x) { xla::compile<xla::tags::with<Wide>>(step)(x); }
void leaks(Tensor& x) { xla::compile<xla::tags::with<Leaks>>(loops)(x); }
void observed(Tensor& x) { xla::observe<NeedsProduct>(xla::compile(step), x); }
void sorts(xla::Graph& graph, xla::Node n) { graph.add<op::cumsum, float>({n}); }
void compares(xla::Graph& graph, xla::Node n) { graph.add<op::lt, float>({n, n}); }
