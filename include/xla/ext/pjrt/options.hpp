// SPDX-License-Identifier: Apache-2.0
#pragma once

// Options of clients and compilations as PJRT takes them, some as hand-written protocol buffers. It
// does not need a protobuf library.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/abi.hpp"

namespace xla::ext::pjrt {

/// The value of a plugin's named option, in the order of abi::value_kind.
using option_value =
    std::variant<std::string, std::int64_t, std::vector<std::int64_t>, float, bool>;
using named_options = std::map<std::string, option_value>;

namespace detail {

/// As a plugin takes them; they point into `from`.
inline std::vector<abi::named_value> point_at(const named_options& from) {
  std::vector<abi::named_value> out;
  for (const auto& [name, value] : from) {
    abi::named_value& v = out.emplace_back();
    v.name = name.data();
    v.name_size = name.size();
    v.kind = static_cast<abi::value_kind>(value.index());
    if (const auto* s = std::get_if<std::string>(&value)) v.string = s->data(), v.count = s->size();
    if (const auto* i = std::get_if<std::int64_t>(&value)) v.int64 = *i;
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value))
      v.int64s = l->data(), v.count = l->size();
    if (const auto* f = std::get_if<float>(&value)) v.float32 = *f;
    if (const auto* b = std::get_if<bool>(&value)) v.boolean = *b;
  }
  return out;
}

/// As text, to distinguish options.
inline std::string spell(const named_options& from) {
  std::string out;
  for (const auto& [name, value] : from) {
    out += name + "=";
    if (const auto* s = std::get_if<std::string>(&value)) out += *s;
    if (const auto* i = std::get_if<std::int64_t>(&value)) out += std::to_string(*i);
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value))
      for (const std::int64_t i : *l) out += std::to_string(i) + ",";
    if (const auto* f = std::get_if<float>(&value)) out += std::to_string(*f);
    if (const auto* b = std::get_if<bool>(&value)) out += *b ? "true" : "false";
    out += "\n";
  }
  return out;
}

/// Writes the fields of a protocol buffer message.
class message {
 public:
  message& number(int field, std::uint64_t value) {
    write(static_cast<std::uint64_t>(field) << 3);
    write(value);
    return *this;
  }
  message& bytes(int field, std::string_view value) {
    write(static_cast<std::uint64_t>(field) << 3 | 2);
    write(value.size());
    text_ += value;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void write(std::uint64_t v) {
    for (; v > 127; v >>= 7) text_ += static_cast<char>(v | 128);
    text_ += static_cast<char>(v);
  }
  std::string text_;
};

}  // namespace detail

/// XLA's debug options by name: a bool, a number or text.
using debug_options = std::map<std::string, std::variant<std::string, std::int64_t, bool>>;

/// The options of a compilation.
struct compile_options {
  int replicas = 1;          ///< devices that each run all of it
  int partitions = 1;        ///< devices that divide each replica
  bool shardy = false;       ///< partitions are given in Shardy's dialect instead of GSPMD's
  debug_options debug = {};  ///< those of XLA_FLAGS apply as well

  std::int64_t devices() const { return std::int64_t{replicas} * partitions; }
  /// As a CompileOptionsProto.
  std::string encode() const;
};

inline std::string compile_options::encode() const {
  // Without any, XLA ends the process.
  if (replicas < 1 || partitions < 1)
    throw runtime_error(
        xla::detail::join({"pjrt::compile_options: ", std::to_string(replicas), " replicas of ",
                           std::to_string(partitions), " partitions: each is 1 or more"}));
  detail::message build;  // ExecutableBuildOptionsProto
  build.number(4, static_cast<std::uint64_t>(replicas));
  build.number(5, static_cast<std::uint64_t>(partitions));
  if (partitions > 1) build.number(6, 1);
  if (shardy) build.number(19, 1);
  detail::message all;
  all.bytes(3, build.text());
  for (const auto& [name, value] : debug) {
    detail::message option;  // OptionOverrideProto
    if (const auto* s = std::get_if<std::string>(&value)) option.bytes(1, *s);
    if (const auto* b = std::get_if<bool>(&value)) option.number(2, *b ? 1 : 0);
    if (const auto* i = std::get_if<std::int64_t>(&value))
      option.number(3, static_cast<std::uint64_t>(*i));
    all.bytes(7, detail::message().bytes(1, name).bytes(2, option.text()).text());
  }
  return all.text();
}

}  // namespace xla::ext::pjrt
