// error: xla::autocast: give a module that lives longer than the result
// error: xla::autocast: give a function object
#include <xla/xla.hpp>

int step(int x) { return x; }

void f() {
  auto g = xla::autocast(xla::nn::Linear(2, 2));
  xla::autocast(step);
}
