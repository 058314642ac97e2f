// SPDX-License-Identifier: Apache-2.0
#pragma once

// A copy of a model whose parameters are functions of the original's, as for
// torch.func.functional_call. A plain copy of a module is a new model with its own gradients.

#include <vector>

#include "xla/module.hpp"
#include "xla/op/reshape.hpp"

namespace xla {
namespace detail {

/// Makes a parameter, a copy of `original`, a function of it.
template <class T, int R>
constexpr void make_functional(Parameter<T, R>& copy, const Parameter<T, R>& original) {
  if (!original.is_cell()) return;  // not made yet
  const Tensor<T, R>& value = original;
  const Tensor<T, R> through = with_shape<op::reshape, R>(value, original.dims());  // not a leaf
  if (!__builtin_is_constant_evaluated()) {
    machine_of<T>::functional_cell(copy, original, through);
  } else {
    graph* g = original.owner();
    copy.name_slot(g, g->copy_slot(original.slot_index(), true));
    g->write(copy.slot_index(), through.lift(g));
  }
}

/// The addresses of a module's parameters.
template <class Module>
constexpr auto parameters_of(Module& module) {
  std::vector<same_const<Module, handle>*> all;
  for_each_parameter(module, [&](auto& p) { all.push_back(&p); });
  return all;
}

}  // namespace detail

/// A copy of a module whose parameters are functions of the model's. Gradients of what is computed
/// with them reach the model's, even after differentiable values were written to the copy, which do
/// not change the model: fast.fc.weight.copy_(fast.fc.weight - rate * gradient). Buffers are
/// copied; a copy of the copy is a plain module with leaves. It replaces torch.func's
/// functional_call and learn2learn's clone_module: Finn et al. (2017), meta-learning.
template <class Module>
constexpr Module functional_copy(const Module& model) {
  static_assert(detail::described<Module>, "xla::functional_copy: give a module");
  Module result = model;
  const auto from = detail::parameters_of(model);
  std::size_t i = 0;
  for_each_parameter(result, [&](auto& p) {
    detail::make_functional(p,
                            static_cast<std::remove_reference_t<decltype(p)> const&>(*from[i++]));
  });
  return result;
}

}  // namespace xla
