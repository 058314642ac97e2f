// error: item\(\) \(or a tensor used as a condition\) reads a value that exists only at run time: return the tensor and read it outside, or choose with xla::where .item_in_compiled.cpp:5.
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return v * sum(v).item(); });
  g(x);
}
