// error: nonzero\(\) makes a tensor whose size only the elements tell: in a compiled body keep all of them and choose with xla::where, or pad to a fixed size .nonzero_in_compiled.cpp:5.
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return nonzero(v); });
  g(x);
}
