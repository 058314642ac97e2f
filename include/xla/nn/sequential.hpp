// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/module.hpp"

namespace xla::nn {

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

}  // namespace xla::nn
