// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names a part of a model in a type, so that an optimizer can be made for that part alone, and
// determines the targets of optimizer-like objects. Optimizers, averages and gradient clipping use
// it.

#include <bit>
#include <cstdint>
#include <tuple>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/base/hana.hpp"
#include "xla/module.hpp"
#include "xla/tensor/anchor.hpp"

namespace xla {

/// A part of a model, as a type: the root's type and the members that lead to the part; see part().
template <class Root, auto... Members>
struct Part {
  Root* root;
};

/// Selects the part of a model for an optimizer: optim::SGD{xla::part<&Gan::generator>(gan), {.lr =
/// 1e-3}}. Further members select parts of it: part<&Gan::generator, &Generator::head>(gan).
/// part<>(gan) is the whole model. It is needed if the type alone does not identify the part.
template <auto... Members, class Root>
constexpr Part<Root, Members...> part(Root& root) {
  return {&root};
}

namespace detail {

/// A set of element types, one bit each: those of the parameters in X.
template <class X>
constexpr unsigned parameter_types() {
  unsigned types = 0;
  visit_types<X>([&]<class L>(std::type_identity<L>, const tree_path&) {
    if constexpr (is_state<L>)
      if (L::trainable) types |= 1u << static_cast<int>(dtype_of<typename L::value_type>);
  });
  return types;
}
struct mixed {};
template <unsigned Types>
struct only_type {
  using type = mixed;
};
template <>
struct only_type<0> {
  using type = void;
};
template <unsigned Types>
  requires(std::has_single_bit(Types))
struct only_type<Types> {
  using type = cpp_type<static_cast<dtype>(std::countr_zero(Types))>;
};
}  // namespace detail

/// The element type of a module's parameters: void if there are none, another type if they differ.
template <class X>
using parameter_type =
    typename detail::only_type<detail::parameter_types<std::remove_cvref_t<X>>()>::type;

/// Several models or parts of models, as a template argument of an object for all of them.
template <class... Target>
struct several {};

/// The target of an optimizer: the module, the optimizer's reference to it, and its roots, the
/// arguments in which a compiled step finds it.
template <class Target>
struct model_traits {
  using roots = several<Target>;
  using module = Target;
  struct holder {
    Target* model;  // at construction; `model_anchor` may know a later address
    detail::anchor model_anchor;
    constexpr holder(Target& m) : model(&m) {}
    constexpr Target& get() const {
      if (__builtin_is_constant_evaluated()) return *model;
      return *model_anchor.find(model);
    }
    /// Follows the model to its new address.
    void follow() {
      const detail::handle* first = nullptr;
      for_each_parameter(*model, [&](auto& p) { first = first ? first : &p; });
      if (first) model_anchor.follow(*first, model);
    }
    constexpr bool operator==(const holder& o) const { return &get() == &o.get(); }
  };
  static constexpr holder of(Target& root) { return root; }
};
template <class Root, auto... Members>
struct model_traits<Part<Root, Members...>> {
  using roots = several<Root>;
  using module = std::remove_reference_t<decltype((std::declval<Root&>().*....*Members))>;
  struct holder : model_traits<module>::holder {
    constexpr holder(module& m) : model_traits<module>::holder(m) {}
    constexpr holder(const Part<Root, Members...>& p) : holder((*p.root.*....*Members)) {}
  };
  static constexpr holder of(Root& root) { return Part<Root, Members...>{&root}; }
};
template <class... Target>
struct model_traits<several<Target...>> {
  template <class>
  struct root_of;
  template <class Root>
  struct root_of<several<Root>> {
    using type = Root;
  };
  using roots = several<typename root_of<typename model_traits<Target>::roots>::type...>;
  using module = std::tuple<typename model_traits<Target>::module&...>;
  struct holder {
    std::tuple<typename model_traits<Target>::holder...> models;
    template <class... X>
    constexpr holder(const std::tuple<X...>& all) : models(all) {}
    constexpr const module get() const {
      return std::apply([](auto&... h) { return module(h.get()...); }, models);
    }
    void follow() {
      std::apply([](auto&... h) { (h.follow(), ...); }, models);
    }
    constexpr bool operator==(const holder&) const = default;
  };
  template <class... Root>
  static constexpr holder of(Root&... root) {
    return std::tie(model_traits<Target>::of(root).get()...);
  }
};

/// Refuses several models of one optimizer if one contains another, which would be updated twice.
template <class... Module>
void check_disjoint(const std::tuple<Module&...>& models) {
  const auto inside = [](const auto& a, const auto& b) {  // how many positions in b equal a's
    const auto first = reinterpret_cast<std::uintptr_t>(&b);
    const auto at = reinterpret_cast<std::uintptr_t>(&a);
    return first <= at && at < first + sizeof b;
  };
  std::apply(
      [&](auto&... a) {
        const auto count = [&](const auto& b) { return (0 + ... + inside(a, b)); };
        if (((count(a) > 1) || ...))
          throw runtime_error("xla::optim: a model is twice among those of one optimizer");
      },
      models);
}
constexpr void check_disjoint(const auto&) {}

/// Refuses a step if the model has no gradients but could have some, for instance if backward() was
/// not called.
template <class Module>
constexpr void check_gradients(Module&& model) {
  bool wanted = false, found = false;
  detail::graph* owner = nullptr;
  for_each_parameter(model, [&](auto& p) {
    wanted = wanted || p.requires_grad();
    found = found || p.grad().defined();
    owner = p.owner();
  });
  if (found || !wanted) return;
  if (!__builtin_is_constant_evaluated()) detail::refuse_step<dependent<Module, void>>();
  owner->sizes.refused.set(detail::no_gradient_at_all);
}

namespace detail {

template <class Given>
inline constexpr bool refers = false;
template <class Root, auto... Members>
inline constexpr bool refers<Part<Root, Members...>> = true;
template <class... X>
  requires(sizeof...(X) > 0)
inline constexpr bool refers<std::tuple<X...>> =
    ((std::is_lvalue_reference_v<X> || refers<X>)&&...);

template <class Given>
struct target_of {
  static_assert(std::is_lvalue_reference_v<Given>,
                "xla::optim: give a model that lives longer than the optimizer");
  using type = std::remove_reference_t<Given>;
};
template <class Root, auto... Members>
struct target_of<Part<Root, Members...>> {
  using type = Part<Root, Members...>;
};
template <class Given>
using target = typename target_of<std::conditional_t<refers<std::remove_cvref_t<Given>>,
                                                     std::remove_cvref_t<Given>, Given>>::type;
template <class... X>
  requires refers<std::tuple<X...>>
struct target_of<std::tuple<X...>> {
  using type = several<target<X>...>;
};

}  // namespace detail

/// The target type of an object made with a Given: a model, a part(), or a tuple of these, as
/// std::tie makes. For the deduction guides of optimizers.
template <class Given>
using model_target = detail::target<Given>;

}  // namespace xla
