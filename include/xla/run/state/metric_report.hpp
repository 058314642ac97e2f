// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prints metrics and counters like PyTorch/XLA's metrics_report(). metrics.hpp declares its
// functions.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/run/state/metric_store.hpp"
#include "xla/run/state/metrics.hpp"

namespace xla {
namespace detail {

template <class... Args>
std::string metric_text(const char* format, Args... args) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

/// Nanoseconds as PyTorch/XLA prints them, from the largest unit that is not zero: `01s024ms`…
template <class In = void>
inline std::string print_time(double ns) {
  if (!(ns > -9e18 && ns < 9e18)) return metric_text("%gns", ns);
  std::string out = ns < 0 ? "-" : "";
  auto rest = std::llround(std::abs(ns));
  constexpr std::array<std::pair<const char*, long long>, 5> parts{{{"%02lldd", 86'400'000'000'000},
                                                                    {"%02lldh", 3'600'000'000'000},
                                                                    {"%02lldm", 60'000'000'000},
                                                                    {"%02llds", 1'000'000'000},
                                                                    {"%03lldms", 1'000'000}}};
  bool started = false;
  for (const auto& [format, size] : parts) {
    if (!started && rest < size) continue;
    out += metric_text(format, rest / size);
    rest %= size;
    started = true;
  }
  return out + metric_text("%03lld.%03lldus", rest / 1000, rest % 1000);
}

/// Bytes with a binary suffix and two decimals: `1.50KB`.
template <class In = void>
inline std::string print_bytes(double bytes) {
  constexpr std::array suffixes{"B", "KB", "MB", "GB", "TB", "PB"};
  std::size_t i = 0;
  for (; i + 1 < suffixes.size() && std::abs(bytes) >= 1024; ++i) bytes /= 1024;
  return metric_text("%.2f%s", bytes, suffixes[i]);
}

template <class In = void>
inline std::string print_value(metric_unit unit, double value) {
  if (unit == metric_unit::time) return print_time(value);
  return unit == metric_unit::bytes ? print_bytes(value) : metric_text("%.2f", value);
}

template <class In = void>
inline std::string print_rates(metric_unit unit, const dependent<In, metric_values>& data) {
  const double seconds = data.samples.back().time - data.samples.front().time;
  if (!(seconds > 0)) return {};
  double total = 0;
  for (const auto& sample : data.samples) total += sample.value;
  const auto count = static_cast<double>(data.samples.size());
  return "  ValueRate: " + print_value(unit, total / seconds) + " / second\n" +
         metric_text("  Rate: %g / second\n", count / seconds);
}

template <class In = void>
inline std::string print_percentiles(metric_unit unit,
                                     dependent<In, std::vector<metric_sample>> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  std::string out;
  for (const int percent : {1, 5, 10, 20, 50, 80, 90, 95, 99}) {
    const auto index = static_cast<std::size_t>(percent) * samples.size() / 100;
    out += metric_text("%s%d%%=", out.empty() ? "" : "; ", percent);
    out += print_value(unit, samples[index].value);
  }
  return "  Percentiles: " + out + "\n";
}

template <class In = void>
inline std::string print_metric(std::string_view name, metric_unit unit,
                                const dependent<In, metric_values>& data) {
  return "Metric: " + std::string{name} +
         metric_text("\n  TotalSamples: %lld\n  Accumulator: ",
                     static_cast<long long>(data.total_samples)) +
         print_value(unit, data.accumulator) + "\n" + print_rates(unit, data) +
         print_percentiles(unit, data.samples);
}

template <class In = void>
inline std::string print_counter(std::string_view name, std::int64_t value) {
  return "Counter: " + std::string{name} +
         metric_text("\n  Value: %lld\n", static_cast<long long>(value));
}

/// The report over the metrics and counters whose name is accepted.
template <class Metrics, class Counters>
std::string print_report(const Metrics& wants_metric, const Counters& wants_counter) {
  dependent<Metrics, metric_store>& store = global_metrics();
  std::string out;
  const std::lock_guard lock{store.mutex};
  for (const auto* m = store.metrics.first; m; m = m->next) {
    if (!wants_metric(m->name)) continue;
    const auto data = m->value.values(0);  // seconds since the epoch would lose digits
    if (data.total_samples != 0) out += print_metric(m->name, m->value.unit(), data);
  }
  for (const auto* c = store.counters.first; c; c = c->next) {
    const auto value = c->value.value();
    if (value != 0 && wants_counter(c->name)) out += print_counter(c->name, value);
  }
  return out;
}

template <class In = void>
inline bool is_fallback(std::string_view name) {
  return name.starts_with("fallback::");
}

}  // namespace detail

template <class In>
std::string metrics_report() {
  const auto all = [](std::string_view) { return true; };
  return detail::print_report(all, all);
}
XLA_INSTANCE(std::string metrics_report<void>());

template <class In>
std::string short_metrics_report(std::vector<std::string> counters,
                                 std::vector<std::string> metrics) {
  if (counters.empty())
    as_dependent<In>(counters) = {"CachedCompile", "MarkStep", "UncachedCompile"};
  if (metrics.empty()) as_dependent<In>(metrics) = {"CompileTime", "ExecuteTime", "TensorToData"};
  const auto among = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return detail::print_report(
      [&](std::string_view name) { return among(metrics, name); },
      [&](std::string_view name) { return among(counters, name) || detail::is_fallback(name); });
}
XLA_INSTANCE(std::string short_metrics_report<void>(std::vector<std::string>,
                                                    std::vector<std::string>));

template <class In>
std::vector<std::string> counter_names() {
  dependent<In, detail::metric_store>& store = detail::global_metrics();
  std::vector<std::string> out;
  const std::lock_guard lock{store.mutex};
  for (const auto* c = store.counters.first; c; c = c->next)
    if (c->value.value() != 0) out.push_back(c->name);
  return out;
}
XLA_INSTANCE(std::vector<std::string> counter_names<void>());

template <class In>
std::optional<std::int64_t> counter_value(std::string_view name) {
  dependent<In, detail::metric_store>& store = detail::global_metrics();
  const std::lock_guard lock{store.mutex};
  const auto* const found = store.counters.find(name);
  if (!found) return std::nullopt;
  const auto value = found->value();
  return value != 0 ? std::optional{value} : std::nullopt;
}
XLA_INSTANCE(std::optional<std::int64_t> counter_value<void>(std::string_view));

template <class In>
std::vector<std::string> metric_names() {
  dependent<In, detail::metric_store>& store = detail::global_metrics();
  std::vector<std::string> out;
  const std::lock_guard lock{store.mutex};
  for (const auto* m = store.metrics.first; m; m = m->next)
    if (m->value.size() != 0) out.push_back(m->name);
  return out;
}
XLA_INSTANCE(std::vector<std::string> metric_names<void>());

template <class In>
std::optional<metric_values> metric_data(std::string_view name) {
  dependent<In, detail::metric_store>& store = detail::global_metrics();
  const std::lock_guard lock{store.mutex};
  const auto* const found = store.metrics.find(name);
  if (!found) return std::nullopt;
  auto data = found->values(detail::steady_origin());
  return data.total_samples != 0 ? std::optional{std::move(data)} : std::nullopt;
}
XLA_INSTANCE(std::optional<metric_values> metric_data<void>(std::string_view));

template <class In>
void clear_counters() {
  dependent<In, detail::metric_store>& store = detail::global_metrics();
  const std::lock_guard lock{store.mutex};
  for (auto* c = store.counters.first; c; c = c->next) c->value.clear();
}
XLA_INSTANCE(void clear_counters<void>());

template <class In>
void clear_metrics() {
  dependent<In, detail::metric_store>& store = detail::global_metrics();
  const std::lock_guard lock{store.mutex};
  for (auto* m = store.metrics.first; m; m = m->next) m->value.clear();
}
XLA_INSTANCE(void clear_metrics<void>());

template <class In>
void clear_all() {
  clear_metrics();
  clear_counters();
}
XLA_INSTANCE(void clear_all<void>());

template <class In>
std::vector<std::string> executed_fallback_ops() {
  auto names = counter_names();
  std::erase_if(names, [](const auto& name) { return !detail::is_fallback(name); });
  return names;
}
XLA_INSTANCE(std::vector<std::string> executed_fallback_ops<void>());

}  // namespace xla
