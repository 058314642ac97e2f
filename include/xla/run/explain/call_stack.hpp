// SPDX-License-Identifier: Apache-2.0
#pragma once

// The line of the program that called the library: return addresses of the stack, and their lines
// from debug information, read by a tool of the system. If anything is missing, the line is
// unknown; it is never an error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/caller.hpp"
#include "xla/base/system/call_stack.hpp"

namespace xla::detail {

using sys::call_stack;

/// A function and its line; line 0 or an empty name is unknown.
struct source_frame {
  std::string function, file;
  int line = 0;
};

/// The stack of this thread. The library's own calls are bounded by the nesting of its templates.
template <class = void>
[[gnu::cold, gnu::noinline]] call_stack own_call_stack() {
  return sys::own_call_stack<>(64);
}

/// Finds the functions and lines of addresses.
template <class>
class basic_symbolizer {
 public:
  using frames = std::vector<source_frame>;  ///< functions that were inlined, the innermost first

  /// Looks all of them up at once, as each start of the tool reads the debug information again.
  [[gnu::cold]] void add(const std::vector<call_stack>& stacks) {
    std::map<std::string, std::vector<std::pair<std::uintptr_t, std::uintptr_t>>> by_module;
    for (const call_stack& s : stacks)
      for (const std::uintptr_t at : s) {
        if (!known_.emplace(at, frames()).second) continue;
        const sys::module_address m = sys::find_module<>(at);
        if (!m.file.empty()) by_module[m.file].emplace_back(at, m.offset);
      }
    for (const auto& [file, addresses] : by_module)
      for (std::size_t i = 0; i < addresses.size(); i += most_at_once)
        read(file, &addresses[i], std::min(most_at_once, addresses.size() - i));
  }
  const frames& at(std::uintptr_t address) { return known_[address]; }

 private:
  static constexpr std::size_t most_at_once = 4000;  // limits the length of a command

  [[gnu::cold]] void read(const std::string& file,
                          const std::pair<std::uintptr_t, std::uintptr_t>* addresses,
                          std::size_t count) {
    std::string of = " -a -i -f -C -e '";
    for (const char c : file) of += c == '\'' ? "'\\''" : std::string(1, c);
    of += '\'';
    char digits[24];
    for (std::size_t i = 0; i < count; ++i) {
      std::snprintf(digits, sizeof digits, " 0x%llx",
                    static_cast<unsigned long long>(addresses[i].second));
      of += digits;
    }
    std::string said = sys::output_of<>("addr2line" + of + " 2>/dev/null");
    if (said.empty()) said = sys::output_of<>("llvm-addr2line" + of + " 2>/dev/null");
    parse(said, addresses, count);
    for (std::size_t i = 0; i < count; ++i)
      if (frames& all = known_[addresses[i].first]; all.empty())
        all.push_back({sys::exported_name<>(addresses[i].first), "", 0});
  }
  /// One address per line, followed by pairs of lines: a function and its location, the innermost
  /// first.
  [[gnu::cold]] void parse(std::string_view said,
                           const std::pair<std::uintptr_t, std::uintptr_t>* addresses,
                           std::size_t count) {
    frames* to = nullptr;
    std::size_t next = 0;
    std::string function;
    for (bool names = true; !said.empty();) {
      const std::size_t end = std::min(said.find('\n'), said.size());
      const std::string_view line = said.substr(0, end);
      said.remove_prefix(std::min(end + 1, said.size()));
      if (line.starts_with("0x") && next < count) {
        to = &known_[addresses[next++].first];
        names = true;
      } else if (names) {
        function = line.starts_with("??") ? "" : line;
        names = false;
      } else {
        if (to && !function.empty()) to->push_back(placed(function, line));
        names = true;
      }
    }
  }
  /// position: "/home/me/train.cpp:42 (discriminator 3)", "??:0".
  [[gnu::cold]] static source_frame placed(const std::string& function, std::string_view position) {
    position = position.substr(0, position.find(" ("));
    const std::size_t colon = position.rfind(':');
    source_frame f{function, std::string(position.substr(0, colon)), 0};
    if (colon != position.npos) f.line = std::atoi(std::string(position.substr(colon + 1)).c_str());
    return f;
  }
  std::map<std::uintptr_t, frames> known_;
};

/// A function's name with its namespaces: "my::f" for "xla::Tensor<int> my::f<int>(int)".
template <class = void>
[[gnu::cold]] std::string qualified_name(std::string_view function) {
  std::string plain;
  const std::size_t op = function.find("operator");
  int depth = 0;
  for (const char c : function.substr(0, op)) {
    depth -= (c == '>' || c == ')') && depth > 0;
    if (depth == 0 && c != ')' && c != '>' && c != '<' && c != '(') plain += c;
    depth += c == '<' || c == '(';
  }
  while (plain.ends_with(" const") || plain.ends_with(' ')) plain.resize(plain.rfind(' '));
  plain.erase(0, plain.rfind(' ') + 1);
  return plain + std::string(op == function.npos ? "" : function.substr(op));
}

/// Whether a function belongs neither to the library nor to the standard library.
template <class = void>
[[gnu::cold]] bool is_program(const source_frame& f) {
  const std::string name = qualified_name(f.function);
  for (const std::string_view other : {"xla::", "std::", "__gnu_cxx::", "Eigen::", "__", "_start"})
    if (name.starts_with(other)) return false;
  for (const std::string_view folder : {"/include/xla/", "/c++/"})
    if (f.file.find(folder) != f.file.npos) return false;
  return !in_library(f.file);
}

/// The frame of the program that called the library.
template <class = void>
[[gnu::cold]] source_frame program_frame(basic_symbolizer<void>& symbols, const call_stack& stack) {
  const source_frame* named = nullptr;
  for (const std::uintptr_t at : stack)
    for (const source_frame& f : symbols.at(at)) {
      if (f.function.empty() || !is_program(f)) continue;
      if (f.line > 0) return f;
      if (!named) named = &f;
    }
  return named ? *named : source_frame{};
}

}  // namespace xla::detail
