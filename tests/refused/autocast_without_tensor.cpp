// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: in a compiled body name what it uses
#include <xla/xla.hpp>

void f(xla::Tensor<float, 2> x) {
  auto g = xla::compile([](auto& v) { return xla::autocast([&] { return matmul(v, v); })(); });
  g(x);
}
