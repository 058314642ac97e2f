// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the chains of a captured program's loops: maps over one element that follow one another in
// a body. Each chain gets a kernel. Programs with loops include it (loop/captured.hpp), as others
// have no chains.

#include <array>
#include <cstddef>
#include <utility>

#include "xla/kernel/fused/chain.hpp"
#include "xla/run/call/static_program.hpp"

namespace xla::detail {

/// The constant data from which a chain's kernel is made: steps [first, first + count) of the
/// program, and the location of each of their operands.
template <int Capacity>
struct chain_parts {
  int first = 0, count = 0;
  int wires = 0, values = 0;
  kernel::chain_wire wire[Capacity] = {};
  int begin[Capacity] = {};  ///< per step: the wire of its first operand
  int value[Capacity] = {};  ///< per pointer: its target
};

/// Finds chains in a captured program.
template <class Storage>
struct chain_finder {
  static constexpr program_sizes size = Storage::size;
  static constexpr int first_body = size.steps - size.bodies;
  /// The limit on all regions of one chain together, or compilers take long.
  static constexpr int max_words = 512;

  const Storage& s;

  /// The first step after the chain that begins with step i; i if there is none.
  constexpr int end_of(int i) const {
    int end = i, words = 0;
    while (end < size.steps && joins(end) && (end == i || !begins_body(end))) {
      words += s.steps[end].words;
      if (words > max_words && end > i) break;
      ++end;
    }
    return end;
  }
  constexpr int count() const {
    int n = 0;
    each([&](int, int) { ++n; });
    return n;
  }
  /// Calls f(first, end) for each chain.
  constexpr void each(auto f) const {
    for (int i = first_body; i < size.steps;) {
      const int end = end_of(i);
      if (end > i) f(i, end);
      i = end > i ? end : i + 1;
    }
  }

  template <int Capacity>
  constexpr chain_parts<Capacity> parts_of(int first, int end) const {
    chain_parts<Capacity> c{.first = first, .count = end - first};
    for (int i = first; i < end; ++i) {
      const step& of = s.steps[i];
      c.begin[i - first] = c.wires;
      for (int k = 0; k < of.inputs; ++k)
        c.wire[c.wires++] = input(c, i, s.inputs[of.first_input + k]);
      for (int k = 0; k < of.outputs; ++k) {
        const int v = s.outputs[of.first_output + k];
        c.wire[c.wires++] = {-1, -1, needed(v, i, first, end) ? pointer_to(c, v) : -1};
      }
    }
    return c;
  }

 private:
  constexpr bool joins(int i) const {
    const step& of = s.steps[i];
    if (of.kind != step_kind::map || of.check) return false;
    const shape& space = s.spaces[of.space];
    for (int k = 0; k < space.rank; ++k)
      if (space.dims[k] != 1) return false;
    for (int w = 0; w < of.words; ++w)
      if (word(i, w).index) return false;
    return true;
  }
  constexpr bool begins_body(int i) const {
    for (int k = 0; k < size.steps; ++k)
      if (s.steps[k].body > 0 && s.steps[k].first_body == i - first_body) return true;
    return false;
  }
  constexpr kernel::micro_op word(int i, int w) const {
    return kernel::micro_op::of(s.words[s.steps[i].first_word + w]);
  }
  constexpr dtype main_of(int i) const {
    return kernel::main_of(s.steps[i].words, [&](int w) { return word(i, w); });
  }

  /// The earlier step of the chain whose registers hold value v and are compatible with step i's;
  /// or -1.
  constexpr int maker(int v, int i, int first) const {
    for (int j = first; j < i; ++j)
      for (int k = 0; k < s.steps[j].outputs; ++k)
        if (s.outputs[s.steps[j].first_output + k] == v) return main_of(j) == main_of(i) ? j : -1;
    return -1;
  }
  /// The number of value v in the region of step j, which computes it.
  constexpr int number_in(int j, int v) const {
    int w = s.steps[j].inputs;
    for (int k = 0;; ++w)
      if (word(j, w).output && s.outputs[s.steps[j].first_output + k++] == v) return w;
  }
  constexpr kernel::chain_wire input(auto& c, int i, int v) const {
    if (const int j = maker(v, i, c.first); j >= 0) return {j - c.first, number_in(j, v), -1};
    return {-1, -1, pointer_to(c, v)};
  }
  static constexpr int pointer_to(auto& c, int v) {
    for (int k = 0; k < c.values; ++k)
      if (c.value[k] == v) return k;
    c.value[c.values] = v;
    return c.values++;
  }

  /// Whether value v, which step i computes, is read outside of the chain's maps, or by maps with
  /// other registers.
  constexpr bool needed(int v, int i, int first, int end) const {
    for (int j = 0; j < size.steps; ++j)
      for (int k = 0; k < s.steps[j].inputs; ++k)
        if (s.inputs[s.steps[j].first_input + k] == v)
          if (j <= i || j >= end || maker(v, j, first) != i) return true;
    for (int k = 0; k < size.values; ++k) {
      const node& n = s.values[k];
      if (n.op->kind == op_kind::map) continue;
      const int* const in = n.arity > few_inputs ? s.inputs + n.in[0] : n.in;
      for (int a = 0; a < n.arity; ++a)
        if (in[a] == v) return true;
    }
    for (int k = 0; k < size.writes; ++k)
      if (s.writes[k].value == v) return true;
    for (int k = 0; k < size.results; ++k)
      if (s.results[k] == v) return true;
    return false;
  }
};

template <class Storage>
chain_finder(const Storage&) -> chain_finder<Storage>;

/// Chain number Index of a captured program, for its kernel.
template <const auto& Captured, int Index>
struct chain_at {
  static constexpr chain_finder finder{Captured.storage};
  static constexpr auto where = [] {
    struct {
      int first = 0, end = 0;
    } found;
    int n = 0;
    finder.each([&](int first, int end) {
      if (n++ == Index) found = {first, end};
    });
    return found;
  }();
  static constexpr int steps = where.end - where.first;
  static constexpr int operands = [] {
    int n = 0;
    for (int i = where.first; i < where.end; ++i)
      n += Captured.storage.steps[i].inputs + Captured.storage.steps[i].outputs;
    return n;
  }();
  static constexpr auto parts = finder.template parts_of<operands>(where.first, where.end);
  template <int J>
  static constexpr auto key =
      key_at<Captured, Captured.storage.steps[where.first + J].kernel>::value;
  static constexpr kernel::chain_wire wire(int j, int k) { return parts.wire[parts.begin[j] + k]; }
  static constexpr auto values = [] {
    std::array<int, parts.values> all{};
    for (int k = 0; k < parts.values; ++k) all[static_cast<std::size_t>(k)] = parts.value[k];
    return all;
  }();
  static constexpr step_chain chain = {&Captured.storage.steps[where.first], steps,
                                       &kernel::chain_kernel<chain_at>::run, values.data(),
                                       parts.values};
};

/// The chains of a captured program that has loops.
template <const auto& Captured>
  requires(Captured.storage.size.bodies > 0)
struct chains_of<Captured> {
  static constexpr int count = chain_finder{Captured.storage}.count();
  template <std::size_t... I>
  static constexpr auto make(std::index_sequence<I...>) {
    return std::array<step_chain, sizeof...(I) + 1>{
        chain_at<Captured, static_cast<int>(I)>::chain..., step_chain{}};
  }
  static constexpr auto all = make(std::make_index_sequence<static_cast<std::size_t>(count)>{});
  static constexpr const step_chain* list = count > 0 ? all.data() : nullptr;
};

}  // namespace xla::detail
