// SPDX-License-Identifier: Apache-2.0
#pragma once

// Visits the leaves of a struct through an interface, so that a program has one function for each
// type of struct and not one for each pair of struct and visitor. visit.hpp, which calls it, gives
// visitors their leaves with the static types again.

#include <array>
#include <type_traits>
#include <utility>

#include "xla/tensor/tree.hpp"

namespace xla::detail {

/// How many leaves a type is made of, and their static types, each once.
struct leaf_set {
  static constexpr int ranks = max_rank + 1 - dynamic_rank, kinds = 3;
  static constexpr int tensors = static_cast<int>(dtypes) * ranks * kinds;
  int count = 0, parameters = 0;
  std::array<bool, tensors> has{};
  bool flags = false, scalars = false, numbers = false;
  bool others = false;  ///< optimizers, which show leaves of theirs with their owners

  constexpr void add(const leaf_set& o) {
    count += o.count;
    parameters += o.parameters;
    for (std::size_t i = 0; i < has.size(); ++i) has[i] |= o.has[i];
    flags |= o.flags;
    scalars |= o.scalars;
    numbers |= o.numbers;
    others |= o.others;
  }
  constexpr int types() const {
    int n = 0;
    for (const bool h : has) n += h;
    return n;
  }
};

/// The number of a type of tensor, parameter or buffer in a leaf_set.
template <class L>
inline constexpr int leaf_index = 0;
template <class T, int R>
inline constexpr int leaf_index<Tensor<T, R>> =
    (static_cast<int>(dtype_of<T>) * leaf_set::ranks + R - dynamic_rank) * leaf_set::kinds;
template <class T, int R, bool Trainable>
inline constexpr int leaf_index<State<T, R, Trainable>> = leaf_index<Tensor<T, R>> + 1 + Trainable;

/// The type that has a number.
template <int Index>
struct leaf_at {
  static constexpr int kind = Index % leaf_set::kinds,
                       rank = Index / leaf_set::kinds % leaf_set::ranks + dynamic_rank;
  using element = element_type<static_cast<dtype>(Index / leaf_set::kinds / leaf_set::ranks)>;
  using type = std::conditional_t<kind == 0, std::type_identity<Tensor<element, rank>>,
                                  std::type_identity<State<element, rank, kind == 2>>>::type;
};

template <class U>
constexpr leaf_set find_leaves();
template <class U>
inline constexpr leaf_set leaves_of = find_leaves<U>();

template <class U>
constexpr leaf_set find_leaves() {
  leaf_set s{.count = tree_leaf<U>};
  if constexpr (is_state<U>) s.parameters = U::trainable;
  if constexpr (is_tensor<U> || is_state<U>) s.has[leaf_index<U>] = true;
  else if constexpr (std::is_same_v<U, TrainingFlag>) s.flags = true;
  else if constexpr (std::is_same_v<U, Scalar>) s.scalars = true;
  else if constexpr (tree_leaf<U>) s.numbers = true;
  else if constexpr (optimizer_like<U> || is_part<U>) s.others = true;
  else if constexpr (is_array<U>) {  // not one by one, as a model may have many equal blocks
    constexpr int n = static_cast<int>(std::tuple_size_v<U>);
    if constexpr (n > 0) s = leaves_of<typename U::value_type>;
    s.count *= n;
    s.parameters *= n;
  } else
    for_each_member<U>(
        [&]<class Get>(const Get&, const auto&) { s.add(leaves_of<member_type<U, Get>>); });
  return s;
}

/// The numbers of a type's tensors, parameters and buffers, in a list.
template <class U>
inline constexpr auto leaf_indices = [] {
  std::array<int, static_cast<std::size_t>(leaves_of<U>.types())> list{};
  std::size_t n = 0;
  for (int i = 0; i < leaf_set::tensors; ++i)
    if (leaves_of<U>.has[static_cast<std::size_t>(i)]) list[n++] = i;
  return list;
}();

/// What is shown the leaves of a struct: tensors, parameters and buffers with the numbers of their
/// types.
class leaf_sink {
 public:
  virtual constexpr void tensor(handle& leaf, int type, const tree_path& path) = 0;
  virtual constexpr void flag(TrainingFlag& leaf, const tree_path& path) = 0;
  virtual constexpr void scalar(Scalar& leaf, const tree_path& path) = 0;
  virtual constexpr void number(double value, const tree_path& path) = 0;

 protected:
  constexpr ~leaf_sink() = default;
};

/// Shows the leaves of x in the order of the described members.
template <class X>
constexpr void show_leaves(X& x, leaf_sink& to, const tree_path& path) {
  using U = std::remove_const_t<X>;
  U& leaf = const_cast<U&>(x);
  if constexpr (is_tensor<U> || is_state<U>) to.tensor(leaf, leaf_index<U>, path);
  else if constexpr (std::is_same_v<U, TrainingFlag>) to.flag(leaf, path);
  else if constexpr (std::is_same_v<U, Scalar>) to.scalar(leaf, path);
  else if constexpr (tree_leaf<U>) to.number(static_cast<double>(leaf), path);
  else
    for_each_member<U>([&](const auto& get, const auto& called) {
      show_leaves(get(leaf), to, tree_path(&path, called));
    });
}

/// Gives the leaves of an X, const where that is, to a visitor f(leaf, path) as what they are.
template <class X, class F>
class typed_leaves final : public leaf_sink {
  using U = std::remove_const_t<X>;
  template <class Leaf>
  using given = std::conditional_t<std::is_const_v<X>, const Leaf, Leaf>;

 public:
  constexpr explicit typed_leaves(F& f) : f_(f) {}

  constexpr void tensor(handle& leaf, int type, const tree_path& path) override {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (void)((type == leaf_indices<U>[I] && (give<leaf_indices<U>[I]>(leaf, path), true)) || ...);
    }(std::make_index_sequence<leaf_indices<U>.size()>{});
  }
  constexpr void flag(TrainingFlag& leaf, const tree_path& path) override {
    if constexpr (leaves_of<U>.flags) f_(static_cast<given<TrainingFlag>&>(leaf), path);
  }
  constexpr void scalar(Scalar& leaf, const tree_path& path) override {
    if constexpr (leaves_of<U>.scalars) f_(static_cast<given<Scalar>&>(leaf), path);
  }
  constexpr void number(double value, const tree_path& path) override {
    if constexpr (leaves_of<U>.numbers) f_(std::as_const(value), path);
  }

 private:
  template <int Type>
  constexpr void give(handle& leaf, const tree_path& path) {
    f_(static_cast<given<typename leaf_at<Type>::type>&>(leaf), path);
  }

  F& f_;
};

}  // namespace xla::detail
