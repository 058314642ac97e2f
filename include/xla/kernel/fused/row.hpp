// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernel of a row region: elementwise ops and reductions over the last axis. Compiled graphs
// instantiate it for each distinct region; kernel/op/reduce.hpp does for each reduction.

#include <algorithm>

#include "xla/base/compiler.hpp"
#include "xla/kernel/call.hpp"
#include "xla/kernel/fused/region.hpp"
#include "xla/kernel/fused/row_phases.hpp"
#include "xla/kernel/reduce/block_sum.hpp"

namespace xla::kernel {

template <std::uint32_t Id>
concept costly_op = requires { op_by_id<Id>::op::costly; };
template <std::uint32_t Id>
concept rounding_op = requires { op_by_id<Id>::op::rounds; };

/// The kernel of a row region: elementwise values mixed with reductions over the last axis. It
/// traverses a row once per phase. A phase ends where a reduction must be complete because later
/// values depend on it; values of single elements are computed again or read from scratch.
template <region_key Key>
struct row_kernel {
  using traits = region_traits<Key>;
  using T = typename traits::type;
  using reg = lane_register<T>;
  using phases = row_phases<traits>;
  static constexpr int w = lanes<T>;
  // Independent partial sums (chains) of a reduction. Integers have one, because the compiler
  // vectorises them, and g++ 12 does that wrongly with four.
  static constexpr int unrolled = std::is_floating_point_v<T> ? 4 : 1;
  static constexpr std::int64_t together = unrolled * w;
  static constexpr std::int64_t block = block_terms * together;  ///< of a long row
  static constexpr int size = traits::size;
  static constexpr auto& of = traits::value.of;

  static constexpr auto table = []<int... I>(values<I...>) {
    const bool costly[] = {costly_op<of[I].id>...};
    return phases::make(costly);
  }(std::make_integer_sequence<int, size>{});

  static void run(const ::xla::detail::row_call& from) {
    local_call call;
    for (int k = 0; k < operands; ++k) {
      call.pointers[k] = static_cast<char*>(from.pointers[k]);
      call.steps[k] = from.steps[k];
    }
    call.n = from.n;
    call.scratch = static_cast<T*>(from.scratch);
    if (from.begins)
      each(values_where<size, &column>{}, [&](auto i) XLA_INLINE_LAMBDA {
        std::fill_n(reinterpret_cast<T*>(call.pointers[of[i].pointer]), call.n,
                    op_of<i>::template identity<T>);
      });
    const std::int64_t near = rows_together(call.n);
    for (std::int64_t rows = from.rows; rows > 0; rows -= near) {
      const std::int64_t some = table.phases == 1 ? rows : std::min(rows, near);
      some_rows(call, some);
      if (some == rows) return;
      call.move(some);
    }
  }

 private:
  template <int I>
  using op_of = typename op_by_id<of[I].id>::op;
  template <int I>
  static constexpr bool adds_up =
      of[I].reduce && std::is_floating_point_v<T> && rounding_op<of[I].id>;

  // A copy, because otherwise every store could change the call's data.
  static constexpr int operands = traits::operands;
  struct local_call {
    char* pointers[static_cast<std::size_t>(operands)];
    std::int64_t steps[static_cast<std::size_t>(operands)];
    std::int64_t n;
    T* scratch;

    XLA_INLINE void move(std::int64_t rows) {
      for (int k = 0; k < operands; ++k) pointers[k] += rows * steps[k];
    }
  };
  static constexpr bool column(int i) { return of[i].column; }
  template <int F>
  static constexpr auto need = phases::sweep(table, F);
  template <int F>
  static constexpr bool needed(int i) {
    return need<F>.value[i];
  }
  /// Computed in phase F, once for the row.
  template <int F>
  static constexpr bool once(int i) {
    return !of[i].input && !of[i].reduce && table.scalar[i] && table.phase[i] == F;
  }
  template <int F>
  static constexpr auto reads = phases::read_by(table, F);
  /// Known when phase F begins, and read there.
  template <int F>
  static constexpr bool read(int i) {
    return reads<F>.value[i] && (of[i].input || table.phase[i] < F);
  }
  static constexpr bool outlives(int i) { return table.scalar[i] && phases::outlives(table, i); }
  template <int I>
  static constexpr auto chain = phases::inputs_of(table, I);
  template <int I>
  static constexpr bool in_chain(int i) {
    return chain<I>.value[i];
  }
  template <int F>
  static constexpr bool added_last(int i) {
    return phases::adds_in_memory(i) && table.phase[i] == F;
  }
  template <int F>
  static constexpr bool reduced(int i) {
    return of[i].reduce && table.phase[i] == F;
  }
  template <int... I>
  static constexpr bool any_adds_up(values<I...>) {
    return (adds_up<I> || ...);
  }

