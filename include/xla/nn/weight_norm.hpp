// SPDX-License-Identifier: Apache-2.0
#pragma once

// weight_norm(), which wraps a layer. Not in xla.hpp.

#include <concepts>
#include <cstddef>
#include <utility>

#include "xla/module.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/functional_copy.hpp"

namespace xla::nn {

/// A layer whose weight's magnitude is a parameter of its own: weight_g times the layer's weight
/// over its norm, taken over all axes but the first. Like torch's parametrizations.weight_norm with
/// dim = 0:
///   nn::WeightNorm<nn::Linear> fc{nn::Linear{8, 4}};
/// Its state has PyTorch's names; those of the older torch.nn.utils.weight_norm load, too. Salimans
/// and Kingma (2016).
template <class Layer>
struct WeightNorm {
  static constexpr int rank = decltype(Layer::weight)::rank;
  using value_type = typename decltype(Layer::weight)::value_type;
  Layer layer;                           ///< its weight is the direction, original1 in PyTorch
  Parameter<value_type, rank> weight_g;  ///< (out, 1, ...), original0 in PyTorch

  constexpr WeightNorm()
    requires std::default_initializable<Layer>
      : WeightNorm(Layer()) {}
  constexpr explicit WeightNorm(Layer l)
      : layer(std::move(l)), weight_g(lengths(std::make_index_sequence<rank>{})) {
    if (!__builtin_is_constant_evaluated() && layer.weight.defined())
      weight_g.copy_(length(layer.weight.detach()));
  }
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x) const {
    const auto normed = functional_copy(layer);
    normed.weight.copy_(weight());
    return normed(x);
  }
  /// The weight that the layer uses.
  constexpr Tensor<value_type, rank> weight() const {
    return layer.weight * (weight_g / length(layer.weight));
  }
  XLA_RENAMED_MODULE(layer, "weight", "parametrizations.weight.original1",
                     XLA_MEMBER_AS("parametrizations.weight.original0", weight_g))
  XLA_TIED({"weight_g", "parametrizations.weight.original0"},
           {"weight_v", "parametrizations.weight.original1"})

 private:
  static constexpr Tensor<value_type, rank> length(const Tensor<value_type, rank>& v) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return norm(v, {static_cast<int>(I) + 1 ...}, keepdim);
    }(std::make_index_sequence<rank - 1>{});
  }
  template <std::size_t... I>
  constexpr Parameter<value_type, rank> lengths(std::index_sequence<I...>) const {
    const auto s = layer.weight.shape();
    if (!__builtin_is_constant_evaluated() && !layer.weight.defined()) return {};
    return Parameter<value_type, rank>({Size(I == 0 ? s[0] : 1)...});
  }
};

/// nn::weight_norm(nn::Linear{8, 4}).
template <class Layer>
constexpr WeightNorm<Layer> weight_norm(Layer layer) {
  return WeightNorm<Layer>(std::move(layer));
}

}  // namespace xla::nn
