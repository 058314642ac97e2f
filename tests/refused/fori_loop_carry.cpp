// error: xla::fori_loop: a carry holds something that is not a tensor. keep numbers outside, or as tensors
#include <xla/loop.hpp>
#include <xla/xla.hpp>

void f(xla::Tensor<float, 1> x) {
  xla::fori_loop(0, 3, [](const auto&, const auto& c) { return c; }, std::tuple(x, 2));
}
