// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a model again after it has been moved, by a parameter inside it. Optimizers hold one by way
// of part.hpp; it works at run time only, as constant evaluation moves no model.

#include <cstddef>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/error.hpp"
#include "xla/tensor/handle.hpp"

namespace xla::detail {

/// Where the object is that a cell was kept in, at this distance from it. Throws when the cell is
/// kept nowhere any more.
template <class = void>
void* anchored(const cell* c, std::ptrdiff_t distance);
template <class = void>
void unfollow(cell* c) noexcept;

/// Finds an object again, wherever it has been moved to, by a parameter or buffer that is in it.
/// At run time only: constant evaluation moves no module.
class anchor {
 public:
  constexpr anchor() = default;
  constexpr anchor(const anchor& o) : cell_(o.cell_), distance_(o.distance_), set_(o.set_) {
    if (cell_) cell_->retain();
  }
  constexpr anchor(anchor&& o) noexcept
      : cell_(std::exchange(o.cell_, nullptr)), distance_(o.distance_), set_(o.set_) {}
  constexpr anchor& operator=(anchor o) noexcept {
    std::swap(cell_, o.cell_);
    distance_ = o.distance_;
    set_ = o.set_;
    return *this;
  }
  constexpr ~anchor() {
    if (cell_) unfollow(cell_);
  }

  /// From now on part, which is in the object, tells where that is.
  void follow(const handle& part, const void* object) {
    cell* const before = std::exchange(cell_, part.get_cell());
    if (cell_) cell_->retain();
    if (before) unfollow(before);
    distance_ = reinterpret_cast<const std::byte*>(&part) - static_cast<const std::byte*>(object);
    set_ = cell_;
  }
  /// The object; where it was when nothing was followed.
  template <class X>
  X* find(X* first) const {
    if (!set_) return first;
    return static_cast<X*>(anchored<dependent<X, void>>(cell_, distance_));
  }

 private:
  cell* cell_ = nullptr;
  std::ptrdiff_t distance_ = 0;
  bool set_ = false;
};

inline constexpr const char* no_gradient_at_all =
    "xla::optim: step() finds no gradient in its model: was backward() called, and is this the "
    "model that computed the loss? One taken by value (auto m) or copied is another: write auto& m";
/// Stops a step that no gradient has reached.
template <class = void>
[[noreturn]] void refuse_step();

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/tensor/memory.hpp"

namespace xla::detail {

template <class>
void* anchored(const cell* c, std::ptrdiff_t distance) {
  while (c && c->successor) c = c->successor.get();
  if (!c || !c->keeper)
    throw runtime_error(
        "xla::optim: the model of this optimizer is gone, or the optimizer was moved from");
  return reinterpret_cast<std::byte*>(c->keeper) - distance;
}
XLA_INSTANCE(void* anchored<void>(const cell*, std::ptrdiff_t));

template <class>
void unfollow(cell* c) noexcept {
  c->release();
}
XLA_INSTANCE(void unfollow<void>(cell*) noexcept);

template <class>
[[noreturn]] void refuse_step() {
  throw runtime_error(no_gradient_at_all);
}
XLA_INSTANCE(void refuse_step<void>());

}  // namespace xla::detail
#endif
