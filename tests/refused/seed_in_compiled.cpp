// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: a compiled body has no generator: call manual_seed\(\) outside
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    xla::manual_seed(1);
    return rand_like(v);
  });
  g(x);
}
