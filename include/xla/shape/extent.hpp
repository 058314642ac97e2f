// SPDX-License-Identifier: Apache-2.0
#pragma once

// The length of an axis, which may be a symbol until arguments are known, and the table of all
// symbols of a graph. Shape rules compute with extents; users see xla::Size (size.hpp).

#include <cstddef>
#include <cstdint>

#include "xla/base/caller.hpp"
#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/shape/checked.hpp"

namespace xla::detail {

struct graph;

/// The length of one axis: known if >= 0, a symbol of a size_table if <= -2. -1 marks a hole.
using extent = std::int64_t;

constexpr bool is_known(extent e) { return e >= 0; }
constexpr int symbol_index(extent e) { return static_cast<int>(-e - 2); }
constexpr extent symbol_extent(int index) { return -static_cast<extent>(index) - 2; }

/// The meaning of a symbol: a size of an argument, a product, or a sum, difference or quotient.
struct symbol {
  static constexpr int max_factors = 6;
  char kind = 'v';          // v: variable, w: the world's replicas, *: product, + - /: of a and b
  std::int8_t factors = 0;  // product: a times the symbols factor[0 .. factors)
  extent a = 0, b = 0;      // variable: leaf and axis
  int factor[max_factors] = {};  // sorted
  extent same_as = -1;           // an extent found to be equal; -1: none (see find)
};

/// A requirement on two extents, checked in each call: that they are equal, or that the first is at
/// least the second, with the op that needs it. With hole as b: that the extent is not 0, with the
/// sentence if it is. An entry of 0 and 0 describes the loop that the entries before it belong to:
/// ", in the body of scan", and its line.
struct equality {
  static constexpr extent hole = -1;
  extent a = 0, b = 0;
  call_site where;
  bool at_least = false;
  int of_body = 0;
};

/// Twice the capacity for a full array; an initial one for an array without memory.
template <class T>
constexpr void grow(T*& items, int& capacity, bool& own) {
  const int room = capacity == 0 ? 4 : 2 * capacity;
  T* more = new T[static_cast<std::size_t>(room)];
  for (int i = 0; i < capacity; ++i) more[i] = items[i];
  if (own) delete[] items;
  items = more;
  capacity = room;
  own = true;
}

/// Sizes that are known only at run time, as terms over the arguments' sizes.
struct size_table {
  symbol* symbols = nullptr;
  equality* equalities = nullptr;
  int symbol_capacity = 0, equality_capacity = 0;
  int symbol_count = 0, equality_count = 0;
  /// Allocated here, because the initial storage was too small.
  bool own_symbols = false, own_equalities = false;
  extent replicas = -1;  ///< the number of replicas in the world; -1: not requested yet
  refusal refused;
  graph* owner = nullptr;

  constexpr extent add(const symbol& s) {
    if (symbol_count == symbol_capacity) grow(symbols, symbol_capacity, own_symbols);
    symbols[symbol_count] = s;
    return symbol_extent(symbol_count++);
  }

  constexpr extent variable(int leaf, int axis) {
    symbol s;
    s.a = leaf;
    s.b = axis;
    return add(s);
  }

  /// The number of replicas when the program is called.
  constexpr extent world() {
    if (replicas == -1) {
      symbol s;
      s.kind = 'w';
      replicas = add(s);
    }
    return replicas;
  }

  /// The representative of all extents known to be equal to e.
  [[gnu::noinline]] constexpr extent find(extent e) const {
    while (!is_known(e) && symbols[symbol_index(e)].same_as != -1)
      e = symbols[symbol_index(e)].same_as;
    return e;
  }

  constexpr extent multiply(extent x, extent y) {
    symbol p = as_product(find(x));
    const symbol q = as_product(find(y));
    p.a = calculated(p.a, '*', q.a);
    for (int i = 0; i < q.factors; ++i)
      if (!insert(p, q.factor[i])) return opaque('*', x, y);
    return intern(p);
  }

  constexpr extent divide(extent x, extent y) {
    symbol p = as_product(find(x));
    const symbol q = as_product(find(y));
    if (q.a == 0 || p.a % q.a != 0) return opaque('/', x, y);
    p.a /= q.a;
    for (int i = 0; i < q.factors; ++i)
      if (!erase(p, q.factor[i])) return opaque('/', x, y);
    return intern(p);
  }

