// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets another thread run, without including <thread>. Only the spin lock of tensor/heap.hpp calls
// it.

#include "xla/base/instance.hpp"

#if XLA_RUNTIME_HERE
#include <thread>
#endif

namespace xla::detail {

/// Lets another thread run. It is out of line so that a program with the runtime does not compile
/// `<thread>`, a fiftieth of its headers.
template <class = void>
void yield() noexcept;

#if XLA_RUNTIME_HERE
template <class>
void yield() noexcept {
  std::this_thread::yield();
}
#endif
XLA_INSTANCE(void yield<void>() noexcept);

}  // namespace xla::detail
