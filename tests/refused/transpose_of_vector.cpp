// error: xla::transpose: needs a tensor with two axes or more
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> x) { return transpose(x); }
