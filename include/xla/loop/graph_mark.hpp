// SPDX-License-Identifier: Apache-2.0
#pragma once

// Remembers the state of a graph, so that later recordings can be undone. Loops and branches record
// a body that writes once to see what it writes, undo that, and record it again (captured.hpp,
// cond.hpp).

#include <cstddef>

#include "xla/graph/graph.hpp"

namespace xla::detail {

/// The current state of a graph; nodes recorded later can be removed.
class graph_mark {
 public:
  constexpr explicit graph_mark(graph& of)
      : g(of),
        count_(of.count),
        slots_(of.slot_count),
        loops_(of.loop_count),
        loop_(of.loop),
        segment_(of.segment),
        segments_(of.segment_count),
        listed_(of.lists.count),
        saved_(static_cast<std::size_t>(of.slot_count) + 1) {
    for (int i = 0; i < slots_; ++i) saved_.get()[i] = g.slots[i];
  }
  graph_mark(const graph_mark&) = delete;

  constexpr int count() const { return count_; }
  constexpr int slots() const { return slots_; }
  constexpr const slot& slot_before(int i) const { return saved_.get()[i]; }

  constexpr void undo() const {
    g.count = count_;
    g.slot_count = slots_;
    g.loop_count = loops_;
    g.loop = loop_;
    g.segment = segment_;
    g.segment_count = segments_;
    g.lists.count = listed_;
    for (int i = 0; i < slots_; ++i) g.slots[i] = saved_.get()[i];
  }

 private:
  graph& g;
  int count_, slots_, loops_, loop_, segment_, segments_, listed_;
  owned_array<slot> saved_;
};

}  // namespace xla::detail
