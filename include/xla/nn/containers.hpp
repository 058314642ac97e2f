// SPDX-License-Identifier: Apache-2.0
#pragma once

// Modules that contain modules: Sequential, ModuleArray and Residual. Layers with parameters of
// their own are in the other headers of nn/.

#include <array>
#include <concepts>
#include <utility>

#include "xla/module.hpp"

namespace xla::nn {

namespace detail {

/// How a model's layers run.
struct layer_calls {
  bool scan = false;        ///< as a loop, by xla::scan_layers of a header the program includes
  bool checkpoint = false;  ///< keeping nothing for backward; see xla::checkpoint
};

/// Layers applied one after the other, each to x and more.
template <layer_calls C, class Layers, class X, class... More>
constexpr X through_layers(const Layers& layers, X x, const More&... more) {
  if constexpr (C.scan) {
    static_assert(
        requires { scan_layers(layers, x, more...); },
        "xla: a program with models whose layers are a loop, by scan_layers, includes "
        "<xla/loop/scan_layers.hpp>");
    return scan_layers(layers, x, more..., {.checkpoint_every = C.checkpoint ? 1 : 0});
  } else {
    for (const auto& layer : layers) {
      if constexpr (C.checkpoint) x = checkpoint(layer, x, more...);
      else x = layer(x, more...);
    }
    return x;
  }
}

}  // namespace detail

/// Modules applied one after the other.
template <class... Modules>
struct Sequential {
  std::tuple<Modules...> layers;

  constexpr Sequential() = default;
  constexpr Sequential(Modules... modules)
    requires(sizeof...(Modules) > 0)
      : layers(std::move(modules)...) {}

  template <class X>
  constexpr auto operator()(const X& x) const {
    return run<0>(x);
  }
  XLA_CONTAINER(layers)

 private:
  template <std::size_t I, class X>
  constexpr auto run(const X& x) const {
    if constexpr (I == sizeof...(Modules)) return x;
    else return run<I + 1>(std::get<I>(layers)(x));
  }
};

/// N modules of one type: layers[i], a range, and called, one applied after the other.
template <class Module, std::size_t N>
struct ModuleArray {
  std::array<Module, N> layers;

  constexpr ModuleArray() = default;
  /// Each module made by itself: ModuleArray<Linear, 3>{[] { return Linear{8, 8}; }}.
  template <class Make>
    requires requires(Make make) {
      { make() } -> std::same_as<Module>;
    }
  constexpr explicit ModuleArray(Make make) : ModuleArray(make, std::make_index_sequence<N>{}) {}

  constexpr Module& operator[](std::size_t i) { return layers[i]; }
  constexpr const Module& operator[](std::size_t i) const { return layers[i]; }
  constexpr auto begin() { return layers.begin(); }
  constexpr auto begin() const { return layers.begin(); }
  constexpr auto end() { return layers.end(); }
  constexpr auto end() const { return layers.end(); }
  static constexpr std::size_t size() { return N; }

  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    Tensor<T, R> y = x;
    for (const Module& layer : layers) y = layer(y);
    return y;
  }
  XLA_CONTAINER(layers)

 private:
  template <class Make, std::size_t... I>
  constexpr ModuleArray(Make& make, std::index_sequence<I...>) : layers{((void)I, make())...} {}
};

/// A module whose result is added to its input, of the same sizes. He et al. (2015).
template <class Module>
struct Residual {
  Module inner;

  constexpr Residual() = default;
  constexpr explicit Residual(Module m) : inner(std::move(m)) {}

  template <class T, int R>
  constexpr Tensor<T, R> operator()(const Tensor<T, R>& x) const {
    return x + inner(x);
  }
  XLA_MODULE(inner)
};

}  // namespace xla::nn
