// error: next to a tensor of bool a number is 0 or 1; convert the tensor first: xla::cast<std::int64_t>\(x\)
#include <xla/xla.hpp>

auto f(xla::Tensor<float, 1> x) {
  auto compiled = xla::compile([](auto x) { return (x > 0) == 2; });
  return compiled(x);
}
