// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges between replicas as ops: all_reduce, all_gather and others, with gradients. With one
// replica they return their input. The transport is in run/world/.

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "xla/op/concat.hpp"

namespace xla {

/// How the elements of the replicas at the same position are combined.
enum class reduce_type : std::uint8_t { sum, mean, max, min, product };

constexpr std::string_view name_of(reduce_type how) {
  switch (how) {
    case reduce_type::sum: return "sum";
    case reduce_type::mean: return "mean";
    case reduce_type::max: return "max";
    case reduce_type::min: return "min";
    default: return "product";
  }
}

}  // namespace xla

namespace xla::detail {

template <>
struct field_type<reduce_type> : choice_field<reduce_type> {};

// The ops below, as their gradients apply them.
template <class Op, class T, int R>
constexpr Tensor<T, R> apply_collective(const Tensor<T, R>& x, const typename Op::attributes& how,
                                        caller loc = unknown_caller);
template <class T, int R>
constexpr Tensor<T, R> permute_replicas(const Tensor<T, R>& x, const handle& from, const handle& to,
                                        Size world, caller loc = unknown_caller);

}  // namespace xla::detail

namespace xla::op {

struct broadcast;
struct reduce_scatter;

/// The base of ops in which all replicas of the world take part, in the same order on each.
struct collective {
  static constexpr op_kind kind = op_kind::library;
  static constexpr bool exchanges = true;
  static constexpr bool alone_is_input = true;  ///< in a world of one it changes nothing
};

/// The combination of all replicas' tensors, element by element; with a root only there, and zeros
/// elsewhere. For gradients it knows the parameter, and replicas with a different one get an error.
struct all_reduce : collective {
  static constexpr auto name = "all_reduce";
  static constexpr bool bundled = true;  ///< plans start several together, and wait late
  static constexpr bool computes = true;
  struct attributes {
    reduce_type how{};
    detail::optional_number root{};
    detail::size_value world{};
    detail::optional_number parameter{};
    XLA_ATTRIBUTES(how, root, world, parameter)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
  static constexpr void gradient(auto& g) {
    const auto [how, root, world, parameter] = g.attributes();
    if (root >= 0) return g.to(0, detail::apply_collective<broadcast>(g.grad(), {root, world}));
    if (how != reduce_type::sum && how != reduce_type::mean)
      return refuse_now(g.grad(),
                        "backward: all_reduce has a gradient of a sum and of a mean alone; "
                        "detach() what it takes the maximum, minimum or product of");
    g.to(0, detail::apply_collective<all_reduce>(g.grad(), {how, {}, world}));
  }
};

/// The concatenation of all replicas' tensors along an axis, cropped to a total size.
struct all_gather : collective {
  static constexpr auto name = "all_gather";
  struct attributes {
    detail::axis_number axis{};
    detail::size_value whole{};
    XLA_ATTRIBUTES(axis, whole)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    const auto [axis, whole] = r.attributes<all_gather>();
    s[axis] = whole;
    return s;
  }
  static constexpr void gradient(auto& g) {
    const int axis = g.attributes().axis;
    g.to(0, detail::apply_collective<reduce_scatter>(
                g.grad(), {axis, reduce_type::sum, g.in(0).size(axis).extent()}));
  }
};

/// The combination of all replicas' tensors, of which each gets its part along an axis, padded with
/// zeros. Like all_reduce, it knows the parameter of a gradient.
struct reduce_scatter : collective {
  static constexpr auto name = "reduce_scatter";
  static constexpr bool computes = true;
  struct attributes {
    detail::axis_number axis{};
    reduce_type how{};
    detail::size_value part{};
    detail::optional_number parameter{};
    XLA_ATTRIBUTES(axis, how, part, parameter)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    const auto [axis, how, part, parameter] = r.attributes<reduce_scatter>();
    s[axis] = part;
    return s;
  }
  static constexpr void gradient(auto& g) {
    const auto [axis, how, part, parameter] = g.attributes();
    if (how != reduce_type::sum && how != reduce_type::mean)
      return refuse_now(g.grad(),
                        "backward: reduce_scatter has a gradient of a sum and of a mean alone; "
                        "detach() what it takes the maximum, minimum or product of");
    auto all = detail::apply_collective<all_gather>(g.grad(), {axis, g.in(0).size(axis).extent()});
    if (how == reduce_type::mean) all = all / world_size(all);
    g.to(0, all);
  }
};

/// Every replica's tensor in equal parts along an axis, one for each replica, which concatenates
/// the received parts along another.
struct all_to_all : collective {
  static constexpr auto name = "all_to_all";
  struct attributes {
    detail::axis_number split{}, concat{};
    detail::size_value world{};
    XLA_ATTRIBUTES(split, concat, world)
  };
  static constexpr shape shape_of(const shape_rule& r) {
    shape s = r.in[0];
    const auto [split, concat, world] = r.attributes<all_to_all>();
    s[split] = r.sizes.divide(s[split], world);
    s[concat] = r.sizes.multiply(s[concat], world);
    return s;
  }
  static constexpr void gradient(auto& g) {
    const auto [split, concat, world] = g.attributes();
    g.to(0, detail::apply_collective<all_to_all>(g.grad(), {concat, split, world}));
  }
};

/// One replica's tensor.
struct broadcast : collective {
  static constexpr auto name = "broadcast";
  struct attributes {
    int root = 0;
    detail::size_value world{};
    XLA_ATTRIBUTES(root, world)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
  static constexpr void gradient(auto& g) {
    const auto [root, world] = g.attributes();
    g.to(0, detail::apply_collective<all_reduce>(g.grad(), {reduce_type::sum, root, world}));
  }
};

/// The tensor of the replica that sends to this one; zeros if none does. Its inputs after the first
/// are the ordinals of the senders, and of their receivers.
struct collective_permute : collective {
  static constexpr auto name = "collective_permute";
  struct attributes {
    detail::size_value world{};
    XLA_ATTRIBUTES(world)
  };
  static constexpr shape shape_of(const shape_rule& r) { return r.in[0]; }
  static constexpr void gradient(auto& g) {
    const auto there = g.template in<std::int64_t>(1), back = g.template in<std::int64_t>(2);
    g.to(0, detail::permute_replicas(g.grad(), back, there, world_size(g.grad())));
  }
};

}  // namespace xla::op

XLA_OP(xla::op::all_reduce, numbers);
XLA_OP(xla::op::all_gather, all);
XLA_OP(xla::op::reduce_scatter, numbers);
XLA_OP(xla::op::all_to_all, all);
XLA_OP(xla::op::broadcast, all);
XLA_OP(xla::op::collective_permute, all);

namespace xla {

/// The number of replicas in the world of this thread's device; 1 if there are no others.
template <class In = void>
constexpr int world_size() {
  if (!__builtin_is_constant_evaluated()) return detail::machine_of<In>::world_size();
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body serves every world: world_size(x) is its Size");
  return 1;
}
/// The same as a size, also for compiled bodies, which know it when they are called.
template <class T, int R>
constexpr Size world_size(const Tensor<T, R>& x) {
  if (!__builtin_is_constant_evaluated()) return detail::machine_of<T>::world_size();
  if (x.table()) return Size(x.table()->world(), x.table());
  throw std::logic_error("xla: in a compiled body replicas exchange what comes from an argument");
}
/// Which replica of its world this thread's device is, from 0 on.
template <class In = void>
constexpr int global_ordinal() {
  if (!__builtin_is_constant_evaluated()) return detail::machine_of<In>::global_ordinal();
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body is the same for all replicas: it has no ordinal");
  return 0;
}

namespace tags {
/// Allows a reduce_scatter() of a size that the replicas do not divide: it is padded with zeros.
inline constexpr struct padded_t {
} padded;
}  // namespace tags

/// Names the parameter of a gradient, by its position in named_parameters(), from 0 on: replicas
/// that combine gradients of different parameters get an error.
struct GradientOf {
  int parameter = -1;  ///< -1: no parameter
};

namespace detail {

template <class Op, class T, int R>
constexpr Tensor<T, R> apply_collective(const Tensor<T, R>& x, const typename Op::attributes& how,
                                        caller loc) {
  node n = with<Op>(how);
  n.at = loc;
  return apply_at<Op, T, T, R>(loc, n, x);
}
template <class T, int R>
constexpr Tensor<T, R> permute_replicas(const Tensor<T, R>& x, const handle& from, const handle& to,
                                        Size world, caller loc) {
  node n = with<op::collective_permute>({world.extent()});
  n.at = loc;
  return apply_at<op::collective_permute, T, T, R>(loc, n, x, from, to);
}

/// The reduction of that name, PyTorch/XLA's or this library's.
constexpr reduce_type reduction_named(std::string_view name, const size_scope& scope) {
  for (const reduce_type how : {reduce_type::sum, reduce_type::mean, reduce_type::max,
                                reduce_type::min, reduce_type::product})
    if (name_of(how) == name) return how;
  if (name != "mul") scope.fail(text("\"") << name << "\" is none of sum, mean, max, min, product");
  return reduce_type::product;
}
/// Integers have no mean, bools none of these.
template <class T>
constexpr void check_reduction(reduce_type how, const size_scope& scope) {
  static_assert(!std::same_as<T, bool>,
                "xla: bools are not reduced over replicas: cast<std::int64_t>(x), then max for "
                "\"any\", min for \"all\"");
  if (!floating_type<T> && how == reduce_type::mean)
    scope.fail("integers have no mean; convert them first: xla::cast<float>(x)");
}
/// Refuses a replica that does not exist in the world.
constexpr void check_ordinal(int ordinal, Size world, const size_scope& scope) {
  if (ordinal < 0) scope.fail(text("replicas count from 0 on: there is no ") << ordinal);
  else if (!scope.at_least(world.extent(), ordinal + 1))
    scope.fail(text("there is no replica ") << ordinal << " in a world of " << world.extent());
}
/// The size of an axis of which every replica has an equal part.
template <class T, int R>
constexpr Size equal_part(const Tensor<T, R>& x, int axis, const size_scope& scope) {
  const Size all = x.size(axis), world = world_size(x);
  const Size part = all / world;
  if (extent shared = (part * world).extent(); !scope.equal(shared, all.extent()))
    scope.fail(text("axis ") << axis << " of " << x.dims()
                             << " does not divide into equal parts for " << world.extent()
                             << " replicas; pad it first");
  return part;
}

/// One end of the pairs of a permutation.
template <class T, int R, class Pair>
constexpr auto ordinals(const Tensor<T, R>& x, const Pair* pairs, std::size_t count, int end) {
  using index = dependent<T, std::int64_t>;
  if (!__builtin_is_constant_evaluated()) {
    std::vector<index> all(count, 0);
    for (std::size_t i = 0; i < count; ++i) all[i] = pairs[i][end];
    return from_blob(all.data(), {count});
  }
  shape one;
  one.rank = 1;
  one[0] = 1;
  std::vector<Tensor<index, 1>> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(fill_shape<index, 1>(constant<index>(pairs[i][end]), one, x.table()));
  return concat_all(all.data(), static_cast<int>(count), 0, unknown_caller);
}
template <class Pair>
constexpr bool is_permutation(const Pair* pairs, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (pairs[i][0] == pairs[k][0] || pairs[i][1] == pairs[k][1]) return false;
  return count > 0;
}
template <class T, int R, class Pair>
constexpr Tensor<T, R> permute_pairs(const Tensor<T, R>& x, const Pair* pairs, std::size_t count,
                                     caller loc) {
  const size_scope scope{x.table(), {"collective_permute", loc}};
  const Size world = world_size(x);
  for (std::size_t i = 0; i < count; ++i)
    for (int end = 0; end < 2; ++end) check_ordinal(pairs[i][end], world, scope);
  if (!is_permutation(pairs, count)) {
    scope.fail(
        "pairs {from, to} name each replica once as sender and once as receiver, and there "
        "is one at least");
    return x;
  }
  return permute_replicas(x, ordinals(x, pairs, count, 0), ordinals(x, pairs, count, 1), world,
                          loc);
}

}  // namespace detail

// Every replica of the world takes part in each of these: all call them in the same order, with
// tensors of the same shape. A world of one changes nothing.

/// The combination of all replicas' tensors, element by element: their sum, mean, maximum, minimum
/// or product, in an order that depends only on the number of replicas. Gradients pass a sum and a
/// mean.
template <class T, int R>
constexpr Tensor<T, R> all_reduce(const Tensor<T, R>& x, reduce_type how = reduce_type::sum,
                                  caller loc = here()) {
  detail::check_reduction<T>(how, {x.table(), {"all_reduce", loc}});
  return detail::apply_collective<op::all_reduce>(x, {how, {}, world_size(x).extent()}, loc);
}
/// The same for the replicas' gradients of a parameter.
template <class T, int R>
constexpr Tensor<T, R> all_reduce(const Tensor<T, R>& x, reduce_type how, GradientOf of,
                                  caller loc = here()) {
  detail::check_reduction<T>(how, {x.table(), {"all_reduce", loc}});
  return detail::apply_collective<op::all_reduce>(
      x, {how, {}, world_size(x).extent(), of.parameter}, loc);
}
/// The same by PyTorch/XLA's names: "sum", "mean", "max", "min", "mul".
template <class T, int R>
constexpr Tensor<T, R> all_reduce(const Tensor<T, R>& x, std::string_view how,
                                  caller loc = here()) {
  return all_reduce(x, detail::reduction_named(how, {x.table(), {"all_reduce", loc}}), loc);
}

/// The concatenation of all replicas' tensors along an axis, in the order of their ordinals.
template <class T, int R>
constexpr Tensor<T, R> all_gather(const Tensor<T, R>& x, int dim = 0, caller loc = here()) {
  static_assert(R != 0, "xla::all_gather: a tensor without axes; unsqueeze(x, 0) first");
  const int axis = detail::checked_axis(x, dim, {"all_gather", loc});
  const Size whole = x.size(axis) * world_size(x);
  return detail::apply_collective<op::all_gather>(x, {axis, whole.extent()}, loc);
}
/// The same cropped to a total size, beyond which the last replicas have nothing: the reverse of
/// reduce_scatter(…, padded). Parts of another size are a shape_error.
template <class T, int R>
constexpr Tensor<T, R> all_gather(const Tensor<T, R>& x, int dim, Size whole, caller loc = here()) {
  static_assert(R != 0, "xla::all_gather: a tensor without axes; unsqueeze(x, 0) first");
  const detail::size_scope scope{x.table(), {"all_gather", loc}};
  const int axis = detail::checked_axis(x, dim, scope.site);
  const Size world = world_size(x), own = x.size(axis);
  if (detail::extent part = ((whole + world - 1) / world).extent();
      !scope.equal(part, own.extent()))
    scope.fail(detail::text("the replicas have ")
               << (own * world).extent() << " of " << whole.extent() << " along axis " << axis
               << ", of which each has to have " << part);
  return detail::apply_collective<op::all_gather>(x, {axis, whole.extent()}, loc);
}

/// The combination of all replicas' tensors as in all_reduce(), of which each replica gets its part
/// along an axis. A size that the replicas do not divide is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> reduce_scatter(const Tensor<T, R>& x, int scatter_dim = 0,
                                      reduce_type how = reduce_type::sum, caller loc = here()) {
  static_assert(R != 0, "xla::reduce_scatter: a tensor without axes cannot be divided");
  const detail::size_scope scope{x.table(), {"reduce_scatter", loc}};
  detail::check_reduction<T>(how, scope);
  const int axis = detail::checked_axis(x, scatter_dim, scope.site);
  const Size part = detail::equal_part(x, axis, scope);
  return detail::apply_collective<op::reduce_scatter>(x, {axis, how, part.extent()}, loc);
}
/// The same for any size: all parts are as large as the first, padded with zeros. For gradients
/// also with their parameter.
template <class T, int R>
constexpr Tensor<T, R> reduce_scatter(const Tensor<T, R>& x, int scatter_dim, reduce_type how,
                                      tags::padded_t, GradientOf of = {}, caller loc = here()) {
  static_assert(R != 0, "xla::reduce_scatter: a tensor without axes cannot be divided");
  const detail::size_scope scope{x.table(), {"reduce_scatter", loc}};
  detail::check_reduction<T>(how, scope);
  const int axis = detail::checked_axis(x, scatter_dim, scope.site);
  const Size world = world_size(x), part = (x.size(axis) + world - 1) / world;
  return detail::apply_collective<op::reduce_scatter>(x, {axis, how, part.extent(), of.parameter},
                                                      loc);
}

/// Every replica's tensor in equal parts along an axis, part i for replica i, which concatenates
/// the received parts along another. A size that the replicas do not divide is a shape_error.
template <class T, int R>
constexpr Tensor<T, R> all_to_all(const Tensor<T, R>& x, int split_dim, int concat_dim,
                                  caller loc = here()) {
  static_assert(R != 0, "xla::all_to_all: a tensor without axes cannot be divided");
  const detail::size_scope scope{x.table(), {"all_to_all", loc}};
  const int split = detail::checked_axis(x, split_dim, scope.site);
  const int concat = detail::checked_axis(x, concat_dim, scope.site);
  detail::equal_part(x, split, scope);
  const Size world = world_size(x);
  return detail::apply_collective<op::all_to_all>(x, {split, concat, world.extent()}, loc);
}

/// The tensor of the replica `root`, on all of them.
template <class T, int R>
constexpr Tensor<T, R> broadcast(const Tensor<T, R>& x, int root = 0, caller loc = here()) {
  const Size world = world_size(x);
  detail::check_ordinal(root, world, {x.table(), {"broadcast", loc}});
  return detail::apply_collective<op::broadcast>(x, {root, world.extent()}, loc);
}

/// Sends tensors from replica to replica by pairs {from, to}: collective_permute(x, {{0, 1}, {1,
/// 0}}). A replica that receives nothing gets zeros.
template <class T, int R, std::size_t N>
constexpr Tensor<T, R> collective_permute(const Tensor<T, R>& x, const int (&pairs)[N][2],
                                          caller loc = here()) {
  return detail::permute_pairs(x, pairs, N, loc);
}
template <class T, int R>
Tensor<T, R> collective_permute(const Tensor<T, R>& x, std::span<const std::array<int, 2>> pairs,
                                caller loc = here()) {
  return detail::permute_pairs(x, pairs.data(), pairs.size(), loc);
}

}  // namespace xla
