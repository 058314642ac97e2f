// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lowers a graph to a program at run time, after the same passes as in the compiler. Traced graphs
// and printed stages use it; capture.hpp makes a compiled function's program.

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/transform/lower.hpp"
#include "xla/transform/pass_names.hpp"

namespace xla::detail {

/// The program of a graph at run time, in one block of memory.
template <class In>
class basic_lowered_graph {
 public:
  [[XLA_PLANS]] void lower(pass_state& s, Passes wanted) {
    if (!s.wrong.empty()) throw dependent<In, std::logic_error>(std::string(s.wrong.view()));
    program_builder b = make_room(s);
    lowering(s, b).run();
    for_each_array([](auto& to, auto* from) { to = from; }, view_, b);
    view_.word_ops = b.word_ops;
    view_.count = b.count;
    view_.passes = wanted;
    view_.divide();
  }

  const program& view() const { return view_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  [[XLA_PLANS]] program_builder make_room(const pass_state& s) {
    const size_table& sizes = s.g.sizes;
    const int nodes =
        s.g.loop_count == 0 ? s.live_count() : s.g.rules_of_loops->count_repeated(s.g);
    const program_sizes room =
        room_for(nodes + 1, s.listed(), s.g.slot_count, sizes.symbol_count, sizes.equality_count,
                 s.roots.result_count, s.roots.write_count);
    program_builder b;
    std::size_t bytes = 0;
    for_each_array([&](auto* array, int n) { bytes += bytes_for(n, sizeof *array); }, b, room);
    bytes += bytes_for(room.words, sizeof *b.word_ops);
    memory_ = dependent<In, std::unique_ptr<std::byte[]>>(new std::byte[bytes]);
    bytes_ = static_cast<std::int64_t>(bytes);
    std::byte* next = memory_.get();
    const auto allocate = [&]<class T>(T*& array, int n) {
      array = reinterpret_cast<T*>(next);
      next += bytes_for(n, sizeof(T));
    };
    for_each_array(allocate, b, room);
    allocate(b.word_ops, room.words);
    return b;
  }
  /// So that the following arrays are aligned.
  static constexpr std::size_t bytes_for(int n, std::size_t each) {
    constexpr std::size_t step = alignof(std::max_align_t);
    return (static_cast<std::size_t>(n) * each + step - 1) / step * step;
  }

  dependent<In, std::unique_ptr<std::byte[]>> memory_;
  std::int64_t bytes_ = 0;
  program view_;
};
using lowered_graph = basic_lowered_graph<void>;

}  // namespace xla::detail
