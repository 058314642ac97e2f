// error: .*xla::cast
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> a, xla::Tensor<double, 1> b) { return a + b; }
