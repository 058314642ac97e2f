// SPDX-License-Identifier: Apache-2.0
#pragma once

// The attributes of ops: the types that their fields may have, and how a node stores them in two
// words. Headers in op/ declare them with XLA_ATTRIBUTES; passes and kernels read them unpacked.

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>

#include "xla/shape/dtype.hpp"
#include "xla/shape/shape.hpp"

/// Lists the fields of an op's attributes, below them: struct attributes { axis_set axes; bool keep
/// = false; XLA_ATTRIBUTES(axes, keep) };
#define XLA_ATTRIBUTES(...)                                     \
  static constexpr std::string_view field_names = #__VA_ARGS__; \
  constexpr auto fields(auto&& f) { return f(__VA_ARGS__); }    \
  constexpr auto fields(auto&& f) const { return f(__VA_ARGS__); }

namespace xla::detail {

// ---- The types of fields, in addition to bool, int, std::int64_t, double and arrays of any.

/// One axis, counted from the first.
class axis_number {
 public:
  constexpr axis_number(int axis = 0) : axis_(axis) {}
  constexpr operator int() const { return axis_; }

 private:
  int axis_;
};

/// A number from 0 on, or none (-1).
class optional_number {
 public:
  constexpr optional_number(int number = -1) : number_(number) {}
  constexpr operator int() const { return number_; }

 private:
  int number_;
};

/// Some of a tensor's axes.
class axis_set {
 public:
  constexpr axis_set() = default;
  constexpr axis_set(std::initializer_list<int> axes) {
    for (int axis : axes) add(axis & 31);
  }
  /// The axes from first to last - 1.
  static constexpr axis_set range(int first, int last) {
    return axis_set((1u << last) - (1u << first));
  }
  static constexpr axis_set one(int axis) { return axis_set(1u << axis); }
  static constexpr axis_set of_bits(std::uint64_t bits) {
    return axis_set(static_cast<unsigned>(bits));
  }
  constexpr std::uint64_t bits() const { return bits_; }

