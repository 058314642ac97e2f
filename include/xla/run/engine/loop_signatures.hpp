// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "xla/base/hash.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/engine/make_loop.hpp"
#include "xla/run/execute/kept_executable.hpp"
#include "xla/run/world/now.hpp"
#include "xla/transform/program.hpp"

// A number of steps is no signature of its own. Another one is planned anew, and of what a function
// has planned as much stays as it may have signatures.

namespace xla::detail {

/// Finds the sizes of arguments that numbers of steps follow from, and those that have to be equal to
/// one of them.
template <class In>
class basic_step_axes {
 public:
  explicit basic_step_axes(const program& p) : p_(p), counts_(p.count.symbols, false) {}

  [[gnu::cold]] list<char> find() {
    for (int v = 0; v < p_.count.values; ++v)
      if (is<op::loop>(p_.values[v])) mark(p_.values[v].template attributes<op::loop>().trip);
    list<char> axes;
    for (int i = 0; i < p_.count.symbols; ++i) {
      const symbol& s = p_.symbols[i];
      const extent root = representative(symbol_extent(i));
      if (s.kind != 'v' || is_known(root) || !counts_[symbol_index(root)]) continue;
      axes.resize(p_.count.slots);
      char& of = axes[static_cast<int>(s.a)];
      of = static_cast<char>(of | 1 << s.b);
    }
    return axes;
  }

 private:
  extent representative(extent e) const {
    while (!is_known(e) && p_.symbols[symbol_index(e)].same_as != -1)
      e = p_.symbols[symbol_index(e)].same_as;
    return e;
  }
  [[gnu::cold]] void mark(extent e) {
    e = representative(e);
    if (is_known(e) || counts_[symbol_index(e)]) return;
    counts_[symbol_index(e)] = true;
    const symbol& s = p_.symbols[symbol_index(e)];
    if (s.kind == 'v' || s.kind == 'w') return;
    for (int k = 0; k < s.factors; ++k) mark(symbol_extent(s.factor[k]));
    if (s.kind == '*' && s.b == 0) return;  // a is a number
    mark(s.a);
    mark(s.b);
  }

  const program& p_;
  list<char> counts_;  // per symbol
};

template <class In>
[[gnu::cold]] list<char> find_step_axes(const program& p) {
  return later<In, basic_step_axes<void>>(p).find();
}
XLA_INSTANCE(list<char> find_step_axes<void>(const program&));

template <class In>
[[gnu::cold]] std::uint64_t family_of(const list<char>& step_axes, const list<shape>& slots,
                                      const list<char>& absent) {
  std::uint64_t h = static_cast<std::uint64_t>(world_now());
  for (int i = 0; i < slots.size(); ++i)
    for (int k = 0; k < slots[i].rank; ++k)
      if ((step_axes[i] >> k & 1) == 0) h = mix(h, static_cast<std::uint64_t>(slots[i][k]));
  for (char c : absent) h = mix(h, static_cast<std::uint64_t>(c));
  return h | 1;
}
XLA_INSTANCE(std::uint64_t family_of<void>(const list<char>&, const list<shape>&,
                                           const list<char>&));

template <class In>
[[gnu::cold]] int find_leaver(const list<later<In, basic_kept_executable<void>>>& all,
                              std::uint64_t family) {
  const auto in_family = [&](std::uint64_t f) {
    return std::count_if(all.begin(), all.end(), [&](const auto& e) { return e.family == f; });
  };
  int oldest = -1;
  for (int i = 0; i < all.size(); ++i) {
    const auto& e = all[i];
    if (e.family == 0 || (oldest >= 0 && e.used >= all[oldest].used)) continue;
    if (e.family == family || in_family(e.family) > 1) oldest = i;
  }
  return oldest;
}
XLA_INSTANCE(int find_leaver<void>(const list<basic_kept_executable<void>>&, std::uint64_t));

}  // namespace xla::detail
