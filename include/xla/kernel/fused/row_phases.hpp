// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order in which a row region computes its values; row.hpp runs it. All of it is constexpr.

#include <cstddef>

#include "xla/transform/micro_op.hpp"

namespace xla::kernel {

/// The order of a row region: values are split into phases at their reductions. A phase traverses
/// the row once; cheap values of earlier phases are computed again, costly ones are spilled to
/// scratch.
template <class Traits>
struct row_phases {
  static constexpr int size = Traits::size;
  static constexpr auto& of = Traits::value.of;
  struct table {
    int phase[static_cast<std::size_t>(size)] = {};
    bool scalar[static_cast<std::size_t>(size)] = {};  ///< one value per row
    bool costly[static_cast<std::size_t>(size)] = {};
    bool spilled[static_cast<std::size_t>(size)] = {};  ///< in scratch, for a later phase
    int scratch[static_cast<std::size_t>(size)] = {};
    int phases = 1, scratch_rows = 0;
  };
  static constexpr int operand(const micro_op& m, int k) {
    return k == 0 ? m.a : k == 1 ? m.b : m.c;
  }
  static constexpr bool indexes(const micro_op& m) {
    return m.b != micro_op::none && of[m.b].index;
  }
  /// Value a at position b of the row, computed once, for that position alone.
  static constexpr bool looks_up(const micro_op& m) { return indexes(m) && m.c == micro_op::none; }
  /// Value a, with c added at position b of the row.
  static constexpr bool adds_at(const micro_op& m) { return indexes(m) && m.c != micro_op::none; }

  static constexpr table make(const bool (&costly)[static_cast<std::size_t>(size)]) {
    table t;
    for (int i = 0; i < size; ++i) {
      const micro_op& m = of[i];
      t.costly[i] = costly[i];
      const bool once = m.reduce || looks_up(m);
      t.scalar[i] = once || (m.input ? m.invariant : !m.column && !adds_at(m));
      for (int k = 0; k < 3; ++k) {
        const int o = operand(m, k);
        if (m.input || o == micro_op::none) continue;
        const int after = t.phase[o] + (of[o].reduce ? 1 : 0);
        if (after > t.phase[i]) t.phase[i] = after;
        if (!once && !t.scalar[o]) t.scalar[i] = false;
      }
      if (t.phase[i] + 1 > t.phases) t.phases = t.phase[i] + 1;
    }
    for (int f = 1; f < t.phases; ++f) {
      const needs need = sweep(t, f);
      for (int i = 0; i < size; ++i)
        if (need.value[i] && t.costly[i] && t.phase[i] < f && !t.spilled[i]) {
          t.spilled[i] = true;
          t.scratch[i] = t.scratch_rows++;
        }
    }
    return t;
  }

  struct needs {
    bool value[static_cast<std::size_t>(size)] = {};
  };
  /// The values that phase f computes (or reads) for every element of the row: its results, and
  /// from there back to inputs, spilled values and values of whole rows.
  static constexpr needs sweep(const table& t, int f) {
    needs n;
    for (int i = size - 1; i >= 0; --i) {
      const micro_op& m = of[i];
      if (t.scalar[i] && !m.reduce) continue;
      if (t.phase[i] == f && (m.output || m.reduce || t.spilled[i])) n.value[i] = true;
      if (!n.value[i] || m.input || (t.costly[i] && t.phase[i] < f)) continue;
      for (int k = 0; k < 3; ++k)
        if (const int o = operand(m, k); o != micro_op::none && !t.scalar[o]) n.value[o] = true;
    }
    return n;
  }
  /// An addition of which only the memory is read later; it is done there when the row is finished.
  static constexpr bool adds_in_memory(int i) {
    bool alone = adds_at(of[i]) && of[i].output;
    for (int j = i + 1; j < size; ++j)
      for (int k = 0; k < 3; ++k) alone = alone && (of[j].input || operand(of[j], k) != i);
    return alone;
  }
  /// The values needed to compute a value for one element, from inputs on.
  static constexpr needs inputs_of(const table& t, int value) {
    needs n;
    n.value[value] = !t.scalar[value];
    for (int i = value; i >= 0; --i)
      for (int k = 0; n.value[i] && !of[i].input && k < 3; ++k)
        if (const int o = operand(of[i], k); o != micro_op::none && !t.scalar[o]) n.value[o] = true;
    return n;
  }
  /// The values of whole rows that phase f reads.
  static constexpr needs read_by(const table& t, int f) {
    const needs elements = sweep(t, f);
    needs n;
    for (int i = 0; i < size; ++i) {
      const bool once = t.scalar[i] && !of[i].reduce && t.phase[i] == f;
      if (of[i].input || !(once || (elements.value[i] && !(t.spilled[i] && t.phase[i] < f))))
        continue;
      needs read;
      if (looks_up(of[i])) read = inputs_of(t, of[i].a);
      read.value[i] = true;
      for (int j = 0; j <= i; ++j)
        for (int k = 0; read.value[j] && !of[j].input && k < 3; ++k)
          if (const int o = operand(of[j], k); o != micro_op::none && t.scalar[o] && !of[o].index)
            n.value[o] = true;
    }
    return n;
  }
  /// A value of a whole row that a later phase reads.
  static constexpr bool outlives(const table& t, int i) {
    bool read = false;
    for (int f = t.phase[i] + 1; !of[i].input && f < t.phases; ++f) read |= read_by(t, f).value[i];
    return read;
  }
};

}  // namespace xla::kernel
