// SPDX-License-Identifier: Apache-2.0
// 9. Ops of your own: an elementwise op, and a function with its own gradient. Both run eagerly,
// traced and compiled.
#include <iostream>
#include <tuple>

#include <xla/xla.hpp>

// An elementwise op is a name, an expression and a gradient. The expression serves single elements
// and packets of them, so the op is fused with those around it; the gradient is written with
// tensors. Without one, none flows.
struct swish : xla::op::map {
  static constexpr auto name = "my_swish";
  static constexpr auto kernel(auto x) { return x / (x.like(1) + (-x).exp()); }
  static constexpr void gradient(auto& g) {
    const auto s = xla::sigmoid(g.in(0));
    g.to(0, g.grad() * (s + g.out() * (1 - s)));
  }
};
XLA_ELEMENTWISE_OP(swish);

// What torch.autograd.Function is for: forward returns what is computed, and saves what backward
// needs; backward returns a gradient for each input. This one rounds, and passes gradients on as
// if it had not.
constexpr auto quantize = xla::custom_gradient([](const auto& x) { return xla::round(x * 4) / 4; },
                                               [](const auto&, const auto& g) { return g; });

// Several tensors in, several out, one of them labels, which have no gradient. Softmax and its
// cross entropy share the exponentials; the gradient is short where it is written by hand.
constexpr auto classify = xla::custom_gradient(
    [](const auto& scores, const auto& labels) {
      const auto p = xla::softmax(scores, 1);
      const auto chosen = xla::gather(p, 1, xla::unsqueeze(labels, 1));
      return xla::save_for_backward(std::tuple(xla::mean(-xla::log(chosen)), p), p, labels);
    },
    [](const auto& saved, const auto& g_loss, const auto&) {  // that of p: it is only looked at
      const auto& [p, labels] = saved;
      const auto hit = xla::cast<float>(xla::one_hot(labels, p.size(1)));
      return std::tuple((p - hit) * (g_loss / p.size(0)), nullptr);
    });

constexpr auto step_fn = [](auto& weight, auto& x, auto& labels) {
  weight.zero_grad();
  auto h = xla::elementwise<swish>(quantize(xla::matmul(x, weight)));
  auto [loss, p] = classify(h, labels);
  loss.backward();
  return std::tuple(loss, xla::argmax(p, 1));
};

int main() {
  xla::eager_mode(true);
  auto x = xla::tensor<float>({{1, 2}, {-1, 0.5f}, {0, 1}});
  auto labels = xla::tensor<std::int64_t>({0, 2, 1});
  xla::Parameter<float, 2> weight = xla::tensor<float>({{0.5f, -1, 0.25f}, {1, 0.3f, -0.6f}});

  auto [loss, guess] = step_fn(weight, x, labels);
  std::cout << loss << ' ' << guess << '\n' << weight.grad() << '\n';
  //> tensor(1.03086, device='xla:0') tensor([0, 1, 0], device='xla:0')
  //> tensor([[-0.0872811, -0.189631, 0.0722035],
  //>         [0.0770101, -0.0387229, -0.0144611]], device='xla:0')

  // The same numbers from one program, in which nothing of the two functions is left but their ops.
  auto step = xla::compile(step_fn, {.name = "custom_ops"});
  auto [compiled_loss, compiled_guess] = step(weight, x, labels);
  std::cout << compiled_loss << ' ' << compiled_guess << '\n' << weight.grad() << '\n';
  //> tensor(1.03086, device='xla:0') tensor([0, 1, 0], device='xla:0')
  //> tensor([[-0.0872811, -0.189631, 0.0722035],
  //>         [0.0770101, -0.0387229, -0.0144611]], device='xla:0')

  // Gradients of gradients go through what was saved.
  auto y = xla::tensor<float>({1, 2});
  y.requires_grad_();
  auto slope = xla::grad(xla::sum(xla::elementwise<swish>(y)), y, {.create_graph = true});
  std::cout << slope << ' ' << xla::grad(xla::sum(slope), y) << '\n';
  //> tensor([0.927671, 1.09078], device='xla:0') tensor([0.302366, 0.0500622], device='xla:0')
}
