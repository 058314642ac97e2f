// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the formula of einsum in the compiler. einsum.hpp turns the result into a matrix product.

#include <cstddef>
#include <initializer_list>

namespace xla {

/// The text of einsum as a template argument: einsum<"ij,jk->ik">(a, b).
template <std::size_t N>
struct EinsumText {
  char text[N] = {};
  consteval EinsumText(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};

namespace detail {

/// The letters of one operand's axes, in order; a set if every letter occurs once. The axes of an
/// ellipsis are digits, 0 for the last one; until the ranks are known it is one '.'.
struct letters {
  static constexpr int capacity = 16;
  char at[capacity] = {};
  int count = 0;

  constexpr int find(char c) const {
    for (int i = 0; i < count; ++i)
      if (at[i] == c) return i;
    return -1;
  }
  constexpr bool has(char c) const { return find(c) >= 0; }
  constexpr void push(char c) {
    if (count < capacity) at[count++] = c;
  }
  /// The position of the first repeated letter; -1 if there is none.
  constexpr int repeated() const {
    for (int i = 0; i < count; ++i)
      if (find(at[i]) < i) return i;
    return -1;
  }
  constexpr letters without(int axis) const {
    letters r;
    for (int i = 0; i < count; ++i)
      if (i != axis) r.push(at[i]);
    return r;
  }
  /// With this many digits in place of the ellipsis.
  constexpr letters spread(int axes) const {
    letters r;
    for (int i = 0; i < count; ++i) {
      if (at[i] != '.') r.push(at[i]);
      else
        for (int k = axes; k-- > 0;) r.push(static_cast<char>('0' + k));
    }
    return r;
  }
  /// The letters that are (or are not) in o, each once.
  constexpr letters among(const letters& o, bool is = true) const {
    letters r;
    for (int i = 0; i < count; ++i)
      if (o.has(at[i]) == is && !r.has(at[i])) r.push(at[i]);
    return r;
  }
  friend constexpr letters operator+(letters a, const letters& b) {
    for (int i = 0; i < b.count; ++i)
      if (!a.has(b.at[i])) a.push(b.at[i]);
    return a;
  }
  friend constexpr bool operator==(const letters&, const letters&) = default;
};

struct einsum_formula {
  letters in[4], out;
  int operands = 1;
  bool legal = true;  ///< only letters, commas, spaces, an ellipsis for each and one ->
};

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Without an arrow the result has the axes of ellipses, then the letters that occur once, in
/// alphabetical order.
constexpr letters implied_result(const einsum_formula& f) {
  letters out;
  for (int k = 0; k < f.operands && k < 4; ++k)
    if (f.in[k].has('.') && !out.has('.')) out.push('.');
  for (int c = 'A'; c <= 'z'; ++c) {
    int times = 0;
    for (int k = 0; k < f.operands && k < 4; ++k)
      for (int i = 0; i < f.in[k].count; ++i) times += f.in[k].at[i] == c;
    if (times == 1) out.push(static_cast<char>(c));
  }
  return out;
}

constexpr einsum_formula parse_einsum(const char* s) {
  einsum_formula f;
  bool arrow = false;
  for (; *s; ++s) {
    letters& now = arrow ? f.out : f.in[f.operands < 4 ? f.operands - 1 : 3];
    const bool dots = *s == '.' && s[1] == '.' && s[2] == '.' && !now.has('.');
    if (is_letter(*s)) now.push(*s);
    else if (dots) now.push(*s), s += 2;
    else if (*s == ',' && !arrow) ++f.operands;
    else if (*s == '-' && s[1] == '>' && !arrow) arrow = (++s, true);
    else if (*s != ' ') f.legal = false;
  }
  if (!arrow) f.out = implied_result(f);
  return f;
}

/// The formula with the axes that ellipses stand for.
constexpr einsum_formula spread_ellipses(einsum_formula f, std::initializer_list<int> ranks) {
  int k = 0, most = 0;
  for (int rank : ranks) {
    if (k == 4) break;
    letters& l = f.in[k++];
    const int axes = l.has('.') ? rank - l.count + 1 : 0;
    if (axes > most) most = axes;
    l = l.spread(axes);
  }
  f.out = f.out.spread(most);
  return f;
}

constexpr bool ranks_fit(const einsum_formula& f, std::initializer_list<int> ranks) {
  int k = 0;
  for (int rank : ranks)
    if (k < 4 && f.in[k++].count != rank) return false;
  return true;
}

/// Every letter of the result comes once, and from an operand.
constexpr bool result_fits(const einsum_formula& f) {
  letters all;
  for (int k = 0; k < f.operands && k < 4; ++k) all = all + f.in[k];
  return f.out.repeated() < 0 && f.out.among(all) == f.out;
}

/// The letters of two operands without repeated letters, by kind: in both and kept, in one only,
/// and summed over.
struct einsum_pair {
  letters batch, left, right, summed;
  constexpr einsum_pair(const letters& a, const letters& b, const letters& out)
      : batch(out.among(a).among(b)),
        left(out.among(b, false)),
        right(out.among(a, false)),
        summed(a.among(b).among(out, false)) {}
  constexpr bool is_product() const { return summed.count > 0 && left.count + right.count > 0; }
};

}  // namespace detail
}  // namespace xla
