// error: only tensors of float or double can collect gradients
#include <xla/xla.hpp>

void f(xla::Tensor<std::int64_t, 1> x) { x.requires_grad_(); }
