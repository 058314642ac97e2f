// SPDX-License-Identifier: Apache-2.0
#pragma once

// cat() and stack(): one tensor of several.

#include <array>

#include "xla/op/slice.hpp"

namespace xla::op {

/// Two or more tensors one after the other along an axis.
struct concat {
  static constexpr auto name = "concat";
  static constexpr op_kind kind = op_kind::library;
  static constexpr auto accepts = detail::axes_rule::any;
  struct attributes {
    detail::axis_number axis{};
    int parts = 0;
    XLA_ATTRIBUTES(axis, parts)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    const int at = r.attributes<concat>().axis;
    shape s = r.in[0];
    for (int k = 1; k < r.count; ++k) {
      const shape& next = r.input(k);
      bool same = next.rank == s.rank;
      for (int i = 0; same && i < s.rank; ++i)
        if (i != at) same = r.sizes.equal(s[i], next[i]);
      if (same) s[at] = r.sizes.plus(s[at], next[at]);
      else
        r.sizes.fail(detail::text("shapes ")
                     << r.in[0] << " and " << next << " have to be equal but for axis " << at);
    }
    return s;
  }
  static constexpr void gradient(auto& g) {
    const auto [axis, parts] = g.attributes();
    Size start = 0;
    for (int k = 0; k < parts; ++k) {
      const auto part = g.in(k);
      const shape dims = part.dims();
      const slice::attributes which{axis, 1, start.extent()};
      if (g.needs(k) && !(k > 0 && g.needs(k - 1) && take_next(g.scope.result + k, which, dims)))
        g.to(k, take_part(g.grad(), which, dims));
      start = start + Size(dims[axis], part.table());
    }
  }

 private:
  /// In a graph: the same part of a value as the one before, from another start on. A loop over
  /// blocks has such a part for each of a block's parameters.
  static constexpr bool take_next(detail::handle* to, const slice::attributes& which,
                                  const shape& dims) {
    detail::graph* const g = __builtin_is_constant_evaluated() ? to[-1].owner() : nullptr;
    if (!g) return false;
    detail::node n = g->nodes[to[-1].node_index()];
    if (!detail::is<slice>(n) || !detail::same_dims(n, dims)) return false;
    n.set<slice>(which);
    to->name_node(g, g->add(n));
    return true;
  }
};

}  // namespace xla::op

XLA_OP(xla::op::concat, all);

namespace xla {
namespace detail {

template <class T, int R>
constexpr Tensor<T, R> concat_all(const Tensor<T, R>* x, int n, int axis, caller loc) {
  if (n == 1) return x[0];
  return apply_to_all<op::concat, T, T, R>(loc, with<op::concat>({.axis = axis, .parts = n}), x, n);
}

/// The same of n values of a graph, each of the shape `one`, along the first axis. Their sizes are
/// not compared.
template <class T, int R>
constexpr Tensor<T, R> concat_equal(const handle* const* x, int n, const shape& one) {
  shape all = one;
  all[0] *= n;
  node made = with<op::concat>({.axis = 0, .parts = n}, all);
  made.op = &info_of<op::concat, T, T>;
  made.type = dtype_of<T>;
  made.arity = n;
  Tensor<T, R> joined;
  record(made, x, n, joined);
  return joined;
}

template <class T, int R>
constexpr Tensor<T, R> concat(const Tensor<T, R>* x, int n, int axis, caller loc) {
  static_assert(R != 0, "xla::cat: tensors without axes cannot be joined; use stack");
  return concat_all(x, n, checked_axis(x[0], axis, {"cat", loc}), loc);
}

template <std::size_t N, class T, int R>
constexpr Tensor<T, R + 1> stack(const Tensor<T, R>* x, int axis, caller loc) {
  const int at = axis < 0 ? axis + R + 1 : axis;
  if (at < 0 || at > R) {
    size_scope{x[0].table(), {"stack", loc}}.fail(text("the result has no axis ") << axis);
    return unsqueeze(x[0], 0);
  }
  Tensor<T, R + 1> parts[N];
  for (std::size_t i = 0; i < N; ++i) parts[i] = unsqueeze(x[i], at);
  return concat_all(parts, static_cast<int>(N), at, loc);
}

}  // namespace detail

/// The concatenation of tensors along an axis; all other sizes are equal: cat({a, b, c}, 1). An
/// array of tensors works as well, as do separate tensors with the axis in angle brackets:
/// cat<1>(a, b, c). Sizes that differ elsewhere, or an axis that does not exist, are a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> cat(const Tensor<T, R> (&x)[N], int axis = 0, caller loc = here()) {
  return detail::concat(x, static_cast<int>(N), axis, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> cat(const std::array<Tensor<T, R>, N>& x, int axis = 0,
                           caller loc = here()) {
  static_assert(N > 0, "xla::cat: no tensors were given");
  return detail::concat(x.data(), static_cast<int>(N), axis, loc);
}
template <int Axis = 0, class T, int R, std::convertible_to<Tensor<T, R>>... More>
  requires(sizeof...(More) > 0)
constexpr Tensor<T, R> cat(const Tensor<T, R>& first, const More&... more) {
  const Tensor<T, R> x[] = {first, more...};
  return detail::concat(x, 1 + static_cast<int>(sizeof...(More)), Axis, detail::unknown_caller);
}

/// Another name of cat.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> concat(const Tensor<T, R> (&x)[N], int axis = 0, caller loc = here()) {
  return cat(x, axis, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> concat(const std::array<Tensor<T, R>, N>& x, int axis = 0,
                              caller loc = here()) {
  return cat(x, axis, loc);
}
template <int Axis = 0, class T, int R, std::convertible_to<Tensor<T, R>>... More>
  requires(sizeof...(More) > 0)
constexpr Tensor<T, R> concat(const Tensor<T, R>& first, const More&... more) {
  return cat<Axis>(first, more...);
}

/// Stacks tensors of one shape along a new axis (negative: from the end of the result's). Tensors
/// of several shapes are a shape_error.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R + 1> stack(const Tensor<T, R> (&x)[N], int axis = 0, caller loc = here()) {
  return detail::stack<N>(x, axis, loc);
}
template <class T, int R, std::size_t N>
constexpr Tensor<T, R + 1> stack(const std::array<Tensor<T, R>, N>& x, int axis = 0,
                                 caller loc = here()) {
  static_assert(N > 0, "xla::stack: no tensors were given");
  return detail::stack<N>(x.data(), axis, loc);
}
template <int Axis = 0, class T, int R, std::convertible_to<Tensor<T, R>>... More>
  requires(sizeof...(More) > 0)
constexpr Tensor<T, R + 1> stack(const Tensor<T, R>& first, const More&... more) {
  const Tensor<T, R> x[] = {first, more...};
  return detail::stack<1 + sizeof...(More)>(x, Axis, detail::unknown_caller);
}

}  // namespace xla
