// SPDX-License-Identifier: Apache-2.0
#pragma once

// Objects of which every thread has its own, destroyed when it ends. Objects that need no
// destructor are plain `thread_local`.

#include "xla/base/system/platform.hpp"
#include "xla/base/system/windows.hpp"

namespace xla::sys {

#if XLA_WINDOWS
/// MinGW frees a thread's `thread_local` objects before it destroys them; these are on the heap.
/// Destructors must not use `thread_local` objects.
inline constexpr bool thread_locals_outlive_per_thread = false;

template <class X, class Use = X>
X& per_thread() {
  static const unsigned long slot =
      ::FlsAlloc([](void* x) __attribute__((stdcall)) { delete static_cast<X*>(x); });
  static thread_local X* own = nullptr;
  if (!own) ::FlsSetValue(slot, own = new X);
  return *own;
}
#else
inline constexpr bool thread_locals_outlive_per_thread = true;

/// This thread's X for a use, made when it first asks.
template <class X, class Use = X>
X& per_thread() {
  static thread_local X own;
  return own;
}
#endif

}  // namespace xla::sys
