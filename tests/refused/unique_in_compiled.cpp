// error: unique\(\) makes a tensor whose size only the elements tell: in a compiled body keep all of them and choose with xla::where, or pad to a fixed size .unique_in_compiled.cpp:5.
#include <xla/functions.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return unique(v); });
  g(x);
}
