// SPDX-License-Identifier: Apache-2.0
// Sums of columns within the regions of recorded graphs, such as a batch norm's moments and its
// gradients: maps run tile by tile, and the rows of a tile are added while they are in the cache.
#include <algorithm>
#include <cstring>

#include <xla/kernel/fused/loops.hpp>
#include <xla/kernel/fused/skinny_rows.hpp>
#include <xla/kernel/op/reduce.hpp>
#include <xla/op/reduce.hpp>
#include <xla/run/execute/tile.hpp>
#include <xla/run/plan/known_regions.hpp>

namespace xla::detail {
namespace {

using kernel::micro_op;

class column_region : tile_region {
 public:
  column_region(const program& p, const step& s, const kernel::loop_nest& l)
      : tile_region(p, s), loops_(l), read_(l), inner_(l.inner()), columns_(l, s.inputs) {
    read_.operands = s.inputs;
    for (int i = 0; i < s.words; ++i) {
      const auto m = micro_op::of(p.words[s.first_word + i]);
      if (m.input) steps_[i] = m.invariant ? 0 : 1;
      if (m.column) sums_[count_++] = {m.a, values_[i].output, m.type == dtype::float64};
    }
    const std::int64_t row = std::max<std::int64_t>(inner_ * widest_, 1);
    if (together()) height_ = std::max<std::int64_t>(tile_bytes / row, 1);
  }

  /// The operands are those of the region, inputs first.
  void run(void* const* operands, std::int64_t ops) const {
    std::int64_t rows = 1;
    for (int i = 0; i + 1 < loops_.axes; ++i) rows *= loops_.sizes[i];
    if (rows == 0) return clear(operands);
    const bool parallel = rows * inner_ * ops >= kernel::parallel_work && num_threads() > 1;
    kernel::run_column_parts(loops_, columns_, operands, rows, parallel,
                             [&](void* const* pointers, std::int64_t first, std::int64_t last,
                                 const kernel::block_target* target) {
                               run_part({pointers, first, last, target});
                             });
  }

 private:
  struct sum_of_columns {
    int of, operand;
    bool is_double;
  };
  /// Some rows; their sums are those of blocks if there is a target.
  struct part {
    void* const* pointers;
    std::int64_t first, last;
    const kernel::block_target* target;

    /// The rows from `row` on that are added to the same sums.
    std::int64_t rest_of_block(std::int64_t row) const {
      if (!target) return last - row;
      return std::min(last - row, kernel::block_terms - (row - first) % kernel::block_terms);
    }
    bool begins(std::int64_t row) const {
      return target ? (row - first) % kernel::block_terms == 0 : row == first;
    }
  };

  /// Whether several rows of every operand are one, or may be copies of one.
  bool together() const {
    if (loops_.axes != 2) return loops_.axes < 2;
    for (int k = 0; k < loops_.operands; ++k) {
      const std::int64_t* const on = loops_.strides[k];
      if (on[0] != inner_ * on[1] && (on[0] != 0 || on[1] != 1)) return false;
    }
    return true;
  }
  void clear(void* const* operands) const {
    for (int i = 0; i < count_; ++i)
      std::memset(operands[sums_[i].operand], 0,
                  static_cast<std::size_t>(inner_ * (sums_[i].is_double ? 8 : 4)));
  }

  void run_part(const part& of) const {
    void* fixed[kernel::max_operands];
    std::copy_n(of.pointers, loops_.operands, fixed);
    if (height_ > 1 && loops_.axes == 2) kernel::repeat_rows(read_, height_, fixed);
    void* p[kernel::max_operands];
    std::int64_t at[kernel::max_axes];
    for (std::int64_t row = of.first, some; row < of.last; row += some) {
      some = std::min(height_, of.last - row);
      kernel::find_row(loops_, fixed, row, p, at);
      const auto add = [&](char* const* values, std::int64_t from, std::int64_t n) {
        add_rows(of, p, values, {row, some, from, height_ > 1 ? inner_ : n});
      };
      tile_region::run(tile_call{p, steps_, some * inner_}, add);
    }
  }

  /// Rows whose values are there, and their columns.
  struct piece {
    std::int64_t row, rows, from, width;
  };
  void add_rows(const part& of, void* const* sums, char* const* values, const piece& x) const {
    for (std::int64_t r = 0, some; r < x.rows; r += some) {
      const std::int64_t row = x.row + r;
      some = std::min(of.rest_of_block(row), x.rows - r);
      for (int i = 0; i < count_; ++i)
        if (sums_[i].is_double) add<double>(sums_[i], sums, values, x, r, some, of.begins(row));
        else add<float>(sums_[i], sums, values, x, r, some, of.begins(row));
      const bool whole = some == of.rest_of_block(row) && x.from + x.width == inner_;
      if (!of.target || !whole) continue;
      const kernel::block_target& to = *of.target;
      to.columns.add(to.sums, to.lost, to.block, nullptr,
                     row + some - of.first <= kernel::block_terms);
    }
  }
  template <class T>
  void add(const sum_of_columns& s, void* const* sums, char* const* values, const piece& x,
           std::int64_t r, std::int64_t rows, bool first) const {
    column_reduce<xla::op::sum, T>::add_rows(static_cast<T*>(sums[s.operand]) + x.from,
                                             reinterpret_cast<const T*>(values[s.of]) + r * inner_,
                                             rows, inner_, x.width, first);
  }

  const kernel::loop_nest& loops_;
  kernel::loop_nest read_;  ///< of the inputs
  const std::int64_t inner_;
  std::int64_t height_ = 1;  ///< rows of a tile
  const kernel::column_outputs columns_;
  std::int64_t steps_[micro_op::none] = {};  ///< per input, within a row
  sum_of_columns sums_[micro_op::none];
  int count_ = 0;
};

}  // namespace

void run_column_region(const program& p, const step& s, const kernel::loop_nest& l,
                       void* const* operands, std::int64_t ops) {
  column_region(p, s, l).run(operands, ops);
}

}  // namespace xla::detail
