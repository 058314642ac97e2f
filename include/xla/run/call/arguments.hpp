// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/tensor/part.hpp"
#include "xla/transform/twins.hpp"

namespace xla::detail {

/// Sees the ends of a call's arguments, in the order in which the capture made their slots.
class leaf_visitor {
 public:
  /// A tensor. A program writes to none that the function takes as const.
  virtual void tensor(handle& value, const tree_path& path) = 0;
  /// A parameter or buffer; whether an optimizer keeps it.
  virtual void cell(handle& place, bool kept, const tree_path& path) = 0;
  virtual void scalar(double value, const tree_path& path) = 0;
  /// A plain number among the members, which the type must fix.
  virtual void fact(double value, const tree_path& path) = 0;
  /// A training flag, which is a fact as well.
  virtual void flag(TrainingFlag& f, const tree_path& path) { fact(TrainingFlag::fact(f), path); }

 protected:
  ~leaf_visitor() = default;
};

/// Stops a call whose optimizer belongs to another model than it is passed with.
template <class In = void>
[[noreturn]] void refuse_pairing(int argument);

/// Shows a visitor the leaves of arguments of types A.
template <class... A>
class argument_walk {
 public:
  /// The arguments' addresses; throws when an optimizer belongs to another model than it should.
  static void visit(void* const* arguments, leaf_visitor& to) {
    visit(arguments, to, std::index_sequence_for<A...>{});
  }

 private:
  template <std::size_t... I>
  static void visit(void* const* arguments, leaf_visitor& to, std::index_sequence<I...>) {
    (check<I>(arguments), ...);
    (walk(*static_cast<A*>(arguments[I]), to, tree_path{nullptr, nullptr, I}), ...);
  }

  template <class X>
  static void walk(X& x, leaf_visitor& to, const tree_path& path) {
    const auto leaf = [&](auto& l, const tree_path& at) { show(l, to, at); };
    if constexpr (optimizer_like<X>) {
      visit_options(x, leaf, path);
      const_cast<bare<X>&>(x).visit_state([&](auto& s, auto) { to.cell(s, true, path); });
    } else {
      visit_tree(x, leaf, path);
    }
  }
  template <class X>
  static void show(X& x, leaf_visitor& to, const tree_path& path) {
    using U = std::remove_cv_t<X>;
    if constexpr (is_state<U>) to.cell(const_cast<U&>(x), false, path);
    else if constexpr (is_tensor<U>) to.tensor(const_cast<U&>(x), path);
    else if constexpr (std::is_same_v<U, Scalar>) to.scalar(x.value(), path);
    else if constexpr (std::is_same_v<U, TrainingFlag>) to.flag(const_cast<U&>(x), path);
    else to.fact(static_cast<double>(x), path);
  }

  // Whether an optimizer argument was made for the model argument that it stands with.
  template <std::size_t I>
  static void check(void* const* arguments) {
    using X = std::tuple_element_t<I, std::tuple<bare<A>...>>;
    if constexpr (optimizer_like<X>) {
      using traits = model_traits<typename X::model_type>;
      const bool same = [&]<class... Root>(several<Root...>) {
        return [&]<std::size_t... J>(std::index_sequence<J...>) {
          return traits::of(root<I, J>(arguments)...) == static_cast<X*>(arguments[I])->target();
        }(std::index_sequence_for<Root...>{});
      }(typename traits::roots{});
      if (!same) refuse_pairing<later<X, void>>(static_cast<int>(I));
    }
  }
  template <std::size_t I, std::size_t J>
  static auto& root(void* const* arguments) {
    using place = target_place<I, J, A...>;
    int n = place::index();
    typename place::root* found = nullptr;
    (find(*static_cast<bare<A>*>(*arguments++), n, found), ...);
    return *found;
  }
  template <class X, class Root>
  static void find(X& x, int& n, Root*& found) {
    if constexpr (!optimizer_like<X>) find_place(x, n, found);
  }
};

}  // namespace xla::detail
