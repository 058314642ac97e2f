// error: xla::einsum: an operand has another number of letters than its tensor has axes
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 3> a, xla::Tensor<float, 2> b) { return xla::einsum<"ij,jk->ik">(a, b); }
