// error: xla::argmax and argmin: need at least one axis; flatten\(x\) makes one
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 0> x) { return argmax(x); }
