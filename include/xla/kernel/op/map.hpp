// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of all elementwise ops: a fused region of one op. Eager mode, and recorded graphs
// tile by tile, run these; compiled graphs run fused/map.hpp for whole regions.

#include <cmath>
#include <limits>

#include "xla/base/instance.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/fused/map.hpp"
#include "xla/kernel/simd/bfloat16_packet.hpp"
#include "xla/op/cast.hpp"

namespace xla::detail {

/// The region of one op: eager and traced mode run the kernel of a fused region of size 1.
template <class Op, class Out, class In>
struct single_map {
  using V = kernel::vec<In>;
  static constexpr bool chooses = requires { Op::chooses; };
  static constexpr int arity = [] {
    if constexpr (chooses) return 3;
    else if constexpr (requires(V v) { Op::kernel(v, v, v); }) return 3;
    else if constexpr (requires(V v) { Op::kernel(v, v); }) return 2;
    else return 1;
  }();
  template <class... Vs>
  static constexpr bool compares =
      std::is_base_of_v<kernel::mask<In>, decltype(Op::kernel(std::declval<Vs>()...))>;
  /// Whether its element type is Out: bool if the kernel compares, else its inputs' type.
  static constexpr bool makes_out = [] {
    constexpr bool is_bool = [] {
      if constexpr (chooses) return false;
      else if constexpr (arity == 3) return compares<V, V, V>;
      else if constexpr (arity == 2) return compares<V, V>;
      else return compares<V>;
    }();
    return std::is_same_v<Out, std::conditional_t<is_bool, bool, In>>;
  }();
  static constexpr auto key = [] {
    kernel::region_key<arity + 1> k{};
    for (int i = 0; i < arity; ++i)
      k.words[i] =
          kernel::micro_op{.type = chooses && i == 0 ? dtype::boolean : dtype_of<In>, .input = true}
              .word();
    kernel::micro_op m{.id = id_of<Op>, .type = dtype_of<Out>, .a = 0, .output = true};
    if (arity > 1) m.b = 1;
    if (arity > 2) m.c = 2;
    k.words[arity] = m.word();
    return k;
  }();
  static void tile(const tile_call& call) { kernel::map_kernel<key>::run(call); }
};

/// Runs a map kernel over whole tensors, inputs broadcast.
template <class = void>
void run_map_call(const kernel_call& call, void (*tile)(const tile_call&), int arity,
                  const std::int64_t* bytes) {
  shape shapes[4];
  void* pointers[4];
  for (int i = 0; i < arity; ++i) {
    shapes[i] = call.in_shapes[i];
    pointers[i] = const_cast<void*>(call.in[i]);
  }
  shapes[arity] = *call.out_shape;
  pointers[arity] = call.out;
  kernel::run_map(kernel::make_loops(*call.out_shape, shapes, bytes, arity + 1), {tile}, pointers);
}
XLA_OP_INSTANCE(void run_map_call<void>(const kernel_call&, void (*)(const tile_call&), int,
                                     const std::int64_t*));

/// Every op that is a map and has a kernel expression.
template <class Op, class Out, class In>
  requires(Op::kind == op_kind::map)
struct kernel_of<Op, Out, In> : single_map<Op, Out, In> {
  static void run(const kernel_call& call) {
    using single = single_map<Op, Out, In>;
    std::int64_t bytes[4] = {sizeof(In), sizeof(In), sizeof(In)};
    if (single::chooses) bytes[0] = 1;
    bytes[single::arity] = sizeof(Out);
    run_map_call(call, &single::tile, single::arity, bytes);
  }
};

/// Like static_cast, but defined everywhere: NaN becomes 0, numbers out of range the nearest.
template <class To, class From>
inline To convert_element(From x) {
  if constexpr (std::is_same_v<From, bfloat16>) return convert_element<To>(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, bool>) return x != From{};
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using limits = std::numeric_limits<To>;
    if (!(x == x)) return To{};
    if (x < static_cast<From>(limits::min())) return limits::min();
    if (x >= std::ldexp(From(1), limits::digits)) return limits::max();
    return static_cast<To>(x);
  } else return static_cast<To>(x);
}

template <class To, class From>
struct kernel_of<op::cast, To, From> {
  static void tile(const tile_call& call) {
    const From* in = static_cast<const From*>(call.pointers[0]);
    To* out = static_cast<To*>(call.pointers[1]);
    const std::int64_t step = call.steps[0];
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>)
      if (step == 1) return kernel::detail::round_all(in, out, call.n);
    if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>)
      if (step == 1) return kernel::detail::widen_all(in, out, call.n);
    for (std::int64_t i = 0; i < call.n; ++i) out[i] = convert_element<To>(in[i * step]);
  }
  static void run(const kernel_call& call) {
    const std::int64_t bytes[] = {sizeof(From), sizeof(To)};
    run_map_call(call, &tile, 1, bytes);
  }
};

}  // namespace xla::detail
