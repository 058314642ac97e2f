// error: xla::cond: arguments and results must be tensors, or tuples or arrays of them
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  xla::cond(xla::sum(x) > 0, [&] { return 1; }, [&] { return 2; });
}
