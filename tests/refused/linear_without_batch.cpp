// error: xla::linear: needs a batch, \(…, in\); add an axis with unsqueeze\(x, 0\)
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> x, xla::Tensor<float, 2> w) { return linear(x, w); }
