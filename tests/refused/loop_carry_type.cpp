// error: xla: a tensor of float with 0 axes was given where float with 1 axis is taken
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void f(xla::Tensor<float, 2> xs) {
  xla::scan([](auto& c, auto& x) { return std::pair(sum(c), x); }, xla::zeros<float>({2}), xs);
}
