// SPDX-License-Identifier: Apache-2.0
#pragma once

// Comparisons for ops that look for the best element, such as max_pool and argmax, written in
// StableHLO so that NaN and equal elements come out as in the library's kernels.

#include <cstdint>
#include <limits>

#include "xla/ext/stablehlo/gather_scatter.hpp"

namespace xla::detail::hlo {

/// The smallest or largest number, the identity of the comparison.
inline op::constant::attributes outermost(element of, bool least) {
  const auto number = [least](auto zero) {
    using limits = std::numeric_limits<decltype(zero)>;
    return least ? limits::lowest() : limits::max();
  };
  std::int64_t whole = 0;
  switch (of) {
    case element::i1: whole = !least; break;
    case element::i32: whole = number(std::int32_t{}); break;
    case element::i64: whole = number(std::int64_t{}); break;
    case element::ui8: whole = number(std::uint8_t{}); break;
    default: {
      const double infinity = std::numeric_limits<double>::infinity();
      return {least ? -infinity : infinity, 0};
    }
  }
  return {static_cast<double>(whole), whole};
}
inline op::constant::attributes lowest(element of) { return outermost(of, true); }

/// Larger than every index.
inline constexpr std::int64_t no_index = std::numeric_limits<std::int64_t>::max();

/// Whether a at index i comes before b at index k in a search for the best by GT or LT: NaN comes
/// first, and of equal elements the first; of NaNs the last if asked for.
inline value is_before(writer& w, std::string_view better, const value& a, const value& i,
                       const value& b, const value& k, bool last_nan) {
  const auto both = [&](const value& p, const value& q) { return w.map("and", p, q); };
  const auto either = [&](const value& p, const value& q) { return w.map("or", p, q); };
  const value earlier = w.compare("LT", i, k);
  const value wins = either(w.compare(better, a, b), both(w.compare("EQ", a, b), earlier));
  if (!is_float(a.type.of)) return wins;
  const value nan = w.compare("NE", a, a), other = w.compare("NE", b, b);
  const value among = both(other, last_nan ? w.compare("GT", i, k) : earlier);
  return either(wins, both(nan, either(w.map("not", other), among)));
}

/// The region of a reduction over pairs of number and index that keeps the best.
inline std::string choosing(writer& w, element of, std::string_view better, bool last_nan) {
  const tensor_type number{of, {}}, index{element::i64, {}};
  return w.region(list_of({number, index, number, index}), [&](const list<value>& x) {
    const value first = is_before(w, better, x[0], x[1], x[2], x[3], last_nan);
    return list_of({w.select(first, x[0], x[2]), w.select(first, x[1], x[3])});
  });
}

}  // namespace xla::detail::hlo
