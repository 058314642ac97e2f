// SPDX-License-Identifier: Apache-2.0
#pragma once

// In which precision a product is computed, as autocast says. Products and convolutions ask when
// they are applied; it changes no element type.

#include "xla/op/op.hpp"

namespace xla::detail {

/// The precision of a product of tensors of T, as xla::autocast says where it is made: of this
/// thread at run time, of the graph that an operand belongs to in constant evaluation.
template <class T>
constexpr precision product_precision(const handle& a, const handle& b) {
  if constexpr (!std::is_same_v<T, float>) return precision::float32;
  else {
    if (!__builtin_is_constant_evaluated()) return machine_of<T>::product_precision();
    const graph* const g = a.owner() ? a.owner() : b.owner();
    return g ? g->products : precision::float32;
  }
}

}  // namespace xla::detail
