// error: a.compiled.body.is.constexpr
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
