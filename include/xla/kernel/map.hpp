// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/call.hpp"
#include "xla/kernel/region.hpp"

namespace xla::kernel {

/// The kernel of a map region: every value in a register, one pass over the elements. Tails run
/// through packets as well, so that an element's bits do not depend on its place.
template <region_key Key>
struct map_kernel {
  using traits = region_traits<Key>;
  using T = typename traits::type;
  using reg = lane_register<T>;
  static constexpr int w = lanes<T>;
  static constexpr int inputs = traits::counts.inputs;
  static constexpr bool truth(int i) { return Key[i].type == dtype::boolean; }

  static void run(const ::xla::detail::tile_call& from) {
    // A copy, or every store could change what the call refers to.
    local_call call;
    unroll<operands>([&](auto i) __attribute__((always_inline)) {
      call.pointers[i] = static_cast<char*>(from.pointers[i]);
      call.steps[i] = i < inputs ? from.steps[i] : 1;
    });
    call.n = from.n;
    reg fixed[static_cast<std::size_t>(traits::size)];
    unroll<traits::size>([&](auto i) __attribute__((always_inline)) {
      if constexpr (Key[i].input && Key[i].invariant)
        load_splat<T, truth(i)>(fixed[i], call.pointers[traits::pointer(i)]);
    });
    std::int64_t k = 0;
    for (; k + w <= call.n; k += w) step(call, fixed, k, all_lanes{});
    if constexpr (w > 1)
      if (k < call.n) step(call, fixed, k, call.n - k);
  }

 private:
  static constexpr int operands = traits::counts.inputs + traits::counts.outputs;
  struct local_call {
    char* pointers[static_cast<std::size_t>(operands)];
    std::int64_t steps[static_cast<std::size_t>(operands)];
    std::int64_t n;
  };
  template <class N>
  static XLA_INLINE void step(const local_call& call, const reg* fixed, std::int64_t k, N n) {
    reg v[static_cast<std::size_t>(traits::size)];
    unroll<traits::size>([&](auto i) __attribute__((always_inline)) {
      constexpr micro_op m = Key[i];
      if constexpr (m.input && m.invariant) v[i] = fixed[i];
      else if constexpr (m.input) read<i>(v[i], call, k, n);
      else compute<Key, i, T>(v);
      if constexpr (m.output) {
        constexpr int bytes = truth(i) ? 1 : static_cast<int>(sizeof(T));
        store<T, truth(i)>(call.pointers[traits::pointer(i)] + k * bytes, v[i], n);
      }
    });
  }
  template <int I, class N>
  static XLA_INLINE void read(reg& to, const local_call& call, std::int64_t k, N n) {
    constexpr int at = traits::pointer(I);
    constexpr int bytes = truth(I) ? 1 : static_cast<int>(sizeof(T));
    const char* p = call.pointers[at];
    if (call.steps[at] == 0) load_splat<T, truth(I)>(to, p);
    else load<T, truth(I)>(to, p + k * bytes, n);
  }
};

}  // namespace xla::kernel
