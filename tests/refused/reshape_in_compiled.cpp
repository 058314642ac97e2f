// error: reshape: cannot view \(4, 5\) as \(3, 7\): the numbers of elements differ \(reshape_in_compiled.cpp:10\)
#include <xla/xla.hpp>

struct One {
  xla::Parameter<float, 2> w{{4, 5}};
  XLA_MODULE(w)
};

void f(One& one) {
  auto g = xla::compile([](auto& m) { return reshape(m.w, {3, 7}); });
  g(one);
}
