// SPDX-License-Identifier: Apache-2.0
#pragma once

// fopen() for paths in UTF-8 on every system. Files that replace others are in file.hpp.

#include <cstdio>
#include <string>

#include "xla/base/system/platform.hpp"

#if XLA_WINDOWS
#include "xla/base/system/path.hpp"
#endif

namespace xla::sys {

/// A stream, or nullptr with the reason in errno. `mode` is that of fopen().
inline std::FILE* open_file(const std::string& path, const char* mode) {
#if XLA_WINDOWS
  return ::_wfopen(path_of(path).c_str(),
                   std::wstring(mode, mode + std::char_traits<char>::length(mode)).c_str());
#else
  return std::fopen(path.c_str(), mode);
#endif
}

}  // namespace xla::sys
