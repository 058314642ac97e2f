// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the types of a StableHLO program's arguments from its text. executable.hpp compares
// arguments with them, because a plugin does not.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/array_type.hpp"

namespace xla::ext::pjrt {

/// The argument types of a program.
struct parameter {
  array_type type;
  bool donated = false;  ///< donated: a result, or nothing, takes its memory
};

namespace detail {

/// Parses the parameter list of @main in a program's text. A plugin itself compares only the bytes
/// of arguments.
class signature_reader {
 public:
  explicit signature_reader(std::string_view text) : text_(text) {
    const std::string_view main = "@main(";
    at_ = text.find(main);
    if (at_ == text.npos) refuse("it has no function @main");
    at_ += main.size();
  }
  std::vector<parameter> read() {
    std::vector<parameter> all;
    while (skip_space(), peek() != ')') {
      if (!all.empty()) expect(',');
      all.push_back(read_one());
    }
    return all;
  }

 private:
  parameter read_one() {
    skip_space();
    if (peek() != '%') refuse("an argument of @main has no name");
    while (peek() != ':') ++at_;
    ++at_;
    parameter p{read_type()};
    skip_space();
    if (peek() == '{') {
      const std::string_view attributes = read_braces();
      p.donated = attributes.find("tf.aliasing_output") != attributes.npos ||
                  attributes.find("jax.buffer_donor = true") != attributes.npos;
    }
    skip_space();
    if (text_.substr(at_).starts_with("loc(")) at_ = text_.find(')', at_) + 1;
    return p;
  }
  // "tensor<64x10xf32>".
  array_type read_type() {
    skip_space();
    const auto end = std::min(text_.find('>', at_), text_.size());
    std::string_view inside = text_.substr(at_, end - at_);
    const std::string whole(inside.substr(0, 60));
    at_ = std::min(end + 1, text_.size());
    const std::string_view before = "tensor<";
    if (!inside.starts_with(before)) refuse(whole + " is no tensor");
    inside.remove_prefix(before.size());
    array_type out;
    while (!inside.empty() && std::isdigit(static_cast<unsigned char>(inside[0])) != 0) {
      std::int64_t size = 0;
      const auto read = std::from_chars(inside.data(), inside.data() + inside.size(), size);
      if (read.ec != std::errc{} || read.ptr == inside.data() + inside.size() || *read.ptr != 'x')
        break;
      if (out.sizes.rank == xla::detail::max_rank) refuse(whole + "> has too many axes");
      out.sizes.push(size);
      inside.remove_prefix(static_cast<std::size_t>(read.ptr - inside.data()) + 1);
    }
    const auto* const known = std::find_if(std::begin(all_elements), std::end(all_elements),
                                           [&](const auto& e) { return e.in_text == inside; });
    if (known == std::end(all_elements)) refuse(whole + "> is of no type that is known here");
    out.type = known->type;
    return out;
  }
  std::string_view read_braces() {
    const std::size_t begin = at_;
    int depth = 0;
    bool quoted = false;
    do {
      const char c = peek();
      if (c == '"') quoted = !quoted;
      if (!quoted) depth += (c == '{') - (c == '}');
      at_ += quoted && c == '\\' ? 2 : 1;
    } while (depth > 0 || quoted);
    return text_.substr(begin, at_ - begin);
  }
  char peek() const {
    if (at_ >= text_.size()) refuse("it ends within the arguments of @main");
    return text_[at_];
  }
  void skip_space() {
    while (std::isspace(static_cast<unsigned char>(peek())) != 0) ++at_;
  }
  void expect(char c) {
    skip_space();
    if (peek() != c) refuse(std::string("'") + c + "' is missing between arguments of @main");
    ++at_;
  }
  [[noreturn]] static void refuse(const std::string& what) {
    throw runtime_error(xla::detail::join({"pjrt: the program's text is refused: ", what}));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// The argument types of a StableHLO program. Throws `xla::runtime_error` if @main cannot be
/// parsed, or takes anything but arrays of known sizes.
inline std::vector<parameter> parameters_of(std::string_view text) {
  return detail::signature_reader(text).read();
}

}  // namespace xla::ext::pjrt
