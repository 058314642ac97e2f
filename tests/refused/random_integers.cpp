// error: random numbers are float, double or bfloat16
#include <xla/xla.hpp>

auto f() { return xla::randn<int>({3}); }
