// error: xla::scan_layers: per_layer\(\) must have one element for each block
#include <array>
#include <xla/loop/scan_layers.hpp>
#include <xla/xla.hpp>

struct Block {
  xla::nn::Linear linear{4, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x, const xla::Tensor<float, 0>& by) const {
    return linear(x) * by;
  }
  XLA_MODULE(linear)
};
void f(const std::array<Block, 2>& blocks, xla::Tensor<float, 2> x) {
  const std::array<xla::Tensor<float, 0>, 3> rates;
  xla::scan_layers(blocks, x, xla::per_layer(rates));
}
