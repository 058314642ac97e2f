// error: xla::expand: the result has fewer axes than x
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2> x) { return expand(x, {3}); }
