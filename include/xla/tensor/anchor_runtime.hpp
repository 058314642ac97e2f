// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/tensor/anchor.hpp"
#include "xla/tensor/memory.hpp"

namespace xla::detail {

template <class>
void* anchored(const cell* c, std::ptrdiff_t distance) {
  // One reference is the anchor's own.
  if (!c || c->refs.load(std::memory_order_acquire) < 2)
    throw runtime_error(
        "xla::optim: the model of this optimizer is gone or got other parameters, or the optimizer "
        "was moved from");
  return reinterpret_cast<std::byte*>(c->keeper) - distance;
}
XLA_INSTANCE(void* anchored<void>(const cell*, std::ptrdiff_t));

template <class>
[[noreturn]] void refuse_step() {
  throw runtime_error(no_gradient_at_all);
}
XLA_INSTANCE(void refuse_step<void>());

}  // namespace xla::detail
