// error: xla::grad: a tuple that owns a parameter holds a copy of it; write std::tie\(a, b\)
#include <xla/xla.hpp>

void f(xla::Parameter<float, 1> p) { grad(sum(p * p), std::tuple(p)); }
