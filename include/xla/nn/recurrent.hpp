// SPDX-License-Identifier: Apache-2.0
#pragma once

// RNN, LSTM and GRU over sequences. Single steps are in recurrent_cell.hpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/scan.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/packed_sequence.hpp"
#include "xla/nn/recurrent_cell.hpp"
#include "xla/op/concat.hpp"
#include "xla/tensor/suffixed_members.hpp"

namespace xla::nn {

namespace detail {

/// The structure that RNN, LSTM and GRU have in common.
struct recurrent_structure {
  int input, hidden, layers;
  bool bias, batch_first, dropout, bidirectional;
  int projected = 0;

  constexpr int directions() const { return bidirectional ? 2 : 1; }
  constexpr int out() const { return projected > 0 ? projected : hidden; }
  /// The number of input features of layer l.
  constexpr int in(int l) const { return l == 0 ? input : directions() * out(); }
};

/// The suffix of a parameter's name: "_l0", "_l0_reverse", "_l1", …
template <int Layer, bool Reverse>
inline constexpr auto layer_suffix = [] {
  constexpr std::string_view way = Reverse ? "_reverse" : "";
  constexpr std::size_t digits = Layer > 99 ? 3 : Layer > 9 ? 2 : 1;
  std::array<char, 2 + digits + way.size()> s{'_', 'l'};
  for (std::size_t k = 0, n = Layer; k < digits; ++k, n /= 10)
    s[1 + digits - k] = static_cast<char>('0' + n % 10);
  for (std::size_t k = 0; k < way.size(); ++k) s[2 + digits + k] = way[k];
  return s;
}();
template <int Layers, int Directions>
inline constexpr auto layer_suffixes = []<std::size_t... I>(std::index_sequence<I...>) {
  constexpr auto of = []<std::size_t K>() {
    const auto& s = layer_suffix<int{K} / Directions, (K % Directions == 1)>;
    return std::string_view(s.data(), s.size());
  };
  return std::array<std::string_view, sizeof...(I)>{of.template operator()<I>()...};
}(std::make_index_sequence<std::size_t{Layers * Directions}>());

}  // namespace detail

/// The structure of an nn::RNN, by PyTorch's names and in its order, with its defaults.
struct RNNConfig {
  int input_size;
  int hidden_size;
  int num_layers = 1;
  RNNNonlinearity nonlinearity = RNNNonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;    ///< (batch, time, features) instead of (time, batch, features)
  bool dropout = false;        ///< after each layer but the last; the constructor takes p
  bool bidirectional = false;  ///< runs each layer in both directions, features side by side

  constexpr detail::recurrent_structure structure() const {
    return {input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional};
  }
};
/// The same for an nn::LSTM.
struct LSTMConfig {
  int input_size;
  int hidden_size;
  int num_layers = 1;
  bool bias = true;
  bool batch_first = false;    ///< (batch, time, features), not (time, batch, features)
  bool dropout = false;        ///< after each layer but the last; the constructor takes p
  bool bidirectional = false;  ///< each layer from both ends, features side by side
  int proj_size = 0;           ///< projects h to this many features; 0: hidden_size, unprojected

  constexpr detail::recurrent_structure structure() const {
    return {input_size,  hidden_size, num_layers,    bias,
            batch_first, dropout,     bidirectional, proj_size};
  }
};
/// The same for an nn::GRU.
struct GRUConfig {
  int input_size;
  int hidden_size;
  int num_layers = 1;
  bool bias = true;
  bool batch_first = false;    ///< (batch, time, features), not (time, batch, features)
  bool dropout = false;        ///< after each layer but the last; the constructor takes p
  bool bidirectional = false;  ///< each layer from both ends, features side by side

