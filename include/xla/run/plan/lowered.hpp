// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/list.hpp"
#include "xla/transform/lower.hpp"

namespace xla::detail {

template <class T, int program_sizes::*>
using list_of = list<T>;

/// Lowers a graph at run time: the same passes as in the compiler, into lists.
template <class In>
class basic_lowered_graph {
 public:
  [[gnu::cold]] void build(graph& g, const graph_roots& roots, const pass_options& options) {
    const program_sizes room =
        room_for(g.count, g.slot_count, g.sizes.symbol_count, g.sizes.equality_count,
                 roots.result_count, roots.write_count);
    for_each_array([](auto& array, int n) { array.resize(n + 1); }, arrays_, room);
    word_ops_.resize(arrays_.words.size());
    auto b = pointers_into<program_builder>(arrays_, {});
    b.word_ops = word_ops_.data();
    lowering(g, roots, b, options).run();
    count_ = b.count;
  }

  program view() const {
    auto p = pointers_into<program>(arrays_, count_);
    p.word_ops = word_ops_.data();
    return p;
  }

 private:
  program_arrays<list_of> arrays_;
  list<const op_info*> word_ops_;
  program_sizes count_;
};
using lowered_graph = basic_lowered_graph<void>;

}  // namespace xla::detail
