// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: a compiled body is one graph already: call sync\(\) after it
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    auto y = v * 2;
    xla::sync();
    return y;
  });
  g(x);
}
