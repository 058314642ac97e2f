// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program with the sizes of one signature filled in: what every backend starts from. The native
// backend makes a plan of it (plan.hpp), others their own executable.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/op/convolution.hpp"
#include "xla/run/plan/absent.hpp"
#include "xla/run/plan/loop_steps.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/world/world.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// A program at given sizes, from which every backend makes its executable.
template <class In>
struct basic_sized_program {
  program source;
  /// If some parameters are frozen: their slots, and the program's arrays without the steps for
  /// their gradients.
  std::unique_ptr<std::byte[]> own;
  std::int64_t own_bytes = 0;
  bool absent = false;         ///< some gradients are absent
  int world = 0;               ///< the number of replicas that it is for; 0: any
  void (*before)() = nullptr;  ///< fingerprint of a program with exchanges: see op_info
  list<shape> slot_shapes;     ///< the signature
  list<std::int64_t> symbols;
  list<shape> shapes;           ///< per value
  list<char> in_place;          ///< per write: may use the memory of the value at entry
  list<int> random;             ///< per value: the number of its random op, or -1
  list<std::int64_t> counters;  ///< per random op: the offset of its numbers from the call's first
  std::int64_t random_counters = 0;
  bool winograd = true;  ///< convolutions may use Winograd's algorithm
  bool in_rows = false;  ///< of a loop's body: its results are consecutive rows of one tensor

  [[gnu::noinline]] std::int64_t bytes(int value) const {
    return count(shapes[value]) * size_of(source.values[value].type);
  }
};
using sized_program = basic_sized_program<void>;

template <class... List>
std::int64_t bytes_of_lists(const List&... lists) {
  return (std::int64_t{0} + ... + lists.bytes());
}
/// The size of these tables in bytes.
template <class In = void>
[[XLA_PLANS]] std::int64_t bytes_of_sizes(const dependent<In, sized_program>& p) {
  return p.own_bytes +
         bytes_of_lists(p.slot_shapes, p.symbols, p.shapes, p.in_place, p.random, p.counters);
}

/// The maker of a program's loops, if it has some.
[[XLA_PLANS, gnu::noinline]] inline const loop_maker& maker_of_loops(const program& p) {
  int v = 0;
  while (!p.values[v].op->loops_steps) ++v;
  return *static_cast<const loop_info&>(*p.values[v].op).maker;
}

/// The value of output i of a program: writes, then results.
constexpr int output_of(const program& p, int i) {
  return i < p.count.writes ? p.writes[i].value : p.results[i - p.count.writes];
}

template <class In = void>
inline shape value_at(const list<std::int64_t>& symbols, const shape& s) {
  shape out = s;
  for (int i = 0; i < s.rank; ++i)
    if (!is_known(s[i])) out[i] = symbols[symbol_index(s[i])];
  return out;
}
template <class In = void>
inline std::int64_t value_at(const list<std::int64_t>& symbols, extent e) {
  return is_known(e) ? e : symbols[symbol_index(e)];
}

/// The attributes of a node with its symbolic size replaced by a number.
template <class In = void>
inline packed_attributes attributes_at(const dependent<In, sized_program>& p, const node& n) {
  packed_attributes attr = p.winograd ? n.attr : without_winograd(*n.op, n.attr);
  attr.size = value_at(p.symbols, n.attr.size);
  return attr;
}

/// Computes every symbol from the sizes of the slots.
template <class In = void>
[[XLA_PLANS]] inline list<std::int64_t> evaluate_symbols(const program& p,
                                                         const list<shape>& slots) {
  list<std::int64_t> v(p.count.symbols);
  for (int i = 0; i < p.count.symbols; ++i) {
    const symbol& s = p.symbols[i];
    std::int64_t& out = v[i];
    if (s.kind == 'w') {
      out = world_now();
    } else if (s.kind == 'v') {
      out = slots[static_cast<int>(s.a)][static_cast<int>(s.b)];
    } else if (s.kind == '*' && s.b == 0) {
      out = s.a;
      for (int k = 0; k < s.factors; ++k) out = calculated<'*'>(out, v[s.factor[k]]);
    } else {
      const std::int64_t a = value_at(v, s.a), b = value_at(v, s.b);
      if (s.kind == '/' && b == 0) out = 0;
      else if (!calculate(a, s.kind, b, out)) refuse_arithmetic(a, s.kind, b);
    }
  }
  return v;
}

/// Computes every value's shape, and every random op's offset in the stream of random numbers.
/// absent: per slot, whether a parameter has no gradient; may be empty.
template <class In = void>
[[XLA_PLANS]] dependent<In, sized_program> size_program(const program& p, list<shape> slots,
                                                        const list<char>& absent,
                                                        bool winograd = true) {
  dependent<In, sized_program> out;
  out.winograd = winograd;
  out.source = p;
  out.slot_shapes = std::move(slots);
  out.absent = !absent.empty();
  for (int i = 0; i < p.count.symbols; ++i)
    if (p.symbols[i].kind == 'w') out.world = world_now();
  const bool alone = out.world == 1;
  if (out.absent || alone) out.own_bytes = prune<In>(out.source, absent, alone, out.own);
  out.symbols = evaluate_symbols(p, out.slot_shapes);
  out.in_place.assign(out.source.count.writes, false);
  out.shapes.reserve(p.count.values);
  for (int v = 0; v < p.count.values; ++v) {
    const node& n = out.source.values[v];
    if (n.op->before) out.before = n.op->before;
    shape& s = out.shapes.emplace_back(n.dims_shape());
    for (int i = 0; i < s.rank; ++i)
      if ((s[i] = value_at(out.symbols, s[i])) < 0)
        throw shape_error(std::string(n.op->name) + ": a size became negative");
    size_scope{nullptr, {n.op->name, n.at}}.countable(s);
    // Random numbers are assigned in program order, whatever the order of the steps. A recomputed
    // op uses its first numbers again.
    const bool redraws = draws_again(n);
    out.random.push_back(redraws        ? out.counters.size()
                         : n.op->impure ? int{n.attributes<op::drawing>().again}
                                        : -1);
    if (n.op->loops_steps) static_cast<const loop_info&>(*n.op).maker->repeat_draws(out, v);
    if (!redraws) continue;
    out.counters.push_back(out.random_counters);
    out.random_counters += static_cast<std::int64_t>(random_counters(s, n.type));
  }
  return out;
}

/// A second sized program that refers to the first one's arrays; the first one must outlive it.
template <class In = void>
[[XLA_PLANS]] dependent<In, sized_program> in_arrays_of(const dependent<In, sized_program>& p) {
  dependent<In, sized_program> out;
  out.source = p.source;
  out.world = p.world;
  out.before = p.before;
  out.slot_shapes = p.slot_shapes;
  out.symbols = p.symbols;
  out.shapes = p.shapes;
  out.in_place.assign(out.source.count.writes, false);
  out.random = p.random;
  out.counters = p.counters;
  out.random_counters = p.random_counters;
  out.winograd = p.winograd;
  if (!p.absent) return out;
  const auto slots = static_cast<std::size_t>(p.source.count.slots);
  out.absent = true;
  out.own = std::make_unique<std::byte[]>(slots);
  std::memcpy(out.own.get(), p.own.get(), slots);
  return out;
}

}  // namespace xla::detail
