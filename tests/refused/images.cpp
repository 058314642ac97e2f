// Pools and what makes images, of what they are not for, and where sizes are known to the compiler.
// error: max_pool2d: no window fits along the height: \(3 \+ 2 \* 0 - 1 \* \(5 - 1\) - 1\) / 5 \+ 1 is below 1
// error: avg_pool2d: a padding of 2 along the width is more than half of a kernel of 3
// error: adaptive_avg_pool2d: a size of 0 was asked for; it has to be at least 1
// error: interpolate: give either a size or a scale_factor
// error: interpolate: a size that is known only at run time takes a scale_factor in halves, quarters
// error: pad: \{0, 3\} for axis 3 of \(\?, 2, 3, 3\) needs 4 elements there
// error: pixel_shuffle: channels of 2 do not divide by 4
// error: unfold: no window fits along the width: \(3 \+ 2 \* 0 - 2 \* \(3 - 1\) - 1\) / 1 \+ 1
// error: xla::max_pool2d: needs \(batch, channels, height, width\), or that without a batch
// error: xla::avg_pool1d: needs \(batch, channels, length\), or that without a batch
// error: xla::avg_pool2d: needs float or double; cast first
// error: xla::interpolate: needs \(batch, channels, height, width\) or \(batch, channels, length\)
// error: xla::unfold: needs numbers, not bool; cast first
#include <xla/xla.hpp>

using Images = xla::Tensor<float, 4>;

constexpr auto small(const Images& x) { return reshape(x, {-1, 2, 3, 3}); }

void window(Images& x) {
  xla::compile([](auto& x) { return max_pool2d(small(x), 5); })(x);
}
void padding(Images& x) {
  xla::compile([](auto& x) { return avg_pool2d(small(x), 3, {.padding = {1, 2}}); })(x);
}
void nothing(Images& x) {
  xla::compile([](auto& x) { return adaptive_avg_pool2d(x, {2, 0}); })(x);
}
void both(Images& x) {
  xla::compile([](auto& x) { return interpolate(x, {.size = 2, .scale_factor = 2}); })(x);
}
void third(Images& x) {
  xla::compile([](auto& x) { return interpolate(x, {.scale_factor = 0.3}); })(x);
}
void mirror(Images& x) {
  xla::compile([](auto& x) {
    return pad(small(x), {{0, 0}, {0, 0}, {0, 0}, {0, 3}}, xla::PadMode::reflect);
  })(x);
}
void shuffle(Images& x) {
  xla::compile([](auto& x) { return pixel_shuffle(small(x), 2); })(x);
}
void windows(Images& x) {
  xla::compile([](auto& x) { return unfold(small(x), 3, {.dilation = {1, 2}}); })(x);
}

void matrix(xla::Tensor<float, 2> x) { max_pool2d(x, 2); }
void images(Images x) { avg_pool1d(x, 2); }
void integers(xla::Tensor<std::int64_t, 4> x) { avg_pool2d(x, 2); }
void vectors(xla::Tensor<float, 2> x) { interpolate(x, {.size = 2}); }
void truths(xla::Tensor<bool, 4> x) { unfold(x, 2); }
