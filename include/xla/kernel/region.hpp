// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "xla/kernel/math.hpp"
#include "xla/op/op.hpp"
#include "xla/transform/micro_op.hpp"

namespace xla::kernel {

using ::xla::detail::op_by_id;
using ::xla::detail::op_kind;

/// The structure of a fused region: as a template argument it is the type of the region's
/// expression, from which the compiler makes one loop. Equal regions share their kernel.
template <int N>
struct region_key {
  std::uint64_t words[static_cast<std::size_t>(N)];
  static constexpr int size = N;
  constexpr micro_op operator[](int i) const { return micro_op::of(words[i]); }
  friend constexpr bool operator==(const region_key&, const region_key&) = default;
};

/// What is known of a region from its key alone.
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
  /// The element type that decides the lanes: the one that is not bool.
  static constexpr dtype main = [] {
    for (int i = 0; i < size; ++i)
      if (Key[i].type != dtype::boolean) return Key[i].type;
    return dtype::boolean;
  }();
  using type = cpp_type<main>;
  /// The place of value i among inputs, then outputs, in the kernel's pointers.
  static constexpr int pointer(int i) {
    int n = 0;
    if (Key[i].input) {
      for (int k = 0; k < i; ++k) n += Key[k].input;
      return n;
    }
    for (int k = 0; k < i; ++k) n += Key[k].output;
    return counts.inputs + n;
  }
};

// A register of a region: numbers or a mask, told apart by the value's dtype.
template <class T, bool Truth>
XLA_INLINE auto typed(packet<T> p) {
  if constexpr (std::is_same_v<T, bool>) return vec<bool>(mask<bool>{p});
  else if constexpr (Truth) return mask<T>{p};
  else return vec<T>{p};
}
template <class T>
XLA_INLINE packet<T> untyped(vec<T> x) {
  if constexpr (std::is_same_v<T, bool>) return x.bits;
  else return x.v;
}
template <class T>
XLA_INLINE packet<T> untyped(mask<T> x) {
  return x.bits;
}

/// Reads n elements (n <= lanes) of the main type, or of bool as a mask; the other lanes are 0.
template <class T, bool Truth>
XLA_INLINE packet<T> load(const void* p, std::int64_t n) {
  constexpr int w = lanes<T>;
  if constexpr (Truth && !std::is_same_v<T, bool>) {
    const bool* from = static_cast<const bool*>(p);
    if constexpr (w == 1) return static_cast<T>(*from);
    else {
      alignas(64) T buffer[w] = {};
      if (n == w)
        for (int i = 0; i < w; ++i) buffer[i] = T(from[i]);
      else
        for (int i = 0; i < n; ++i) buffer[i] = T(from[i]);
      return (vec<T>::splat(T(0)) < vec<T>{simd::pload<packet<T>>(buffer)}).bits;
    }
  } else {
    const T* from = static_cast<const T*>(p);
    if constexpr (w == 1) return *from;
    else {
      if (n == w) return simd::ploadu<packet<T>>(from);
      return load_part<T>(from, n);
    }
  }
}

/// The same element in every lane.
template <class T, bool Truth>
XLA_INLINE packet<T> load_splat(const void* p) {
  if constexpr (Truth && !std::is_same_v<T, bool>) {
    const T x = *static_cast<const bool*>(p) ? T(1) : T(0);
    if constexpr (lanes<T> == 1) return x;
    else return (vec<T>::splat(T(0)) < vec<T>::splat(x)).bits;
  } else {
    const T x = *static_cast<const T*>(p);
    if constexpr (lanes<T> == 1) return x;
    else return simd::pset1<packet<T>>(x);
  }
}

/// Writes the first n lanes.
template <class T, bool Truth>
XLA_INLINE void store(void* p, packet<T> x, std::int64_t n) {
  constexpr int w = lanes<T>;
  if constexpr (w == 1) {
    if constexpr (Truth) *static_cast<bool*>(p) = static_cast<bool>(x);
    else *static_cast<T*>(p) = x;
  } else if constexpr (Truth) {
    alignas(64) T buffer[w];
    simd::pstore(buffer, mask<T>{x}.select(vec<T>::splat(T(1)), vec<T>::splat(T(0))).v);
    bool* to = static_cast<bool*>(p);
    for (int i = 0; i < n; ++i) to[i] = buffer[i] != T(0);
  } else {
    T* to = static_cast<T*>(p);
    if (n == w) return simd::pstoreu(to, x);
    store_part<T>(to, x, n);
  }
}

/// Value I of a region, computed from the registers of its operands by the op's own expression.
template <region_key Key, int I, class T>
XLA_INLINE packet<T> compute(const packet<T>* v) {
  constexpr micro_op m = Key[I];
  using Op = typename op_by_id<m.id>::op;
  constexpr auto truth = [](int i) { return Key[i].type == dtype::boolean; };
  const auto a = typed<T, truth(m.a)>(v[m.a]);
  if constexpr (requires { Op::converts; }) {
    if constexpr (truth(I)) return untyped<T>(a != vec<T>::splat(T(0)));
    else return untyped<T>(a.select(vec<T>::splat(T(1)), vec<T>::splat(T(0))));
  } else if constexpr (m.b == micro_op::none) {
    return untyped<T>(Op::kernel(a));
  } else {
    const auto b = typed<T, truth(m.b)>(v[m.b]);
    if constexpr (m.c == micro_op::none) return untyped<T>(Op::kernel(a, b));
    else return untyped<T>(Op::kernel(a, b, typed<T, truth(m.c)>(v[m.c])));
  }
}

template <int N, class F>
XLA_INLINE void unroll(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, static_cast<int>(I)>{}), ...);
  }
  (std::make_index_sequence<static_cast<std::size_t>(N)>{});
}

}  // namespace xla::kernel
