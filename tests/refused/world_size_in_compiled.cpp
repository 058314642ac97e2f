// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: a compiled body serves every world: world_size\(x\) is its Size
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return v * xla::world_size(); });
  g(x);
}
