// error: xla::while_loop: the body must return a carry of the type that it is given: the same tensors, of the same ranks and element types
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  xla::while_loop([](const auto& c) { return xla::sum(c) < 9; },
                  [](const auto& c) { return std::tuple(c); }, x);
}
