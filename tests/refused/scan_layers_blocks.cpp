// error: xla::scan_layers: the blocks must be a std::array, an nn::ModuleArray or an nn::Sequential of modules of one type
#include <xla/loop/scan_layers.hpp>
#include <xla/xla.hpp>

void f(xla::nn::Sequential<xla::nn::Linear, xla::nn::ReLU> blocks, xla::Tensor<float, 2> x) {
  xla::scan_layers(blocks, x);
}
