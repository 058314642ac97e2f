// error: conv2d: a weight of shape \(8, 16, 3, 3\) with groups 1 takes 16 channels, and the input \(\?, 4, \?, \?\) has 4
// error: conv2d: the kernel is larger than the padded input: dilation 1 \* \(kernel 5 - 1\) \+ 1 = 5, padding 0 \+ size 4
// error: xla::nn::BatchNorm2d: needs \(N, C, H, W\)
// error: xla::nn: a convolution has at least one group
// error: xla::nn: padding = xla::tags::same needs stride 1
#include <xla/xla.hpp>
namespace nn = xla::nn;

struct Channels {
  nn::Conv2d<3> a{3, 4}, b{16, 8};
  constexpr auto operator()(const xla::Tensor<float, 4>& x) const { return b(a(x)); }
  XLA_MODULE(a, b)
};
struct Images {
  nn::Conv2d<5> a{3, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return a(xla::reshape(x, {-1, 3, 4, 4}));
  }
  XLA_MODULE(a)
};

void channels(Channels& net, const xla::Tensor<float, 4>& x) { xla::compile(net)(x); }
void images(Images& net, const xla::Tensor<float, 2>& x) { xla::compile(net)(x); }
auto rows(const xla::Tensor<float, 2>& x) { return nn::BatchNorm2d(3)(x); }
auto groups() { return nn::Conv2d<3, 1, 0, 1, 0>(3, 3); }
auto strides(const xla::Tensor<float, 4>& x) {
  constexpr nn::Conv2dConfig ring{.kernel_size = 3,
                                  .stride = 2,
                                  .padding = xla::tags::same,
                                  .padding_mode = nn::PaddingMode::circular};
  return nn::Conv2d<ring>(3, 3)(x);
}
