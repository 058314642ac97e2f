// error: xla: nothing is written by assigning to a part of a const tensor, or to a result that has no name
#include <xla/xla.hpp>

void f(const xla::Tensor<float, 2>& t, const xla::Tensor<float, 1>& v) { t[0] = v; }
