// SPDX-License-Identifier: Apache-2.0
#pragma once

// Questions about this process, and its environment. What has to happen at fork() is
// base/fork.hpp.

#include <cstdlib>
#include <string>

#include "xla/base/system/platform.hpp"

#if XLA_POSIX
#include <unistd.h>
#elif XLA_WINDOWS
#include <process.h>
#endif
#if XLA_LINUX && defined(__x86_64__)
#include <sys/syscall.h>
#elif XLA_LINUX && defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace xla::sys {

/// A number that no other process of this machine has now.
inline long process_id() noexcept {
#if XLA_POSIX
  return ::getpid();
#elif XLA_WINDOWS
  return ::_getpid();
#else
  return 1;
#endif
}

/// Sets a variable of the environment; without `replace` only where it is not set yet. No other
/// thread may read the environment then.
inline void set_environment([[maybe_unused]] const char* name,
                            [[maybe_unused]] const std::string& value,
                            [[maybe_unused]] bool replace) {
#if XLA_POSIX || XLA_WASI
  ::setenv(name, value.c_str(), replace);
#elif XLA_WINDOWS
  if (replace || !std::getenv(name)) ::_putenv_s(name, value.c_str());
#endif
}
inline void unset_environment([[maybe_unused]] const char* name) {
#if XLA_POSIX || XLA_WASI
  ::unsetenv(name);
#elif XLA_WINDOWS
  ::_putenv_s(name, "");
#endif
}

/// Asks Linux on x86-64 to let this process use a part of the processor's state that it saves only
/// on request, such as the tiles of AMX. `part` is its number in XCR0.
inline bool request_processor_state([[maybe_unused]] long part) noexcept {
#if XLA_LINUX && defined(__x86_64__)
  constexpr long request_permission = 0x1023;  // of <asm/prctl.h>
  return ::syscall(SYS_arch_prctl, request_permission, part) == 0;
#else
  return false;
#endif
}

#if XLA_LINUX && defined(__aarch64__)
/// Whether Linux and the processor offer FEAT_BF16, with instructions such as bfdot.
inline bool has_arm_bfloat16() noexcept {
  constexpr unsigned long bf16 = 1ul << 14;  // HWCAP2_BF16 of <asm/hwcap.h>
  return (::getauxval(AT_HWCAP2) & bf16) != 0;
}
#endif

}  // namespace xla::sys
