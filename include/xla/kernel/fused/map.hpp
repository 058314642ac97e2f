// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of a map region, as a template of the region's key. Compiled graphs instantiate it for
// each distinct region; kernel/op/map.hpp does for each op.

#include "xla/base/compiler.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/region.hpp"

namespace xla::kernel {

/// The kernel of a map region: every value is in a register, one pass over the elements. Tails run
/// through packets as well, so that an element's bits do not depend on its position.
template <region_key Key>
struct map_kernel {
  using traits = region_traits<Key>;
  using T = typename traits::type;
  using reg = lane_register<T>;
  static constexpr int w = lanes<T>;

  static void run(const ::xla::detail::tile_call& from) {
    local_call call;
    copy(call, from, std::make_integer_sequence<int, operands>{});
    reg v[static_cast<std::size_t>(traits::size)];
    each(values_where<traits::size, &traits::invariant>{}, [&](auto i) XLA_INLINE_LAMBDA {
      load_splat<T, of[i].as>(v[i], call.pointers[of[i].pointer]);
    });
    // One number for all elements becomes a vector in memory, so that the loop has no branches.
    alignas(64) char spread[static_cast<std::size_t>(operands)][sizeof(reg)];
    each(values_where<traits::size, &varying_input>{}, [&](auto i) XLA_INLINE_LAMBDA {
      constexpr int at = of[i].pointer;
      if (call.steps[at] != 0) return void(call.steps[at] = w * traits::bytes(i));
      load_splat<T, of[i].as>(v[i], call.pointers[at]);
      call.pointers[at] = spread[at];
      store<T, of[i].as>(spread[at], v[i], all_lanes{});
    });
    using varying = values_where<traits::size, &traits::varies>;
    for (; call.n >= w; call.n -= w) step(call, v, all_lanes{}, varying{});
    if constexpr (w > 1)
      if (call.n > 0) step(call, v, call.n, varying{});
  }

 private:
  static constexpr auto& of = traits::value.of;
  static constexpr int operands = traits::operands;
  static constexpr bool varying_input(int i) { return of[i].input && traits::varies(i); }
  // A copy, because otherwise every store could change the call's data.
  struct local_call {
    char* pointers[static_cast<std::size_t>(operands)];
    std::int64_t steps[static_cast<std::size_t>(operands)];  // run() makes them bytes
    std::int64_t n;
  };
  template <int... I>
  static XLA_INLINE void copy(local_call& call, const ::xla::detail::tile_call& from,
                              values<I...>) {
    ((call.pointers[I] = static_cast<char*>(from.pointers[I])), ...);
    ((call.steps[I] = I < traits::counts.inputs ? from.steps[I] : 1), ...);
    call.n = from.n;
  }
  template <class N, int... I>
  static XLA_INLINE void step(local_call& call, reg* v, N n, values<I...>) {
    (element<I>(call, v, n), ...);
  }
  /// Takes or computes value I of the next elements.
  template <int I, class N>
  static XLA_INLINE void element(local_call& call, reg* v, N n) {
    constexpr int at = of[I].pointer;
    if constexpr (of[I].input) {
      load<T, of[I].as>(v[I], call.pointers[at], n);
      call.pointers[at] += call.steps[at];
    } else {
      compute<traits, I, T>(v);
      if constexpr (of[I].output) {
        store<T, of[I].as>(call.pointers[at], v[I], n);
        call.pointers[at] += w * traits::bytes(I);
      }
    }
  }
};

}  // namespace xla::kernel
