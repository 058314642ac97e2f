// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of a chain: maps over one element that follow one another in a loop's body, as one
// function. Compiled loops instantiate it for each chain (run/call/static_chains.hpp).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/kernel/fused/region.hpp"

namespace xla::kernel {

/// The location of an operand of a chain's step: in the register of an earlier step's value, and in
/// memory if it has a pointer.
struct chain_wire {
  int step = -1, value = -1;
  int pointer = -1;
};

/// The kernel of a chain. The template argument Of describes it: `steps` is the number of its maps,
/// `key<J>` is the region of one of them, and wire(j, k) locates operand k of step j, an input or
/// an output. Values that only later steps read stay in registers.
template <class Of>
struct chain_kernel {
  static void run(void** pointers, const auto& turns) {
    for (std::int64_t i = turns.first, end = i + turns.count;;) {
      run_all(pointers, std::make_integer_sequence<int, Of::steps>{});
      for (int k = 0; k < turns.copied; ++k)
        copy(pointers + turns.first_copy + 2 * k, turns.copies[k]);
      if (++i == end) return;
      // Adding to all by vector instructions takes less time than to some one by one.
      const std::int64_t* const by = turns.by + (i & 1) * turns.pointers;
      for (int k = 0; k < turns.pointers; k += 8)
#pragma GCC unroll 8
        for (int p = k; p < k + 8; ++p) pointers[p] = static_cast<std::byte*>(pointers[p]) + by[p];
    }
  }

 private:
  template <int J>
  using traits = region_traits<Of::template key<J>>;
  template <int J>
  using number = typename traits<J>::type;
  template <int J>
  struct registers {
    lane_register<number<J>> v[static_cast<std::size_t>(traits<J>::size)];
  };
  template <int... J>
  struct all : registers<J>... {
    template <int K>
    XLA_INLINE auto& of() {
      return static_cast<registers<K>&>(*this).v;
    }
  };

  static XLA_INLINE void copy(void* const* pointers, int bytes) {
    if (bytes == 8) std::memcpy(pointers[1], pointers[0], 8);
    else if (bytes == 4) std::memcpy(pointers[1], pointers[0], 4);
    else std::memcpy(pointers[1], pointers[0], static_cast<std::size_t>(bytes));
  }
  template <int... J>
  static XLA_INLINE void run_all(void* const* pointers, values<J...>) {
    all<J...> r;
    (step<J>(r, pointers, std::make_integer_sequence<int, traits<J>::size>{}), ...);
  }
  // Steps write in their order, because memory is used again, as other types.
  template <int J, int... I>
  static XLA_INLINE void step(auto& r, void* const* pointers, values<I...>) {
    (element<J, I>(r, pointers), ...);
    XLA_MEMORY_BARRIER();
  }
  template <stored As>
  static XLA_INLINE void take(auto& to, const auto& from) {
    if constexpr (As == stored::booleans) to.bits = from.bits;
    else to.number = from.number;
  }
  template <int J, int I>
  static XLA_INLINE void element(auto& r, void* const* pointers) {
    using T = number<J>;
    constexpr auto of = traits<J>::value.of[I];
    auto& v = r.template of<J>();
    if constexpr (of.input) {
      constexpr chain_wire from = Of::wire(J, of.pointer);
      if constexpr (from.step >= 0) take<of.as>(v[I], r.template of<from.step>()[from.value]);
      else load_splat<T, of.as>(v[I], pointers[from.pointer]);
    } else {
      compute<traits<J>, I, T>(v);
      if constexpr (of.output)
        if constexpr (constexpr int to = Of::wire(J, of.pointer).pointer; to >= 0)
          store_one<T, of.as>(pointers[to], v[I]);
    }
  }
};

}  // namespace xla::kernel
