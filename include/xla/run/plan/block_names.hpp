// SPDX-License-Identifier: Apache-2.0
#pragma once

// One name for the same module, or parameter, of several blocks. Profiles and the text of loops in
// plans use it.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>

namespace xla::detail {

/// The innermost module that contains both: "layers.3" for "layers.3.q" and "layers.3.o".
template <class = void>
[[gnu::cold]] std::string module_of_both(const std::string& a, const std::string& b) {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '.', b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

/// One name for the same module of several blocks: "layers.0-23.q" for "layers.0.q" and
/// "layers.23.q". If they differ in more than the block's number, the module that contains both.
template <class = void>
[[gnu::cold]] std::string module_in_blocks(const std::string& first, const std::string& last) {
  const std::string around = module_of_both(first, last);
  const std::size_t begin = around.empty() ? 0 : around.size() + 1;
  if (first == last || begin >= first.size() || begin >= last.size()) return around;
  const auto number_ends = [&](const std::string& s) {
    std::size_t i = begin;
    while (i < s.size() && std::isdigit(static_cast<unsigned char>(s[i]))) ++i;
    return i;
  };
  const std::size_t a = number_ends(first), b = number_ends(last);
  if (a == begin || b == begin || first.substr(a) != last.substr(b)) return around;
  return first.substr(0, a) + "-" + last.substr(begin, b - begin) + first.substr(a);
}

}  // namespace xla::detail
