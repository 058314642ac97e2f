// error: xla::matmul: needs a matrix; for two vectors write sum\(a \* b\)
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> a, xla::Tensor<float, 1> b) { return matmul(a, b); }
