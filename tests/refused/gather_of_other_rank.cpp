// error: xla::gather: x and index need the same number of axes; see take_along_dim
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 2> a, xla::Tensor<std::int64_t, 1> i) { return xla::gather(a, 0, i); }
