// SPDX-License-Identifier: Apache-2.0
#pragma once

// Muon, for matrices; other parameters need another optimizer. optimizer.hpp has the loop over
// parameters.

#include <array>

#include "xla/op/clip.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/permute.hpp"
#include "xla/op/root.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Muon, by PyTorch's names; match_rms_adamw is its adjust_lr_fn.
struct MuonOptions {
  Scalar lr = 1e-3;
  Scalar weight_decay = 0.1;
  Scalar momentum = 0.95;
  Scalar nesterov = true;
  std::array<Scalar, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};
  Scalar eps = 1e-7;
  int ns_steps = 5;                ///< a fact of compiled steps, which use 5
  Scalar match_rms_adamw = false;  ///< scales steps like AdamW's, so that its learning rates fit

  static constexpr int states = 1;
  static constexpr bool elementwise = false;
  template <class T>
  struct shared {
    Tensor<T, 0> fresh, left, ahead, rate;
    Tensor<bool, 0> like_adamw;
  };
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>&) const {
    const auto kept = momentum.as<T>();
    return {1 - kept, 1 - lr.as<T>() * weight_decay, where(nesterov.as<T>() != 0, kept, 1),
            lr.as<T>(), match_rms_adamw.as<T>() != 0};
  }
  /// Jordan et al. (2024), PyTorch's form.
  template <class P, class T>
  constexpr void update(const shared<T>& s, P& p, const Tensor<T, 2>& g, auto& average) const {
    const Tensor<T, 2> before = average.detach(), mean = before + (g - before) * s.fresh;
    average.copy_(mean);
    const auto change = orthogonalized(g + (mean - g) * s.ahead);
    const Tensor<T, 0> one(1);
    const auto rows = one * g.size(0), columns = one * g.size(1);
    const auto ratio = where(s.like_adamw, sqrt(maximum(rows, columns)) * T(0.2),
                             sqrt(maximum(rows / columns, 1)));
    p.copy_(p.detach() * s.left - change * (s.rate * ratio));
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Muon", {{"lr", lr.value()},
                                      {"weight_decay", weight_decay.value()},
                                      {"momentum", momentum.value()},
                                      {"eps", eps.value()},
                                      {"ns_steps", double(ns_steps), 0, 99}});
  }
  XLA_HEADER_MODULE(lr, weight_decay, momentum, nesterov, ns_coefficients, eps, ns_steps,
                    match_rms_adamw)

 private:
  /// The nearest matrix with orthogonal rows or columns, approximately: the Newton-Schulz
  /// iteration, on the side that is known to be shorter.
  template <class T>
  constexpr Tensor<T, 2> orthogonalized(const Tensor<T, 2>& g) const {
    const Size rows = g.size(0), columns = g.size(1);
    const bool tall = rows.known() && columns.known() && rows > columns;
    const auto& [a, b, c] = ns_coefficients;
    auto x = g / maximum(norm(g), eps.as<T>());
    if (tall) x = transpose(x);
    for (int i = 0; i < ns_steps; ++i) {
      const auto gram = matmul(x, transpose(x));
      x = x * a + matmul(gram * b + matmul(gram, gram) * c, x);
    }
    if (tall) x = transpose(x);
    return x;
  }
};

namespace detail {
template <class Module>
constexpr bool matrices_alone() {
  bool all = true;
  visit_state_types<Module>([&]<class S>(std::type_identity<S>, const tree_path&) {
    all = all && (!S::trainable || S::rank == 2);
  });
  return all;
}
}  // namespace detail

/// Momentum whose nearest orthogonal matrix is the step. For the weights of hidden layers.
/// PyTorch's rounds to bfloat16 on the way, this one multiplies in the parameters' type.
template <class Model>
struct Muon : Optimizer<Model, MuonOptions> {
  using Optimizer<Model, MuonOptions>::Optimizer;
  static_assert(detail::matrices_alone<typename Muon::module_type>(),
                "xla::optim::Muon: updates matrices alone: give it those as parts, "
                "Muon{std::tuple{part<&Net::fc, &Linear::weight>(net), ...}, {.lr = 0.02}}, and "
                "the other parameters to another optimizer");
};
template <class Model, class... G>
Muon(Model&&, MuonOptions, G...) -> Muon<optimized<Model, G...>>;
template <class Model>
Muon(Model&&) -> Muon<optimized<Model>>;
template <class... A>
Muon(A&&...) -> Muon<not_a_model<A...>>;

}  // namespace xla::optim
