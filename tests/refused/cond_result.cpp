// error: xla::cond: what goes in and comes out is a tensor, or a tuple or array of them
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  xla::cond(xla::sum(x) > 0, [&] { return 1; }, [&] { return 2; });
}
