// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups of parameters with hyper-parameters of their own, for any optimizer. optimizer.hpp applies
// them.

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xla/base/text.hpp"
#include "xla/module.hpp"
#include "xla/tensor/part.hpp"

namespace xla::optim {

/// Parameters that have hyper-parameters of their own; see group().
template <class Which, class Change>
struct Group {
  Change change;
};

/// A group of parameters for an optimizer: those for which which(name, rank) holds. Its
/// hyper-parameters are the optimizer's, modified by change(options). Here biases and the weights
/// of norms do not decay:
///   optim::AdamW optimizer{model, {.lr = 3e-4, .weight_decay = 0.1},
///                          optim::group([](std::string_view, int rank) { return rank < 2; },
///                                       [](auto& o) { o.weight_decay = 0; })};
/// Afterwards they are optimizer.group_options[0].weight_decay, in the order of the groups; those
/// of all other parameters are optimizer.options. `which` has no captures, because the groups are
/// part of the optimizer's type; names are those of named_parameters().
template <class Which, class Change>
constexpr Group<Which, Change> group(Which, Change change) {
  static_assert(std::is_empty_v<Which>,
                "xla::optim::group: which parameters are in a group is part of the optimizer's "
                "type: give a lambda without captures, bool(std::string_view name, int rank)");
  static_assert(std::is_invocable_r_v<bool, const Which&, std::string_view, int>,
                "xla::optim::group: the first function is bool(std::string_view name, int rank)");
  return {std::move(change)};
}

/// The template argument of an optimizer with groups: the model, and the predicate of each group.
template <class Target, class... Which>
struct grouped {};

template <class Target>
struct ungrouped {
  using type = Target;
  static constexpr std::size_t groups = 0;
};
template <class Target, class... Which>
struct ungrouped<grouped<Target, Which...>> {
  using type = Target;
  static constexpr std::size_t groups = sizeof...(Which);
};

template <class Given, class... G>
struct optimized_by;
template <class Given>
struct optimized_by<Given> {
  using type = model_target<Given>;
};
template <class Given, class... Which, class... Change>
  requires(sizeof...(Which) > 0)
struct optimized_by<Given, Group<Which, Change>...> {
  using type = grouped<model_target<Given>, Which...>;
};
/// Deduces an optimizer's template argument from the constructor's model and groups.
template <class Given, class... G>
using optimized = typename optimized_by<Given, G...>::type;

/// The group of each parameter of a module, from 1; 0: none.
template <class Module, class... Which>
struct group_table {
  std::array<int, static_cast<std::size_t>(count_parameters<Module>())> of = {};
  std::array<int, sizeof...(Which)> members = {};
  bool twice = false;

  constexpr group_table() {
    std::size_t i = 0;
    visit_state_types<Module>([&]<class S>(std::type_identity<S>, const tree_path& path) {
      if (!S::trainable) return;
      const auto name = path.written();
      int g = 0;
      (enter<Which>(i, g++, name.view(), S::rank), ...);
      ++i;
    });
  }
  constexpr bool none_empty() const {
    for (const int n : members)
      if (n == 0) return false;
    return true;
  }

 private:
  template <class W>
  constexpr void enter(std::size_t parameter, int group, std::string_view name, int rank) {
    if (!W{}(name, rank)) return;
    twice = twice || of[parameter] > 0;
    of[parameter] = group + 1;
    ++members[static_cast<std::size_t>(group)];
  }
};

/// The table of groups for a module and an optimizer's template argument.
template <class Module, class Optimized>
inline constexpr int groups_of = 0;
template <class Module, class Target, class... Which>
inline constexpr group_table<Module, Which...> groups_of<Module, grouped<Target, Which...>>{};

}  // namespace xla::optim
