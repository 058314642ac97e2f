// error: a size that is known only at run time was used as a number
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  auto g = xla::compile([](auto& v) {
    auto sum = v;
    for (int i = 0; i < v.size(0); ++i) sum += v;
    return sum;
  });
  g(x);
}
