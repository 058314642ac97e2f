// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::Size, the number of elements along an axis as programs see it: known, or an expression in
// the sizes of arguments. Internally it is an extent with its table (extent.hpp).

#include <compare>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "xla/shape/checked.hpp"
#include "xla/shape/extent.hpp"

namespace xla {

/// A number of elements along an axis: known, or (while a step is being compiled) a term over the
/// sizes of the arguments. Has + - * /, which throw shape_error if the result does not fit 64 bits.
/// Using an unknown one as a plain number is refused.
class Size {
 public:
  constexpr Size() = default;
  constexpr Size(std::integral auto n) : extent_(static_cast<std::int64_t>(n)) {}
  constexpr Size(detail::extent e, detail::size_table* table)
      : extent_(e), table_(detail::is_known(e) ? nullptr : table) {}

  constexpr bool known() const { return !__builtin_is_constant_evaluated() || table_ == nullptr; }
  constexpr detail::extent extent() const { return extent_; }
  constexpr detail::size_table* table() const { return table_; }

  /// The number itself; refused in a compiled body if it is known only at run time.
  constexpr operator std::int64_t() const {
    if (known()) return extent_;
    table_->refused.set(
        "a size that is known only at run time was used as a number (if, loop bound, int): "
        "keep it as xla::Size, or make it a template parameter of the model");
    return 1;
  }

  friend constexpr Size operator*(Size a, Size b) {
    if (auto* t = table_of(a, b)) {
      if (a.negative()) return Size(0) - Size(-a.extent_) * b;
      if (b.negative()) return Size(0) - a * Size(-b.extent_);
      return {t->multiply(a.extent_, b.extent_), t};
    }
    return detail::calculated<'*'>(a.extent_, b.extent_);
  }
  friend constexpr Size operator/(Size a, Size b) {
    if (auto* t = table_of(a, b)) {
      if (a.negative()) return Size(0) - Size(-a.extent_) / b;
      if (b.negative()) return Size(0) - a / Size(-b.extent_);
      return {t->divide(a.extent_, b.extent_), t};
    }
    return detail::calculated<'/'>(a.extent_, b.extent_);
  }
  friend constexpr Size operator+(Size a, Size b) {
    if (auto* t = table_of(a, b)) {
      if (a.negative()) return b - Size(-a.extent_);
      if (b.negative()) return a - Size(-b.extent_);
      return {t->plus(a.extent_, b.extent_), t};
    }
    return detail::calculated<'+'>(a.extent_, b.extent_);
  }
  friend constexpr Size operator-(Size a, Size b) {
    if (auto* t = table_of(a, b)) {
      if (a.negative()) return Size(0) - (b + Size(-a.extent_));
      if (b.negative()) return a + Size(-b.extent_);
      return {t->minus(a.extent_, b.extent_), t};
    }
    return detail::calculated<'-'>(a.extent_, b.extent_);
  }
  // Exact overloads for plain numbers, for which the conversion to int64 would be ambiguous.
  friend constexpr Size operator*(Size a, std::integral auto b) { return a * Size(b); }
  friend constexpr Size operator*(std::integral auto a, Size b) { return Size(a) * b; }
  friend constexpr Size operator/(Size a, std::integral auto b) { return a / Size(b); }
  friend constexpr Size operator/(std::integral auto a, Size b) { return Size(a) / b; }
  friend constexpr Size operator+(Size a, std::integral auto b) { return a + Size(b); }
  friend constexpr Size operator+(std::integral auto a, Size b) { return Size(a) + b; }
  friend constexpr Size operator-(Size a, std::integral auto b) { return a - Size(b); }
  friend constexpr Size operator-(std::integral auto a, Size b) { return Size(a) - b; }

  friend constexpr bool operator==(Size a, Size b) {
    if (auto* t = table_of(a, b); t && t->find(a.extent_) == t->find(b.extent_)) return true;
    return std::int64_t(a) == std::int64_t(b);
  }
  friend constexpr bool operator==(Size a, std::integral auto b) { return a == Size(b); }
  friend constexpr auto operator<=>(Size a, Size b) { return std::int64_t(a) <=> std::int64_t(b); }
  friend constexpr auto operator<=>(Size a, std::integral auto b) {
    return std::int64_t(a) <=> static_cast<std::int64_t>(b);
  }

 private:
  // A negative extent is a symbol: a negative number must not be taken for one.
  constexpr bool negative() const { return known() && extent_ < 0; }
  static constexpr detail::size_table* table_of(Size a, Size b) {
    if (!__builtin_is_constant_evaluated()) return nullptr;  // sizes are numbers there
    return a.table_ ? a.table_ : b.table_;
  }
  std::int64_t extent_ = 0;
  detail::size_table* table_ = nullptr;
};

}  // namespace xla
