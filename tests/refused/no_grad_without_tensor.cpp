// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: in a compiled body name what it uses
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return xla::no_grad([&] { return v * 2; }); });
  g(x);
}
