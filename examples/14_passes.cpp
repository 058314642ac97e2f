// SPDX-License-Identifier: Apache-2.0
// 14. Passes of your own: a census of the ops of a training step, and a rewrite, in both modes that
// have graphs.
#include <array>
#include <functional>
#include <iostream>
#include <string_view>

#include <xla/passes.hpp>
#include <xla/xla.hpp>

namespace nn = xla::nn;

struct Mlp {
  nn::Linear fc1{8, 16}, fc2{16, 3};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

constexpr auto step_fn = [](auto& model, auto& data, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(data);
  auto loss = xla::cross_entropy(logits + logits, target);
  loss.backward();
  optimizer.step();
  return loss;
};

// How often each op occurs in a graph. A compiled function gives its graph to a pass in the
// compiler, so the class is constexpr and prints nothing: what it finds stays in its members.
struct Census {
  static constexpr auto name = "census";
  static constexpr auto after = "dead";  // where what is left is what runs

  struct Entry {
    std::string_view op;
    int count = 0;
  };
  std::array<Entry, 64> entries{};

  constexpr void operator()(xla::Graph& graph) {
    entries = {};
    for (xla::Node node : graph.nodes())
      if (!node.inputs().empty() && !note(node.op())) graph.refuse("there are more than 64 ops");
  }
  constexpr bool note(std::string_view op) {
    for (Entry& e : entries) {
      if (e.count > 0 && e.op != op) continue;
      e = {op, e.count + 1};
      return true;
    }
    return false;
  }
  constexpr int count(std::string_view op) const {
    for (const Entry& e : entries)
      if (e.op == op) return e.count;
    return 0;
  }
  void print(const char* mode) const {
    std::cout << mode << ':';
    for (const Entry& e : entries)
      if (e.count > 0) std::cout << ' ' << e.op << ' ' << e.count;
    std::cout << '\n';
  }
};

// x + x as x * 2, which has the same bits.
struct Twice {
  static constexpr auto name = "twice";
  constexpr void operator()(xla::Graph& graph) const {
    for (xla::Node node : graph.nodes()) {
      if (!node.is<xla::op::add>() || node.type() != xla::dtype::float32) continue;
      if (node.input(0) != node.input(1)) continue;
      const xla::Node two = graph.constant(2.f);
      graph.replace(node, graph.add<xla::op::mul, float>({node.input(0), two}));
    }
  }
};

// One step from the same start; its loss.
float run(auto&& step) {
  xla::manual_seed(1);
  Mlp model;
  xla::optim::SGD optimizer{model, {.lr = 0.1}};
  auto data = xla::randn<float>({4, 8});
  auto target = xla::randint(0, 3, {4});
  xla::sync();  // so that a traced step is a graph of its own
  return step(model, data, target, optimizer).item();
}

int main() {
  // Compiled: passes are template arguments. What one finds is a value that the compiler has made.
  xla::eager_mode(true);
  auto step = xla::compile(step_fn);
  auto twice = xla::compile<xla::tags::with<Twice>>(step_fn);
  Census before, after;
  const float plain = run(step), same = run([&](auto&... arguments) {
    before = xla::observe<Census>(step, arguments...);
    after = xla::observe<Census>(twice, arguments...);
    return twice(arguments...);
  });
  before.print("compiled");
  //> matmul 6 add
  std::cout << "with the pass twice: add " << before.count("add") << " -> " << after.count("add")
            << ", the same loss: " << (same == plain ? "yes" : "no") << '\n';
  //> add 16 -> 14, the same loss: yes

  // Traced: any function can be registered, and runs where a graph is made.
  xla::eager_mode(false);
  Census traced;
  const auto counts = xla::register_pass("census", std::ref(traced), "dead");
  run(step_fn);
  traced.print("traced");
  //> matmul 5 add
  const auto rewrites = xla::register_pass(Twice{});
  std::cout << "with the pass twice: the same loss: "
            << (run(step_fn) == plain ? "yes" : "no") << '\n';
  //> the same loss: yes
}
