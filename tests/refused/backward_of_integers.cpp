// error: backward\(\) needs a loss of float or double
#include <xla/xla.hpp>

void f(xla::Tensor<int, 0> x) { x.backward(); }
