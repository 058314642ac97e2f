// SPDX-License-Identifier: Apache-2.0
#pragma once

// Visits the leaves of a call's arguments without knowing their types, by virtual functions, so
// that later code is compiled once. call.hpp and compiled.hpp have the visitors.

#include "xla/tensor/part.hpp"
#include "xla/transform/symbolic_arguments.hpp"

namespace xla::detail {

/// Visits the leaves of a call's arguments, whatever their types; see argument_dispatch.
class leaf_visitor {
 public:
  /// A program writes to none that the function takes as const.
  virtual void tensor(handle& value, const tree_path& path) = 0;
  virtual void cell(handle& target, const tree_path& path) = 0;
  void kept(handle& target, const handle&, const tree_path& path) { cell(target, path); }
  virtual void scalar(Scalar& number, const tree_path& path) = 0;
  virtual void fact(double value, const tree_path& path) = 0;
  virtual void flag(TrainingFlag& f, const tree_path& path) { fact(TrainingFlag::fact(f), path); }

 protected:
  ~leaf_visitor() = default;
};

/// Stops a call whose optimizer belongs to another model than it is passed with.
template <class In = void>
[[noreturn]] void refuse_pairing(int argument);

/// Visits arguments of types A.
template <class... A>
class arguments_of {
 public:
  /// Takes their addresses; throws if an optimizer belongs to a model other than the one passed.
  static void visit(void* const* arguments, leaf_visitor& to) {
    visit(arguments, to, std::index_sequence_for<A...>{});
  }

 private:
  template <std::size_t... I>
  static void visit(void* const* arguments, leaf_visitor& to, std::index_sequence<I...>) {
    (check<I>(arguments), ...);
    visit_arguments(to, *static_cast<A*>(arguments[I])...);
  }

  // Whether an optimizer argument was made for the model argument that it was passed with.
  template <std::size_t I>
  static void check(void* const* arguments) {
    using X = std::tuple_element_t<I, std::tuple<A...>>;
    if constexpr (optimizer_like<X>) {
      using traits = model_traits<typename X::model_type>;
      const bool same = [&]<class... Root>(several<Root...>) {
        return [&]<std::size_t... J>(std::index_sequence<J...>) {
          return traits::of(root<I, J>(arguments)...) == static_cast<X*>(arguments[I])->target();
        }(std::index_sequence_for<Root...>{});
      }(typename traits::roots{});
      if (!same) refuse_pairing<dependent<X, void>>(static_cast<int>(I));
    }
  }
  template <std::size_t I, std::size_t J>
  static auto& root(void* const* arguments) {
    using occurrence = target_occurrence<I, J, A...>;
    int n = occurrence::index();
    typename occurrence::root* found = nullptr;
    (find(*static_cast<A*>(*arguments++), n, found), ...);
    return *found;
  }
  template <class X, class Root>
  static void find(X& x, int& n, Root*& found) {
    if constexpr (!optimizer_like<X>) find_target(x, n, found);
  }
};

}  // namespace xla::detail
