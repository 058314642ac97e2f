// error: xla::flatten<First, Last>: no such axis
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2> x) { return xla::flatten<2>(x); }
