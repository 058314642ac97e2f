// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pooling of images with channels second: transposes some planes at a time, so that vectors hold
// channels. pooling.hpp and pooling_gradient.hpp use it if it pays.

#include <algorithm>
#include <type_traits>

#include "xla/kernel/convolution/windows.hpp"
#include "xla/kernel/memory/transposed_copy.hpp"
#include "xla/kernel/simd/lane.hpp"
#include "xla/op/pooling.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

/// Calls f(position, how many packets, lanes) for packets that make up n elements, up to four at a
/// time.
template <class T, class F>
XLA_INLINE void in_packets(std::int64_t n, F f) {
  constexpr int w = kernel::lanes<T>;
  std::int64_t k = 0;
  for (; k + 4 * w <= n; k += 4 * w) f(k, std::integral_constant<int, 4>{}, kernel::all_lanes{});
  for (; k + w <= n; k += w) f(k, std::integral_constant<int, 1>{}, kernel::all_lanes{});
  if constexpr (w > 1)
    if (k < n) f(k, std::integral_constant<int, 1>{}, n - k);
}

/// Pooling of images stored plane by plane: transposes some planes at a time to make channels
/// innermost, and runs the kernel for these.
template <class T>
class transposed_planes {
 public:
  /// The smallest number of planes worth transposing.
  static constexpr std::int64_t least = 4;

  transposed_planes(const kernel_call& call, op::pooling::attributes a, int inputs)
      : call_(call), last_(a.channels_last), inputs_(inputs) {
    a.channels_last = true;
    call_.attr = pack_fields(a);
  }
  static bool pays(const kernel::window_grid& g) {
    return kernel::is_vector<T> && g.inner == 1 && g.planes >= least;
  }

  /// Calls f with a call for each of the parts.
  template <class F>
  void run(F f) const {
    constexpr std::int64_t together = kernel::lanes<T>;
    const shape& out = *call_.out_shape;
    const std::int64_t planes = last_ ? out[0] : out[0] * out[1];
    const std::int64_t strips = (planes + together - 1) / together;
    kernel::for_ranges(strips, elements() * together, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        strip(i * together, std::min(together, planes - i * together), f);
    });
  }

 private:
  static constexpr int most = 2;
  std::int64_t of_plane(const shape& s) const { return last_ ? s[1] * s[2] : s[2] * s[3]; }
  shape transposed(const shape& s, std::int64_t planes) const {
    return {4, {1, s[last_ ? 1 : 2], s[last_ ? 2 : 3], planes}};
  }
  std::int64_t elements() const {
    std::int64_t n = of_plane(*call_.out_shape);
    for (int k = 0; k < inputs_; ++k) n += of_plane(call_.in_shapes[k]);
    return n;
  }
  template <class F>
  void strip(std::int64_t plane, std::int64_t planes, F f) const {
    working_memory memory;
    T* to = static_cast<T*>(memory.take(static_cast<std::size_t>(elements() * planes) * sizeof(T)));
    const void* in[most];
    shape in_shapes[most];
    for (int k = 0; k < inputs_; ++k) {
      const std::int64_t n = of_plane(call_.in_shapes[k]);
      kernel::transpose_matrices(static_cast<const T*>(call_.in[k]) + plane * n, 1, planes, n, to);
      in[k] = to;
      in_shapes[k] = transposed(call_.in_shapes[k], planes);
      to += n * planes;
    }
    const shape out_shape = transposed(*call_.out_shape, planes);
    kernel_call part = call_;
    part.in = in;
    part.in_shapes = in_shapes;
    part.out = to;
    part.out_shape = &out_shape;
    f(part);
    const std::int64_t n = of_plane(*call_.out_shape);
    kernel::transpose_matrices(static_cast<const T*>(to), 1, n, planes,
                               static_cast<T*>(call_.out) + plane * n);
  }

  kernel_call call_;
  bool last_;
  int inputs_;
};

}  // namespace xla::detail
