// SPDX-License-Identifier: Apache-2.0
#pragma once

// A live line for a loop: step, values, rate, time left. fit() shows one; it uses no tensors.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/io/terminal.hpp"

namespace xla::io {

/// What a `progress` shows, and where. If `total` is 0, the number of steps is unknown; items (for
/// the rate) are counted in `unit`. Without a terminal it prints a line every `plain_seconds`.
struct progress_options {
  std::int64_t total = 0;
  std::int64_t first = 0;  ///< Steps done before, of a resumed loop.
  std::string unit = "items";
  double plain_seconds = 10;
  std::FILE* stream = stdout;
  std::optional<bool> terminal = {};      ///< Default: whether `stream` is one.
  std::optional<std::size_t> width = {};  ///< In columns; default: that of the terminal.
};

namespace detail {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

/// Three significant digits and a suffix: `950`, `1.25k`, `12.5M`.
inline std::string short_number(double value) {
  if (!(std::abs(value) < 1e15)) return format("%.3g", value);
  constexpr std::array suffixes{"", "k", "M", "G", "T"};
  std::size_t i = 0;
  for (; std::abs(value) >= 999.5 && i + 1 < suffixes.size(); ++i) value /= 1000;
  const double size = std::abs(value);
  const int decimals = size == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return format("%.*f%s", i == 0 && value == std::round(value) ? 0 : decimals, value, suffixes[i]);
}

/// `0:07`, `12:34`, `1:02:03`, or `3d 04:05` from a day on.
inline std::string short_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e12)) return "?";
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s >= 86400) return format("%lldd %02lld:%02lld", s / 86400, s / 3600 % 24, s / 60 % 60);
  if (s >= 3600) return format("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  return format("%lld:%02lld", s / 60, s % 60);
}

/// The content of one line; rates are per second, 0 where unknown.
struct progress_state {
  std::int64_t step = 0, total = 0, items = 0;
  double elapsed = 0, step_rate = 0, item_rate = 0;
  bool finished = false;
  std::vector<std::pair<std::string, double>> values = {};
};

/// As many parts of a line as fit into `width` columns, the most important first.
inline std::string progress_line(const progress_state& state, std::string_view unit,
                                 std::size_t width) {
  const auto step = std::to_string(state.step);
  std::vector<std::string> parts;
  if (state.total > 0) {
    const auto percent =
        100 *
        std::clamp(static_cast<double>(state.step) / static_cast<double>(state.total), 0.0, 1.0);
    const auto total = std::to_string(state.total);
    parts.push_back(std::string(total.size() - std::min(total.size(), step.size()), ' ') + step +
                    "/" + total + format(" %3.0f%%", std::floor(percent)));
  } else {
    parts.push_back("step " + step);
  }
  for (const auto& [name, value] : state.values) parts.push_back(name + format(" %.4g", value));
  if (state.item_rate > 0)
    parts.push_back(short_number(state.item_rate) + " " + std::string{unit} + "/s");
  if (state.finished) parts.push_back("took " + short_duration(state.elapsed));
  else if (state.total > state.step && state.step_rate > 0)
    parts.push_back(
        short_duration(static_cast<double>(state.total - state.step) / state.step_rate) + " left");
  std::string out = cut_columns(parts.front(), width);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (columns(out) + 2 + columns(parts[i]) > width) break;
    out += "  " + parts[i];
  }
  return out;
}

}  // namespace detail

/// A live line about a loop: step, named values, rate and time left. On a terminal it rewrites one
/// line about ten times a second; elsewhere it prints plain lines. For use from one thread.
template <class Clock>
class basic_progress {
 public:
  explicit basic_progress(progress_options options = {})
      : options_(std::move(options)),
        terminal_(options_.terminal ? *options_.terminal : is_terminal(options_.stream)),
        start_(Clock::now()),
        drawn_(start_) {
    state_.total = options_.total;
    state_.step = drawn_step_ = options_.first;
  }
  basic_progress(const basic_progress&) = delete;
  basic_progress& operator=(const basic_progress&) = delete;
  ~basic_progress() { finish(); }

  /// Shows `name value` from the next redraw on, in the position where the name first appeared.
  void value(std::string_view name, double value) {
    for (auto& [known, old] : state_.values)
      if (known == name) {
        old = value;
        return;
      }
    state_.values.emplace_back(name, value);
  }

  /// Counts `steps` and their items, and redraws if it is time.
  void advance(std::int64_t items = 0, std::int64_t steps = 1) {
    state_.step += steps;
    state_.items += items;
    const auto now = Clock::now();
    if (!shown_ || seconds(now - drawn_) >= (terminal_ ? 0.1 : options_.plain_seconds)) draw(now);
  }

  /// Prints a separate line above the live one.
  void print(std::string_view line) {
    put((terminal_ && shown_ ? erase_ : "") + std::string{line} + "\n");
    if (terminal_ && shown_ && !state_.finished) put(line_);
  }

  /// Draws the last line, with the rate and time of the whole loop, and leaves it there.
  void finish() {
    if (state_.finished) return;
    state_.finished = true;
    const auto now = Clock::now();
    state_.elapsed = seconds(now - start_);
    if (state_.elapsed > 0) state_.item_rate = static_cast<double>(state_.items) / state_.elapsed;
    if (state_.step > options_.first) show("\n");
  }

 private:
  static double seconds(typename Clock::duration d) {
    return std::chrono::duration<double>(d).count();
  }

  /// Rates are averaged over the last seconds or so, exponentially.
  void draw(typename Clock::time_point now) {
    const double passed = seconds(now - drawn_);
    if (passed > 0) {
      const double weight = state_.step_rate > 0 ? 1 - std::exp(-passed / 5) : 1;
      const auto mix = [&](double& rate, std::int64_t count) {
        rate += weight * (static_cast<double>(count) / passed - rate);
      };
      mix(state_.step_rate, state_.step - drawn_step_);
      mix(state_.item_rate, state_.items - drawn_items_);
      drawn_step_ = state_.step;
      drawn_items_ = state_.items;
      drawn_ = now;
    }
    show(terminal_ ? "" : "\n");
  }

  void show(const char* end) {
    // One column stays free: some terminals wrap when the last one is written.
    const auto width = options_.width ? *options_.width : terminal_ ? terminal_width() - 1 : 200;
    line_ = detail::progress_line(state_, options_.unit, width);
    put((terminal_ && shown_ ? erase_ : "") + line_ + end);
    shown_ = true;
  }

  void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), options_.stream);
    std::fflush(options_.stream);
  }

  static constexpr const char* erase_ = "\r\x1b[K";
  progress_options options_;
  bool terminal_, shown_ = false;
  typename Clock::time_point start_, drawn_;
  std::int64_t drawn_step_ = 0, drawn_items_ = 0;
  detail::progress_state state_;
  std::string line_;
};

using progress = basic_progress<std::chrono::steady_clock>;

}  // namespace xla::io
