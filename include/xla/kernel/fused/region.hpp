// SPDX-License-Identifier: Apache-2.0
#pragma once

// The structure of a fused region as a template argument, the facts that follow from it at compile
// time, and how values are loaded and stored. map.hpp and row.hpp make kernels of it.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/kernel/simd/bfloat16_packet.hpp"
#include "xla/kernel/simd/math.hpp"
#include "xla/op/op.hpp"
#include "xla/transform/micro_op.hpp"

namespace xla::kernel {

using ::xla::detail::op_by_id;
using ::xla::detail::op_kind;

/// The structure of a fused region as a template argument: its type is the region's expression,
/// from which the compiler generates one loop. Regions of equal structure share that kernel.
template <int N>
struct region_key {
  std::uint64_t words[static_cast<std::size_t>(N)];
  static constexpr int size = N;
  constexpr micro_op operator[](int i) const { return micro_op::of(words[i]); }
  friend constexpr bool operator==(const region_key&, const region_key&) = default;
};

/// A list of value numbers of a region, as a type: code is generated for these values alone.
template <int... I>
using values = std::integer_sequence<int, I...>;

template <int N, bool (*Where)(int)>
struct picked {
  static constexpr auto found = [] {
    struct {
      int count = 0, at[static_cast<std::size_t>(N)] = {};
    } f;
    for (int i = 0; i < N; ++i)
      if (Where(i)) f.at[f.count++] = i;
    return f;
  }();
  template <std::size_t... K>
  static values<found.at[K]...> list(std::index_sequence<K...>);
  using type = decltype(list(std::make_index_sequence<static_cast<std::size_t>(found.count)>{}));
};
/// Those of N values for which Where is true.
template <int N, bool (*Where)(int)>
using values_where = typename picked<N, Where>::type;

/// Calls f with each value of a list, as a constant.
template <int... I, class F>
XLA_INLINE void each(values<I...>, F&& f) {
  (f(std::integral_constant<int, I>{}), ...);
}

/// How a value of a region is stored in memory: in the main type, as bool, or as bfloat16, which
/// registers hold as float.
enum class stored { numbers, booleans, bfloat16 };

/// The main type, which determines the number of lanes: neither bool, nor the type of an index,
/// nor bfloat16 where another one occurs. at(i) is value i of a region of this many.
constexpr dtype main_of(int size, const auto& at) {
  dtype found = dtype::boolean;
  for (int i = 0; i < size; ++i)
    if (const micro_op m = at(i); m.type != dtype::boolean && !m.index)
      if (found == dtype::boolean || found == dtype::bfloat16) found = m.type;
  return found;
}

/// Facts about a region that follow from its key alone.
template <region_key Key>
struct region_traits {
  static constexpr int size = Key.size;
  static constexpr auto counts = [] {
    struct {
      int inputs = 0, outputs = 0, reduces = 0;
    } n;
    for (int i = 0; i < size; ++i) {
      n.inputs += Key[i].input;
      n.outputs += Key[i].output;
      n.reduces += Key[i].reduce;
    }
    return n;
  }();
  static constexpr int operands = counts.inputs + counts.outputs;
  static constexpr dtype main = main_of(size, [](int i) { return Key[i]; });
  using type = cpp_type<main>;
  struct value_facts : micro_op {
    bool is_mask = false;
    stored as = stored::numbers;
    int pointer = 0;  ///< its index among inputs, then outputs, in the kernel's pointers
  };
  struct table {
    value_facts of[static_cast<std::size_t>(size)];
  };
  static constexpr table value = [] {
    table t;
    for (int i = 0, in = 0, out = counts.inputs; i < size; ++i) {
      value_facts& v = t.of[i];
      static_cast<micro_op&>(v) = Key[i];
      v.is_mask = v.type == dtype::boolean;
      if (v.is_mask && main != dtype::boolean) v.as = stored::booleans;
      if (v.type == dtype::bfloat16 && main != dtype::bfloat16) v.as = stored::bfloat16;
      if (v.input) v.pointer = in++;
      else if (v.output) v.pointer = out++;
    }
    return t;
  }();
  /// Bytes of an element of value i.
  static constexpr int bytes(int i) {
    switch (value.of[i].as) {
      case stored::booleans: return 1;
      case stored::bfloat16: return 2;
      default: return static_cast<int>(sizeof(type));
    }
  }
  static constexpr bool invariant(int i) {
    return value.of[i].input && value.of[i].invariant && !value.of[i].index;
  }
  static constexpr bool varies(int i) { return !invariant(i); }
};

/// A register of a region: numbers of the main type, or a mask if the value is bool and the main
/// type is not.
template <class T>
struct lane_register {
  packet<T> number;
  mask_bits<T> bits;

