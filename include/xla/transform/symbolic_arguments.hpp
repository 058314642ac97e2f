// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes symbolic arguments of the argument types, so that a body can run in the compiler and record
// its graph. capture.hpp calls it. They have no values, so code that branches on values is refused.

#include <bit>
#include <tuple>
#include <type_traits>

#include "xla/tensor/part.hpp"

namespace xla::detail {

template <class A>
using bare = std::remove_cvref_t<A>;

struct no_symbol {};

/// A callable without state, made from nothing: also lambdas, which have no default constructor.
template <class F>
constexpr F make_callable() {
  if constexpr (std::is_default_constructible_v<F>) return F{};
  else return std::bit_cast<F>(no_symbol{});
}

/// Objects that update a model, and those that only follow it, such as an average.
template <class X>
concept steps_model = optimizer_like<X> && requires(std::remove_cvref_t<X>& x) { x.step(); };

/// Objects that cannot be captured because they branch on values.
template <class X>
concept reads_values = requires { requires std::remove_cvref_t<X>::reads_values; };

/// The targets of an optimizer-like argument.
template <class Model>
struct target_list {
  using type = several<Model>;
};
template <class... Target>
struct target_list<several<Target...>> {
  using type = several<Target...>;
};
template <std::size_t I, class... X>
constexpr auto nth_of(several<X...>)
    -> std::type_identity<std::tuple_element_t<I, std::tuple<X...>>>;
template <std::size_t I, class List>
using nth = typename decltype(nth_of<I>(List{}))::type;

/// How many of X's targets before the J-th are Target, where X takes part in the same as Y.
template <class Target, class Y, class X>
constexpr int claims_of(std::size_t before) {
  int n = 0;
  if constexpr (optimizer_like<X>)
    if constexpr (steps_model<X> == steps_model<Y>)
      [&]<class... T>(several<T...>) {
        std::size_t i = 0;
        ((n += i++ < before && std::is_same_v<T, Target>), ...);
      }(typename target_list<typename bare<X>::model_type>::type{});
  return n;
}

/// The occurrences of a Model in an argument of type X, including members but not arrays.
template <class Model, class X>
constexpr int occurrences_of() {
  using U = std::remove_cvref_t<X>;
  if constexpr (std::is_same_v<U, Model>) {
    return 1;
  } else if constexpr (tree_leaf<U> || optimizer_like<U>) {
    return 0;
  } else {
    int n = 0;
    for_each_member<U>([&]<class Get>(const Get&, const auto&) {
      n += occurrences_of<Model, member_type<U, Get>>();
    });
    return n;
  }
}

/// The n-th Model in x, in the order of members; nullptr if there are fewer.
template <class Model, class X>
constexpr void find_target(X& x, int& n, Model*& found) {
  using U = std::remove_cv_t<X>;
  if constexpr (std::is_same_v<U, Model>) {
    if (n-- == 0) found = &x;
  } else if constexpr (!optimizer_like<U> && occurrences_of<Model, U>() > 0) {
    for_each_member<U>([&](const auto& get, const auto&) { find_target(get(x), n, found); });
  }
}

/// The position of target J of an optimizer, argument I, in the arguments.
template <std::size_t I, std::size_t J, class... A>
struct target_occurrence {
  using optimizer = std::tuple_element_t<I, std::tuple<bare<A>...>>;
  using traits = model_traits<typename optimizer::model_type>;
  using target = nth<J, typename target_list<typename optimizer::model_type>::type>;
  using root = nth<J, typename traits::roots>;
  static constexpr std::size_t all = ~std::size_t{};

  /// The number of positions that are a root, of those that are whole arguments, and of claimed
  /// ones.
  static constexpr int occurrences = (0 + ... + occurrences_of<root, A>());
  static constexpr int arguments = (0 + ... + std::is_same_v<bare<A>, root>);
  static constexpr int claims = (0 + ... + claims_of<target, optimizer, bare<A>>(all));
  static constexpr bool clear = occurrences <= 1 || occurrences == claims ||
                                (occurrences == arguments && claims < occurrences);

