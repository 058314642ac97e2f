// error: xla::matmul: needs numbers, not bool; cast first
#include <xla/xla.hpp>

auto f(xla::Tensor<bool, 2> a, xla::Tensor<bool, 2> b) { return matmul(a, b); }
