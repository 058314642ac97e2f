// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the files of a network differ from the network here: names, tied parameters, fields of
// config.json. Each family specialises it; ext/pretrained.hpp reads it.

#include <array>
#include <string_view>

#include "xla/io/named_array.hpp"

namespace xla::models {

/// A number, a boolean or a string of a config.json.
struct ConfigValue {
  enum class Kind { number, boolean, text } kind;
  double number = 0;
  std::string_view text = {};

  constexpr ConfigValue(int n) : kind(Kind::number), number(n) {}
  constexpr ConfigValue(double n) : kind(Kind::number), number(n) {}
  constexpr ConfigValue(bool b) : kind(Kind::boolean), number(b ? 1 : 0) {}
  constexpr ConfigValue(const char* t) : kind(Kind::text), text(t) {}
};

/// A field of a config.json that affects what a network computes: the value of the model's type,
/// and the default if the field is missing.
struct ConfigField {
  std::string_view key;
  ConfigValue value, otherwise;
};

/// How the files of a network differ from the network, for models::load; by default not at all. A
/// family specialises it for the fields of its config.json, for names of its own, and for heads
/// that files may have and a model may lack.
template <class Model>
struct Pretrained {
  static constexpr std::string_view model_type = {};
  static constexpr std::array<ConfigField, 0> config{};
  static constexpr std::array<std::string_view, 0> heads{};
  static StateDict own_names(StateDict state) { return state; }
};

}  // namespace xla::models
