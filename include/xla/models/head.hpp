// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds or replaces the classification layer, for fine-tuning: by the names of members that the
// networks of this folder have. It works for any network with a member `fc`, `head` or
// `classifier`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/models/pretrained.hpp"
#include "xla/module.hpp"

namespace xla::models {
namespace detail {

template <class Layer>
inline constexpr bool has_weight = requires(Layer& layer) { layer.weight; };
template <class Layers>
inline constexpr std::size_t last_with_weight = 0;
template <class... Layer>
inline constexpr std::size_t last_with_weight<std::tuple<Layer...>> = [] {
  std::size_t last = 0, at = 0;
  ((last = has_weight<Layer> ? at : last, ++at), ...);
  return last;
}();

}  // namespace detail

/// The classification layer of a network of this folder, to be replaced or trained alone: `fc`,
/// `head`, `classifier`, or its last layer that has a weight.
template <class Model>
constexpr auto& head(Model& model) {
  if constexpr (requires { model.fc; }) return model.fc;
  else if constexpr (requires { model.head; }) return model.head;
  else if constexpr (detail::has_weight<decltype(model.classifier)>) return model.classifier;
  else {
    using Layers = std::remove_cvref_t<decltype(model.classifier.layers)>;
    return std::get<detail::last_with_weight<Layers>>(model.classifier.layers);
  }
}

/// The prefix of the head's state names, such as `fc.` or `classifier.6.`.
template <class Model>
std::string head_prefix(Model& model) {
  std::string prefix;
  const void* const weight = std::addressof(head(model).weight);
  named_parameters(model, [&](const std::string& name, auto& parameter) {
    if (std::addressof(parameter) == weight) prefix = name.substr(0, name.size() - 6);
  });
  return prefix;
}

/// Gives a network a new head with this many classes, freshly initialised. To be called before the
/// optimizer is made.
template <class Model>
void replace_head(Model& model, std::int64_t classes) {
  using Layer = std::remove_reference_t<decltype(head(model))>;
  const std::int64_t features = head(model).weight.size(1);
  head(model) = Layer{features, classes};
}

/// A network whose number of classes is known at run time. Compiled functions accept any number for
/// it, but for Model itself only the one in its type. The default is Model's.
template <class Model>
struct AnyClasses : Model {
  constexpr AnyClasses() {
    using Layer = std::remove_reference_t<decltype(head(static_cast<Model&>(*this)))>;
    if (__builtin_is_constant_evaluated()) head(static_cast<Model&>(*this)) = Layer{};
  }
  explicit AnyClasses(std::int64_t classes) { replace_head(static_cast<Model&>(*this), classes); }
  XLA_DERIVED_MODULE(Model)
};

template <class Model>
struct Pretrained<AnyClasses<Model>> : Pretrained<Model> {};

}  // namespace xla::models
