// error: xla::squeeze<Axis>: no such axis
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> a) { return xla::squeeze<1>(a); }
