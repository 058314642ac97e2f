// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: over twelve ops on constants only: start from zeros_like\(x\)
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    auto c = xla::ones<float>({3});
    for (int i = 0; i < 16; ++i) c = exp(c);
    return v + c;
  });
  g(x);
}
