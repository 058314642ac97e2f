// SPDX-License-Identifier: Apache-2.0
#pragma once

// pixel_shuffle() and pixel_unshuffle(): reshapes and a permutation.

#include "xla/op/permute.hpp"
#include "xla/op/reshape.hpp"

namespace xla {
namespace detail {

/// n / by, if it has no remainder.
constexpr Size whole_part(Size n, std::int64_t by, std::string_view of, const size_scope& scope) {
  const Size part = n / by;
  extent all = n.extent();
  if (scope.equal(all, (part * by).extent())) return part;
  scope.fail(text(of) << " of " << n.extent() << " do not divide by " << by);
  return part;
}

template <class T, int R>
constexpr bool shuffles(const Tensor<T, R>& x, std::int64_t factor, const call_site& site) {
  static_assert(R == 3 || R == 4,
                "xla::pixel_shuffle and pixel_unshuffle: need (batch, channels, height, width), or "
                "that without a batch");
  if (factor >= 1 && factor < 1 << 15) return true;
  size_scope{x.table(), site}.fail(text("a factor of ") << factor << " is none");
  return false;
}

}  // namespace detail

/// Images (batch, channels factor^2, height, width), or without the batch, as (batch, channels,
/// height factor, width factor): each pixel's channels become a square of pixels. Shi et al.
/// (2016). Channels that do not divide are a shape_error.
template <class T, int R>
constexpr Tensor<T, R> pixel_shuffle(const Tensor<T, R>& x, std::int64_t upscale_factor,
                                     caller loc = here()) {
  const detail::call_site site{"pixel_shuffle", loc};
  if (!detail::shuffles(x, upscale_factor, site)) return x;
  const std::int64_t f = upscale_factor;
  const Size c = detail::whole_part(x.size(-3), f * f, "channels", {x.table(), site});
  const Size h = x.size(-2), w = x.size(-1);
  if constexpr (R == 3)
    return reshape(permute(reshape(x, {c, f, f, h, w}), {0, 3, 1, 4, 2}), {c, h * f, w * f});
  else
    return reshape(permute(reshape(x, {x.size(0), c, f, f, h, w}), {0, 1, 4, 2, 5, 3}),
                   {x.size(0), c, h * f, w * f});
}

/// The reverse: squares of pixels become channels. Heights and widths that do not divide are a
/// shape_error.
template <class T, int R>
constexpr Tensor<T, R> pixel_unshuffle(const Tensor<T, R>& x, std::int64_t downscale_factor,
                                       caller loc = here()) {
  const detail::call_site site{"pixel_unshuffle", loc};
  if (!detail::shuffles(x, downscale_factor, site)) return x;
  const std::int64_t f = downscale_factor;
  const detail::size_scope scope{x.table(), site};
  const Size h = detail::whole_part(x.size(-2), f, "rows", scope),
             w = detail::whole_part(x.size(-1), f, "columns", scope), c = x.size(-3);
  if constexpr (R == 3)
    return reshape(permute(reshape(x, {c, h, f, w, f}), {0, 2, 4, 1, 3}), {c * (f * f), h, w});
  else
    return reshape(permute(reshape(x, {x.size(0), c, h, f, w, f}), {0, 1, 3, 5, 2, 4}),
                   {x.size(0), c * (f * f), h, w});
}

}  // namespace xla
