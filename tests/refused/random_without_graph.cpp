// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: compiled bodies make random numbers from a tensor: rand_like\(x\)
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) { return v + xla::rand<float>({3}); });
  g(x);
}