  /// x + y and x - y. Constants are collected, so that (n - 1) + 1 and (n + m) - m are n.
  constexpr extent plus(extent x, extent y) {
    const affine a = split(x), b = split(y);
    if (is_known(a.term) || is_known(b.term))
      return shifted(is_known(a.term) ? b.term : a.term, calculated(a.constant, '+', b.constant));
    if (a.term == b.term) return shifted(multiply(a.term, 2), a.constant + b.constant);
    extent both = 0;
    if (const symbol& s = at(a.term); s.kind == '-' && find(s.b) == b.term) both = find(s.a);
    else if (const symbol& t = at(b.term); t.kind == '-' && find(t.b) == a.term) both = find(t.a);
    else both = opaque('+', a.term, b.term);
    return shifted(both, a.constant + b.constant);
  }
  constexpr extent minus(extent x, extent y) {
    const affine a = split(x), b = split(y);
    const std::int64_t constant = a.constant - b.constant;
    if (a.term == b.term) return shifted(0, constant);
    if (is_known(b.term)) return shifted(a.term, constant);
    if (is_known(a.term))
      return constant >= 0 ? opaque('-', constant, b.term)
                           : shifted(opaque('-', 0, b.term), constant);
    extent both = 0;
    if (const symbol& s = at(a.term); s.kind == '+' && find(s.b) == b.term) both = find(s.a);
    else if (s.kind == '+' && find(s.a) == b.term) both = find(s.b);
    else if (const symbol& t = at(b.term); t.kind == '-' && find(t.a) == a.term) both = find(t.b);
    else both = opaque('-', a.term, b.term);
    return shifted(both, constant);
  }

  /// An extent as term + constant; the term of a known one is 0.
  struct affine {
    extent term = 0;
    std::int64_t constant = 0;
  };
  constexpr affine split(extent e) const {
    e = find(e);
    if (is_known(e)) return {0, e};
    const symbol& s = at(e);
    if ((s.kind != '+' && s.kind != '-') || !is_known(s.b)) return {e, 0};
    const extent term = find(s.a);
    const std::int64_t constant = s.kind == '+' ? s.b : -s.b;
    return is_known(term) ? affine{0, term + constant} : affine{term, constant};
  }

  constexpr extent opaque(char kind, extent x, extent y) {
    x = find(x);
    y = find(y);
    const bool known = is_known(x) && is_known(y);
    if (known && kind == '+') return calculated(x, '+', y);
    if (known && kind == '-' && x >= y) return x - y;  // a difference below 0 stays a term
    if (known && kind == '/') return y == 0 ? 0 : x / y;
    for (int i = 0; i < symbol_count; ++i)
      if (symbols[i].kind == kind && symbols[i].a == x && symbols[i].b == y &&
          symbols[i].factors == 0)
        return find(symbol_extent(i));
    symbol s;
    s.kind = kind;
    s.a = x;
    s.b = y;
    return add(s);
  }

  constexpr void require(const equality& e) {
    if (equality_count == equality_capacity) grow(equalities, equality_capacity, own_equalities);
    equalities[equality_count++] = e;
  }

  /// Records that two extents are equal; the specialiser checks it. The result represents both.
  constexpr extent unify(extent x, extent y, const call_site& where) {
    x = find(x);
    y = find(y);
    if (x == y) return x;
    require({x, y, where});
    if (is_known(x)) {
      const extent t = x;
      x = y;
      y = t;
    }
    symbols[symbol_index(x)].same_as = y;
    return y;
  }

 private:
  // Arithmetic on sizes known in the body; an invalid result is refused.
  constexpr std::int64_t calculated(std::int64_t a, char op, std::int64_t b) {
    std::int64_t result = 1;
    if (!calculate(a, op, b, result)) refused.set(no_size(a, op, b));
    return result;
  }
  constexpr const symbol& at(extent e) const { return symbols[symbol_index(e)]; }
  constexpr extent shifted(extent term, std::int64_t constant) {
    if (constant == 0) return term;
    return constant > 0 ? opaque('+', term, constant) : opaque('-', term, -constant);
  }
  static constexpr symbol empty_product(extent coefficient) {
    symbol s;
    s.kind = '*';
    s.a = coefficient;
    return s;
  }
  constexpr symbol as_product(extent e) const {
    if (is_known(e)) return empty_product(e);
    const symbol& s = symbols[symbol_index(e)];
    if (s.kind == '*' && s.b == 0) return s;
    symbol p = empty_product(1);
    p.factors = 1;
    p.factor[0] = symbol_index(e);
    return p;
  }
  static constexpr bool insert(symbol& p, int f) {
    if (p.factors == symbol::max_factors) return false;
    int i = p.factors++;
    for (; i > 0 && p.factor[i - 1] > f; --i) p.factor[i] = p.factor[i - 1];
    p.factor[i] = f;
    return true;
  }
  static constexpr bool erase(symbol& p, int f) {
    for (int i = 0; i < p.factors; ++i)
      if (p.factor[i] == f) {
        for (--p.factors; i < p.factors; ++i) p.factor[i] = p.factor[i + 1];
        return true;
      }
    return false;
  }
  constexpr extent intern(symbol p) {
    if (p.factors == 0 || p.a == 0) return p.a;
    if (p.factors == 1 && p.a == 1) return symbol_extent(p.factor[0]);
    for (int i = 0; i < symbol_count; ++i) {
      const symbol& s = symbols[i];
      bool same = s.kind == '*' && s.b == 0 && s.a == p.a && s.factors == p.factors;
      for (int k = 0; same && k < p.factors; ++k) same = s.factor[k] == p.factor[k];
      if (same) return find(symbol_extent(i));
    }
    p.same_as = -1;
    return add(p);
  }
};

}  // namespace xla::detail
