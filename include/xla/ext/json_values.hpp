// SPDX-License-Identifier: Apache-2.0
#pragma once

// Typed access to a JSON object, with errors that name the file and the key. The readers of
// configurations and tokenizers use it; nlohmann::json does the parsing.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/io/text.hpp"

namespace xla::ext::detail {

/// Whether a JSON value is nested deeper than this.
inline bool is_deeper(std::string_view json, int most) {
  std::int64_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    else if (quoted) i += c == '\\' ? 1 : 0;
    else if (c == '[' || c == '{') ++depth;
    else if (c == ']' || c == '}') --depth;
    if (depth > most) return true;
  }
  return false;
}

/// The JSON object of a file, or an object in it, with typed access to its values. Null counts as
/// absent. A value that is absent and has no default, or has another type, is an io_error with the
/// path and the key. Copies are cheap.
class json_values {
 public:
  static json_values read(const std::string& path) {
    constexpr int deepest = 64;  // deeper, messages would overflow the stack
    const auto text = io::read_text(path, io::max_vocabulary_bytes);
    if (is_deeper(text, deepest))
      throw io_error("'" + path + "' has values in more than " + std::to_string(deepest) +
                     " others");
    auto all = nlohmann::json::parse(text, nullptr, false);
    if (!all.is_object()) throw io_error("'" + path + "' is not a JSON object");
    const auto file = std::make_shared<const content>(content{path, std::move(all)});
    return {file, file->all};
  }
  /// From 1 to the largest int.
  int number(const std::string& key, std::optional<int> otherwise = {}) const {
    constexpr int most = std::numeric_limits<int>::max();
    const auto* const value = find(key);
    if (!value && otherwise) return *otherwise;
    const double number = value && value->is_number() ? value->get<double>() : 0;
    if (!(number >= 1 && number <= most) || number != std::floor(number))
      refuse_value(key, "a whole number from 1 to " + std::to_string(most));
    return static_cast<int>(number);
  }
  double fraction(const std::string& key, std::optional<double> otherwise = {}) const {
    const auto* const value = find(key);
    if (!value && otherwise) return *otherwise;
    if (!value || !value->is_number()) refuse_value(key, "a number");
    return value->get<double>();
  }
  /// Above 0.
  double positive(const std::string& key, double otherwise) const {
    const double value = fraction(key, otherwise);
    if (!(value > 0)) refuse_value(key, "a number above 0");
    return value;
  }
  bool boolean(const std::string& key, bool otherwise) const {
    const auto* const value = find(key);
    if (!value) return otherwise;
    if (!value->is_boolean()) refuse_value(key, "true or false");
    return value->get<bool>();
  }
  std::string text(const std::string& key, std::optional<std::string> otherwise = {}) const {
    const auto* const value = find(key);
    if (!value && otherwise) return *otherwise;
    if (!value || !value->is_string()) refuse_value(key, "a text");
    return value->get<std::string>();
  }
  /// Empty if absent.
  json_values object(const std::string& key) const {
    const auto* const value = find(key);
    static const auto empty = nlohmann::json::object();
    if (!value) return {file_, empty};
    if (!value->is_object()) refuse_value(key, "an object");
    return {file_, *value};
  }
  /// Empty if absent.
  const nlohmann::json& list(const std::string& key) const {
    const auto* const value = find(key);
    static const auto empty = nlohmann::json::array();
    if (!value) return empty;
    if (!value->is_array()) refuse_value(key, "a list");
    return *value;
  }
  /// An element of one of its lists.
  json_values element(const nlohmann::json& of_list) const {
    if (!of_list.is_object()) refuse(shortened(of_list) + " is not an object");
    return {file_, of_list};
  }
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  const nlohmann::json& all() const { return *all_; }
  const std::string& path() const { return file_->path; }
  [[noreturn]] void refuse(const std::string& reason) const {
    throw io_error("'" + file_->path + "': " + reason);
  }
  /// A value as it appears in a message.
  static std::string shortened(const nlohmann::json& value) {
    auto out = value.dump(-1, ' ', true);
    if (out.size() > 200) out = out.substr(0, 200) + "…";
    return out;
  }

 private:
  struct content {
    std::string path;
    nlohmann::json all;
  };
  json_values(std::shared_ptr<const content> file, const nlohmann::json& all)
      : file_(std::move(file)), all_(&all) {}
  const nlohmann::json* find(const std::string& key) const {
    const auto at = all_->find(key);
    return at == all_->end() || at->is_null() ? nullptr : &*at;
  }
  [[noreturn]] void refuse_value(const std::string& key, const std::string& expected) const {
    const auto* const value = find(key);
    refuse(key + " is " + (value ? shortened(*value) : "absent") + ", expected " + expected);
  }
  std::shared_ptr<const content> file_;
  const nlohmann::json* all_;
};

}  // namespace xla::ext::detail
