// error: backward\(\) needs a loss of float or double
#include <xla/xla.hpp>

void f(xla::Tensor<xla::bfloat16, 0> loss) { loss.backward(); }
