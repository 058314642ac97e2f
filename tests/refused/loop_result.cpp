// error: xla::scan: arguments and results must be tensors, or tuples or arrays of them
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void f(xla::Tensor<float, 2> xs) {
  xla::scan([](const auto& c, const auto&) { return std::pair(c, 1); }, xla::zeros<float>({2}), xs);
}
