// error: a tensor has at most 6 axes
#include <xla/xla.hpp>

xla::Tensor<float, 7> x;
