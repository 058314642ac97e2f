// SPDX-License-Identifier: Apache-2.0
#pragma once

// The blocks that scan_layers() loops over: their addresses, their type, and how they may differ.
// It records nothing; layer_stacks.hpp stacks the differences.

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/loop/trees.hpp"

namespace xla::detail {

/// Blocks in a row: their number, their type, their addresses. Row is an array, a tuple of one type
/// or of references to it, or a container of these, such as ModuleArray and Sequential.
template <class Row>
struct blocks_in {
  static constexpr bool are = false;
};
template <class E, std::size_t N>
struct blocks_in<std::array<E, N>> {
  static constexpr bool are = true;
  static constexpr std::size_t count = N;
  using type = E;
  static constexpr void find(const std::array<E, N>& row, const E** to) {
    for (std::size_t i = 0; i < N; ++i) to[i] = &row[i];
  }
};
template <class E, class... Rest>
struct blocks_in<std::tuple<E, Rest...>> {
  static constexpr bool are = (true && ... && std::is_same_v<E, Rest>);
  static constexpr std::size_t count = 1 + sizeof...(Rest);
  using type = std::remove_cvref_t<E>;
  static constexpr void find(const std::tuple<E, Rest...>& row, const type** to) {
    std::apply([&](const auto&... block) { ((*to++ = &block), ...); }, row);
  }
};
template <>
struct blocks_in<std::tuple<>> {
  static constexpr bool are = true;
  static constexpr std::size_t count = 0;
};
/// A container's only member, if it is unnamed; else void.
template <class Row>
constexpr auto find_elements() {
  return hana::unpack(Row::xla_members(), [](const auto& first, const auto&... more) {
    if constexpr (sizeof...(more) == 0) return first;
  });
}
template <class Row>
constexpr bool is_container() {
  if constexpr (described<Row>)
    if constexpr (!std::is_void_v<decltype(find_elements<Row>())>)
      return *find_elements<Row>().name == '\0';
  return false;
}
template <class Row>
  requires(is_container<Row>())
struct blocks_in<Row> : blocks_in<member_type<Row, decltype(find_elements<Row>().get)>> {
  static constexpr void find(const Row& row, auto** to) {
    const auto& all = find_elements<Row>().get(row);
    blocks_in<std::remove_cvref_t<decltype(all)>>::find(all, to);
  }
};

/// An error about an X during the compilation of a call.
template <class X>
inline constexpr loop_function layers_of = loop_function::scan_layers;

/// Calls f(a's leaf, b's leaf, path) for two of one type.
template <class X, class F>
constexpr void visit_both(const X& a, const X& b, const F& f, const tree_path& path = {}) {
  if constexpr (tree_leaf<X>) {
    f(a, b, path);
  } else {
    for_each_member<X>([&](const auto& get, const auto& called) {
      visit_both(get(a), get(b), f, tree_path(&path, called));
    });
  }
}
/// Whether an X, or a member of it, has members excluded by XLA_PLAIN.
template <class X>
inline constexpr bool has_plain = [] {
  bool found = requires { X::xla_plain_members(); };
  if constexpr (!tree_leaf<X>)
    for_each_member<X>([&]<class Get>(const Get&, const auto&) {
      found = found || has_plain<member_type<X, Get>>;
    });
  return found;
}();
/// Calls f(a's member, b's member) for these members of two objects of one type.
template <class X, class F>
constexpr void visit_plain(const X& a, const X& b, const F& f) {
  if constexpr (has_plain<X>) {
    if constexpr (requires { X::xla_plain_members(); })
      hana::unpack(X::xla_plain_members(), [&](const auto&... m) { (f(m.get(a), m.get(b)), ...); });
    for_each_member<X>([&](const auto& get, const auto&) { visit_plain(get(a), get(b), f); });
  }
}

/// Whether each block has its own value of a leaf, which the loop slices from the stack of all.
template <class L>
inline constexpr bool is_stacked = is_state<L> || is_tensor<L> || std::is_same_v<L, Scalar>;
/// The number of leaves of type E.
template <class E>
constexpr int count_stacked() {
  int n = 0;
  visit_types<E>([&]<class L>(std::type_identity<L>, const tree_path&) { n += is_stacked<L>; });
  return n;
}

/// True for a leaf that holds a tensor; false for a parameter without sizes that has not been
/// written.
template <class L>
constexpr bool has_value(const L& leaf) {
  if constexpr (is_state<L>) return leaf.is_cell();
  else return leaf.defined();
}

inline constexpr text has_hidden_members{
    "the blocks have members in XLA_PLAIN that cannot be compared, and one block stands for all: "
    "give them an operator=="};

/// Refuses two blocks that one body cannot represent.
class same_blocks {
 public:
  constexpr same_blocks(graph* in, call_site site) : g_(in), site_(site) {}

  template <class E>
  constexpr void check(const E& first, const E& other, std::size_t number) const {
    visit_both(first, other, [&]<class L>(const L& a, const L& b, const tree_path& path) {
      if constexpr (is_state<L> || is_tensor<L>) check_shapes(a, b, path, number);
      else if constexpr (std::is_same_v<L, TrainingFlag>) {
        const bool one = a, two = b;  // both are read, so that a call sees their current values
        if (one != two) refuse("one of them trains and the other evaluates", path, number);
      } else if constexpr (!is_stacked<L>) {
        if (!(a == b)) refuse("its values differ", path, number);
      }
    });
    visit_plain(first, other, [&]<class M>(const M& a, const M& b) {
      if constexpr (std::equality_comparable<M>) {
        if (!(a == b)) refuse("the members in XLA_PLAIN have different values", {}, number);
      } else if constexpr (!std::is_empty_v<M>) {
        refuse_call<layers_of<M>, has_hidden_members>();
      }
    });
  }
  /// Something that a block does, or has, that a loop over blocks cannot.
  constexpr void refuse(const text& what) const {
    text sentence;
    sentence << "scan_layers: " << what << site_.at;
    if (g_) g_->sizes.refused.set(sentence);
    else throw runtime_error(std::string(sentence.view()));
  }

 private:
  template <class L>
  constexpr void check_shapes(const L& a, const L& b, const tree_path& path,
                              std::size_t number) const {
    if (has_value(a) != has_value(b)) return refuse("only one of them has it", path, number);
    if (!has_value(a)) return;
    const size_scope scope{g_ ? &g_->sizes : nullptr, site_};
    const shape one = a.dims(), two = b.dims();
    if (!scope.same(one, two)) refuse(text("shapes ") << one << " and " << two, path, number);
  }
  constexpr void refuse(const text& what, const tree_path& path, std::size_t number) const {
    text which("blocks 0 and ");
    which << static_cast<std::int64_t>(number) << " differ";
    if (const text way = path.written(); !way.empty()) which << " in " << way;
    refuse(which << ": " << what << ". The body runs once for all blocks");
  }

  graph* g_;
  call_site site_;
};

}  // namespace xla::detail
