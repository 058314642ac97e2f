// SPDX-License-Identifier: Apache-2.0
#pragma once

// Public functions that read metrics and counters, by PyTorch/XLA's names. metric_report.hpp
// defines them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/instance.hpp"
#include "xla/run/state/metric_values.hpp"

namespace xla {

/// Every metric and counter that was touched since the last clear, as text in the form that
/// PyTorch/XLA prints: `Metric: X` with its percentiles, then `Counter: X`.
template <class In = void>
std::string metrics_report();

/// The report of the named counters and metrics, and of every `fallback::` counter. Without names:
/// the ones that tell whether graphs are reused.
template <class In = void>
std::string short_metrics_report(std::vector<std::string> counters = {},
                                 std::vector<std::string> metrics = {});

/// The names of the counters that were touched since the last clear, sorted.
template <class In = void>
std::vector<std::string> counter_names();

/// The value of a counter; nothing when it was not touched since the last clear.
template <class In = void>
std::optional<std::int64_t> counter_value(std::string_view name);

/// The names of the metrics that have a sample since the last clear, sorted.
template <class In = void>
std::vector<std::string> metric_names();

/// `auto [total_samples, accumulator, samples] = *metric_data("CompileTime")`; nothing when the
/// metric has no sample since the last clear. Times are in nanoseconds.
template <class In = void>
std::optional<metric_values> metric_data(std::string_view name);

/// Sets every counter to zero.
template <class In = void>
void clear_counters();

/// Forgets the samples of every metric.
template <class In = void>
void clear_metrics();

/// Clears the metrics and the counters.
template <class In = void>
void clear_all();

/// The names of the counters of operations that ran outside the graph (`fallback::item`), sorted.
template <class In = void>
std::vector<std::string> executed_fallback_ops();

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/state/metric_report.hpp"
#endif
