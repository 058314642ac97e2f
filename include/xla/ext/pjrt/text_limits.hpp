// SPDX-License-Identifier: Apache-2.0
#pragma once

// Refuses StableHLO texts for which XLA's compiler ends the process, such as recursion or arrays of
// impossible size. Texts from users go through it before they are compiled.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "xla/base/compiler.hpp"
#include "xla/base/error.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/array_type.hpp"

namespace xla::ext::pjrt {

namespace detail {

/// The functions of a program's text, and the nesting depth of its brackets.
class text_outline {
 public:
  struct function {
    std::string_view name;
    std::vector<std::string_view> names;  ///< every name after an @ in it
  };

  explicit text_outline(std::string_view text) : text_(text) {
    while (at_ < text_.size()) step();
  }
  const std::vector<function>& functions() const { return functions_; }
  int depth() const { return deepest_; }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '"') return name_by(read_string());
    if (text_.substr(at_).starts_with("//")) return skip_to(text_.find('\n', at_));
    if (c == '@') return see_symbol();
    if (is_of_word(c)) return see_word(read_word());
    // The > of an arrow closes nothing; types are within other brackets.
    if (c == '-' && text_.substr(at_).starts_with("->")) at_ += 2;
    else see_bracket(c), ++at_;
  }
  void see_bracket(char c) {
    if (c == '(' || c == '[' || c == '{' || c == '<') deepest_ = std::max(deepest_, ++depth_);
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth_;
  }
  void see_word(std::string_view word) {
    if (word == "func.func") begin();
    names_next_ = word == "sym_name";
  }
  // "func.func"() <{sym_name = "f"}> defines a function, too.
  void name_by(std::string_view quoted) {
    if (quoted == "func.func") begin();
    else if (names_next_ && !functions_.empty()) functions_.back().name = quoted;
    names_next_ = quoted == "sym_name";
  }
  void begin() { functions_.emplace_back(); }
  void see_symbol() {
    ++at_;
    const bool quoted = at_ < text_.size() && text_[at_] == '"';
    const std::string_view name = quoted ? read_string() : read_word();
    if (functions_.empty()) return;
    function& f = functions_.back();
    if (f.name.empty()) f.name = name;
    else f.names.push_back(name);
  }

  static bool is_of_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.';
  }
  std::string_view read_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::string_view read_string() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    const std::size_t end = std::min(at_, text_.size());
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  void skip_to(std::size_t at) { at_ = std::min(at, text_.size()); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<function> functions_;
  bool names_next_ = false;
  int depth_ = 0, deepest_ = 0;
};

/// The largest number of functions in a chain of calls; -1 if a function calls itself.
inline int depth_of_calls(const std::vector<text_outline::function>& all) {
  std::map<std::string_view, int> numbers;
  for (const auto& f : all) numbers.emplace(f.name, static_cast<int>(numbers.size()));
  const int n = static_cast<int>(numbers.size());
  using xla::detail::list;
  list<list<int>> calls(n);
  list<int> callers(n, 0), depth(n, 1), ready;
  for (const auto& f : all)
    for (const std::string_view name : f.names)
      if (const auto there = numbers.find(name); there != numbers.end()) {
        calls[numbers[f.name]].push_back(there->second);
        ++callers[there->second];
      }
  for (int i = 0; i < n; ++i)
    if (callers[i] == 0) ready.push_back(i);
  int deepest = 0, seen = 0;
  for (; seen < ready.size(); ++seen) {
    const int f = ready[seen];
    deepest = std::max(deepest, depth[f]);
    for (const int to : calls[f]) {
      depth[to] = std::max(depth[to], depth[f] + 1);
      if (--callers[to] == 0) ready.push_back(to);
    }
  }
  return seen == n ? deepest : -1;
}

inline void refuse_huge_arrays(std::string_view text) {
  const std::string_view before = "tensor<";
  for (auto at = text.find(before); at != text.npos; at = text.find(before, at)) {
    at += before.size();
    std::int64_t elements = 1;
    bool huge = false, none = false;
    for (auto begin = at;;) {
      std::int64_t size = 0;
      const auto read = std::from_chars(text.data() + begin, text.data() + text.size(), size);
      if (read.ec == std::errc::invalid_argument || read.ptr == text.data() + text.size() ||
          *read.ptr != 'x')
        break;
      huge |= read.ec != std::errc{} || XLA_MULTIPLY_OVERFLOWS(elements, size, elements) ||
              elements > max_bytes;
      none |= read.ec == std::errc{} && size == 0;
      begin = static_cast<std::size_t>(read.ptr - text.data()) + 1;
    }
    if (huge && !none)
      throw out_of_memory(xla::detail::text("pjrt: the program's text has a tensor<")
                          << text.substr(at, std::min<std::size_t>(60, text.find('>', at) - at))
                          << ">, which is more than any machine's memory");
  }
}

}  // namespace detail

/// Throws for a text for which XLA's compiler would end the process: `xla::out_of_memory` if an
/// array exceeds any machine's memory; `xla::runtime_error` if a function calls itself, or if
/// functions or brackets are nested hundreds deep.
inline void check_text(std::string_view text) {
  constexpr int deepest = 300;
  detail::refuse_huge_arrays(text);
  const detail::text_outline outline(text);
  const int calls = detail::depth_of_calls(outline.functions());
  const auto refuse = [](const std::string& what) {
    throw runtime_error(xla::detail::join({"pjrt: the program's text is refused: ", what}));
  };
  if (calls < 0) refuse("one of its functions calls itself, which never ends");
  const auto nested = [&](const char* what, int depth) {
    refuse(xla::detail::join({what, " are nested ", std::to_string(depth), " deep; the limit is ",
                              std::to_string(deepest)}));
  };
  if (calls > deepest) nested("its calls", calls);
  if (outline.depth() > deepest) nested("its brackets", outline.depth());
}

}  // namespace xla::ext::pjrt
