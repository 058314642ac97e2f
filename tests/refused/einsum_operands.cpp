// error: xla::einsum: takes one to three tensors, and as many in the text
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2> a) { return xla::einsum<"ij,jk->ik">(a); }
