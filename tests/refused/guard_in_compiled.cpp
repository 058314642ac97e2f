// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: a compiled body has no eager mode: put the guard outside
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    const xla::eager_mode_guard eager;
    return v + 1;
  });
  g(x);
}
