// error: xla: a part that has a name is a value of its own: to write into the tensor, assign in the same expression: t.i. = value
#include <xla/xla.hpp>

void f(xla::Tensor<float, 2> t) {
  auto row = t[0];
  row = 1.f;
}
