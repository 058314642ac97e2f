// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "xla/run/eager.hpp"

namespace xla::detail {

/// Notes the tensors that this thread makes within a scope. At its end those that nobody outside
/// holds let go of their elements and keep their inputs, from which they can be computed again.
class segment_recorder {
 public:
  segment_recorder() : part_(new segment), outer_(std::exchange(current(), this)) {
    if (outer_) part_->parent = outer_->part_;
  }
  ~segment_recorder() {
    current() = outer_;
    part_->open = false;
    std::unordered_map<const impl*, int> uses;
    for (auto& t : made_)
      for (int k = 0; k < t->arity; ++k) ++uses[t->in[k].get()];
    for (auto& t : made_) {
      if (t->part.get() != part_.get()) continue;
      const int inside = uses[t.get()] + 1;  // and this list's own reference
      if (t->meta || t->refs.load(std::memory_order_acquire) > inside) {
        t->part = part_->parent;
        if (t->data) drop_inputs(*t);
      } else {
        t->data.reset();
      }
    }
    if (outer_) std::move(made_.begin(), made_.end(), std::back_inserter(outer_->made_));
  }
  segment_recorder(const segment_recorder&) = delete;
  segment_recorder& operator=(const segment_recorder&) = delete;

  /// A tensor was made.
  static void note(impl& t) {
    if (segment_recorder* r = current()) {
      t.part = r->part_;
      r->made_.push_back(ref<impl>::share(&t));
    }
  }

 private:
  static segment_recorder*& current() {
    static thread_local segment_recorder* innermost = nullptr;
    return innermost;
  }

  ref<segment> part_;
  segment_recorder* outer_;
  std::vector<ref<impl>> made_;
};

}  // namespace xla::detail
