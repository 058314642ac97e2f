// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a profile to a file, in the form that its suffix selects. The forms are text.hpp, json.hpp
// and page.hpp.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/system/open_file.hpp"
#include "xla/run/profile/json.hpp"
#include "xla/run/profile/page.hpp"
#include "xla/run/profile/script.hpp"
#include "xla/run/profile/text.hpp"

namespace xla {
namespace detail {

/// Writes the text of a profile or an explanation.
template <class = void>
[[gnu::cold]] void write_report(const char* kind, const std::string& path,
                                const std::string& content) {
  errno = 0;
  std::FILE* file = sys::open_file(path, "wb");
  if (!file)
    throw io_error(std::string(kind) + ": cannot open '" + path +
                   "' for writing: " + std::strerror(errno));
  const std::size_t n = std::fwrite(content.data(), 1, content.size(), file);
  // Only closing tells whether the last bytes arrived.
  if (std::fclose(file) != 0 || n != content.size())
    throw io_error(std::string(kind) + ": cannot write '" + path + "': " + std::strerror(errno));
}

}  // namespace detail

template <class V>
[[gnu::cold]] std::string BasicProfile<V>::to_html() const {
  if (functions.empty() && events.empty() && !backends.empty())
    return "<!doctype html><meta charset=\"utf-8\"><title>Profile</title><pre>" + table() +
           "</pre>\n";
  return std::string(detail::profile_page_head) + to_json() + detail::profile_page_tail;
}
template <class V>
[[gnu::cold]] void BasicProfile<V>::write_text(const std::string& path) const {
  detail::write_report("profile", path, table(ProfileSort::time, -1));
}
template <class V>
[[gnu::cold]] void BasicProfile<V>::write_json(const std::string& path) const {
  detail::write_report("profile", path, to_json());
}
template <class V>
[[gnu::cold]] void BasicProfile<V>::write_html(const std::string& path) const {
  detail::write_report("profile", path, to_html());
}
template <class V>
[[gnu::cold]] void BasicProfile<V>::write(const std::string& path) const {
  if (path.ends_with(".html")) write_html(path);
  else if (path.ends_with(".json")) write_json(path);
  else write_text(path);
}

}  // namespace xla
