// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sizes of a tensor's axes, and the scope in which shape rules compute and report errors. It
// says nothing of element types or of the order in memory (layout.hpp).

#include <cstdint>
#include <string>
#include <string_view>

#include "xla/base/compiler.hpp"
#include "xla/base/error.hpp"
#include "xla/shape/checked.hpp"
#include "xla/shape/extent.hpp"

namespace xla::detail {

inline constexpr int max_rank = 6;

/// The axes of a tensor, outermost first.
struct shape {
  int rank = 0;
  extent dims[max_rank] = {};

  constexpr extent operator[](int i) const { return dims[i]; }
  constexpr extent& operator[](int i) { return dims[i]; }
  constexpr void push(extent e) { dims[rank++] = e; }

  friend constexpr bool operator==(const shape& a, const shape& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i)
      if (a.dims[i] != b.dims[i]) return false;
    return true;
  }
};

/// Elements of a shape whose sizes are all known.
[[gnu::noinline]] constexpr std::int64_t count(const shape& s) {
  std::int64_t n = 1;
  for (int i = 0; i < s.rank; ++i) n *= s.dims[i];
  return n;
}

/// The most elements a tensor may have, so that its size in bytes, and sums of many such sizes, fit
/// into 64 bits.
inline constexpr std::int64_t max_elements = std::int64_t{1} << 59;

/// Whether the number of elements, as far as sizes are known, is at most that. With an axis of size
/// 0 the product of the other sizes still must not overflow.
constexpr bool is_countable(const shape& s) {
  std::int64_t n = 1;
  bool none = false;
  for (int i = 0; i < s.rank; ++i) {
    if (s.dims[i] == 0) none = true;
    else if (s.dims[i] > 1 && XLA_MULTIPLY_OVERFLOWS(n, s.dims[i], n)) return false;
  }
  return none || n <= max_elements;
}

/// "(64, 784)"; a size known only at run time prints as "?".
[[gnu::cold, gnu::noinline]] constexpr text& operator<<(text& out, const shape& s) {
  out << '(';
  for (int i = 0; i < s.rank; ++i) {
    if (i > 0) out << ", ";
    if (is_known(s.dims[i])) out << s.dims[i];
    else out << '?';
  }
  return out << (s.rank == 1 ? ",)" : ")");
}
constexpr text& operator<<(text&& out, const shape& s) { return out << s; }

/// The context in which shape rules compute: over symbols while a graph is captured, over numbers
/// at run time. A failing rule is recorded in the capture, or thrown as a shape_error.
struct size_scope {
  size_table* table = nullptr;
  call_site site;

  [[gnu::cold, gnu::noinline]] constexpr void fail(const text& what) const {
    text sentence;
    sentence << site.function << ": " << what;
    fail_with(sentence);
  }
  /// With the complete sentence.
  [[gnu::cold, gnu::noinline]] constexpr void fail_with(text sentence) const {
    sentence << site.at;
    if (table) table->refused.set(sentence);
    else throw shape_error(std::string(sentence.view()));
  }
  constexpr extent multiply(extent a, extent b) const {
    return table ? table->multiply(a, b) : calculated(a, '*', b);
  }
  constexpr extent divide(extent a, extent b) const {
    return table ? table->divide(a, b) : b == 0 ? 0 : a / b;
  }
  constexpr extent plus(extent a, extent b) const {
    return table ? table->plus(a, b) : calculated(a, '+', b);
  }
  constexpr extent minus(extent a, extent b) const {
    return table ? table->minus(a, b) : calculated(a, '-', b);
  }
  /// Refuses a shape of more elements than can be counted.
  [[gnu::noinline]] constexpr void countable(const shape& s) const {
    if (!is_countable(s))
      fail(text("a tensor of shape ") << s << " has more than 2^59 elements, the limit");
  }
  constexpr extent numel(const shape& s) const {
    extent n = 1;
    for (int i = 0; i < s.rank; ++i) n = multiply(n, s.dims[i]);
    return n;
  }
  constexpr extent find(extent e) const { return table ? table->find(e) : e; }

  /// Refuses a size of 0, now or when it is known.
  constexpr void nonzero(extent e, std::string_view sentence) const {
    e = find(e);
    if (e == 0) fail_with(sentence);
    else if (!is_known(e)) table->require({e, equality::hole, {sentence, site.at}});
  }

  /// Requires that both are the same size. False if they are known to differ; if a size is still
  /// unknown, the check is recorded for the call.
  constexpr bool equal(extent& a, extent b) const {
    a = find(a);
    b = find(b);
    if (a == b) return true;
    if (!table || (is_known(a) && is_known(b))) return false;
    a = table->unify(a, b, site);
    return true;
  }

  /// Requires that a is at least b; likewise checked now or in the call.
  constexpr bool at_least(extent a, extent b) const {
    if (!table || (is_known(a) && is_known(b))) return a >= b;
    const size_table::affine x = table->split(a), y = table->split(b);
    if (x.term == y.term) return x.constant >= y.constant;
    if (b == 0 && table->symbols[symbol_index(find(a))].kind == 'v') return true;
    table->require({find(a), find(b), site, true});
    return true;
  }

  /// True when all sizes are, or will be checked to be, the same.
  constexpr bool same(const shape& a, const shape& b) const {
    bool all = a.rank == b.rank;
    for (int i = 0; all && i < a.rank; ++i) {
      extent e = a[i];
      all = equal(e, b[i]);
    }
    return all;
  }

  /// NumPy's rule, aligned at the last axis: equal sizes, or one of them is 1.
  constexpr shape broadcast(const shape& a, const shape& b) const {
    shape out;
    out.rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 0; i < out.rank; ++i) {
      const int ia = i - (out.rank - a.rank), ib = i - (out.rank - b.rank);
      extent x = ia < 0 ? 1 : a.dims[ia], y = ib < 0 ? 1 : b.dims[ib];
      if (!is_known(x)) x = find(x);
      if (!is_known(y)) y = find(y);
      if (x == 1) x = y;
      else if (y != 1 && !equal(x, y)) {
        refuse_broadcast(a, b, x, y, i);
        x = y;
      }
      out.dims[i] = x;
    }
    return out;
  }

 private:
  [[gnu::cold, gnu::noinline]] constexpr void refuse_broadcast(const shape& a, const shape& b,
                                                               extent x, extent y, int i) const {
    fail(text("sizes of ") << a << " and " << b << " do not broadcast: " << x << " against " << y
                           << " at axis " << i << "; sizes must be equal or 1");
  }
  constexpr std::int64_t calculated(std::int64_t a, char op, std::int64_t b) const {
    std::int64_t result = 1;
    if (!calculate(a, op, b, result)) fail(no_size(a, op, b));
    return result;
  }
};

}  // namespace xla::detail
