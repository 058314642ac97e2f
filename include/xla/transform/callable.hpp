// SPDX-License-Identifier: Apache-2.0
#pragma once

// Explains at compile time why a function cannot be called with some arguments. xla::compile() and
// xla::autocast() use it; nothing is called.

#include "xla/transform/symbolic_arguments.hpp"

namespace xla::detail {

/// Converts to any parameter type.
struct anything {
  template <class T>
  operator T&() const;
  template <class T>
  operator T&&() const;
};

struct has_call_operator {
  void operator()();
};
template <class F>
struct either_call_operator : F, has_call_operator {};

/// Whether overload resolution can be inspected.
template <class F>
concept inspectable = std::is_class_v<F> && !std::is_final_v<F>;
/// Whether F has call operators at all.
template <class F>
concept callable_object = inspectable<F> && !requires { &either_call_operator<F>::operator(); };

/// Adds to F's call operators one that is better for the object and worse for every argument: a
/// call is ambiguous exactly if one of F's own would do.
template <class F>
struct beside_call_operators : F {
  using F::operator();
  void operator()(...);
};

/// Whether F takes arguments of these types. Unlike std::is_invocable it does not look at the body,
/// which may have errors, for the result type.
template <class F, class... A>
concept takes =
    sizeof...(A) == 0 || !requires(beside_call_operators<F>& f) { f(std::declval<A>()...); };

/// The error of a call of F, a function object that can be inspected.
template <class F>
struct call_problem {
  static constexpr int most = 16;

  template <std::size_t... I>
  static constexpr bool takes_count(std::index_sequence<I...>) {
    return takes<F, std::enable_if_t<(I >= 0), anything>&...>;
  }
  /// The text " 3", " 2 or 3".
  static constexpr int counts(text& t) {
    int found = 0;
    [&]<std::size_t... N>(std::index_sequence<N...>) {
      ((takes_count(std::make_index_sequence<N + 1>{})
            ? void(t << (found++ ? " or " : " ") << static_cast<int>(N + 1))
            : void()),
       ...);
    }(std::make_index_sequence<most>{});
    return found;
  }

  template <std::size_t I, class... A, std::size_t... K>
  static constexpr bool takes_with(std::index_sequence<K...>, auto other) {
    return takes<F, std::conditional_t<K == I, typename decltype(other)::type, A>...>;
  }
  /// The first argument without which the call would be possible.
  template <class... A>
  static constexpr void blame(text& t) {
    const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      using X = std::tuple_element_t<I, std::tuple<A...>>;
      using L = std::remove_reference_t<X>&;
      constexpr auto all = std::index_sequence_for<A...>{};
      if (!t.empty()) return;
      if (!std::is_lvalue_reference_v<X> && takes_with<I, A...>(all, std::type_identity<L>{}))
        t << "argument " << static_cast<int>(I) << " is a temporary, and the function takes it by "
          << "auto&: give it a name first, or write const auto&";
      else if (takes_with<I, A...>(all, std::type_identity<anything&>{}))
        t << "argument " << static_cast<int>(I) << " is " << type_name<bare<X>>()
          << ", which the function does not take";
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (one(std::integral_constant<std::size_t, I>{}), ...);
    }(std::index_sequence_for<A...>{});
    if (t.empty() && !takes<F, std::remove_reference_t<A>&...>)
      t << "the function does not take arguments of these types, in this order";
    else if (t.empty())
      t << "some arguments are temporaries, and the function takes them by auto&: give them names "
           "first, or write const auto&";
  }

  template <class... A>
  static constexpr text why() {
    text t, count, blamed;
    t << "xla::compile: ";
    const int found = counts(count);
    if (found > 0 && !takes_count(std::index_sequence_for<A...>{}))
      t << "the function takes" << count << (count.view() == " 1" ? " argument, " : " arguments, ")
        << static_cast<int>(sizeof...(A)) << (sizeof...(A) == 1 ? " was given" : " were given")
        << ": pass all that it uses (model, data, optimizer), in its order";
    else blame<A...>(blamed);
    return t << blamed;
  }
};

template <class A>
concept compiled_module = requires { typename A::compiled_module_type; };

template <std::size_t I, std::size_t J, class... A>
constexpr void find_target_problem(text& why, const text& name) {
  using occurrence = target_occurrence<I, J, A...>;
  if (!why.empty()) return;
  if (occurrence::occurrences == 0)
    why << name << ": the model of this optimizer is not among the arguments; pass it, or the "
        << "module that contains it, as well: " << type_name<typename occurrence::root>();
  else if (!occurrence::clear)
    why << name << ": the model of this optimizer could be several modules among the arguments; "
        << "say which with xla::part<&Model::member>(model), or pass one optimizer each";
}

/// The error of passing argument X, number I, among All; K is its number among these.
template <class X, int I, std::size_t K, class... All>
constexpr void find_argument_problem(text& why) {
  text name("xla::compile: argument ");
  name << I;
  if constexpr (compiled_module<X>) {
    why << name << ": a compiled module cannot be an argument; pass the module itself and call "
        << "that in the body";
  } else if constexpr (!fits<X>) {
    find_mismatch<X>(why, name);
  } else if constexpr (optimizer_like<X>) {
    [&]<class... Root>(several<Root...>) {
      [&]<std::size_t... J>(std::index_sequence<J...>) {
        (find_target_problem<K, J, All...>(why, name), ...);
      }(std::index_sequence_for<Root...>{});
    }(typename model_traits<typename X::model_type>::roots{});
  } else if constexpr (!std::is_default_constructible_v<X>) {
    why << name << ", " << type_name<X>() << ": every argument needs a default constructor, "
        << "from which its structure is known; sizes that vary belong into the type as template "
        << "parameters";
  }
}

/// Why a function cannot be called with arguments of these types; empty if it can. In a module's
/// call the module itself is argument 0.
template <class F, class... A>
inline constexpr text call_refusal = [] {
  text why;
  constexpr int first = described<F> ? 1 : 0;
  if constexpr (first) find_argument_problem<F, 0, 0, F>(why);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((why.empty() ? find_argument_problem<bare<A>, first + static_cast<int>(I), I, bare<A>...>(why)
                  : void()),
     ...);
  }(std::index_sequence_for<A...>{});
  if (!why.empty()) return why;
  if constexpr (callable_object<F>) {
    if constexpr (!takes<F, A...>) why = call_problem<F>::template why<A...>();
  } else if constexpr (inspectable<F>) {
    why << "xla::compile: " << type_name<F>()
        << " cannot be called: give it constexpr auto operator()(...) const, public";
  }
  return why;
}();

}  // namespace xla::detail
