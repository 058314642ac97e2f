// error: pow: integers to a negative power are fractions; write xla::pow\(xla::cast<float>\(x\), exponent\)
#include <xla/xla.hpp>

auto inverse = xla::compile([](auto& x) { return pow(x, -1); });
auto f(xla::Tensor<std::uint8_t, 1> x) { return inverse(x); }
