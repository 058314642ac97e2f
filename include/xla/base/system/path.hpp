// SPDX-License-Identifier: Apache-2.0
#pragma once

// Paths as text. The library's strings are UTF-8 on every system, also on Windows, where the
// standard library takes a narrow string for text in the system's code page.

#include <filesystem>
#include <string>
#include <string_view>

#include "xla/base/system/platform.hpp"

namespace xla::sys {

/// The path that UTF-8 text names.
inline std::filesystem::path path_of(std::string_view text) {
#if XLA_WINDOWS
  return std::u8string(text.begin(), text.end());
#else
  return text;
#endif
}

/// A path as UTF-8 text.
inline std::string text_of(const std::filesystem::path& path) {
#if XLA_WINDOWS
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
#else
  return path.string();
#endif
}

}  // namespace xla::sys
