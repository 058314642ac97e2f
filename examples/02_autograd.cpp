// SPDX-License-Identifier: Apache-2.0
// 2. Autograd: tensors know their gradients.
#include <iostream>
#include <tuple>

#include <xla/xla.hpp>

int main() {
  xla::eager_mode(true);

  // A tensor that asks for it collects gradients; backward() of one number fills them in.
  auto x = xla::tensor<float>({1, 2, 3});
  x.requires_grad_();
  auto loss = xla::sum(x * x);
  loss.backward();
  std::cout << x.grad() << '\n';
  //> tensor([2, 4, 6], device='xla:0')

  // Gradients add up until they are dropped, as in PyTorch.
  xla::sum(x * 10).backward();
  std::cout << x.grad() << '\n';
  //> tensor([12, 14, 16], device='xla:0')
  x.zero_grad();
  std::cout << std::boolalpha << x.grad().defined() << '\n';
  //> false

  // detach() is a snapshot without a way back; no_grad() records nothing.
  auto fixed = x.detach();
  auto quiet = xla::no_grad([&] { return x * 2; });
  std::cout << fixed.requires_grad() << ' ' << quiet.requires_grad() << '\n';
  //> false false

  // xla::grad() gives gradients back instead of collecting them, also those of gradients.
  auto cube = xla::grad(xla::sum(x * x * x), x, {.create_graph = true});
  std::cout << cube << ' ' << xla::grad(xla::sum(cube), x) << '\n';
  //> tensor([3, 12, 27], device='xla:0') tensor([6, 12, 18], device='xla:0')

  // Gradients pass through broadcasts, reductions and products: a line through points, by hand.
  auto points = xla::tensor<float>({{-1}, {0}, {1}, {2}});
  auto heights = points * 3 - 0.5;
  auto slope = xla::zeros<float>({1, 1}), offset = xla::zeros<float>({1, 1});
  slope.requires_grad_();
  offset.requires_grad_();
  for (int i = 0; i < 200; ++i) {
    auto difference = xla::matmul(points, slope) + offset - heights;
    xla::mean(difference * difference).backward();
    for (auto* p : {&slope, &offset}) {
      auto gradient = p->grad();
      p->zero_grad();
      xla::no_grad([&] { *p -= gradient * 0.1; });  // in place: p stays the one that collects
    }
  }
  std::cout.precision(3);
  std::cout << "slope " << slope.item() << ", offset " << offset.item() << '\n';
  //> slope 3, offset -0.5

  // What has no gradient says so.
  try {
    xla::sum(xla::ones<float>({2})).backward();
  } catch (const xla::error& e) {
    std::cout << e.what() << '\n';
    //> backward: nothing that this value was computed from requires a gradient
  }
}
