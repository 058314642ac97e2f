// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>

#include "xla/op/op.hpp"

namespace xla::detail {

/// What a decoder's cache says of a token for which it has no place.
inline constexpr std::string_view full_cache =
    "KeyValueCache: the cache is full, reset() empties it";

/// Functions that refuse an index out of range, by number.
inline constexpr std::string_view checked_functions[] = {
    "embedding",    "cross_entropy", "gather",         "scatter", "scatter_add",
    "index_select", "index_add",     "take_along_dim", "one_hot", "nll_loss",
    "index_copy",   full_cache,      "index_put",
};

}  // namespace xla::detail

namespace xla::op {

/// The input itself, after every element has been found in [0, limit); else an index_error.
struct check_index {
  static constexpr auto name = "check_index";
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool check = true;
  struct attributes {
    int function = 0;  ///< who asks: of checked_functions
    detail::size_value limit{};
    XLA_ATTRIBUTES(function, limit)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
};

}  // namespace xla::op

XLA_OP(xla::op::check_index, indices);

namespace xla::detail {

template <int R>
constexpr Tensor<std::int64_t, R> check_index(const Tensor<std::int64_t, R>& index, Size limit,
                                              const call_site& site) {
  op::check_index::attributes a{.limit = limit.extent()};
  for (int i = 0; i < static_cast<int>(std::size(checked_functions)); ++i)
    if (checked_functions[i] == site.function) a.function = i;
  node n = with<op::check_index>(a);
  n.at = site.at;
  return apply<op::check_index, std::int64_t, std::int64_t, R>(n, index);
}

}  // namespace xla::detail
