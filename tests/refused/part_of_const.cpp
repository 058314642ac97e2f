// error: xla: assigning to a part of a const tensor, or of an unnamed result, has no effect
#include <xla/xla.hpp>

void f(const xla::Tensor<float, 2>& t, const xla::Tensor<float, 1>& v) { t[0] = v; }
