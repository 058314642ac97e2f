// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/ext/stablehlo/form.hpp"
#include "xla/op/list.hpp"

namespace xla::detail::hlo {

/// The base of forms of ops that have none.
struct no_form {
  static constexpr std::string_view refused = "it has no form in StableHLO yet";
};

#define XLA_NO_FORM(type) \
  template <>             \
  struct form<type> : no_form {}
XLA_NO_FORM(op::argmax);
XLA_NO_FORM(op::argmin);
XLA_NO_FORM(op::avg_pool);
XLA_NO_FORM(op::avg_pool_spread);
XLA_NO_FORM(op::all_reduce);
XLA_NO_FORM(op::all_gather);
XLA_NO_FORM(op::reduce_scatter);
XLA_NO_FORM(op::all_to_all);
XLA_NO_FORM(op::broadcast);
XLA_NO_FORM(op::collective_permute);
XLA_NO_FORM(op::convolution);
XLA_NO_FORM(op::convolution_input);
XLA_NO_FORM(op::convolution_weight);
XLA_NO_FORM(op::embedding);
XLA_NO_FORM(op::embedding_backward);
XLA_NO_FORM(op::scatter_add);
XLA_NO_FORM(op::scatter);
XLA_NO_FORM(op::gather);
XLA_NO_FORM(op::gather_into);
XLA_NO_FORM(op::index_add);
XLA_NO_FORM(op::index_copy);
XLA_NO_FORM(op::index_select);
XLA_NO_FORM(op::integers);
XLA_NO_FORM(op::permutation);
XLA_NO_FORM(op::max_pool);
XLA_NO_FORM(op::max_pool_place);
XLA_NO_FORM(op::max_pool_scatter);
XLA_NO_FORM(op::max_pool_pick);
XLA_NO_FORM(op::median_index);
XLA_NO_FORM(op::median);
XLA_NO_FORM(op::own_shard);
XLA_NO_FORM(op::uniform);
XLA_NO_FORM(op::normal);
XLA_NO_FORM(op::resample);
XLA_NO_FORM(op::resample_spread);
XLA_NO_FORM(op::cumsum);
XLA_NO_FORM(op::recurrence);
XLA_NO_FORM(op::cumprod);
XLA_NO_FORM(op::searchsorted);
XLA_NO_FORM(op::argsort);
XLA_NO_FORM(op::unfold);
XLA_NO_FORM(op::fold);
#undef XLA_NO_FORM

}  // namespace xla::detail::hlo
