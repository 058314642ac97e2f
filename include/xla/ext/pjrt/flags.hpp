// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <cstring>
#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/join.hpp"
#include "xla/ext/pjrt/find.hpp"
#include "xla/io/mapped_file.hpp"

namespace xla::ext::pjrt::detail {

/// Whether a name stands whole among the strings of a library.
inline bool has_string(const io::Bytes& library, const std::string& name) {
  const auto* const begin = library.data();
  const auto* const end = begin + library.size();
  for (const auto* at = begin; at != end;) {
    const auto left = static_cast<std::size_t>(end - at);  // c_str(): with the zero at its end
    at = static_cast<const std::uint8_t*>(::memmem(at, left, name.c_str(), name.size() + 1));
    if (!at) return false;
    if (at == begin || (std::isalnum(at[-1]) == 0 && at[-1] != '_')) return true;
    ++at;
  }
  return false;
}

/// Throws for a flag in XLA_FLAGS that a plugin's file does not name: XLA would end the process.
[[gnu::cold]] inline void check_flags(const std::string& plugin) {
  const std::string_view all = variable("XLA_FLAGS");
  if (!all.starts_with("--")) return;  // none, or in a file
  const io::Bytes library = io::map_file(plugin);
  for (std::size_t at = 0; at != all.npos; at = all.find(" --", at)) {
    at = all.find_first_not_of(" -", at);
    if (at == all.npos) return;
    const std::string flag(all.substr(at, all.find_first_of(" =", at) - at));
    if (!has_string(library, flag))
      throw runtime_error(
          xla::detail::join({"XLA_FLAGS: the plugin ", plugin, " has no flag ", flag}));
  }
}

}  // namespace xla::ext::pjrt::detail
