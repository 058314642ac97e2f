// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of an RNN, LSTM or GRU. recurrent.hpp loops over it; as a layer of its own it is RNNCell
// and its kin.

#include <cmath>
#include <cstdint>
#include <utility>

#include "xla/nn/init.hpp"
#include "xla/nn/shape.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/create.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/tanh.hpp"

namespace xla::nn {

enum class RNNNonlinearity { tanh, relu };

namespace detail {

/// The parameters of a recurrent layer in one direction, by PyTorch's names.
template <class T, int Gates, bool Bias, bool Projected = false>
struct recurrent_weights {
  using bias = state_if<Bias, Parameter<T, 1>>;
  using projection = state_if<Projected, Parameter<T, 2>>;
  Parameter<T, 2> weight_ih;  ///< (gates × hidden, in)
  Parameter<T, 2> weight_hh;  ///< (gates × hidden, out)
  bias bias_ih, bias_hh;      ///< (gates × hidden)
  projection weight_hr;       ///< (out, hidden)

  constexpr recurrent_weights() = default;
  constexpr recurrent_weights(std::int64_t in, std::int64_t hidden, std::int64_t out)
      : weight_ih({Gates * hidden, in}),
        weight_hh({Gates * hidden, out}),
        bias_ih(make_state<bias>({Gates * hidden})),
        bias_hh(make_state<bias>({Gates * hidden})),
        weight_hr(make_state<projection>({out, hidden})) {
    if (!__builtin_is_constant_evaluated()) reset_parameters();
  }
  /// Uniform within one over the square root of hidden.
  void reset_parameters() {
    const auto hidden = static_cast<double>(std::int64_t(weight_ih.size(0)) / Gates);
    const T bound = hidden > 0 ? static_cast<T>(1 / std::sqrt(hidden)) : T(0);
    for_each_parameter(*this, [&](auto& p) { init::uniform_(p, -bound, bound); });
  }
  XLA_MODULE(weight_ih, weight_hh, bias_ih, bias_hh, weight_hr)
};

/// x weightᵀ + the biases that there are.
template <class T, int R, class... Bias>
constexpr Tensor<T, R> affine(const Tensor<T, R>& x, const Tensor<T, 2>& weight, caller loc,
                              const Bias&... bias) {
  if constexpr (sizeof...(Bias) == 0 || (std::is_same_v<Bias, Identity> || ...))
    return linear(x, weight, loc);
  else return linear(x, weight, (bias + ...), loc);
}

// A step of a recurrent layer: inputs() is the part that does not depend on the state, for one step
// or all of them; next() computes the next state from it and the previous one.

/// h = f(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh).
template <RNNNonlinearity F>
struct simple_recurrence {
  static constexpr int gates = 1;
  template <class T>
  using state = Tensor<T, 2>;

  template <class T, int R>
  static constexpr Tensor<T, R> inputs(const auto& w, const Tensor<T, R>& x, caller loc) {
    return affine(x, w.weight_ih, loc, w.bias_ih, w.bias_hh);
  }
  template <class T>
  static constexpr Tensor<T, 2> next(const auto& w, const Tensor<T, 2>& in, const Tensor<T, 2>& h,
                                     caller loc) {
    const auto sum = in + linear(h, w.weight_hh, loc);
    if constexpr (F == RNNNonlinearity::relu) return relu(sum);
    else return tanh(sum);
  }
};

/// Gates i, f, g, o: c = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c), projected if there is a
/// weight_hr. Hochreiter and Schmidhuber (1997).
struct lstm_recurrence {
  static constexpr int gates = 4;
  template <class T>
  using state = std::pair<Tensor<T, 2>, Tensor<T, 2>>;

