// SPDX-License-Identifier: Apache-2.0
#pragma once

// max_pool2d_with_indices() and max_unpool2d(), and their forms for lines.

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/op/create.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/max_pool.hpp"

namespace xla {
namespace detail {

template <int Axes, class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> max_pool_indices(const Tensor<T, R>& x,
                                                                            const pool_request& how,
                                                                            const call_site& site) {
  static_assert(!std::is_same_v<T, bool>, "xla: a pool needs numbers, not bool; cast first");
  const auto images = as_images<Axes>(x);
  const auto wide = widened(images);
  using W = typename std::remove_cvref_t<decltype(wide)>::value_type;
  const auto a = how.attributes();
  return {
      from_images<Axes, R>(pool_images<op::max_pool>(images, how, a, site)),
      from_images<Axes, R>(pool_images<op::max_pool_index, W, std::int64_t>(wide, how, a, site))};
}

template <int Axes, class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> max_share_indices(
    const Tensor<T, R>& x, const ImageSize& size, const call_site& site) {
  static_assert(!std::is_same_v<T, bool>, "xla: a pool needs numbers, not bool; cast first");
  const auto images = as_images<Axes>(x);
  const auto wide = widened(images);
  using W = typename std::remove_cvref_t<decltype(wide)>::value_type;
  return {
      from_images<Axes, R>(share_images<op::max_pool>(images, size, site)),
      from_images<Axes, R>(share_images<op::max_pool_index, W, std::int64_t>(wide, size, site))};
}

/// The function's name for index errors.
template <int Axes>
struct max_unpool {
  static constexpr auto name = Axes == 1 ? "max_unpool1d" : "max_unpool2d";
};

/// The size of the images whose pool has n windows along an axis: the requested one, or the
/// smallest.
constexpr Size unpooled_size(Size n, const bound& wanted, std::int64_t kernel, std::int64_t stride,
                             std::int64_t padding, std::string_view axis, const size_scope& scope) {
  const Size size = (n - 1) * stride - 2 * padding + kernel;
  if (wanted.open) {
    if (scope.at_least(size.extent(), 1)) return size;
    scope.fail(text("nothing is left along the ")
               << axis << ": (" << n.extent() << " - 1) * " << stride << " - 2 * " << padding
               << " + " << kernel << " is below 1");
    return 1;
  }
  const Size from = size - stride + 1, to = size + stride - 1;
  if (!scope.at_least(wanted.at.extent(), from.extent()) ||
      !scope.at_least(to.extent(), wanted.at.extent()))
    scope.fail(text("an output_size of ")
               << wanted.at.extent() << " along the " << axis << " is not within a stride of ("
               << n.extent() << " - 1) * " << stride << " - 2 * " << padding << " + " << kernel
               << " = " << size.extent());
  return wanted.at;
}

/// Scatters elements into images of zeros, by indices that are numbers in the image.
template <int Axes, class T>
constexpr Tensor<T, 4> unpool_images(const Tensor<T, 4>& x, const Tensor<std::int64_t, 4>& indices,
                                     const shape& to, const size_scope& scope) {
  for (int i = 0; i < 4; ++i)
    if (extent e = x.dims()[i]; !scope.equal(e, indices.dims()[i]))
      scope.fail(text("indices of shape ") << indices.dims() << " for a tensor of shape "
                                           << x.dims() << ": they have to be alike");
  const auto rows = [&](const shape& s) {
    shape r;
    r.push(s[0]);
    r.push(s[1]);
    r.push(scope.multiply(s[2], s[3]));
    return r;
  };
  const shape flat = rows(x.dims()), all = rows(to);
  const Size size(all[2], scope.table);
  const auto index = check_index<max_unpool<Axes>>(
      with_shape<op::reshape, 3>(as_dependent<T>(indices), flat), size, scope.site.at);
  const auto none = fill_shape<T, 3>(number<T>(T()).tensor(), all, scope.table);
  const auto y =
      put_along<op::scatter>(none, 2, index, with_shape<op::reshape, 3>(x, flat), scope.site.at);
  return with_shape<op::reshape, 4>(y, to);
}

}  // namespace detail

/// max_pool2d, and the position of each window's largest element: {values, indices}, where an index
/// is the element's number in its image, row by row. It has the same errors.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> max_pool2d_with_indices(
    const Tensor<T, R>& x, HeightWidth kernel_size, const MaxPool2dOptions& options = {},
    caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::max_pool2d_with_indices: needs (batch, channels, height, width), or that "
                "without a batch");
  return detail::max_pool_indices<2>(x,
                                     {kernel_size, options.stride.of(kernel_size), options.padding,
                                      options.dilation, options.ceil_mode},
                                     {"max_pool2d_with_indices", loc});
}
/// max_pool1d(), and the position of each window's largest element: its number in its signal.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> max_pool1d_with_indices(
    const Tensor<T, R>& x, std::int64_t kernel_size, const MaxPool1dOptions& options = {},
    caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::max_pool1d_with_indices: needs (batch, channels, length), or that without a "
                "batch");
  return detail::max_pool_indices<1>(
      x,
      detail::pool_request::along(kernel_size, options.stride.of(kernel_size), options.padding,
                                  options.dilation, options.ceil_mode),
      {"max_pool1d_with_indices", loc});
}
/// adaptive_max_pool2d(), and where each element was: its number in its image.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> adaptive_max_pool2d_with_indices(
    const Tensor<T, R>& x, const ImageSize& output_size, caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::adaptive_max_pool2d_with_indices: needs (batch, channels, height, width), or "
                "that without a batch");
  return detail::max_share_indices<2>(x, output_size, {"adaptive_max_pool2d_with_indices", loc});
}
/// adaptive_max_pool1d(), and where each element was: its number in its signal.
template <class T, int R>
constexpr std::pair<Tensor<T, R>, Tensor<std::int64_t, R>> adaptive_max_pool1d_with_indices(
    const Tensor<T, R>& x, detail::bound output_size, caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::adaptive_max_pool1d_with_indices: needs (batch, channels, length), or that "
                "without a batch");
  return detail::max_share_indices<1>(x, {1, output_size},
                                      {"adaptive_max_pool1d_with_indices", loc});
}

