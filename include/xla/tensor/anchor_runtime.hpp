// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines what anchor.hpp declares. anchor.hpp includes it where the run time is compiled, and
// nobody else does.

#include "xla/tensor/anchor.hpp"
#include "xla/tensor/memory.hpp"

namespace xla::detail {

template <class>
void* anchored(const cell* c, std::ptrdiff_t distance) {
  while (c && c->successor) c = c->successor.get();
  if (!c || !c->keeper)
    throw runtime_error(
        "xla::optim: the model of this optimizer is gone, or the optimizer was moved from");
  return reinterpret_cast<std::byte*>(c->keeper) - distance;
}
XLA_INSTANCE(void* anchored<void>(const cell*, std::ptrdiff_t));

template <class>
void unfollow(cell* c) noexcept {
  c->release();
}
XLA_INSTANCE(void unfollow<void>(cell*) noexcept);

template <class>
[[noreturn]] void refuse_step() {
  throw runtime_error(no_gradient_at_all);
}
XLA_INSTANCE(void refuse_step<void>());

}  // namespace xla::detail
