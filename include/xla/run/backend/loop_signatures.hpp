// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps a loop that runs with many different numbers of steps from filling the cache of signatures.
// A new number of steps is planned again, but is no signature of its own; a function keeps as many
// of these plans as it may have signatures. signature_cache.hpp calls it by a pointer, so that
// programs without loops compile none of it.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "xla/base/hash.hpp"
#include "xla/base/instance.hpp"
#include "xla/graph/loops.hpp"
#include "xla/run/backend/make_loop.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/world/world.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// Finds the argument sizes that determine numbers of steps, and sizes that must be equal to one of
/// these: per slot a bit for each axis.
template <class In>
class basic_step_axes {
 public:
  explicit basic_step_axes(const program& p) : p_(p), counts_(p.count.symbols, false) {}

  [[XLA_PLANS]] list<char> find() {
    for (int v = 0; v < p_.count.values; ++v)
      if (is<op::loop>(p_.values[v])) mark(p_.values[v].template attributes<op::loop>().trip);
    for (bool more = true; more;) {  // a term may turn out equal to a later one
      more = false;
      for (int i = p_.count.symbols - 1; i >= 0; --i)
        if (counts(i)) more |= mark_terms(p_.symbols[i]);
    }
    list<char> axes(p_.count.slots, 0);
    for (int i = 0; i < p_.count.symbols; ++i)
      if (const symbol& s = p_.symbols[i]; s.kind == 'v' && counts(i)) {
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
  bool counts(int symbol) const {
    const extent e = representative(symbol_extent(symbol));
    return !is_known(e) && counts_[symbol_index(e)];
  }
  /// Marks it; true if it was not marked before.
  bool mark(extent e) {
    e = representative(e);
    return !is_known(e) && !std::exchange(counts_[symbol_index(e)], true);
  }
  [[XLA_PLANS]] bool mark_terms(const symbol& s) {
    bool more = false;
    for (int k = 0; k < s.factors; ++k) more |= mark(symbol_extent(s.factor[k]));
    if (s.kind == '+' || s.kind == '-' || s.kind == '/' || (s.kind == '*' && s.b != 0)) {
      more |= mark(s.a);
      more |= mark(s.b);
    }
    return more;
  }

  const program& p_;
  list<char> counts_;  // per symbol
};

/// If no argument's size determines the numbers of steps, each signature is a family of its own.
template <class In>
class basic_family_finder {
 public:
  using entry = dependent<In, basic_cached_executable<void>>;
  explicit basic_family_finder(const list<entry>& all) : all_(all) {}

  [[XLA_PLANS]] void find(const list<char>& step_axes, const list<shape>& slots,
                          const list<char>& absent, position_in_family& to) const {
    to.family = number(step_axes, slots, absent);
    to.other_steps = count(to.family) > 0;
    if (!to.full) return;
    for (int i = 0; i < all_.size(); ++i) {
      const entry& e = all_[i];
      if (e.family == 0 || (to.leaver >= 0 && e.used >= all_[to.leaver].used)) continue;
      if (e.family == to.family || count(e.family) > 1) to.leaver = i;
    }
  }

 private:
  std::int64_t count(std::uint64_t family) const {
    return std::count_if(all_.begin(), all_.end(),
                         [&](const entry& e) { return e.family == family; });
  }
  static std::uint64_t number(const list<char>& step_axes, const list<shape>& slots,
                              const list<char>& absent) {
    std::uint64_t h = static_cast<std::uint64_t>(world_now());
    for (int i = 0; i < slots.size(); ++i)
      for (int k = 0; k < slots[i].rank; ++k)
        if ((step_axes[i] >> k & 1) == 0) h = mix(h, static_cast<std::uint64_t>(slots[i][k]));
    for (char c : absent) h = mix(h, static_cast<std::uint64_t>(c));
    return h | 1;
  }

  const list<entry>& all_;
};

template <class In>
[[XLA_PLANS]] void find_family(const program& p, list<char>& step_axes,
                               const list<dependent<In, basic_cached_executable<void>>>& all,
                               const list<shape>& slots, const list<char>& absent,
                               position_in_family& found) {
  if (step_axes.empty()) step_axes = dependent<In, basic_step_axes<void>>(p).find();
  dependent<In, basic_family_finder<void>>(all).find(step_axes, slots, absent, found);
}
XLA_INSTANCE(void find_family<void>(const program&, list<char>&,
                                    const list<basic_cached_executable<void>>&, const list<shape>&,
                                    const list<char>&, position_in_family&));

}  // namespace xla::detail
