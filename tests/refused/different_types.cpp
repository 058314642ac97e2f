// error: the element types of the tensors, .+ and .+, differ; convert one: xla::cast<.+>\(x\)
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> x, xla::Tensor<double, 1> y) { return x + y; }
