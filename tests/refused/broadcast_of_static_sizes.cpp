// error: add: sizes of \(4,\) and \(5,\) do not broadcast: 4 against 5 at axis 0; sizes must be equal or 1
#include <xla/xla.hpp>

struct Pair {
  xla::Parameter<float, 1> a{{4}}, b{{5}};
  XLA_MODULE(a, b)
};

void f(Pair& pair) {
  auto g = xla::compile([](auto& p) { return p.a + p.b; });
  g(pair);
}
