// SPDX-License-Identifier: Apache-2.0
#pragma once

// spectral_norm(), which wraps a layer. Not in xla.hpp.

#include <concepts>
#include <cstdint>
#include <utility>

#include "xla/module.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/linalg.hpp"
#include "xla/op/derived/unit_length.hpp"
#include "xla/op/functional_copy.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/random.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla::nn {

/// A layer whose weight, as a matrix (out, everything else), is divided by its largest singular
/// value, like torch's parametrizations.spectral_norm. While training each call makes a power
/// iteration, which improves the buffers u and v:
///   nn::SpectralNorm<nn::Linear> fc{nn::Linear{8, 4}};
/// Its state has PyTorch's names; those of the older torch.nn.utils.spectral_norm load, too. Miyato
/// et al. (2018).
template <class Layer>
struct SpectralNorm {
  static constexpr int rank = decltype(Layer::weight)::rank;
  using value_type = typename decltype(Layer::weight)::value_type;
  Layer layer;
  Buffer<value_type, 1> u;  ///< (out)
  Buffer<value_type, 1> v;  ///< (everything else)
  TrainingFlag training;

  constexpr SpectralNorm()
    requires std::default_initializable<Layer>
      : SpectralNorm(Layer()) {}
  /// Random vectors after 15 power iterations, or another number of them.
  constexpr explicit SpectralNorm(Layer l, int iterations = 15)
      : layer(std::move(l)), u(vector(true)), v(vector(false)) {
    if (__builtin_is_constant_evaluated() || !layer.weight.defined()) return;
    u.copy_(unit(randn_like(u.detach())));
    v.copy_(unit(randn_like(v.detach())));
    for (int i = 0; i < iterations; ++i) improve();
  }
  template <class T, int R>
  constexpr auto operator()(const Tensor<T, R>& x) const {
    if (training) improve();
    const auto normed = functional_copy(layer);
    normed.weight.copy_(weight());
    return normed(x);
  }
  /// The weight that the layer uses.
  constexpr Tensor<value_type, rank> weight() const {
    return layer.weight / dot(u.detach(), mv(matrix(layer.weight), v.detach()));
  }
  XLA_RENAMED_MODULE(layer, "weight", "parametrizations.weight.original",
                     XLA_MEMBER_AS("parametrizations.weight.0._u", u),
                     XLA_MEMBER_AS("parametrizations.weight.0._v", v),
                     XLA_MEMBER_AS("training", training))
  XLA_TIED({"weight_orig", "parametrizations.weight.original"},
           {"weight_u", "parametrizations.weight.0._u"},
           {"weight_v", "parametrizations.weight.0._v"})

 private:
  using vector_type = Tensor<value_type, 1>;
  static constexpr Tensor<value_type, 2> matrix(const Tensor<value_type, rank>& w) {
    if constexpr (rank == 2) return w;
    else return flatten<1>(w);
  }
  static constexpr vector_type unit(const vector_type& x) { return normalize(x, 2, 0); }
  constexpr void improve() const {
    const auto m = matrix(layer.weight.detach());
    u.copy_(unit(mv(m, v.detach())));
    v.copy_(unit(mv(transpose(m), u.detach())));
  }
  constexpr Buffer<value_type, 1> vector(bool of_rows) const {
    if (!__builtin_is_constant_evaluated() && !layer.weight.defined()) return {};
    const auto s = layer.weight.shape();
    std::int64_t size = of_rows ? s[0] : 1;
    for (int i = 1; i < rank && !of_rows; ++i) size = size < 0 || s[i] < 0 ? -1 : size * s[i];
    return Buffer<value_type, 1>({size});
  }
};

/// nn::spectral_norm(nn::Linear{8, 4}).
template <class Layer>
constexpr SpectralNorm<Layer> spectral_norm(Layer layer) {
  return SpectralNorm<Layer>(std::move(layer));
}

}  // namespace xla::nn