  // After a phase the horizontal reduction has a long latency, for short rows longer than the phase
  // itself; so several rows run interleaved.
  static constexpr std::int64_t max_together = 8;
  static std::int64_t rows_together(std::int64_t n) {
    return std::clamp<std::int64_t>(1024 / std::max<std::int64_t>(n, 1), 1, max_together);
  }
  /// Runs some rows phase by phase: while one waits for the end of a reduction, the others use the
  /// processor.
  static XLA_INLINE void some_rows(const local_call& call, std::int64_t rows) {
    T scratch[static_cast<std::size_t>(max_together)][static_cast<std::size_t>(size)];
    each(std::make_integer_sequence<int, table.phases>{}, [&](auto f) XLA_INLINE_LAMBDA {
      local_call row = call;
      for (std::int64_t r = 0; r < rows; ++r) {
        phase<f>(row, table.phases == 1 ? nullptr : scratch[r]);
        row.move(1);
        row.scratch += table.scratch_rows * row_stride(row.n);
      }
    });
  }

  // A value per element and a value per row use the same registers. Values per row wait in memory
  // for later phases.
  template <int F>
  static XLA_INLINE void phase(const local_call& call, T* scratch) {
    reg v[static_cast<std::size_t>(size)];
    each(values_where<size, &read<F>>{}, [&](auto i) XLA_INLINE_LAMBDA {
      if constexpr (of[i].input) load_splat<T, of[i].as>(v[i], call.pointers[of[i].pointer]);
      else load_splat<T, spilled_as<i>>(v[i], scratch + i);
    });
    each(values_where<size, &once<F>>{}, [&](auto i) XLA_INLINE_LAMBDA {
      if constexpr (phases::looks_up(of[i])) look_up<i>(call, v);
      else compute<traits, i, T>(v);
      spill_scalar<i>(call, v[i], scratch);
    });
    using elements = values_where<size, &needed<F>>;
    if constexpr (elements::size() > 0)
      row_of<F>(call, v, scratch, elements{}, values_where<size, &reduced<F>>{});
  }
  template <int I>
  static XLA_INLINE std::int64_t index_of(const local_call& call) {
    return *reinterpret_cast<const std::int64_t*>(call.pointers[of[of[I].b].pointer]);
  }
  template <int I>
  static XLA_INLINE void look_up(const local_call& call, reg* v) {
    const std::int64_t k = index_of<I>(call);
    each(values_where<size, &in_chain<of[I].a>>{}, [&](auto i) XLA_INLINE_LAMBDA {
      if constexpr (of[i].input)
        load_splat<T, of[i].as>(v[i], call.pointers[of[i].pointer] + k * bytes<i>);
      else if constexpr (phases::adds_at(of[i]))
        v[i] = k == index_of<i>(call) ? sum_of(v[of[i].a], v[of[i].c]) : v[of[i].a];
      else compute<traits, i, T>(v);
    });
    v[I] = v[of[I].a];
  }
  static XLA_INLINE reg sum_of(const reg& a, const reg& b) {
    reg sum;
    sum.set(vec<T>{a.number} + vec<T>{b.number});
    return sum;
  }
  /// Adds at one position of the row, if it is among the elements from k on.
  template <int I>
  static XLA_INLINE void add_at(const local_call& call, reg* v, std::int64_t k) {
    v[I] = v[of[I].a];
    if constexpr (phases::adds_in_memory(I)) return;
    const std::int64_t lane = index_of<I>(call) - k;
    if (lane < 0 || lane >= w) [[likely]]
      return;
    v[I].number = choose_lane<T>(lane, sum_of(v[I], v[of[I].c]).number, v[I].number);
  }
  /// Loops over the elements of the row.
  template <int F, class Elements, class Reduced>
  static XLA_INLINE void row_of(const local_call& call, reg* v, T* scratch, Elements all,
                                Reduced reduced) {
    chains sums[static_cast<std::size_t>(size)];
    each(reduced, [&](auto i) XLA_INLINE_LAMBDA { start<i>(sums[i]); });
    std::int64_t k = 0;
    if constexpr (Reduced::size() > 0)
      for (std::int64_t end = block; k + together <= call.n; k += together) {
        if constexpr (any_adds_up(Reduced{}))
          if (k == end) [[unlikely]] {
            end += block;
            each(reduced, [&](auto i) XLA_INLINE_LAMBDA {
              if constexpr (adds_up<i>) end_block<i>(sums[i]);
            });
          }
        unroll<unrolled>([&](auto u) XLA_INLINE_LAMBDA {
          step<F>(call, v, sums, u, k + u * w, all_lanes{}, all);
        });
      }
#pragma GCC unroll 1  // or what may remain after chains is written out once more each
    for (; k + w <= call.n; k += w) step<F>(call, v, sums, unrolled, k, all_lanes{}, all);
    if constexpr (w > 1)
      if (k < call.n) step<F>(call, v, sums, unrolled, k, call.n - k, all);
    each(reduced, [&](auto i) XLA_INLINE_LAMBDA {
      v[i].number = finish<i>(sums[i], call.n);
      spill_scalar<i>(call, v[i], scratch);
    });
    each(values_where<size, &added_last<F>>{}, [&](auto i) XLA_INLINE_LAMBDA {
      char* const address = call.pointers[of[i].pointer] + index_of<i>(call) * bytes<i>;
      load_splat<T, stored::numbers>(v[i], address);
      store_one<T, stored::numbers>(address, sum_of(v[i], v[of[i].c]));
    });
  }

