// error: a number does not fit into a tensor of std::uint8_t; take a wider type: xla::cast<std::int64_t>\(x\)
#include <xla/xla.hpp>

auto f(xla::Tensor<std::uint8_t, 1> x) {
  auto compiled = xla::compile([](auto& x) { return where(x > 2, x, 300); });
  return compiled(x);
}