  template <bool IsMask>
  XLA_INLINE auto as() const {
    if constexpr (std::is_same_v<T, bool>) return vec<bool>(mask<bool>{number});
    else if constexpr (IsMask) return mask<T>{bits};
    else return vec<T>{number};
  }
  XLA_INLINE void set(vec<T> x) {
    if constexpr (std::is_same_v<T, bool>) number = x.bits;
    else number = x.v;
  }
  XLA_INLINE void set(mask<T> x)
    requires(!std::is_same_v<T, bool>)
  {
    bits = x.bits;
  }
};

/// A tag for accesses to all lanes; a number of elements stands for fewer.
struct all_lanes {};

template <class N>
inline constexpr bool takes_all = std::is_same_v<N, all_lanes>;
XLA_INLINE std::int64_t lane_count(std::int64_t n, int) { return n; }
XLA_INLINE std::int64_t lane_count(all_lanes, int all) { return all; }

/// Reads n elements; the other lanes are 0.
template <class T, class N>
XLA_INLINE packet<T> load_numbers(const T* from, [[maybe_unused]] N n) {
  if constexpr (lanes<T> == 1) return *from;
  else if constexpr (takes_all<N>) return simd::ploadu<packet<T>>(from);
  else return load_part<T>(from, n);
}
/// Writes the first n lanes.
template <class T, class N>
XLA_INLINE void store_numbers(T* to, packet<T> x, [[maybe_unused]] N n) {
  if constexpr (lanes<T> == 1) *to = x;
  else if constexpr (takes_all<N>) simd::pstoreu(to, x);
  else store_part<T>(to, x, n);
}

/// Reads n elements; the other lanes are 0.
template <class T, stored As, class N>
XLA_INLINE void load(lane_register<T>& to, const void* p, N n) {
  if constexpr (As == stored::booleans) {
    const bool* from = static_cast<const bool*>(p);
    if constexpr (lanes<T> == 1) to.bits = static_cast<T>(*from);
    else to.bits = detail::load_mask<T>(from, lane_count(n, lanes<T>));
  } else if constexpr (As == stored::bfloat16) {
    const auto* from = static_cast<const bfloat16*>(p);
    if constexpr (lanes<T> == 1) to.number = *from;
    else to.number = detail::widen_lanes(from, static_cast<std::size_t>(lane_count(n, lanes<T>)));
  } else {
    to.number = load_numbers(static_cast<const T*>(p), n);
  }
}
/// The same element in every lane.
template <class T, stored As>
XLA_INLINE void load_splat(lane_register<T>& to, const void* p) {
  if constexpr (As == stored::booleans)
    to.bits = detail::splat_mask<T>(*static_cast<const bool*>(p));
  else if constexpr (As == stored::bfloat16)
    to.set(vec<T>::splat(*static_cast<const bfloat16*>(p)));
  else to.set(vec<T>::splat(*static_cast<const T*>(p)));
}
/// Writes the first n lanes.
template <class T, stored As, class N>
XLA_INLINE void store(void* p, const lane_register<T>& x, N n) {
  if constexpr (As == stored::booleans) {
    bool* to = static_cast<bool*>(p);
    if constexpr (lanes<T> == 1) *to = static_cast<bool>(x.bits);
    else detail::store_mask<T>(to, x.bits, lane_count(n, lanes<T>));
  } else if constexpr (As == stored::bfloat16) {
    auto* to = static_cast<bfloat16*>(p);
    if constexpr (lanes<T> == 1) *to = bfloat16(x.number);
    else detail::store_lanes(to, x.number, static_cast<std::size_t>(lane_count(n, lanes<T>)));
  } else {
    store_numbers(static_cast<T*>(p), x.number, n);
  }
}

/// Writes the first lane.
template <class T, stored As>
XLA_INLINE void store_one(void* p, const lane_register<T>& x) {
  if constexpr (As != stored::numbers) store<T, As>(p, x, std::int64_t{1});
  else if constexpr (lanes<T> == 1) *static_cast<T*>(p) = x.number;
  else *static_cast<T*>(p) = simd::pfirst(x.number);
}

/// Stores floats as bfloat16.
template <class T>
XLA_INLINE vec<T> rounded(vec<T> x) {
  if constexpr (lanes<T> == 1) return {static_cast<T>(bfloat16(x.v))};
  else return {detail::round_lanes(x.v)};
}

/// Computes value I of a region from its operands' registers, by the op's kernel expression.
template <class Traits, int I, class T>
XLA_INLINE void compute(lane_register<T>* v) {
  constexpr auto& of = Traits::value.of;
  constexpr micro_op m = of[I];
  using Op = typename op_by_id<m.id>::op;
  const auto a = v[m.a].template as<of[m.a].is_mask>();
  if constexpr (requires { Op::converts; }) {
    if constexpr (of[I].is_mask) v[I].set(a != vec<T>::splat(T(0)));
    else if constexpr (of[I].as == stored::bfloat16) v[I].set(rounded(a));
    else if constexpr (of[m.a].as == stored::bfloat16) v[I].set(a);
    else v[I].set(a.select(vec<T>::splat(T(1)), vec<T>::splat(T(0))));
  } else if constexpr (m.b == micro_op::none) {
    v[I].set(Op::kernel(a));
  } else {
    const auto b = v[m.b].template as<of[m.b].is_mask>();
    if constexpr (m.c == micro_op::none) v[I].set(Op::kernel(a, b));
    else v[I].set(Op::kernel(a, b, v[m.c].template as<of[m.c].is_mask>()));
  }
}

template <int N, class F>
XLA_INLINE void unroll(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) XLA_INLINE_LAMBDA {
    (f(std::integral_constant<int, static_cast<int>(I)>{}), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(N)>{});
}

}  // namespace xla::kernel
