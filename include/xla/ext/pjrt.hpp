// SPDX-License-Identifier: Apache-2.0
#pragma once

// XLA itself as a backend, by a plugin that is loaded at run time. CMake's target xla::pjrt adds it
// to a program, even if the program does not include this header.

#include <string_view>

#include "xla/run/backend/backend.hpp"

// Visible to the target's own source; without the target, to every unit that includes this.
#if !defined(XLA_EXTERN_PJRT)
#include <cstdlib>

#include "xla/ext/pjrt/backend.hpp"
#endif

namespace xla {

/// XLA on a device of a plugin: "CPU", "CUDA" or "TPU", the names of PJRT_DEVICE in the
/// environment.
/// auto step = xla::compile(train_step, {.backend = xla::pjrt("CPU")});
/// set_backend(xla::pjrt("CPU")) and PJRT_DEVICE=CPU set it for the whole program. "openxla",
/// PyTorch's name, is the device of PJRT_DEVICE, or the CPU. The plugin is the file that
/// XLA_PJRT_PLUGIN names, or one that pip has installed. It is loaded for the first program that it
/// compiles; if there is none, that throws a runtime_error. Results agree with the native backend's
/// up to rounding; random numbers are the same. The replicas of a launch run a program with
/// exchanges as one executable, each on its own device of the plugin. mark_sharding() divides a
/// function among several devices.
template <class = void>
Backend pjrt(std::string_view device);

namespace detail {

/// Registers the backends. PJRT_DEVICE in the environment sets the backend that a program begins
/// with.
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
