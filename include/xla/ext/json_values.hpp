// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/io/text.hpp"

namespace xla::ext::detail {

/// What a file has, discarded where that is no JSON. Deep nesting, on which copies and messages
/// would overflow the stack, is an io_error.
inline nlohmann::json parse_json(const std::string& path) {
  constexpr int deepest = 64;
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > deepest)
      throw io_error("'" + path + "' has values in more than " + std::to_string(deepest) +
                     " others");
    return true;
  };
  return nlohmann::json::parse(io::read_text(path), shallow, false);
}

/// A file's JSON object, or an object in it, whose values are asked for by their kinds. A value
/// that is null counts as absent. What is absent without another value to take, or of another kind,
/// is an io_error with the path and the key.
class json_values {
 public:
  static json_values read(const std::string& path) {
    auto all = parse_json(path);
    if (!all.is_object()) throw io_error("'" + path + "' is not a JSON object");
    return {path, std::move(all)};
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
  bool truth(const std::string& key, bool otherwise) const {
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
  /// Empty where it is absent.
  json_values object(const std::string& key) const {
    const auto* const value = find(key);
    if (!value) return {path_, nlohmann::json::object()};
    if (!value->is_object()) refuse_value(key, "an object");
    return {path_, *value};
  }
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  const nlohmann::json& all() const { return all_; }
  [[noreturn]] void refuse(const std::string& reason) const {
    throw io_error("'" + path_ + "': " + reason);
  }

 private:
  json_values(std::string path, nlohmann::json all)
      : path_(std::move(path)), all_(std::move(all)) {}
  const nlohmann::json* find(const std::string& key) const {
    const auto at = all_.find(key);
    return at == all_.end() || at->is_null() ? nullptr : &*at;
  }
  [[noreturn]] void refuse_value(const std::string& key, const std::string& expected) const {
    const auto* const value = find(key);
    refuse(key + " is " + (value ? value->dump().substr(0, 80) : "absent") + ", expected " +
           expected);
  }
  std::string path_;
  nlohmann::json all_;
};

}  // namespace xla::ext::detail
