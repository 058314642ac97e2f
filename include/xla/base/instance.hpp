// SPDX-License-Identifier: Apache-2.0
#pragma once

/// XLA_INSTANCE(void run_sync<void>(bool)); marks a function of the run time that is the same in
/// every program. Each translation unit makes its own, unless XLA_EXTERN_RUNTIME is defined: then
/// the one that defines XLA_RUNTIME_INSTANCES as well makes them for all. CMake's target
/// xla::runtime does both; what it saves is most of the build of a small translation unit.
#if defined(XLA_RUNTIME_INSTANCES)
#define XLA_INSTANCE(...) template __VA_ARGS__
#define XLA_RUNTIME_MADE
#elif defined(XLA_EXTERN_RUNTIME)
#define XLA_INSTANCE(...) extern template __VA_ARGS__
#else
#define XLA_INSTANCE(...) static_assert(true)
#endif