/// The windows whose largest elements max_unpool restores, by PyTorch's names.
template <class N>
struct MaxUnpoolOptions {
  PoolStride<N> stride = none;   ///< none: the kernel's size
  N padding = 0;                 ///< on both sides
  /// none: the smallest with that number of windows; for signals the width
  ImageSize output_size = none;
};
using MaxUnpool1dOptions = MaxUnpoolOptions<std::int64_t>;
using MaxUnpool2dOptions = MaxUnpoolOptions<HeightWidth>;

/// The partial inverse of max_pool2d_with_indices for images (batch, channels, height, width), with
/// or without the batch: values at their original positions, 0 elsewhere. A size is (n - 1) stride
/// - 2 padding + kernel, or output_size, which differs by less than a stride. Of several values for
/// one index the last counts, and it alone has a gradient. Sizes that do not match are a
/// shape_error, an index that does not exist an index_error.
template <class T, int R>
constexpr Tensor<T, R> max_unpool2d(const Tensor<T, R>& x, const Tensor<std::int64_t, R>& indices,
                                    HeightWidth kernel_size, const MaxUnpool2dOptions& options = {},
                                    caller loc = here()) {
  static_assert(R == 3 || R == 4,
                "xla::max_unpool2d: needs (batch, channels, height, width), or that without a "
                "batch");
  const auto& [stride, padding, size] = options;
  const detail::size_scope scope{detail::table_of(x, size), {"max_unpool2d", loc}};
  const auto images = detail::as_images<2>(detail::with_table(x, scope.table));
  const HeightWidth step = stride.of(kernel_size);
  detail::shape to = images.dims();
  to[2] = detail::unpooled_size(images.size(2), size.height, kernel_size.height, step.height,
                                padding.height, "height", scope)
              .extent();
  to[3] = detail::unpooled_size(images.size(3), size.width, kernel_size.width, step.width,
                                padding.width, "width", scope)
              .extent();
  return detail::from_images<2, R>(
      detail::unpool_images<2>(images, detail::as_images<2>(indices), to, scope));
}

/// max_unpool2d() of signals (batch, channels, length), with or without the batch.
template <class T, int R>
constexpr Tensor<T, R> max_unpool1d(const Tensor<T, R>& x, const Tensor<std::int64_t, R>& indices,
                                    std::int64_t kernel_size,
                                    const MaxUnpool1dOptions& options = {}, caller loc = here()) {
  static_assert(R == 2 || R == 3,
                "xla::max_unpool1d: needs (batch, channels, length), or that without a batch");
  const auto& [stride, padding, size] = options;
  const detail::size_scope scope{detail::table_of(x, size), {"max_unpool1d", loc}};
  const auto images = detail::as_images<1>(detail::with_table(x, scope.table));
  detail::shape to = images.dims();
  to[3] = detail::unpooled_size(images.size(3), size.width, kernel_size, stride.of(kernel_size),
                                padding, "length", scope)
              .extent();
  return detail::from_images<1, R>(
      detail::unpool_images<1>(images, detail::as_images<1>(indices), to, scope));
}

}  // namespace xla
