// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: a compiled body has no eager mode: call eager_mode\(\) outside
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    xla::eager_mode(true);
    return v + 1;
  });
  g(x);
}
