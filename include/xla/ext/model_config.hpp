// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares a folder's config.json with the model type that a program was compiled for, so that
// weights of another network are refused. pretrained.hpp calls it.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "xla/base/system/path.hpp"
#include "xla/ext/decoder_config.hpp"
#include "xla/ext/json_values.hpp"
#include "xla/models/pretrained.hpp"

namespace xla::ext::detail {

/// A value as config.json has it.
inline std::string config_text(const models::ConfigValue& value) {
  using Kind = models::ConfigValue::Kind;
  if (value.kind == Kind::text) return std::string{value.text};
  if (value.kind == Kind::boolean) return value.number != 0 ? "true" : "false";
  return config_text(value.number);
}

/// The value that a field has in a file.
inline std::string value_in(const json_values& file, const models::ConfigField& field) {
  using Kind = models::ConfigValue::Kind;
  const std::string key{field.key};
  if (field.value.kind == Kind::text) return file.text(key, std::string{field.otherwise.text});
  if (field.value.kind == Kind::boolean)
    return file.boolean(key, field.otherwise.number != 0) ? "true" : "false";
  return config_text(file.fraction(key, field.otherwise.number));
}

/// How a file's network differs from a model type's: "hidden_size 384 instead of 768"; empty if it
/// does not. If the file names no kind of network, only the fields that it has are compared.
inline std::string config_difference(const json_values& file, std::string_view model_type,
                                     std::span<const models::ConfigField> fields) {
  const bool named = file.contains("model_type");
  if (named && file.text("model_type") != model_type)
    return "model_type " + file.text("model_type") + " instead of " + std::string{model_type};
  std::string out;
  for (const auto& field : fields) {
    if (!named && !file.contains(std::string{field.key})) continue;
    const auto found = value_in(file, field), own = config_text(field.value);
    if (found == own) continue;
    out += (out.empty() ? "" : ", ") + std::string{field.key} + " " + found + " instead of " + own;
  }
  return out;
}

inline void refuse_config(const std::string& path, const std::string& difference) {
  if (!difference.empty())
    throw io_error("'" + path + "' describes another model than the program has: " + difference);
}

/// Refuses a folder whose config.json describes another network than the type Model.
template <class Model>
void check_config(const Model&, const std::string& folder) {
  using Files = models::Pretrained<Model>;
  const auto path = folder + "/config.json";
  if (Files::model_type.empty() || !std::filesystem::exists(sys::path_of(path))) return;
  refuse_config(path, config_difference(json_values::read(path), Files::model_type, Files::config));
}
template <nn::DecoderConfig C>
void check_config(const nn::Decoder<C>&, const std::string& folder) {
  refuse_config(folder + "/config.json", decoder_difference(read_decoder_config(folder), C));
}

}  // namespace xla::ext::detail
