// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/instance.hpp"

#if XLA_RUNTIME_HERE
#include <thread>
#endif

namespace xla::detail {

/// Lets another thread run. For who includes xla with a library, `<thread>` would be a fiftieth of
/// that.
template <class = void>
void give_way() noexcept;

#if XLA_RUNTIME_HERE
template <class>
void give_way() noexcept {
  std::this_thread::yield();
}
#endif
XLA_INSTANCE(void give_way<void>() noexcept);

}  // namespace xla::detail
