// error: index\(\) names more axes than the tensor has
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> a) { return a.index(0, xla::Slice()); }
