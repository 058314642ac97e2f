// error: a fraction beside a tensor of integers would be cut off; convert the tensor first: xla::cast<float>\(x\)
#include <xla/xla.hpp>

auto f(xla::Tensor<int, 2> a) { return a * 0.5; }
