// SPDX-License-Identifier: Apache-2.0
#pragma once

// channel_shuffle() and local_response_norm(), composed of other ops.

#include "xla/op/avg_pool.hpp"
#include "xla/op/derived/pad.hpp"
#include "xla/op/derived/pixel_shuffle.hpp"
#include "xla/op/pow.hpp"

namespace xla {

/// The channels of x (N, C, …) read as (groups, C / groups) and written the other way round, so
/// that groups mix. Channels that do not divide are a shape_error. Zhang et al. (2018).
template <class T, int R>
constexpr Tensor<T, R> channel_shuffle(const Tensor<T, R>& x, std::int64_t groups,
                                       caller loc = here()) {
  static_assert(R >= 3, "xla::channel_shuffle: needs (N, C, …), with a batch");
  const detail::size_scope scope{x.table(), {"channel_shuffle", loc}};
  if (groups < 1) {
    scope.fail(detail::text("groups ") << groups << " are none");
    return x;
  }
  const Size each = detail::whole_part(x.size(1), groups, "channels", scope);
  return view_as(permute(reshape(x, {x.size(0), groups, each, -1}), {0, 2, 1, 3}), x);
}

/// How strongly local_response_norm divides, by PyTorch's names.
struct LocalResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1;
};
/// x (N, C, …) over (k + alpha times the mean square of `size` channels around each)^beta, with
/// channels of zeros at the ends. Krizhevsky et al. (2012).
template <class T, int R>
constexpr Tensor<T, R> local_response_norm(const Tensor<T, R>& x, std::int64_t size,
                                           const LocalResponseNormOptions& how = {},
                                           caller loc = here()) {
  static_assert(R >= 3 && floating_type<T>,
                "xla::local_response_norm: needs (N, C, …) of float or double");
  if (size < 1) {
    detail::size_scope{x.table(), {"local_response_norm", loc}}.fail("size is 1 or more");
    return x;
  }
  const auto squares = reshape(x * x, {x.size(0), 1, x.size(1), -1});
  const auto padded = pad(squares, {{0, 0}, {0, 0}, {size / 2, (size - 1) / 2}, {0, 0}}, 0);
  const auto means = avg_pool2d(padded, {size, 1}, {.stride = 1}, loc);
  return x / view_as(pow(means * how.alpha + how.k, how.beta), x);
}

}  // namespace xla
