// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a terminal can show, how wide it is, and Ctrl-C as a flag. The progress line and training
// loops use it.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "xla/base/system/terminal.hpp"

namespace xla::io {

/// Whether a stream is a terminal that can rewrite its line (`TERM=dumb` cannot).
inline bool is_terminal(std::FILE* stream) { return sys::is_terminal(stream); }

/// The columns of the terminal on standard output, or else of `$COLUMNS`, or else 80; at least 20.
inline std::size_t terminal_width() {
  std::size_t width = sys::terminal_columns();
  if (const char* const columns = std::getenv("COLUMNS"); width == 0 && columns != nullptr)
    width = std::strtoul(columns, nullptr, 10);
  return width == 0 ? 80 : std::clamp<std::size_t>(width, 20, 1000);
}

namespace detail {

/// How many characters UTF-8 text has; each is taken as one column wide.
inline std::size_t columns(std::string_view text) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts));
}

/// The first `width` characters of UTF-8 text.
inline std::string cut_columns(std::string_view text, std::size_t width) {
  std::size_t end = text.size();
  while (columns(text.substr(0, end)) > width) --end;
  return std::string{text.substr(0, end)};
}

inline std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only use these");

extern "C" inline void xla_on_interrupt(int signal) {
  if (!interrupt_flag.exchange(true)) {
    if (sys::resets_signal_handlers) std::signal(signal, xla_on_interrupt);
    return;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace detail

/// While it exists, the first Ctrl-C (SIGINT) only sets a flag, so that a loop can end in order and
/// save its work; a second one ends the process. Guards may be nested; the outermost one clears the
/// flag. A process that ignores SIGINT (`nohup`) continues to ignore it.
class interrupt_guard {
 public:
  interrupt_guard() : previous_(std::signal(SIGINT, detail::xla_on_interrupt)) {
    if (previous_ != detail::xla_on_interrupt) detail::interrupt_flag = false;
    if (previous_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  }
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
  ~interrupt_guard() {
    if (previous_ != SIG_ERR) std::signal(SIGINT, previous_);
  }

  /// Whether Ctrl-C was pressed since the outermost guard was made.
  bool interrupted() const noexcept { return detail::interrupt_flag; }

 private:
  void (*const previous_)(int);
};

}  // namespace xla::io
