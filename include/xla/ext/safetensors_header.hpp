// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses and checks the JSON header of a safetensors file, before any of its data is read.
// safetensors.hpp calls it.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/ext/safetensors_types.hpp"
#include "xla/io/bytes.hpp"
#include "xla/io/named_array.hpp"

namespace xla::ext::detail {

/// The longest header that is read or written, as in the reference implementation.
inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

inline constexpr std::string_view safetensors_metadata = "__metadata__";

/// A name for an error message: shortened, and without control sequences for a terminal.
inline std::string in_quotes(std::string_view name) {
  std::string out{name.substr(0, 80)};
  for (auto& c : out)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  return "'" + out + (name.size() > 80 ? "…'" : "'");
}

[[noreturn]] inline void refuse_safetensors(const std::string& name, const std::string& reason) {
  throw io_error("'" + name + "' is not a safetensors file that can be read: " + reason);
}

/// One tensor of a header. `bytes` of the array are filled in later.
struct safetensors_entry {
  NamedArray array;
  std::uint64_t begin = 0, end = 0;
  const safetensors_type* stored = nullptr;

  void keep_bfloat16() {
    if (stored->name != stored_bfloat16.name) return;
    stored = &stored_bfloat16;
    array.type = dtype::bfloat16;
  }
  /// Makes the tensor's storage from its bytes in the file, which are little-endian.
  void take(io::Bytes bytes) {
    io::detail::convert_bytes(bytes, static_cast<std::size_t>(size_of(stored->width)),
                              std::endian::little);
    array.bytes = is_narrow(*stored) ? widen(*stored, bytes) : std::move(bytes);
  }
};

/// A handler for nlohmann::json::sax_parse. In a parsed document a second value of the same name
/// would silently replace the first.
class safetensors_events {
 public:
  std::vector<safetensors_entry> entries;
  std::map<std::string, std::string> metadata;

  explicit safetensors_events(const std::string& file) : file_(file) {}

  bool start_object(std::size_t) {
    if (level_ == 0) return enter();
    if (level_ != 1) refuse_value();
    if (in_metadata_) return enter();
    entries.push_back({{tensor_, {}, {}, {}}, 0, 0, nullptr});
    seen_ = 0;
    return enter();
  }
  bool key(std::string& name) {
    if (level_ == 1) {
      if (!names_.insert(name).second) refuse("the name " + in_quotes(name) + " appears twice");
      in_metadata_ = name == safetensors_metadata;
      tensor_ = name;
    } else if (in_metadata_) {
      if (metadata.contains(name)) refuse("metadata " + in_quotes(name) + " appears twice");
    } else {
      field_ = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
      if (field_ == 0 || (seen_ & field_) != 0)
        refuse_tensor("has key " + in_quotes(name) +
                      ", expected dtype, shape and data_offsets once");
      seen_ |= field_;
    }
    key_ = name;
    return true;
  }
  bool string(std::string& value) {
    if (level_ != 2) refuse_value();
    if (in_metadata_) {
      metadata.emplace(key_, value);
      return true;
    }
    if (field_ != 1) refuse_value();
    for (const auto& type : safetensors_types)
      if (value == type.name) {
        entries.back().array.type = type.type;
        entries.back().stored = &type;
        return true;
      }
    refuse_tensor("has dtype " + in_quotes(value) +
                  ", expected F32, BF16, F16, F64, I32, I64, U8 or BOOL");
  }
  bool start_array(std::size_t) {
    if (level_ != 2 || in_metadata_ || field_ == 1) refuse_value();
    offsets_ = 0;
    return enter();
  }
  bool number_unsigned(std::uint64_t value) {
    if (level_ != 3) refuse_value();
    auto& entry = entries.back();
    if (field_ == 2) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse_tensor("has a size that is too large");
      entry.array.sizes.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_ == 2) refuse_tensor("has more than two data_offsets");
      (offsets_++ == 0 ? entry.begin : entry.end) = value;
    }
    return true;
  }
  bool end_array() {
    if (field_ == 4 && offsets_ != 2) refuse_tensor("has fewer than two data_offsets");
    --level_;
    return true;
  }
  bool end_object() {
    if (level_ == 2 && !in_metadata_ && seen_ != 7)
      refuse_tensor("lacks dtype, shape or data_offsets");
    --level_;
    return true;
  }
  bool null() { refuse_value(); }
  bool boolean(bool) { refuse_value(); }
  bool number_integer(std::int64_t) { refuse_value(); }
  bool number_float(double, const std::string&) { refuse_value(); }
  template <class Binary>
  bool binary(Binary&) {
    refuse_value();
  }
  template <class Exception>
  bool parse_error(std::size_t at, const std::string&, const Exception&) {
    refuse("the header is not JSON at its byte " + std::to_string(at));
  }

 private:
  bool enter() {
    ++level_;
    return true;
  }
  [[noreturn]] void refuse(const std::string& reason) const { refuse_safetensors(file_, reason); }
  [[noreturn]] void refuse_tensor(const std::string& reason) const {
    refuse("tensor " + in_quotes(tensor_) + " " + reason);
  }
  [[noreturn]] void refuse_value() const {
    if (level_ == 0) refuse("the header is not a JSON object");
    if (level_ == 1) refuse(in_quotes(tensor_) + " is not an object");
    if (in_metadata_) refuse("metadata " + in_quotes(key_) + " is not text");
    refuse_tensor("has a value of the wrong kind as " + key_);
  }

  const std::string& file_;
  std::unordered_set<std::string> names_;
  std::string tensor_, key_;
  int level_ =
      0;  // depth: 0 outside, 1 among the names, 2 in a tensor or the metadata, 3 in a list
  bool in_metadata_ = false;
  int field_ = 0, seen_ = 0, offsets_ = 0;
};

/// A header, fully checked against the number of bytes that follow it.
struct safetensors_header {
  std::vector<safetensors_entry> entries;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

inline safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                   const std::string& name) {
  if (!text.starts_with('{')) refuse_safetensors(name, "the header does not begin with '{'");
  // The parser would take a zero byte for the end.
  if (text.find('\0') != text.npos) refuse_safetensors(name, "a zero byte in the header");
  safetensors_events events{name};
  nlohmann::json::sax_parse(text, &events);
  auto& entries = events.entries;
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
  });
  std::uint64_t at = 0;
  for (const auto& [array, begin, end, stored] : entries) {
    const auto subject = "tensor " + in_quotes(array.name);
    const auto bytes = io::array_bytes(stored->width, array.sizes);
    if (!bytes || !io::array_bytes(array.type, array.sizes))
      refuse_safetensors(name, subject + ": its shape overflows");
    if (begin != at)
      refuse_safetensors(name, subject + " begins at byte " + std::to_string(begin) + " of the data, " +
                                   (begin < at ? "inside" : "behind a gap after") +
                                   " what ends at " + std::to_string(at));
    if (end < begin || end - begin != *bytes)
      refuse_safetensors(name, subject + " takes " + std::to_string(*bytes) +
                                   " bytes by its shape, data_offsets say from " +
                                   std::to_string(begin) + " to " + std::to_string(end));
    if (end > data_bytes)
      refuse_safetensors(name, subject + " ends at byte " + std::to_string(end) +
                                   " of the data, which has " + std::to_string(data_bytes));
    at = end;
  }
  if (at != data_bytes)
    refuse_safetensors(name, std::to_string(data_bytes - at) + " bytes follow the last tensor");
  return {std::move(entries), std::move(events.metadata)};
}

}  // namespace xla::ext::detail
