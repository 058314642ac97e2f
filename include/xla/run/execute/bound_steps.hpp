// SPDX-License-Identifier: Apache-2.0
#pragma once

// The steps of a plan with operands that are looked up once for many runs. A plan's own run() looks
// up every operand and prepares every loop nest again. That is little next to a product, but most
// of the time of a map over one element. Loops (run/backend/loops.hpp) run their bodies this way.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/kernel/fused/loops.hpp"
#include "xla/kernel/gemm/packed_matrix.hpp"
#include "xla/kernel/memory/thread_scratch.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/slice.hpp"
#include "xla/run/execute/planned.hpp"
#include "xla/run/execute/tile.hpp"

namespace xla::detail {

/// The steps of a plan with a pointer for each operand. bind() sets the pointers; before a later
/// run the caller updates those that have moved. Maps and rows of few elements are then nothing but
/// calls of their kernels.
template <class In>
class basic_bound_steps {
 public:
  /// A pointer into the memory of a slot or an output.
  struct use {
    int pointer = 0;
    std::int64_t offset = 0;  ///< in bytes
  };

  /// Whether it can run them: none is a loop or an exchange, or runs together with another step.
  [[XLA_PLANS]] static bool can_run(const dependent<In, plan>& p) {
    if (p.exchanges || !p.groups.empty()) return false;
    for (const ready_step& s : p.steps)
      if (s.exchange >= 0 || s.group >= 0) return false;
    return true;
  }

  /// Refers to the plan. fixed: per slot, whether it is the same in all runs.
  [[XLA_PLANS]] basic_bound_steps(const dependent<In, planned>& of, const list<char>& fixed)
      : p_(of.get_plan()) {
    const int slots = p_.source.count.slots, outputs = p_.copies.size();
    list<list<use>> uses;
    uses.resize(slots + outputs);
    find_parts(of);
    for (int i = 0; i < p_.steps.size(); ++i) {
      if (of.is_once(i) || reads_in_place(p_.steps[i])) continue;
      if (const step_chain* const c = chain_at(of, i)) {
        calls_.push_back({.as = kind::chain, .first = values_.size(), .chain = c->run});
        for (int k = 0; k < c->pointers; ++k) add_pointer(c->values[k], uses);
        i += c->count - 1;
        continue;
      }
      const ready_step& s = p_.steps[i];
      add_call(s);
      for (int k = 0; k < s.operands; ++k) {
        const int v = p_.operands[s.first_operand + k];
        const int whole = k < s.inputs ? parts_[v].whole : -1;
        if (whole >= 0) inside_.push_back({values_.size(), parts_[v].offset});
        add_pointer(whole < 0 ? v : whole, uses);
      }
      if (repeats_matrix(s, fixed)) {
        calls_.back().as = kind::product;
        products_.push_back(calls_.size() - 1);
        values_.push_back(-1);
      }
    }
    for (int i = 0; i < outputs; ++i) {
      const int v = p_.copies[i];
      if (v < 0) continue;
      calls_.push_back({.as = kind::copy, .first = values_.size(), .n = p_.bytes(v)});
      copied_.push_back(static_cast<int>(p_.bytes(v)));
      add_pointer(v, uses);
      uses[slots + i].push_back({values_.size(), 0});
      values_.push_back(-1);
    }
    for (const auto& of_one : uses) {
      first_use_.push_back(uses_.size());
      for (const use& u : of_one) uses_.push_back(u);
    }
    first_use_.push_back(uses_.size());
    parts_ = {};
  }

  int pointers() const { return values_.size(); }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(sizeof *this) + calls_.bytes() + values_.bytes() +
           uses_.bytes() + copied_.bytes() + first_use_.bytes() + strides_.bytes() +
           regions_.bytes() + regions_.size() * static_cast<std::int64_t>(sizeof(tile_region)) +
           products_.bytes() + inside_.bytes() + nests_.bytes() +
           nests_.size() * static_cast<std::int64_t>(sizeof(kernel::loop_nest));
  }
  /// The bytes of all packed matrices.
  std::int64_t packed_bytes() const {
    std::int64_t bytes = 0;
    for (int i : products_) bytes += sizes_of(*calls_[i].step).packed_bytes();
    return bytes;
  }
  int packed_matrices() const { return products_.size(); }
  /// Calls f(use) for the pointers into slot i.
  template <class F>
  void each_of_slot(int i, const F& f) const {
    for (int k = first_use_[i]; k < first_use_[i + 1]; ++k) f(uses_[k]);
  }
  /// Calls f(use) for the pointers into output i; writes are before results.
  template <class F>
  void each_of_output(int i, const F& f) const {
    each_of_slot(p_.source.count.slots + i, f);
  }

