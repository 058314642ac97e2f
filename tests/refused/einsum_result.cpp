// error: xla::einsum: a letter of the result is repeated, or is in no operand
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2> a) { return xla::einsum<"ij->il">(a); }