  constexpr detail::recurrent_structure structure() const {
    return {input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional};
  }
};

/// Recurrent layers one after the other, each a scan() over time, like torch.nn.RNN, LSTM and GRU
/// with their parameters, names and initialisation. The input is (time, batch, in) or, if the
/// configuration is batch_first, (batch, time, in), or has no batch axis. The results are the last
/// layer's h of all steps and the last state of all layers. A state is (layers × directions, batch,
/// features), for an LSTM a pair (h, c); without one layers begin with zeros. Time and batch may be
/// known at run time only. A PackedSequence gives a PackedSequence, and states at each sequence's
/// own end. Sizes that do not match are a shape_error.
template <class T, class Recurrence, detail::recurrent_structure C>
struct BasicRecurrent {
  static_assert(
      C.input > 0 && C.hidden > 0 && C.layers > 0,
      "xla::nn: a recurrent layer has input_size, hidden_size and num_layers of at least 1");
  static_assert(C.projected >= 0 && C.projected < C.hidden,
                "xla::nn::LSTM: proj_size has to be smaller than hidden_size");
  using value_type = T;
  using weights = detail::recurrent_weights<T, Recurrence::gates, C.bias, (C.projected > 0)>;
  /// Of all layers.
  template <int R>
  using state_of =
      std::conditional_t<std::is_same_v<typename Recurrence::template state<T>, Tensor<T, 2>>,
                         Tensor<T, R>, std::pair<Tensor<T, R>, Tensor<T, R>>>;
  using state = state_of<3>;
  static constexpr auto suffixes = detail::layer_suffixes<C.layers, C.directions()>;
  static constexpr int batch_axis = C.batch_first ? 0 : 1;

  std::array<weights, suffixes.size()> cells;  ///< of each layer forward, then reverse
  std::conditional_t<C.dropout, Dropout, Identity> dropout;

  constexpr BasicRecurrent() : BasicRecurrent(std::make_index_sequence<suffixes.size()>()) {}
  /// The default is 0.5. A probability outside [0, 1] is an xla::error.
  constexpr explicit BasicRecurrent(double dropout_p)
    requires(C.dropout)
      : BasicRecurrent() {
    dropout = Dropout(dropout_p);
  }
  constexpr void reset_parameters() {
    for (weights& w : cells) w.reset_parameters();
  }

  constexpr std::pair<Tensor<T, 3>, state> operator()(const Tensor<T, 3>& x, const state& first,
                                                      caller loc = here()) const {
    const auto [y, last] = run(C.batch_first ? transpose(x, 0, 1) : x, first, std::tuple<>(), loc);
    return {C.batch_first ? transpose(y, 0, 1) : y, last};
  }
  constexpr std::pair<Tensor<T, 3>, state> operator()(const Tensor<T, 3>& x,
                                                      caller loc = here()) const {
    return (*this)(x, zero_state(x.size(batch_axis)), loc);
  }
  constexpr std::pair<Tensor<T, 2>, state_of<2>> operator()(const Tensor<T, 2>& x,
                                                            const state_of<2>& first,
                                                            caller loc = here()) const {
    const auto [y, last] = (*this)(unsqueeze(x, batch_axis),
                                   each(first, [](const auto& s) { return unsqueeze(s, 1); }), loc);
    return {squeeze<batch_axis>(y), each(last, [](const auto& s) { return squeeze<1>(s); })};
  }
  constexpr std::pair<Tensor<T, 2>, state_of<2>> operator()(const Tensor<T, 2>& x,
                                                            caller loc = here()) const {
    return (*this)(x, each(zero_state(1), [](const auto& s) { return squeeze<1>(s); }), loc);
  }
  constexpr std::pair<PackedSequence<T>, state> operator()(const PackedSequence<T>& x,
                                                           const state& first,
                                                           caller loc = here()) const {
    const auto [y, last] = run(x.data, first, x.mask(), loc);
    return {PackedSequence<T>{y, x.lengths}, last};
  }
  constexpr std::pair<PackedSequence<T>, state> operator()(const PackedSequence<T>& x,
                                                           caller loc = here()) const {
    return (*this)(x, zero_state(x.data.size(1)), loc);
  }
  XLA_SUFFIXED_MODULE(cells, suffixes, XLA_MEMBER_AS("dropout", dropout))

 private:
  using step_state = typename Recurrence::template state<T>;

