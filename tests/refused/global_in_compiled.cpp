// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: calls
#include <xla/xla.hpp>

int calls = 0;

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    ++calls;
    return v * 2;
  });
  g(x);
}
