// SPDX-License-Identifier: Apache-2.0
#pragma once

// Detects parameters that were assigned to one another, which would train separately here and be
// tied in PyTorch. Optimizers check it once, when they are made.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "xla/base/dependent.hpp"
#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/module.hpp"

namespace xla {
namespace detail {

/// A parameter of a model: the number of its cell, and that of the one that was assigned to it.
struct assigned_parameter {
  std::uint64_t number, from;
  std::string name;

  [[gnu::noinline]] std::string_view module() const {
    const auto point = name.rfind('.');
    return std::string_view(name).substr(0, point == std::string::npos ? 0 : point);
  }
  std::string_view own_name() const {
    const auto point = name.rfind('.');
    return std::string_view(name).substr(point == std::string::npos ? 0 : point + 1);
  }
};

/// Whether all parameters of the module that holds `to` were assigned those of the one that holds
/// `from`: the module was, as a target network is.
template <class = void>
[[gnu::cold]] bool is_module_copied(const list<assigned_parameter>& all,
                                    const assigned_parameter& to, const assigned_parameter& from) {
  const auto parameters = [&](const auto& of) {
    return std::ranges::count(all, of.module(), &assigned_parameter::module);
  };
  return parameters(to) == parameters(from) &&
         std::ranges::all_of(all, [&](const assigned_parameter& p) {
           return p.module() != to.module() ||
                  std::ranges::any_of(all, [&](const assigned_parameter& q) {
                    return q.number == p.from && q.module() == from.module() &&
                           q.own_name() == p.own_name();
                  });
         });
}

/// Stops an optimizer of a model in which one parameter was assigned to another, but not with its
/// whole module. PyTorch ties the two; here they would be trained separately.
template <class = void>
[[gnu::cold]] void refuse_assigned(const list<assigned_parameter>& all) {
  for (const auto& to : all)
    for (const auto& from : all)
      if (to.from == from.number && &to != &from && !is_module_copied(all, to, from))
        throw runtime_error(
            join({"xla::optim: ", to.name, " was assigned ", from.name,
                  " of the same model, which copies values and ties nothing: use ", from.name,
                  " in both places, as nn::TiedLinear does; or write ", to.name, ".copy_(",
                  from.name, ") where both begin alike and are trained separately"}));
}
XLA_INSTANCE(void refuse_assigned<void>(const list<assigned_parameter>&));

template <class Module>
[[gnu::cold, gnu::noinline]] void find_assigned(Module& model) {
  list<assigned_parameter> all;
  visit_states<true>(model, [&](auto& p, const tree_path& path) {
    if (const auto* const c = p.get_cell())
      all.push_back({c->number, c->assigned_from, path.str()});
  });
  refuse_assigned<dependent<Module, void>>(all);
}

}  // namespace detail

/// Stops an optimizer of a model in which a parameter was assigned another, as in a constructor.
template <class Module>
void check_assigned(Module&& model) {
  bool any = false;
  for_each_parameter(model, [&](auto& p) { any |= p.get_cell() && p.get_cell()->assigned_from; });
  if (any) detail::find_assigned(model);
}

}  // namespace xla
