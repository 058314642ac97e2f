// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "xla/base/later.hpp"
#include "xla/transform/lower.hpp"

namespace xla::detail {

/// Lowers a graph at run time: the same passes as in the compiler, into vectors.
template <class In>
class basic_lowered_graph {
 public:
  [[gnu::cold]] void build(graph& g, const graph_roots& roots, const pass_options& options) {
    reserve(static_cast<std::size_t>(g.count), static_cast<std::size_t>(roots.result_count),
            static_cast<std::size_t>(roots.write_count), static_cast<std::size_t>(g.slot_count));
    program_builder b;
    point(b);
    lowering(g, roots, b, options).run();
    count_ = b.count;
    symbols_.assign(g.sizes.symbols, g.sizes.symbols + g.sizes.symbol_count);
    equalities_.assign(g.sizes.equalities, g.sizes.equalities + g.sizes.equality_count);
  }

  program view() const {
    program p;
    p.values = values_.data();
    p.steps = steps_.data();
    p.inputs = inputs_.data();
    p.outputs = outputs_.data();
    p.words = words_.data();
    p.word_ops = word_ops_.data();
    p.keys = keys_.data();
    p.writes = writes_.data();
    p.results = results_.data();
    p.slots = slots_.data();
    p.symbols = symbols_.data();
    p.equalities = equalities_.data();
    p.spaces = spaces_.data();
    p.count = count_;
    return p;
  }

 private:
  void reserve(std::size_t n, std::size_t results, std::size_t writes, std::size_t slots) {
    values_.resize(n + 1);
    steps_.resize(n + 1);
    inputs_.resize(3 * n + 1);
    outputs_.resize(n + 1);
    words_.resize(4 * n + 64);
    word_ops_.resize(4 * n + 64);
    keys_.resize(n + 1);
    writes_.resize(writes + 1);
    results_.resize(results + 1);
    slots_.resize(slots + 1);
    spaces_.resize(n + 1);
  }
  void point(program_builder& b) {
    b.values = values_.data();
    b.steps = steps_.data();
    b.inputs = inputs_.data();
    b.outputs = outputs_.data();
    b.words = words_.data();
    b.word_ops = word_ops_.data();
    b.keys = keys_.data();
    b.writes = writes_.data();
    b.results = results_.data();
    b.slots = slots_.data();
    b.spaces = spaces_.data();
  }

  later<In, std::vector<node>> values_;
  later<In, std::vector<step>> steps_;
  later<In, std::vector<int>> inputs_, outputs_;
  later<In, std::vector<std::uint64_t>> words_;
  later<In, std::vector<const op_info*>> word_ops_;
  later<In, std::vector<distinct_key>> keys_;
  later<In, std::vector<write>> writes_;
  later<In, std::vector<int>> results_;
  later<In, std::vector<program_slot>> slots_;
  later<In, std::vector<symbol>> symbols_;
  later<In, std::vector<equality>> equalities_;
  later<In, std::vector<shape>> spaces_;
  program::sizes count_;
};
using lowered_graph = basic_lowered_graph<void>;

}  // namespace xla::detail
