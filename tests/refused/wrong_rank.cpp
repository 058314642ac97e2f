// error: xla::permute: give one axis for every axis of x
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 3> x) { return permute(x, {1, 0}); }
