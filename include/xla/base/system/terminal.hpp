// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the system knows of the terminal. io/terminal.hpp decides what that means.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "xla/base/system/platform.hpp"

#if XLA_POSIX
#include <sys/ioctl.h>
#include <unistd.h>
#elif XLA_WINDOWS
#include <io.h>
#endif

namespace xla::sys {

/// Whether a stream is a terminal that can rewrite its line (`TERM=dumb` cannot).
inline bool is_terminal([[maybe_unused]] std::FILE* stream) {
#if XLA_POSIX
  const char* const term = std::getenv("TERM");
  return ::isatty(::fileno(stream)) != 0 && term != nullptr && std::string_view{term} != "dumb";
#elif XLA_WINDOWS
  return ::_isatty(::_fileno(stream)) != 0;
#else
  return false;
#endif
}

/// The columns of the terminal on standard output; 0 if it is none, or if they are unknown.
inline std::size_t terminal_columns() {
#if XLA_POSIX
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size.ws_col;
#endif
  return 0;
}

/// Whether the system forgets a handler when its signal arrives, so that it has to be set again.
inline constexpr bool resets_signal_handlers = XLA_WINDOWS;

}  // namespace xla::sys
