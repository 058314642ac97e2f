// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops over all ops at compile time, for backends that need an entry for each. Programs without
// such backends do not include it, because it names every op.

#include "xla/base/refuse.hpp"
#include "xla/op/list.hpp"

namespace xla::detail {

template <class... Ops>
struct op_list {
  static constexpr int size = sizeof...(Ops);
};
template <class, class... Ops>
struct listed {
  using type = op_list<Ops...>;
};
#define XLA_DETAIL_LISTED(op, ...) , op
/// All ops that a graph may hold: those that compute, and the built-in ones.
using computing_ops = listed<void XLA_ALL_OPS(XLA_DETAIL_LISTED)>::type;
using all_ops =
    listed<void XLA_ALL_OPS(XLA_DETAIL_LISTED) XLA_BUILTIN_OPS(XLA_DETAIL_LISTED)>::type;
#undef XLA_DETAIL_LISTED

template <class... Ops>
constexpr bool have_ids_of_their_own(op_list<Ops...>) {
  const std::uint32_t ids[] = {id_of<Ops>...};
  for (int i = 0; i < static_cast<int>(sizeof...(Ops)); ++i)
    for (int k = 0; k < i; ++k)
      if (ids[i] == ids[k]) return false;
  return true;
}
static_assert(have_ids_of_their_own(all_ops{}), "xla: two ops have one id: rename one of them");

template <template <class> class Entry, class Op>
concept has_entry = requires { Entry<Op>::value; };

template <class Op>
inline constexpr text no_entry = text("xla: a table over all ops has no entry for ") << Op::name;

template <template <class> class Entry, class Op>
constexpr void require_entry() {
  if constexpr (!has_entry<Entry, Op>) refuse<no_entry<Op>>();
}

/// A value for each op of a list.
template <class Value, int Size>
struct op_values {
  struct row {
    std::uint32_t id;
    std::string_view name;
    Value value;
  };
  row rows[Size];

  /// The value for an op; nullptr for one that is not in the list, such as a custom op.
  constexpr const Value* find(const op_info& op) const {
    for (const row& r : rows)
      if (r.id == op.id) return &r.value;
    return nullptr;
  }
};

template <template <class> class Entry, class... Ops>
constexpr auto make_table(op_list<Ops...>) {
  (require_entry<Entry, Ops>(), ...);
  if constexpr ((has_entry<Entry, Ops> && ...)) {
    using value = std::common_type_t<decltype(Entry<Ops>::value)...>;
    return op_values<value, sizeof...(Ops)>{{{id_of<Ops>, Ops::name, Entry<Ops>::value}...}};
  } else {
    return op_values<int, 1>{};
  }
}

/// Entry<Op>::value for each op of a list, in order. Complete by construction: an op for which
/// Entry has no value does not compile, and the compiler's first line names it.
template <template <class> class Entry, class Ops = all_ops>
inline constexpr auto op_table = make_table<Entry>(Ops{});

}  // namespace xla::detail