  /// table: the address of each value. each_of_output() alone knows where results are copied. A
  /// matrix by which all runs multiply is packed into the memory that take(bytes) gives.
  template <class Take>
  void bind(void* const* table, void** pointers, const Take& take) const {
    for (int i = 0; i < values_.size(); ++i)
      if (values_[i] >= 0) pointers[i] = table[values_[i]];
    for (const use& u : inside_)
      pointers[u.pointer] = static_cast<std::byte*>(pointers[u.pointer]) + u.offset;
    for (int i : products_) {
      void** const at = pointers + calls_[i].first;
      const product_sizes s = sizes_of(*calls_[i].step);
      at[3] = take(s.packed_bytes());
      kernel::pack_matrix(s.n, s.k, s.matrix(at[1]), static_cast<float*>(at[3]));
    }
  }
  /// Whether there is nothing but a chain and copies, so that run_turns() can run several steps.
  bool is_chain() const {
    return !calls_.empty() && calls_[0].as == kind::chain && copied_.size() + 1 == calls_.size();
  }
  void run_turns(void** pointers, chain_turns t) const {
    t.copies = copied_.begin();
    t.copied = copied_.size();
    t.first_copy = t.copied > 0 ? calls_[1].first : 0;
    calls_[0].chain(pointers, t);
  }
  void run(void** pointers, const rng_state* random) const {
    for (const call& c : calls_) {
      void** const at = pointers + c.first;
      switch (c.as) {
        case kind::map: run_map(c, at); break;
        case kind::nest: kernel::run_map(*nests_[c.strides], c.map, at, c.step->ops); break;
        case kind::row: run_row(c, at); break;
        case kind::chain: c.chain(at, {}); break;
        case kind::copy: std::memcpy(at[1], at[0], static_cast<std::size_t>(c.n)); break;
        case kind::product: multiply(sizes_of(*c.step), at); break;
        case kind::any:
          run_on<In>(p_, *c.step, at, p_.operand_shapes.begin() + c.step->first_shape, random);
      }
    }
  }

 private:
  enum class kind : std::uint8_t { map, nest, row, copy, chain, product, any };
  struct call {
    kind as = kind::any;
    int first = 0;    ///< of its pointers
    int strides = 0;  ///< in strides_; of a nest in nests_
    std::int64_t n = 0, rows = 1;
    kernel::tile_kernel map{};
    void (*chain)(void**, const chain_turns&) = nullptr;
    const ready_step* step = nullptr;
  };

  /// The chain that begins with step i, if all of its steps are present: a call leaves out steps
  /// that it does not need, and later ones move up.
  [[XLA_PLANS]] const step_chain* chain_at(const dependent<In, planned>& of, int i) const {
    const auto is_there = [&](const step_chain& c) {
      for (int k = 0; k < c.count; ++k)
        if (i + k >= p_.steps.size() || of.is_once(i + k) ||
            p_.steps[i + k].source->first_output != c.steps[k].first_output)
          return false;
      return true;
    };
    const step_chain* c = p_.source.chains;
    while (c && c->count > 0 && !is_there(*c)) ++c;
    return c && c->count > 0 ? c : nullptr;
  }

  /// Of a product of floats.
  struct product_sizes {
    std::int64_t m, n, k;
    bool transposed;  ///< the right operand

    std::int64_t packed_bytes() const {
      return kernel::packed_size<float>(n, k) * static_cast<std::int64_t>(sizeof(float));
    }
    kernel::matrix_view<float> matrix(const void* b) const {
      return {static_cast<const float*>(b), transposed ? 1 : n, transposed ? k : 1};
    }
  };
  product_sizes sizes_of(const ready_step& s) const {
    const shape &a = p_.shape_of(s, 0), &c = p_.shape_of(s, 2);
    return {c[0], c[1], a[1], unpack<op::matmul::attributes>(s.attr).transpose_b};
  }
  // Whether a step is a product by a matrix that is the same in all runs, and packing it pays. With
  // up to 4 rows a product reads it once anyway; with many rows its own packing takes little time.
  // A small matrix with contiguous rows is read in place.
  [[XLA_PLANS]] bool repeats_matrix(const ready_step& s, const list<char>& fixed) const {
    constexpr std::int64_t most_rows = 128, least = 1 << 12, least_by_rows = 1 << 15;
    if (s.kind != step_kind::library || !is<op::matmul>(*s.op)) return false;
    const int right = p_.operands[s.first_operand + 1];
    const placement& q = p_.placements[p_.base[right]];
    const auto of = unpack<op::matmul::attributes>(s.attr);
    if (q.where != storage::slot || !fixed[q.index] ||
        p_.source.values[right].type != dtype::float32 || of.transpose_a || of.half_a ||
        of.half_b || of.precision != precision::float32)
      return false;
    if (p_.shape_of(s, 0).rank != 2 || p_.shape_of(s, 1).rank != 2) return false;
    const product_sizes p = sizes_of(s);
    return p.m > kernel::detail::small_m<float>::rows && p.m <= most_rows && p.n > 1 &&
           p.n * p.k >= (p.transposed ? least : least_by_rows) &&
           p.k <= kernel::detail::longest_piece<float>;
  }
  static void multiply(const product_sizes& s, void* const* at) {
    kernel::multiply_by_packed(s.m, s.n, s.k, static_cast<const float*>(at[0]),
                               static_cast<const float*>(at[3]), static_cast<float*>(at[2]));
  }