  /// A reduction in progress. For reductions that are NaN if an element is, NaN is detected
  /// separately from the chains, where it would cost time at every step.
  struct chains {
    packet<T> number[unrolled], even;
    mask<T> nan;
    block_sum<vec<T>> before;
  };
  template <class Op>
  static constexpr bool passes_over_nan = requires(vec<T> x) {
    requires std::is_floating_point_v<T>;
    Op::combine_numbers(x, x);
  };
  template <int I>
  static XLA_INLINE void start(chains& s) {
    using Op = op_of<I>;
    const auto first = vec<T>::splat(Op::template identity<T>);
    for (auto& x : s.number) x = first.v;
    if constexpr (passes_over_nan<Op>) s.nan = first != first;
    if constexpr (adds_up<I>) s.before = {first, first};
  }
  template <class Op>
  static XLA_INLINE packet<T> combined(packet<T> a, packet<T> b) {
    using V = vec<T>;
    if constexpr (passes_over_nan<Op>) return V(Op::combine_numbers(V{a}, V{b})).v;
    else return V(Op::combine(V{a}, V{b})).v;
  }
  template <class Op>
  static XLA_INLINE vec<T> join(const chains& s) {
    return {combined<Op>(combined<Op>(s.number[0], s.number[1]),
                         combined<Op>(s.number[2], s.number[3]))};
  }
  template <int I>
  static XLA_INLINE void end_block(chains& s) {
    s.before.add(join<op_of<I>>(s));
    for (auto& x : s.number) x = vec<T>::splat(op_of<I>::template identity<T>).v;
  }
  /// Combines the chains, and the lanes, into the result, in every lane. With few elements the
  /// first chain has all of it.
  template <int I>
  static XLA_INLINE packet<T> finish(chains& s, std::int64_t n) {
    using Op = op_of<I>;
    using V = vec<T>;
    if constexpr (unrolled == 1) return s.number[0];
    else {
      V all{s.number[0]};
      if (n >= together) all = join<Op>(s);
      if constexpr (adds_up<I>)
        if (n >= block + together) {
          s.before.add(all);
          all = s.before.total();
        }
      all = all.across([](V a, V b) { return V{combined<Op>(a.v, b.v)}; });
      if constexpr (passes_over_nan<Op>)
        if (detail::any(s.nan)) return V::splat(std::numeric_limits<T>::quiet_NaN()).v;
      return all.v;
    }
  }
  template <int I>
  static XLA_INLINE void spill_scalar(const local_call& call, const reg& value,
                                      [[maybe_unused]] T* scratch) {
    if constexpr (of[I].output) store_one<T, of[I].as>(call.pointers[of[I].pointer], value);
    if constexpr (outlives(I)) store_one<T, spilled_as<I>>(scratch + I, value);
  }

