// error: masked_select\(\) makes a tensor whose size only the elements tell: in a compiled body keep all of them and choose with xla::where, or pad to a fixed size
// error: masked_select\(\) makes a tensor whose size only the elements tell: in a compiled body keep all of them and choose with xla::where, or pad to a fixed size
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return sum(masked_select(v, v > 0)); });
  g(x);
  xla::compile([](auto& v) { return v[v > 0]; })(x);
}
