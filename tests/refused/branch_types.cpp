// error: xla::cond: both branches must return the same: tensors of the same element types and numbers of axes, in the same tuples and arrays
// error: xla::while_loop: the condition must return one bool: a tensor of bool without axes
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void types(xla::Tensor<float, 1> x) {
  xla::cond(xla::sum(x) > 0, [&] { return x; }, [&] { return xla::sum(x); });
}

void condition(xla::Tensor<float, 1> x) {
  xla::while_loop([](const auto& c) { return c; }, [](const auto& c) { return c * 2; }, x);
}
