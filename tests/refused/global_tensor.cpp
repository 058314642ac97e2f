// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: weights
#include <xla/xla.hpp>

xla::Tensor<float, 1> weights;

void f(xla::Tensor<float, 2> x) {
  xla::compile([](auto& v) { return v * weights; })(x);
}