  [[XLA_PLANS]] void add_pointer(int v, list<list<use>>& uses) {
    const placement& q = p_.placements[p_.base[v]];
    const int slots = p_.source.count.slots, pointer = values_.size();
    if (q.where == storage::slot) uses[q.index].push_back({pointer, 0});
    if (q.where == storage::write) uses[slots + q.index].push_back({pointer, 0});
    if (q.where == storage::donated) uses[slots + q.index].push_back({pointer, q.offset});
    if (q.where == storage::result)
      uses[slots + p_.source.count.writes + q.index].push_back({pointer, 0});
    values_.push_back(v);
  }
  /// A slice that is read in place: the value of which it is one, and how many bytes it is from
  /// its begin.
  struct part {
    int whole = -1;
    std::int64_t offset = 0;
  };
  static bool is_slice(const ready_step& s) {
    return s.kind == step_kind::library && is<op::slice>(*s.op);
  }
  int output(const ready_step& s, int k = 0) const {
    return p_.operands[s.first_operand + s.inputs + k];
  }
  bool reads_in_place(const ready_step& s) const {
    return is_slice(s) && parts_[output(s)].whole >= 0;
  }
  // Slices that only maps read, such as the gates of an LSTM, are not copied.
  [[XLA_PLANS]] void find_parts(const dependent<In, planned>& of) {
    parts_.assign(p_.source.count.values, {});
    if (p_.source.chains && p_.source.chains->count > 0) return;
    for (int i = 0; i < p_.steps.size(); ++i) {
      const ready_step& s = p_.steps[i];
      if (of.is_once(i) || !is_slice(s)) continue;
      const int whole = p_.operands[s.first_operand], v = output(s);
      const auto about = unpack<op::slice::attributes>(s.attr);
      if (about.step != 1 || !is_readable(i, whole, v, about.axis)) continue;
      std::int64_t strides[max_rank];
      const shape& all = p_.shapes[whole];
      kernel::broadcast_strides(all, all, strides);
      parts_[v] = {whole, about.start * strides[about.axis] * size_of(p_.source.values[v].type)};
    }
  }
  /// Whether all readers of v, which step i makes as a slice of `whole`, can read it there: they
  /// are maps over its axes, and nothing is written to that memory before they have run.
  [[XLA_PLANS]] bool is_readable(int i, int whole, int v, int axis) const {
    const placement& q = p_.placements[p_.base[whole]];
    if (q.where != storage::arena || p_.placements[v].where != storage::arena) return false;
    for (int c : p_.copies)
      if (c >= 0 && p_.base[c] == v) return false;
    int last = i;
    for (int j = 0; j < p_.steps.size(); ++j) {
      const ready_step& s = p_.steps[j];
      for (int k = 0; k < s.inputs; ++k) {
        const int in = p_.operands[s.first_operand + k];
        if (p_.base[in] != v) continue;
        if (in != v || s.kind != step_kind::map || j < i) return false;
        const shape space = value_at(p_.symbols, p_.source.spaces[s.source->space]);
        const shape& part = p_.shapes[v];
        if (space.rank != part.rank || space[axis] != part[axis]) return false;
        last = j;
      }
    }
    for (int j = i + 1; j <= last; ++j)
      for (int k = p_.steps[j].inputs; k < p_.steps[j].operands; ++k) {
        const placement& to = p_.placements[p_.base[p_.operands[p_.steps[j].first_operand + k]]];
        if (to.where == storage::arena && to.offset < q.offset + q.bytes &&
            q.offset < to.offset + to.bytes)
          return false;
      }
    return last > i;
  }
  /// The loops of a map, some of whose inputs are slices that it reads in place.
  [[XLA_PLANS]] kernel::loop_nest loops_of(const ready_step& s, bool& in_place) const {
    shape shapes[kernel::max_operands];
    std::int64_t bytes[kernel::max_operands];
    for (int k = 0; k < s.operands; ++k) {
      const int v = p_.operands[s.first_operand + k];
      const bool is_part = k < s.inputs && parts_[v].whole >= 0;
      shapes[k] = p_.shapes[is_part ? parts_[v].whole : v];
      bytes[k] = size_of(p_.source.values[v].type);
      in_place |= is_part;
    }
    if (!in_place) return p_.loops[s.loops];
    return kernel::make_loops(value_at(p_.symbols, p_.source.spaces[s.source->space]), shapes,
                              bytes, s.operands);
  }

