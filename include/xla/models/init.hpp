// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "xla/module.hpp"
#include "xla/nn/init.hpp"

/// Networks of the literature, by torchvision's names.
namespace xla::models {

/// Gives every convolution's weight normal numbers that keep the variance of gradients where relu
/// follows. He et al. (2015).
template <class Model>
void init_convolutions(Model& model) {
  xla::for_each_parameter(model, [](auto& p) {
    if constexpr (std::remove_cvref_t<decltype(p)>::rank == 4)
      nn::init::kaiming_normal_(
          p, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
  });
}

}  // namespace xla::models