  constexpr bool has(int axis) const { return bits_ >> axis & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr void add(int axis) { bits_ |= 1u << axis; }
  /// The same axes of a tensor that lacks the first n.
  constexpr axis_set without_first(int n) const { return axis_set(bits_ >> n); }
  friend constexpr bool operator==(axis_set, axis_set) = default;

 private:
  constexpr explicit axis_set(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

/// All axes in an order: operator[] says which one is at a position.
class axis_order {
 public:
  constexpr axis_order() = default;
  static constexpr axis_order of_bits(std::uint64_t bits) {
    axis_order o;
    o.bits_ = static_cast<unsigned>(bits);
    return o;
  }
  constexpr std::uint64_t bits() const { return bits_; }

  constexpr int rank() const { return static_cast<int>(bits_ >> rank_shift); }
  constexpr int operator[](int position) const { return bits_ >> (each * position) & 7; }
  constexpr void push(int axis) {
    bits_ += static_cast<unsigned>(axis) << (each * rank());
    bits_ += 1u << rank_shift;
  }
  /// The inverse order.
  constexpr axis_order inverse() const {
    axis_order o;
    for (int axis = 0; axis < rank(); ++axis)
      for (int i = 0; i < rank(); ++i)
        if ((*this)[i] == axis) o.push(i);
    return o;
  }

 private:
  static constexpr int each = 3, rank_shift = each * max_rank;
  unsigned bits_ = 0;
};

/// A size, known or a symbol. An op's attributes have at most one, because a node stores it
/// separately from the packed bits.
class size_value {
 public:
  constexpr size_value(extent e = 0) : extent_(e) {}
  constexpr operator extent() const { return extent_; }

 private:
  extent extent_;
};

/// A number from Min to Max; attributes outside that range are refused.
template <std::int64_t Min, std::int64_t Max>
class bounded {
 public:
  constexpr bounded() = default;
  constexpr bounded(std::integral auto n) : number_(static_cast<std::int64_t>(n)) {}
  constexpr operator std::int64_t() const { return number_; }
  constexpr bool fits() const { return number_ >= Min && number_ <= Max; }

 private:
  std::int64_t number_ = Min;
};

// ---- How a node stores them: one rule for all ops.

/// An op's attributes as a node stores them: the fields' bits side by side in two words, and a
/// size. Equal when every field is.
struct packed_attributes {
  std::uint64_t low = 0, high = 0;
  extent size = 0;

  friend constexpr bool operator==(const packed_attributes&, const packed_attributes&) = default;
  constexpr std::uint64_t hash() const {
    return low * 0x9e3779b1ull + high * 0xff51afd7ed558ccdull + static_cast<std::uint64_t>(size);
  }
};

enum class field_kind : std::uint8_t {
  flag,
  integer,
  number,
  real,
  optional,
  axis,
  axes,
  order,
  choice,  ///< of an enumeration, whose values have names
  products,
  size
};

/// A description of a field, for printing.
struct attribute_field {
  std::string_view name;
  field_kind kind{};
  std::uint8_t bits = 0;
  std::uint8_t count = 0;                                ///< of an array; 0 if it is none
  std::int64_t least = 0;                                ///< the value that 0 stands for
  std::string_view (*name_of)(std::uint64_t) = nullptr;  ///< of a choice
};

/// A type of field: how many bits it takes, and its conversion to and from bits.
template <class F>
struct field_type;

template <class F, field_kind Kind, int Bits>
struct plain_field {
  static constexpr field_kind kind = Kind;
  static constexpr int bits = Bits;
  static constexpr std::int64_t least = 0;
  static constexpr std::uint64_t encode(F f) { return static_cast<std::uint64_t>(f); }
  static constexpr F decode(std::uint64_t b) { return static_cast<F>(b); }
};
template <>
struct field_type<bool> : plain_field<bool, field_kind::flag, 1> {};
template <>
struct field_type<std::int64_t> : plain_field<std::int64_t, field_kind::integer, 64> {};
template <>
struct field_type<std::uint64_t> : plain_field<std::uint64_t, field_kind::integer, 64> {};
template <>
struct field_type<int> : plain_field<int, field_kind::integer, 32> {
  static constexpr std::uint64_t encode(int n) { return static_cast<std::uint32_t>(n); }
};
template <>
struct field_type<axis_number> : plain_field<int, field_kind::axis, 3> {
  static constexpr std::uint64_t encode(int axis) { return static_cast<std::uint64_t>(axis & 7); }
};
template <>
struct field_type<optional_number> : plain_field<int, field_kind::optional, 32> {
  static constexpr std::uint64_t encode(int n) { return static_cast<std::uint32_t>(n + 1); }
  static constexpr int decode(std::uint64_t b) { return static_cast<int>(b) - 1; }
};
template <>
struct field_type<double> : plain_field<double, field_kind::real, 64> {
  static constexpr std::uint64_t encode(double n) { return std::bit_cast<std::uint64_t>(n); }
  static constexpr double decode(std::uint64_t b) { return std::bit_cast<double>(b); }
};
template <class F, field_kind Kind, int Bits>
struct bits_field : plain_field<int, Kind, Bits> {
  static constexpr std::uint64_t encode(F f) { return f.bits(); }
  static constexpr F decode(std::uint64_t b) { return F::of_bits(b); }
};
template <>
struct field_type<axis_set> : bits_field<axis_set, field_kind::axes, max_rank> {};
template <>
struct field_type<axis_order> : bits_field<axis_order, field_kind::order, 3 * max_rank + 3> {};
template <std::int64_t Min, std::int64_t Max>
struct field_type<bounded<Min, Max>> {
  static constexpr field_kind kind = field_kind::number;
  static constexpr int bits = std::bit_width(static_cast<std::uint64_t>(Max - Min));
  static constexpr std::int64_t least = Min;
  static constexpr std::uint64_t encode(std::int64_t n) {
    return static_cast<std::uint64_t>(n - Min);
  }
  static constexpr std::int64_t decode(std::uint64_t b) {
    return static_cast<std::int64_t>(b) + Min;
  }
};
/// An enumeration whose values have names, by name_of().
template <class F>
struct choice_field : plain_field<F, field_kind::choice, 8> {
  static constexpr std::string_view name(std::uint64_t b) { return name_of(static_cast<F>(b)); }
};
template <>
struct field_type<precision> : plain_field<precision, field_kind::products, 1> {};
template <>
struct field_type<size_value> : plain_field<extent, field_kind::size, 0> {};

/// The position of a field of this many bits at or after bit `next`; no field straddles the two
/// words.
constexpr int field_begin(int next, int bits) { return next < 64 && next + bits > 64 ? 64 : next; }

/// Some bits, from bit `first` on.
constexpr std::uint64_t field_bits(const packed_attributes& p, int first, int bits) {
  const std::uint64_t word = first < 64 ? p.low >> first : p.high >> (first - 64);
  return bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
}

// One call per field, because constant evaluation runs this often.
template <class F>
constexpr void pack_field(packed_attributes& p, int& next, const F& f) {
  constexpr int bits = field_type<F>::bits;
  const int first = field_begin(next, bits);
  next = first + bits;
  if (first < 64) p.low |= field_type<F>::encode(f) << first;
  else p.high |= field_type<F>::encode(f) << (first - 64);
}
constexpr void pack_field(packed_attributes& p, int&, size_value f) { p.size = f; }
template <class F, std::size_t N>
constexpr void pack_field(packed_attributes& p, int& next, const F (&f)[N]) {
  for (const F& one : f) pack_field(p, next, one);
}

template <class F>
constexpr void unpack_field(const packed_attributes& p, int& next, F& f) {
  constexpr int bits = field_type<F>::bits;
  const int first = field_begin(next, bits);
  next = first + bits;
  f = field_type<F>::decode(field_bits(p, first, bits));
}
constexpr void unpack_field(const packed_attributes& p, int&, size_value& f) { f = p.size; }
template <class F, std::size_t N>
constexpr void unpack_field(const packed_attributes& p, int& next, F (&f)[N]) {
  for (F& one : f) unpack_field(p, next, one);
}

template <class F>
constexpr attribute_field describe_field(std::string_view& names, int& next) {
  using one = std::remove_extent_t<F>;
  using type = field_type<one>;
  attribute_field f;
  const std::size_t end = names.find(',');
  f.name = names.substr(0, end);
  names.remove_prefix(end == names.npos ? names.size() : end + 2);
  f.kind = type::kind;
  f.bits = type::bits;
  f.count = std::extent_v<F>;
  f.least = type::least;
  if constexpr (type::kind == field_kind::choice) f.name_of = &type::name;
  for (int i = 0; i < (f.count ? f.count : 1); ++i)
    next = field_begin(next, type::bits) + type::bits;
  return f;
}

template <class Attributes>
constexpr auto describe_fields() {
  return Attributes{}.fields([](const auto&... f) {
    int next = 0;
    std::string_view names = Attributes::field_names;
    std::array all{describe_field<std::remove_cvref_t<decltype(f)>>(names, next)...};
    int sizes = 0;
    for (const attribute_field& one : all) sizes += one.kind == field_kind::size;
    return std::pair(all, next <= 128 && sizes <= 1);
  });
}

/// The fields of an op's attributes.
template <class Attributes>
inline constexpr auto fields_of = [] {
  constexpr auto described = describe_fields<Attributes>();
  static_assert(described.second, "xla: an op's attributes are 128 bits and one size at most");
  return described.first;
}();

/// True unless a field can have a value that does not fit its bits.
template <class Attributes>
inline constexpr bool always_fit = [] {
  for (const attribute_field& f : fields_of<Attributes>)
    if (f.kind == field_kind::number) return false;
  return true;
}();

template <class Attributes>
constexpr packed_attributes pack_fields(const Attributes& a) {
  packed_attributes p;
  a.fields([&p](const auto&... f) {
    int next = 0;
    (pack_field(p, next, f), ...);
  });
  return p;
}

constexpr void require_fit(const auto&, std::string_view, const size_scope&) {}
template <std::int64_t Min, std::int64_t Max>
constexpr void require_fit(bounded<Min, Max>& f, std::string_view name, const size_scope& scope) {
  if (f.fits()) return;
  scope.fail(text(name) << " is " << std::int64_t{f} << ", and has to be from " << Min << " to "
                        << Max);
  f = Min;
}
template <class F, std::size_t N>
constexpr void require_fit(F (&f)[N], std::string_view name, const size_scope& scope) {
  for (F& one : f) require_fit(one, name, scope);
}

/// Attributes as a node keeps them.
template <class Attributes>
  requires always_fit<Attributes>
constexpr packed_attributes pack(const Attributes& a) {
  return pack_fields(a);
}
/// The same; values that do not fit are refused.
template <class Attributes>
constexpr packed_attributes pack(Attributes a, const size_scope& scope) {
  a.fields([&scope](auto&... f) {
    const attribute_field* field = fields_of<Attributes>.data();
    (require_fit(f, (field++)->name, scope), ...);
  });
  return pack_fields(a);
}
/// The reverse.
template <class Attributes>
constexpr Attributes unpack(const packed_attributes& p) {
  Attributes a;
  a.fields([&p](auto&... f) {
    int next = 0;
    (unpack_field(p, next, f), ...);
  });
  return a;
}

}  // namespace xla::detail