  template <std::size_t... I>
  constexpr explicit BasicRecurrent(std::index_sequence<I...>)
      : cells{weights(C.in(int{I} / C.directions()), C.hidden, C.out())...} {}

  /// f of a state's single tensor, or of both.
  static constexpr auto each(const auto& s, const auto& f) {
    if constexpr (requires { s.second; }) return std::pair(f(s.first), f(s.second));
    else return f(s);
  }
  static constexpr const auto& h_of(const auto& s) {
    if constexpr (requires { s.second; }) return s.first;
    else return s;
  }
  static constexpr state zero_state(const Size& batch) {
    const int n = static_cast<int>(suffixes.size());
    const auto h = zeros<T>({n, batch, C.out()});
    if constexpr (requires(state s) { s.second; }) return {h, zeros<T>({n, batch, C.hidden})};
    else return h;
  }

  // seen: true for steps that belong to a sequence; empty if all do.
  template <class Mask>
  constexpr std::pair<Tensor<T, 3>, state> run(const Tensor<T, 3>& x, const state& first,
                                               const Mask& seen, caller loc) const {
    std::array<step_state, suffixes.size()> last;
    Tensor<T, 3> y = x;
    for (int l = 0; l < C.layers; ++l) {
      if constexpr (C.dropout)
        if (l > 0) y = dropout(y);
      std::array<Tensor<T, 3>, static_cast<std::size_t>(C.directions())> ways;
      for (int d = 0; d < C.directions(); ++d) {
        const auto k = static_cast<std::size_t>(l * C.directions() + d);
        const auto from =
            each(first, [&](const auto& s) { return select(s, 0, static_cast<int>(k), loc); });
        std::tie(last[k], ways[static_cast<std::size_t>(d)]) =
            over_time(cells[k], y, from, seen, d == 1, loc);
      }
      y = C.directions() == 1 ? ways[0] : cat(ways, 2);
    }
    return {y, joined(last)};
  }
  template <class Mask>
  static constexpr auto over_time(const weights& w, const Tensor<T, 3>& x, const step_state& first,
                                  const Mask& seen, bool reverse, caller loc) {
    const auto step = [&](const auto& before, const auto& now) {
      const auto& [in, here] = now;
      step_state next = Recurrence::next(w, in, before, loc);
      if constexpr (std::is_same_v<Mask, std::tuple<>>) {
        return std::pair(next, h_of(next));
      } else {
        const auto y = where(here, h_of(next), 0);
        if constexpr (requires { next.second; })
          next = {where(here, next.first, before.first), where(here, next.second, before.second)};
        else next = where(here, next, before);
        return std::pair(next, y);
      }
    };
    return scan(step, first, std::pair(Recurrence::inputs(w, x, loc), seen), {.reverse = reverse},
                loc);
  }
  static constexpr state joined(const std::array<step_state, suffixes.size()>& last) {
    if constexpr (requires(state s) { s.second; }) {
      std::array<Tensor<T, 2>, suffixes.size()> h, c;
      for (std::size_t k = 0; k < last.size(); ++k) std::tie(h[k], c[k]) = last[k];
      return {stack(h), stack(c)};
    } else {
      return stack(last);
    }
  }
};

/// nn::RNN<32, 64>, or nn::RNN<nn::RNNConfig{.input_size = 32, .hidden_size = 64, .num_layers =
/// 2}>.
template <class T, RNNConfig C>
using BasicRNN = BasicRecurrent<T, detail::simple_recurrence<C.nonlinearity>, C.structure()>;
template <auto... C>
using RNN = BasicRNN<float, RNNConfig{C...}>;
template <class T, LSTMConfig C>
using BasicLSTM = BasicRecurrent<T, detail::lstm_recurrence, C.structure()>;
template <auto... C>
using LSTM = BasicLSTM<float, LSTMConfig{C...}>;
template <class T, GRUConfig C>
using BasicGRU = BasicRecurrent<T, detail::gru_recurrence, C.structure()>;
template <auto... C>
using GRU = BasicGRU<float, GRUConfig{C...}>;

}  // namespace xla::nn
