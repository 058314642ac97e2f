// SPDX-License-Identifier: Apache-2.0
#pragma once

// The source line that a call came from, for error sentences. It is one line, not a stack. Public
// functions take it as their last argument, `xla::caller loc = xla::here()`; users rarely pass it.

#include <source_location>
#include <string_view>

#include "xla/base/text.hpp"

namespace xla {

/// The source line of a call, for errors that the called function finds. It is the last, defaulted
/// argument of named functions. A function that passes its own caller on does not appear in errors:
/// } auto head(const Tensor<float, 2>& x, xla::caller loc = xla::here()) { return matmul(x, w,
/// loc); }
class caller {
 public:
  constexpr caller(std::source_location at) : at_(at) {}
  constexpr operator std::source_location() const { return at_; }

 private:
  std::source_location at_;
};

/// The current line; as a default argument, the line of the call.
constexpr caller here(std::source_location at = std::source_location::current()) { return at; }

namespace detail {

/// For calls whose line is unknown.
inline constexpr caller unknown_caller{std::source_location()};

/// The function that reports an error, and the line of its call if known.
struct call_site {
  std::string_view function;
  std::source_location at;

  constexpr call_site() = default;
  constexpr call_site(std::string_view name, caller loc = unknown_caller)
      : function(name), at(loc) {}
  constexpr call_site(const char* name, caller loc = unknown_caller) : function(name), at(loc) {}
};

/// True for the library's own headers, which call its functions as users do.
constexpr bool in_library(std::string_view file) {
  constexpr std::string_view name = "base/caller.hpp", mine = __FILE__;
  if constexpr (!mine.ends_with(name)) return file == mine;  // the single-header build
  return file.starts_with(mine.substr(0, mine.size() - name.size()));
}

/// " (model.cpp:42)"; empty if the line is in the library itself or unknown.
[[gnu::cold]] constexpr text& operator<<(text& out, std::source_location at) {
  const std::string_view file = at.file_name();
  if (file.empty() || in_library(file)) return out;
  out << " (" << file.substr(file.rfind('/') + 1) << ':';
  return out << static_cast<std::int64_t>(at.line()) << ')';
}
constexpr text& operator<<(text&& out, std::source_location at) { return out << at; }

}  // namespace detail
}  // namespace xla
