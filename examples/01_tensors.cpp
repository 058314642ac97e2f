// SPDX-License-Identifier: Apache-2.0
// 1. Tensors and eager mode. What a program of this course prints is below the line that prints
// it, after `//>`; the tests compare.
#include <iostream>
#include <vector>

#include <Eigen/Core>
#include <xla/xla.hpp>

int main() {
  // Every op runs at once. The default, traced mode, records ops until xla::sync(): see page 3.
  xla::eager_mode(true);

  // Element type and number of axes are part of the type; sizes are not.
  xla::Tensor<float, 2> a = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  auto b = xla::ones<float>({2, 3});
  std::cout << a + b << '\n';
  //> tensor([[2, 3, 4],
  //>         [5, 6, 7]], device='xla:0')
  std::cout << a.dim() << " axes: " << a.size(0) << " rows, " << a.size(-1) << " columns\n";
  //> 2 axes: 2 rows, 3 columns

  // Shapes broadcast as in PyTorch; numbers may be on either side.
  auto row = xla::tensor<float>({10, 20, 30});
  std::cout << 1 - (a + row) / 2 << '\n';
  //> tensor([[-4.5, -10, -15.5],
  //>         [-6, -11.5, -17]], device='xla:0')

  // Reductions say which axes they take; the rank of the result follows from that.
  xla::Tensor<float, 1> sums = xla::sum(a, {1});
  xla::Tensor<float, 2> means = xla::mean(a, {0}, xla::keepdim);
  std::cout << sums << ' ' << means << '\n';
  //> tensor([6, 15], device='xla:0') tensor([[2.5, 3.5, 4.5]], device='xla:0')
  std::cout << xla::matmul(a, xla::transpose(a)) << '\n';
  //> tensor([[14, 32],
  //>         [32, 77]], device='xla:0')
  std::cout << xla::flatten(a) << ' ' << xla::reshape(a, {3, -1}).size(1) << '\n';
  //> tensor([1, 2, 3, 4, 5, 6], device='xla:0') 2
  std::cout << xla::where(a > 3, a, 0) << '\n';
  //> tensor([[0, 0, 0],
  //>         [4, 5, 6]], device='xla:0')

  // Tensors are values: a copy shares its elements until one of the two is written.
  auto old = a;
  a += b;
  a[0][0] = -1;
  std::cout << old[0] << ' ' << a[0] << '\n';
  //> tensor([1, 2, 3], device='xla:0') tensor([-1, 3, 4], device='xla:0')

  // In from memory, out as a number, a vector or an Eigen matrix.
  const std::vector<double> memory{1, 2, 3, 4};
  auto c = xla::from_blob(memory.data(), {2, 2});
  std::cout << xla::max(c).item() << ' ' << c.to_vector()[1] << ' ' << xla::as_eigen(c).trace()
            << ' ' << xla::cast<int>(c / 2) << '\n';
  //> 4 2 5 tensor([[0, 1],
  //>         [1, 2]], device='xla:0')

  // The same seed gives the same numbers, in every mode.
  xla::manual_seed(42);
  auto first = xla::randn<float>({1000});
  xla::manual_seed(42);
  auto second = xla::randn<float>({1000});
  std::cout << "different: " << xla::sum(xla::cast<int>(first != second)).item() << '\n';
  //> different: 0

  // A wrong rank or type does not compile; a wrong size throws, and says what is wrong.
  try {
    a + xla::ones<float>({4});
  } catch (const xla::shape_error& e) {
    std::cout << e.what() << '\n';
    //> add: sizes of (2, 3) and (4,) do not broadcast: 3 against 4 at axis 1
  }
}