  /// The only position, or the one of this target's rank among the targets of the same type.
  static constexpr int index() {
    if (occurrences == 1) return 0;
    int n = 0;
    std::size_t i = 0;
    ((n += claims_of<target, optimizer, bare<A>>(i < I ? all : i == I ? J : 0), ++i), ...);
    return n;
  }
};

/// A symbolic argument, constructed in place: it is never moved, which g++ 12 cannot always do in
/// constant evaluation.
template <std::size_t I, class X>
struct symbolic_holder {
  X value;
  constexpr symbolic_holder() : value() {}
  constexpr explicit symbolic_holder(const auto& model) : value(model) {}
};

/// The symbolic arguments except optimizers, which are made for the models among these.
template <class Indices, class... A>
struct symbolic_values;
template <std::size_t... I, class... A>
struct symbolic_values<std::index_sequence<I...>, A...>
    : symbolic_holder<I, std::conditional_t<optimizer_like<A>, no_symbol, A>>... {};

/// The symbolic arguments of a call, on which capture() runs the body. They have the call's types,
/// with tensors without elements, and are default-constructed in constant evaluation; optimizers
/// are constructed for the symbolic models.
template <class Indices, class... A>
struct symbolic_list;
template <std::size_t... I, class... A>
struct symbolic_list<std::index_sequence<I...>, A...> {
  static_assert(!(reads_values<A> || ...),
                "xla::compile: optim::LBFGS decides by the values of the loss, which a compiled "
                "step does not have: call its step() eagerly or traced; the loss that it takes may "
                "be compiled");
  using indices = std::index_sequence<I...>;
  template <std::size_t K>
  using type = std::tuple_element_t<K, std::tuple<A...>>;

  template <std::size_t K>
  struct symbolic_optimizer : symbolic_holder<K, type<K>> {
    constexpr explicit symbolic_optimizer(symbolic_values<indices, A...>& values)
        : symbolic_holder<K, type<K>>(model<K>(values)) {}
  };
  template <std::size_t K>
  struct no_optimizer {
    constexpr explicit no_optimizer(symbolic_values<indices, A...>&) {}
  };
  template <std::size_t K>
  using optimizer_part =
      std::conditional_t<optimizer_like<type<K>>, symbolic_optimizer<K>, no_optimizer<K>>;
  struct symbolic_optimizers : optimizer_part<I>... {
    constexpr explicit symbolic_optimizers(symbolic_values<indices, A...>& v)
        : optimizer_part<I>(v)... {}
  };

  symbolic_values<indices, A...> values;
  symbolic_optimizers optimizers{values};

  template <std::size_t K>
  constexpr type<K>& get() {
    if constexpr (optimizer_like<type<K>>) return held<K, type<K>>(optimizers);
    else return held<K, type<K>>(values);
  }

 private:
  template <std::size_t K, class X>
  static constexpr X& held(symbolic_holder<K, X>& h) {
    return h.value;
  }
  template <std::size_t K>
  static constexpr auto model(symbolic_values<indices, A...>& values) {
    return [&]<class... Root>(several<Root...>) {
      return [&]<std::size_t... J>(std::index_sequence<J...>) {
        return model_traits<typename type<K>::model_type>::of(root<K, J>(values)...);
      }(std::index_sequence_for<Root...>{});
    }(typename model_traits<typename type<K>::model_type>::roots{});
  }
  template <std::size_t K, std::size_t J>
  static constexpr auto& root(symbolic_values<indices, A...>& values) {
    using occurrence = target_occurrence<K, J, A...>;
    int n = occurrence::index();
    typename occurrence::root* found = nullptr;
    (find_in<I>(values, n, found), ...);
    return *found;
  }
  template <std::size_t K, class Root>
  static constexpr void find_in(symbolic_values<indices, A...>& values, int& n, Root*& found) {
    if constexpr (!optimizer_like<type<K>>) find_target(held<K, type<K>>(values), n, found);
  }
};
template <class... A>
using symbolic_arguments = symbolic_list<std::index_sequence_for<A...>, bare<A>...>;

}  // namespace xla::detail