  [[XLA_PLANS]] void add_call(const ready_step& s) {
    call c{.first = values_.size(), .strides = strides_.size(), .step = &s};
    if (s.kind == step_kind::map) {
      bool in_place = false;
      const kernel::loop_nest l = loops_of(s, in_place);
      if (is_few(s, l) && l.axes <= 2 && kernel::rows_to_join(l) == 1) bind_map(s, l, c);
      else if (in_place) bind_nest(s, l, c);
    }
    if (s.kind == step_kind::row)
      if (const kernel::loop_nest l = p_.loops[s.loops]; is_few(s, l) && l.axes <= 2)
        bind_row(s, l, c);
    calls_.push_back(c);
  }
  static bool is_few(const ready_step& s, const kernel::loop_nest& l) {
    return l.elements > 0 && l.elements * s.ops < kernel::parallel_work;
  }
  [[XLA_PLANS]] void set_kernel(const ready_step& s, call& c) {
    c.map.tile = s.kernel.map;
    if (s.kernel.map) return;
    regions_.push_back(std::make_unique<dependent<In, tile_region>>(p_.source, *s.source));
    c.map = regions_.back()->kernel();
  }
  // All elements are one row, or rows at equal distances.
  [[XLA_PLANS]] void bind_map(const ready_step& s, const kernel::loop_nest& l, call& c) {
    c.as = kind::map;
    c.n = l.inner();
    c.rows = l.axes > 1 ? l.sizes[0] : 1;
    set_kernel(s, c);
    for (int k = 0; k < l.operands; ++k)
      strides_.push_back(l.axes > 0 ? l.strides[k][l.axes - 1] : 0);
    for (int k = 0; l.axes > 1 && k < l.operands; ++k)
      strides_.push_back(l.strides[k][0] * l.bytes[k]);
  }
  [[XLA_PLANS]] void bind_nest(const ready_step& s, const kernel::loop_nest& l, call& c) {
    c.as = kind::nest;
    c.strides = nests_.size();
    nests_.push_back(std::make_unique<kernel::loop_nest>(l));
    set_kernel(s, c);
  }
  void run_map(const call& c, void* const* at) const {
    const std::int64_t* const steps = strides_.data() + c.strides;
    if (c.rows == 1) return c.map(tile_call{at, steps, c.n});
    const int operands = c.step->operands;
    void* p[kernel::max_operands];
    std::copy_n(at, operands, p);
    for (std::int64_t row = 0; row < c.rows; ++row) {
      c.map(tile_call{p, steps, c.n});
      for (int k = 0; k < operands; ++k) p[k] = static_cast<std::byte*>(p[k]) + steps[operands + k];
    }
  }
  // Rows at equal distances, with no sums of columns.
  [[XLA_PLANS]] void bind_row(const ready_step& s, const kernel::loop_nest& l, call& c) {
    if (kernel::column_outputs(l, s.inputs).count > 0) return;
    if constexpr (has_known_regions)
      if (!s.kernel.row) return;
    c.as = kind::row;
    c.n = l.inner();
    c.rows = l.axes > 1 ? l.sizes[0] : 1;
    for (int k = 0; k < l.operands; ++k)
      strides_.push_back(l.axes > 1 ? l.strides[k][0] * l.bytes[k] : 0);
  }
  void run_row(const call& c, void* const* at) const {
    const std::int64_t scratch = c.step->kernel.scratch_bytes(c.n);
    void* const memory = scratch > 0 ? kernel::thread_scratch(scratch) : nullptr;
    c.step->kernel.row({at, strides_.data() + c.strides, c.rows, c.n, memory});
  }

  const dependent<In, plan>& p_;
  list<call> calls_;
  list<int> copied_;  // bytes of each
  list<int> values_;  // per pointer; -1: the target of a copy, or a packed matrix
  list<use> uses_;
  list<int> first_use_;  // per slot, then per output
  list<std::int64_t> strides_;
  list<std::unique_ptr<tile_region>> regions_;
  list<std::unique_ptr<kernel::loop_nest>> nests_;
  list<part> parts_;    // per value, while the calls are made
  list<use> inside_;    // the pointers to slices, and their offsets from what is bound
  list<int> products_;  // the calls whose matrix is packed
};
using bound_steps = basic_bound_steps<void>;

}  // namespace xla::detail
