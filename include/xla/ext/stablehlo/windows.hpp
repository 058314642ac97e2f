// SPDX-License-Identifier: Apache-2.0
#pragma once

// The elements of windows in StableHLO, for pooling and unfold. Convolutions have an op of their
// own there.

#include <algorithm>

#include "xla/ext/stablehlo/gather_scatter.hpp"
#include "xla/kernel/convolution/windows.hpp"

namespace xla::detail::hlo {

/// Takes elements of an axis by a list of indices; an index past the end gives a number of the
/// caller's.
inline value take_or(writer& w, const value& x, int axis, const list<std::int64_t>& indices,
                     const value& otherwise) {
  const int rank = x.type.dims.rank;
  const extent size = x.type.dims[axis];
  value from = x;
  if (std::find(indices.begin(), indices.end(), size) != indices.end()) {
    const shape none = filled(rank, 0);
    from = w.pad(x, otherwise, none, with_size(none, axis, 1), none);
  }
  return take(w, from, axis, table(w, indices, element::i64));
}
/// The transpose of take_or(): adds the elements up at their indices along an axis of a given size.
inline value add_at(writer& w, const value& x, int axis, const list<std::int64_t>& indices,
                    extent size) {
  const tensor_type out{x.type.of, with_size(x.type.dims, axis, size)};
  return put(w, zeros(w, out), axis, table(w, indices, element::i64), x, putting::adds);
}

/// How the windows of a pool cover images (batch, channels, height, width). Adaptive windows of
/// different sizes are laid out first: each gets its own elements, as many as the largest has.
class pool_windows {
 public:
  pool_windows(const shape& images, const shape& pools, const op::pooling::attributes& a)
      : axes_{{images, pools, a, 0}, {images, pools, a, 1}} {
    for (int i = 0; i < 2; ++i) {
      const extent n = images[2 + i], m = pools[2 + i];
      const kernel::window_axis& x = axes_[i];
      for (extent k = 0; k < m; ++k) sizes_[i].push_back(x.at(k).size);
      if (!x.adaptive) along_[i] = {x.kernel, x.stride, x.padding, x.dilation};
      else if (n % m == 0) along_[i] = {n / m, n / m, 0, 1};
      else lay_out(i);
    }
  }

  extent kernel(int i) const { return along_[i].kernel; }
  extent stride(int i) const { return along_[i].stride; }
  extent padding(int i) const { return along_[i].padding; }
  extent dilation(int i) const { return along_[i].dilation; }
  extent reach(int i) const { return (kernel(i) - 1) * dilation(i) + 1; }
  /// Whether windows are side by side with nothing around or between them.
  bool tiles(int i) const { return stride(i) == kernel(i) && padding(i) == 0 && dilation(i) == 1; }

  /// The images as the windows cover them.
  value laid_out(writer& w, value x, const value& otherwise) const {
    for (int i = 0; i < 2; ++i)
      if (!indices_[i].empty()) x = take_or(w, x, 2 + i, indices_[i], otherwise);
    return x;
  }
  /// And back, as a sum.
  value put_back(writer& w, value x) const {
    for (int i = 0; i < 2; ++i)
      if (!indices_[i].empty()) x = add_at(w, x, 2 + i, indices_[i], axes_[i].image);
    return x;
  }
  /// The size of an axis after laying out.
  extent image(int i) const {
    return indices_[i].empty() ? axes_[i].image : extent{indices_[i].size()};
  }

  /// The divisor of each window's sum: per window, or one number if all are equal.
  value sizes(writer& w, const tensor_type& out) const {
    value by[2];
    for (int i = 0; i < 2; ++i) {
      const list<std::int64_t>& s = sizes_[i];
      const bool alike = std::all_of(s.begin(), s.end(), [&](auto n) { return n == s[0]; });
      if (alike) by[i] = w.constant(s.empty() ? 1 : s[0], out.of, out.dims);
      else by[i] = w.broadcast(table(w, s, out.of), out.dims, one_axis(2 + i));
    }
    return w.map("multiply", by[0], by[1]);
  }

  /// The attributes of a reduce_window over images that are laid out.
  std::string attributes() const {
    shape window = filled(4, 1), step = window, dilations = window;
    std::string around = ", padding = dense<[[0, 0], [0, 0]";
    for (int i = 0; i < 2; ++i) {
      window[2 + i] = kernel(i);
      step[2 + i] = stride(i);
      dilations[2 + i] = dilation(i);
      const extent windows = axes_[i].windows;
      const extent after = (windows - 1) * stride(i) + reach(i) - image(i) - padding(i);
      around += ", [" + std::to_string(padding(i)) + ", " +
                std::to_string(std::max<extent>(after, 0)) + ']';
    }
    return numbers("window_dimensions", window) + ", " + numbers("window_strides", step) + ", " +
           numbers("window_dilations", dilations) + around + "]> : tensor<4x2xi64>";
  }

 private:
  struct regular {
    extent kernel, stride, padding, dilation;
  };
  void lay_out(int i) {
    const kernel::window_axis& x = axes_[i];
    extent most = 0;
    for (extent k = 0; k < x.windows; ++k) most = std::max<extent>(most, x.at(k).count);
    for (extent k = 0; k < x.windows; ++k) {
      const kernel::window of = x.at(k);
      for (extent e = 0; e < most; ++e)
        indices_[i].push_back(e < of.count ? of.first + e : x.image);
    }
    along_[i] = {most, most, 0, 1};
  }

  kernel::window_axis axes_[2];
  regular along_[2] = {};
  list<std::int64_t> indices_[2];  ///< of axes that have to be laid out
  list<std::int64_t> sizes_[2];
};

}  // namespace xla::detail::hlo
