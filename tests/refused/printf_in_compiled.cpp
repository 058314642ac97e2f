// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: printf
#include <cstdio>

#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    std::printf("here");
    return v * 2;
  });
  g(x);
}
