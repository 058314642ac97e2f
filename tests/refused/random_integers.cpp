// error: random numbers are float or double
#include <xla/xla.hpp>

auto f() { return xla::randn<int>({3}); }
