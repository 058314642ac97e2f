// error: xla::scan_layers: a block must return x of the type that it is given, or a pair of such an x
#include <array>
#include <xla/loop/scan_layers.hpp>
#include <xla/xla.hpp>

struct Block {
  xla::nn::Linear linear{4, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return std::tuple(linear(x), x, x);
  }
  XLA_MODULE(linear)
};
void f(const std::array<Block, 2>& blocks, xla::Tensor<float, 2> x) {
  xla::scan_layers(blocks, x);
}
