// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines compare_runs(): records the tensor of every op of a run, and compares those of two runs.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/text.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/compare_runs.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/segment_recorder.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla::detail {

/// The tensors of a function's ops and results, with their elements.
template <class In>
struct basic_noted_run {
  list<ref<impl>> ops, results;

  [[gnu::cold]] basic_noted_run(const RunAs& as, const compared_function& f) {
    const on_backend there(as.backend);
    const eager_mode_guard mode = as.mode == RunMode::fused
                                      ? eager_mode_guard(Eager::fused)
                                      : eager_mode_guard(as.mode == RunMode::eager);
    {
      const typename basic_segment_recorder<In>::notes noting(ops);
      f.call(f.f, results);
      if (as.mode != RunMode::eager) sync<In>(true);
    }
    // An unused op, or one whose value backward() computes again, has no elements.
    std::size_t kept = 0;
    for (ref<impl>& t : ops)
      if (!t->is_pending() && !t->failed && t->data) {
        read_elements<In>(*t);
        ops[static_cast<int>(kept++)] = std::move(t);
      }
    while (static_cast<std::size_t>(ops.size()) > kept) ops.pop_back();
    for (ref<impl>& t : results) read_elements<In>(*t);
  }

 private:
  class on_backend {
   public:
    [[gnu::cold]] explicit on_backend(std::string_view name) : before_(chosen_backend<In>()) {
      backend_list<In>::choose(backend_list<In>::named(name));
    }
    [[gnu::cold]] ~on_backend() { backend_list<In>::choose(before_); }
    on_backend(const on_backend&) = delete;
    on_backend& operator=(const on_backend&) = delete;

   private:
    const backend* before_;
  };
};

/// Compares the ops of two runs in order, then their results, and describes the first difference.
template <class In>
class basic_run_comparison {
 public:
  basic_run_comparison(const basic_noted_run<In>& a, const basic_noted_run<In>& b,
                       const CompareOptions& options)
      : a_(a), b_(b), options_(options) {}

  [[gnu::cold]] RunComparison run() {
    int i = 0, j = 0;
    while (i < a_.ops.size() && j < b_.ops.size()) {
      const auto [skip_a, skip_b] = next_pair(i, j);
      found_.unmatched += skip_a + skip_b;
      i += skip_a;
      j += skip_b;
      if (i == a_.ops.size() || j == b_.ops.size()) break;
      ++found_.ops;
      const impl& t = *a_.ops[i++];
      if (differs(t, *b_.ops[j++], t.op->name)) return std::move(found_);
    }
    found_.unmatched += a_.ops.size() - i + b_.ops.size() - j;
    for (int k = 0; k < a_.results.size() && k < b_.results.size(); ++k) {
      const impl &x = *a_.results[k], &y = *b_.results[k];
      const std::string name = "result " + std::to_string(k);
      if (x.type != y.type || !same_dims(x, y))
        throw runtime_error(join({"compare_runs: ", name, " is ", describe(x), " of one run and ",
                                  describe(y), " of the other; return the same from both"}));
      if (differs(x, y, name)) break;
    }
    return std::move(found_);
  }

 private:
  static bool alike(const impl& x, const impl& y) {
    return x.op->id == y.op->id && x.type == y.type && same_dims(x, y);
  }
  /// How many ops of each run come before the next matching pair: as few as possible. If none
  /// match, all of them.
  [[gnu::cold]] std::pair<int, int> next_pair(int i, int j) const {
    constexpr int most = 256;
    const int m = a_.ops.size() - i, n = b_.ops.size() - j;
    for (int d = 0; d <= std::min(m + n - 2, most); ++d)
      for (int k = std::max(0, d - n + 1); k <= std::min(d, m - 1); ++k)
        if (alike(*a_.ops[i + k], *b_.ops[j + d - k])) return {k, d - k};
    return {m, n};
  }
  [[gnu::cold]] static std::string describe(const impl& t) {
    return std::string((text() << name_of(t.type) << ' ' << t.dims_shape()).view());
  }

  [[gnu::cold]] bool differs(const impl& x, const impl& y, std::string_view name) {
    RunDifference d;
    d.elements = count(x.dims_shape());
    switch (x.type) {
      case dtype::float32: compare<float>(x, y, d); break;
      case dtype::float64: compare<double>(x, y, d); break;
      case dtype::bfloat16: compare<bfloat16>(x, y, d); break;
      case dtype::int32: compare<std::int32_t>(x, y, d); break;
      case dtype::int64: compare<std::int64_t>(x, y, d); break;
      case dtype::uint8: compare<std::uint8_t>(x, y, d); break;
      case dtype::boolean: compare<bool>(x, y, d); break;
    }
    if (d.different == 0) return false;
    d.op = std::string(name);
    d.number = found_.ops;
    d.shape = describe(x);
    for (int k = 0; k < x.arity; ++k) d.inputs.push_back(describe(*x.in[k]));
    const text at = text() << x.at;  // " (model.cpp:42)"
    if (at.length > 3) d.source = at.view().substr(2, static_cast<std::size_t>(at.length) - 3);
    found_.first = std::move(d);
    return true;
  }
  template <class T>
  [[gnu::cold]] void compare(const impl& x, const impl& y, RunDifference& d) const {
    const auto* const p = static_cast<const T*>(elements_of(x));
    const auto* const q = static_cast<const T*>(elements_of(y));
    for (std::int64_t i = 0; i < d.elements; ++i) {
      if (p[i] == q[i]) continue;
      const auto a = static_cast<double>(p[i]), b = static_cast<double>(q[i]);
      if (std::isnan(a) && std::isnan(b)) continue;
      const double by = std::abs(a - b);
      if (by <= options_.atol + options_.rtol * std::abs(b) && std::isfinite(b)) continue;
      ++d.different;
      if (!(by <= d.largest)) d.largest = std::isfinite(by) && !std::isnan(d.largest) ? by : NAN;
    }
  }

  const basic_noted_run<In>&a_, &b_;
  const CompareOptions& options_;
  RunComparison found_;
};

template <class>
[[gnu::cold]] RunComparison compare_runs(const RunAs& a, const compared_function& f, const RunAs& b,
                                         const compared_function& g,
                                         const CompareOptions& options) {
  const rng_state numbers = get_rng_state<void>();
  const basic_noted_run<void> first(a, f);
  set_rng_state<void>(numbers);
  const basic_noted_run<void> second(b, g);
  return basic_run_comparison<void>(first, second, options).run();
}

}  // namespace xla::detail