  // u: the chain in which sums continue; the first for a single step.
  template <int F, class N, int... I>
  static XLA_INLINE void step(const local_call& call, reg* v, chains* sums, int u, std::int64_t k,
                              N n, values<I...>) {
    (element<F, I>(call, v, sums, u, k, n), ...);
  }
  template <int F, int I, class N>
  static XLA_INLINE void element(const local_call& call, reg* v, [[maybe_unused]] chains* sums,
                                 [[maybe_unused]] int u, std::int64_t k, N n) {
    constexpr micro_op m = of[I];
    if constexpr (m.reduce) {
      add_up<I>(sums[I], u, v[m.a].number, n);
    } else if constexpr (m.input) {
      load<T, of[I].as>(v[I], call.pointers[of[I].pointer] + k * bytes<I>, n);
    } else if constexpr (m.column) {
      T* sum = reinterpret_cast<T*>(call.pointers[of[I].pointer]) + k;
      const vec<T> before{load_numbers(sum, n)};
      store_numbers(sum, vec<T>(op_of<I>::combine(before, vec<T>{v[m.a].number})).v, n);
    } else {
      if constexpr (table.spilled[I]) spill<F, I>(call, v, k);
      else if constexpr (phases::adds_at(m)) add_at<I>(call, v, k);
      else compute<traits, I, T>(v);
      if constexpr (m.output && table.phase[I] == F)
        store<T, of[I].as>(call.pointers[of[I].pointer] + k * bytes<I>, v[I], n);
    }
  }
  template <int I>
  static constexpr int bytes = traits::bytes(I);
  /// How a value of a whole row is stored for later phases.
  template <int I>
  static constexpr stored spilled_as = of[I].as == stored::bfloat16 ? stored::numbers : of[I].as;
  /// A value in scratch, which phase F computes or reads.
  template <int F, int I>
  static XLA_INLINE void spill(const local_call& call, reg* v, std::int64_t k) {
    T* at = call.scratch + table.scratch[I] * row_stride(call.n) + k;
    if constexpr (table.phase[I] < F) v[I].number = load_numbers(at, all_lanes{});
    else {
      compute<traits, I, T>(v);
      store_numbers(at, v[I].number, all_lanes{});
    }
  }
  template <int I, class N>
  static XLA_INLINE void add_up(chains& s, int u, packet<T> value, [[maybe_unused]] N n) {
    using Op = op_of<I>;
    if constexpr (w > 1 && !takes_all<N>)
      value = replace_rest<T>(value, Op::template identity<T>, n);
    // One comparison tests two packets.
    const bool alone = u == unrolled;
    const int at = alone ? 0 : u;
    if constexpr (passes_over_nan<Op>) {
      if (alone) s.nan = s.nan || unordered(vec<T>{value}, vec<T>{value});
      else if (at % 2 == 1) s.nan = s.nan || unordered(vec<T>{s.even}, vec<T>{value});
      else s.even = value;
    }
    s.number[at] = combined<Op>(s.number[at], value);
  }

 public:
  /// Elements between rows of scratch, with room for a whole last packet.
  static constexpr std::int64_t row_stride(std::int64_t n) { return (n + w - 1) / w * w; }
  /// Bytes of scratch that a row of n elements needs.
  static std::int64_t scratch_bytes(std::int64_t n) {
    return rows_together(n) * table.scratch_rows * row_stride(n) * element_size<T>;
  }
};

}  // namespace xla::kernel
