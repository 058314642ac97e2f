// error: xla::sqrt: needs float or double; cast first
#include <xla/xla.hpp>

auto f(xla::Tensor<int, 2> a) { return sqrt(a); }
