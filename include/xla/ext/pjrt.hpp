// SPDX-License-Identifier: Apache-2.0
#pragma once

// XLA itself as a backend, by a plugin that is loaded at run time. CMake's target xla::pjrt brings
// it to a program, whether or not that includes this.

#include <string_view>

#include "xla/run/backend/backend.hpp"

// The target's own source sees how it works; without the target, each unit that includes this.
#if !defined(XLA_EXTERN_PJRT)
#include <cstdlib>

#include "xla/ext/pjrt/backend.hpp"
#endif

namespace xla {

/// XLA on a device of a plugin, "CPU", "CUDA" or "TPU", as PJRT_DEVICE in the environment names it:
///   auto step = xla::compile(train_step, {.backend = xla::pjrt("CPU")});
/// set_backend(xla::pjrt("CPU")) is for a whole program, as is PJRT_DEVICE=CPU; "openxla", PyTorch's
/// name, is the device of PJRT_DEVICE, or the processor. The plugin is the
/// file that XLA_PJRT_PLUGIN names, or one that pip has installed; it is loaded for the first
/// program that it compiles, and where there is none that throws a runtime_error. Results agree
/// with those of this library to rounding. Random numbers are the same. Replicas of a launch run
/// what they exchange in as one executable, on a device of the plugin each; mark_sharding() shares
/// a function out to several.
template <class = void>
Backend pjrt(std::string_view device);

namespace detail {

/// Makes it known. PJRT_DEVICE in the environment names the backend that a program begins with.
template <class = void>
bool add_pjrt();

inline const bool pjrt_added = add_pjrt();

#if !defined(XLA_EXTERN_PJRT)
template <class>
bool add_pjrt() {
  const char* const device = std::getenv("PJRT_DEVICE");
  if (device && *device) backends.usual = &pjrt_backend_of(device);
  pjrt_backend_of("CPU");
  return true;
}
#endif

}  // namespace detail

#if !defined(XLA_EXTERN_PJRT)
template <class>
Backend pjrt(std::string_view device) {
  return Backend(detail::pjrt_backend_of(device));
}
#endif

}  // namespace xla