  template <class T, int R>
  static constexpr Tensor<T, R> inputs(const auto& w, const Tensor<T, R>& x, caller loc) {
    return affine(x, w.weight_ih, loc, w.bias_ih, w.bias_hh);
  }
  template <class T>
  static constexpr state<T> next(const auto& w, const Tensor<T, 2>& in, const state<T>& last,
                                 caller loc) {
    const auto [i, f, g, o] = split<4>(Tensor<T, 2>(in + linear(last.first, w.weight_hh, loc)), 1);
    const Tensor<T, 2> c = sigmoid(f) * last.second + sigmoid(i) * tanh(g);
    const Tensor<T, 2> h = sigmoid(o) * tanh(c);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(w.weight_hr)>, Identity>)
      return {h, c};
    else return {linear(h, w.weight_hr, loc), c};
  }
};

/// Gates r, z, n: n = tanh(x W_inᵀ + b_in + σ(r) (h W_hnᵀ + b_hn)), h = (1 - σ(z)) n + σ(z) h. Cho
/// et al. (2014), with the order of PyTorch.
struct gru_recurrence {
  static constexpr int gates = 3;
  template <class T>
  using state = Tensor<T, 2>;

  template <class T, int R>
  static constexpr Tensor<T, R> inputs(const auto& w, const Tensor<T, R>& x, caller loc) {
    return affine(x, w.weight_ih, loc, w.bias_ih);
  }
  template <class T>
  static constexpr Tensor<T, 2> next(const auto& w, const Tensor<T, 2>& in, const Tensor<T, 2>& h,
                                     caller loc) {
    const auto [xr, xz, xn] = split<3>(in, 1);
    const auto [hr, hz, hn] = split<3>(affine(h, w.weight_hh, loc, w.bias_hh), 1);
    const auto n = tanh(xn + sigmoid(xr + hr) * hn);
    return n + sigmoid(xz + hz) * (h - n);
  }
};

}  // namespace detail

/// One step of a recurrent layer, from a batch (batch, in) and a state to the next state; without a
/// state, from zeros. Its parameters are a layer's, named weight_ih, weight_hh, bias_ih and
/// bias_hh.
template <class T, class Recurrence, bool Bias>
struct BasicRecurrentCell : detail::recurrent_weights<T, Recurrence::gates, Bias> {
  using value_type = T;
  using weights = detail::recurrent_weights<T, Recurrence::gates, Bias>;
  using state = typename Recurrence::template state<T>;

  constexpr BasicRecurrentCell() = default;
  constexpr BasicRecurrentCell(std::int64_t in, std::int64_t hidden)
      : weights(in, hidden, hidden) {}

  constexpr state operator()(const Tensor<T, 2>& x, const state& last, caller loc = here()) const {
    return Recurrence::next(*this, Recurrence::inputs(*this, x, loc), last, loc);
  }
  constexpr state operator()(const Tensor<T, 2>& x, caller loc = here()) const {
    const auto none = zeros<T>({x.size(0), this->weight_hh.size(1)});
    if constexpr (std::is_same_v<state, Tensor<T, 2>>) return (*this)(x, none, loc);
    else return (*this)(x, {none, none}, loc);
  }
  XLA_DERIVED_MODULE(weights)
};

/// h = tanh(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh), as torch.nn.RNNCell: RNNCell{in, hidden}.
template <class T, RNNNonlinearity F = RNNNonlinearity::tanh, bool Bias = true>
using BasicRNNCell = BasicRecurrentCell<T, detail::simple_recurrence<F>, Bias>;
using RNNCell = BasicRNNCell<float>;
/// As torch.nn.LSTMCell; its state is the pair (h, c).
template <class T, bool Bias = true>
using BasicLSTMCell = BasicRecurrentCell<T, detail::lstm_recurrence, Bias>;
using LSTMCell = BasicLSTMCell<float>;
/// As torch.nn.GRUCell.
template <class T, bool Bias = true>
using BasicGRUCell = BasicRecurrentCell<T, detail::gru_recurrence, Bias>;
using GRUCell = BasicGRUCell<float>;

}  // namespace xla::nn
