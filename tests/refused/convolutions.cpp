// Convolutions that do not fit, where the compiler knows it.
// error: xla::conv2d and conv_transpose2d: need a batch \(batch, channels, height, width\) and a weight of four axes
// error: xla::conv1d and conv_transpose1d: need a batch \(batch, channels, length\) and a weight of three axes
// error: xla: a convolution needs float, double or bfloat16; cast first
// error: xla: the element types of the tensors, .+ and .+, differ; convert one: xla::cast<.+>\(x\)
// error: xla::conv2d: options are written by name: conv2d\(x, w, b, {.stride = 2, .padding = 1}\)
// error: conv2d: the kernel is larger than the padded input: dilation 1 \* \(kernel 9 - 1\) \+ 1 = 9, padding 1 \+ size 6 \+ padding 1 = 8
// error: conv2d: a weight of shape \(4, 3, 3, 3\) with groups 2 takes 6 channels, and the input \(\?, 4, 6, 6\) has 4
// error: conv2d: stride is 0, and has to be from 1 to 255
// error: conv_transpose2d: output_padding 1 has to be from 0 to below the larger one of stride 1 and dilation 1
#include <xla/xla.hpp>

using Image = xla::Tensor<float, 4>;
using Counts = xla::Tensor<std::int64_t, 4>;

/// Images of 4 channels, 6 by 6, and a weight of (4, In, Kernel, Kernel), as F has them.
template <int In, int Kernel, class F>
struct Net {
  xla::Parameter<float, 4> weight{{4, In, Kernel, Kernel}};
  constexpr auto operator()(xla::Tensor<float, 2> x) const {
    return F{}(reshape(x, {x.size(0), 4, 6, 6}), weight);
  }
  XLA_MODULE(weight)
};
template <int In, int Kernel, class F>
void compile(F) {
  Net<In, Kernel, F> net;
  xla::compile(net)(xla::ones<float>({2, 144}));
}

void without_batch(xla::Tensor<float, 3> x, Image w) { xla::conv2d(x, w); }
void of_images(Image x, xla::Tensor<float, 3> w) { xla::conv1d(x, w); }
void of_integers(Counts x, Counts w) { xla::conv2d(x, w); }
void of_types(Image x, xla::Tensor<double, 4> w) { xla::conv2d(x, w); }
void unnamed(Image x, Image w, xla::Tensor<float, 1> b) { xla::conv2d(x, w, b, 2, 1); }
void large_kernel() {
  compile<4, 9>([](Image x, auto& w) { return xla::conv2d(x, w, {.padding = 1}); });
}
void channels() {
  compile<3, 3>([](Image x, auto& w) { return xla::conv2d(x, w, {.groups = 2}); });
}
void stride() {
  compile<4, 3>([](Image x, auto& w) { return xla::conv2d(x, w, {.stride = 0}); });
}
void output_padding() {
  compile<4, 3>([](Image x, auto& w) { return xla::conv_transpose2d(x, w, {.output_padding = 1}); });
}
