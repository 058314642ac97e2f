// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sizes of a traced graph that follow from its loops' numbers of steps, so that another number
// needs no new program. Only traced_calls.hpp uses it.

#include <exception>
#include <utility>

#include "xla/run/plan/sized.hpp"
#include "xla/run/trace/function.hpp"

namespace xla::detail {

/// The shapes of a traced graph with loops in which their numbers of steps are symbols, so that a
/// graph with other numbers is the same.
struct trip_shapes {
  list<shape> shapes;        ///< of leaves, then of nodes; none: it holds for these numbers alone
  list<std::int64_t> trips;  ///< the values of the first symbols
  list<symbol> symbols;
};

/// The shapes of a traced graph that follow from those of its leaves, in which every size that is a
/// loop's number of steps is a symbol. They are valid if they give the recorded sizes, and require
/// no two sizes to be equal.
template <class In>
class basic_trip_finder {
 public:
  basic_trip_finder(const dependent<In, traced_graph>& g, trip_shapes& of) : g_(g), of_(of) {}

  void run() {
    for (const ref<impl>& t : g_.nodes())
      if (is<op::call>(*t)) note(function::of(*t).trip);
    if (of_.trips.empty() || find(true) || find(false)) return;
    of_ = {};
  }

 private:
  using function = basic_function<In>;

  void note(std::int64_t trip) {
    for (std::int64_t known : of_.trips)
      if (known == trip) return;
    if (trip >= 0) of_.trips.push_back(trip);
  }
  extent symbol_of(std::int64_t n) const {
    for (int j = 0; j < of_.trips.size(); ++j)
      if (of_.trips[j] == n) return symbol_extent(j);
    return n;
  }
  shape with_symbols(shape s) const {
    for (int i = 0; i < s.rank; ++i) s[i] = symbol_of(s[i]);
    return s;
  }

  /// everywhere: any size of a leaf may be one; else only sizes along which a loop takes slices.
  bool find(bool everywhere) {
    owned_graph g;
    for (int j = 0; j < of_.trips.size(); ++j) g.sizes.variable(j, 0);
    everywhere_ = everywhere;
    of_.shapes.clear();
    for (const impl* leaf : g_.leaves()) {
      const shape s = leaf->dims_shape();
      of_.shapes.push_back(everywhere ? with_symbols(s) : s);
    }
    if (!everywhere) find_slices();
    try {
      for (const ref<impl>& t : g_.nodes())
        if (!add(g.sizes, *t)) return false;
    } catch (const std::exception&) {  // an error that does not come from the present numbers
      return false;
    }
    of_.symbols.clear();
    for (int i = 0; i < g.sizes.symbol_count; ++i) {
      of_.symbols.push_back(g.sizes.symbols[i]);
      if (i < of_.trips.size()) of_.symbols[i].a = g_.leaves().size() + i;
    }
    return g.sizes.equality_count == 0 && !g.sizes.refused.failed();
  }
  void find_slices() {
    for (const ref<impl>& t : g_.nodes()) {
      if (!is<op::call>(*t)) continue;
      const auto& f = function::of(*t);
      for (int k = 0; k < t->arity && f.trip >= 0; ++k)
        if (f.sliced[k] && !t->in[k]->is_pending())
          of_.shapes[t->in[k]->index][0] = symbol_of(f.trip);
    }
  }

  const shape& input(const impl& t, int k) const {
    const impl& in = *t.in[k];
    return of_.shapes[in.is_pending() ? g_.leaves().size() + in.index : in.index];
  }
  static bool known(const shape& s, int from = 0) {
    for (int i = from; i < s.rank; ++i)
      if (!is_known(s[i])) return false;
    return true;
  }

  bool add(size_table& sizes, const impl& t) {
    shape s = t.dims_shape();
    if (is<op::call>(t)) {
      if (!takes(t)) return false;
    } else if (is<op::output>(t) && is<op::call>(*t.in[0])) {
      const auto& f = function::of(*t.in[0]);
      if (f.is_long(f.results[t.template attributes<op::output>().number]))
        s[0] = symbol_of(f.trip);
    } else if (t.op->shape_of) {
      s = by_rule(sizes, t);
    } else if (t.arity > 0) {
      const shape& from = input(t, 0);
      if (is<op::detach>(t) || is<op::result>(t) || is<op::custom_gradient>(t)) s = from;
      else if (!known(from)) return false;
    }
    of_.shapes.push_back(s);
    return same(sizes, s, t);
  }
  bool takes(const impl& call) const {
    const auto& f = function::of(call);
    for (int k = 0; k < call.arity; ++k) {
      const shape& s = input(call, k);
      const bool slices = f.trip >= 0 && f.sliced[k];
      if (!known(s, slices ? 1 : 0) || (slices && s[0] != symbol_of(f.trip))) return false;
    }
    return true;
  }
  // Sizes in an op's attributes, other than its inputs' sizes, are symbols in the same way.
  shape by_rule(size_table& sizes, const impl& t) const {
    node n{t};
    if (everywhere_) n.set_shape(with_symbols(n.dims_shape()));
    shape_rule rule{{&sizes, {t.op->name, t.at}}, n, {}, t.arity};
    list<shape> others;
    for (int k = 0; k < t.arity; ++k) {
      if (k < 3) rule.in[k] = input(t, k);
      else others.push_back(input(t, k));
    }
    rule.others = others.data();
    return t.op->shape_of(rule);
  }
  bool same(const size_table& sizes, const shape& s, const impl& t) {
    if (known(s)) return s == t.dims_shape();
    if (values_.size() != sizes.symbol_count) {
      program p;
      p.symbols = sizes.symbols;
      p.count.symbols = sizes.symbol_count;
      list<shape> slots;
      for (std::int64_t trip : of_.trips) {
        shape one;
        one.push(trip);
        slots.push_back(one);
      }
      values_ = evaluate_symbols<In>(p, slots);
    }
    return value_at<In>(values_, s) == t.dims_shape();
  }

  const dependent<In, traced_graph>& g_;
  trip_shapes& of_;
  bool everywhere_ = true;
  list<std::int64_t> values_;
};

}  // namespace xla::detail
