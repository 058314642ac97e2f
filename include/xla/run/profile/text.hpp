// SPDX-License-Identifier: Apache-2.0
#pragma once

// A profile as a table in plain text. The method table(), and files that are neither .html nor
// .json, are made by it.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/text.hpp"
#include "xla/run/profile/data.hpp"
#include "xla/run/profile/events.hpp"
#include "xla/run/state/metric_report.hpp"

namespace xla {
namespace detail {

/// Three digits and a unit: "12.3 us", "4.56 G".
template <class = void>
[[gnu::cold]] std::string with_unit(double x, std::initializer_list<const char*> units,
                                    double step) {
  std::size_t u = 0;
  for (; u + 1 < units.size() && x >= 0.9995 * step; ++u) x /= step;
  char buffer[40];
  std::snprintf(buffer, sizeof buffer,
                x < 9.995   ? "%.2f %s"
                : x < 99.95 ? "%.1f %s"
                            : "%.0f %s",
                x, units.begin()[u]);
  return buffer;
}
template <class = void>
[[gnu::cold]] std::string print_seconds(double s) {
  return with_unit(s * 1e9, {"ns", "us", "ms", "s"}, 1000);
}
template <class = void>
[[gnu::cold]] std::string print_size(double bytes) {
  return with_unit(bytes, {"B", "KB", "MB", "GB"}, 1024);
}
template <class = void>
[[gnu::cold]] std::string print_rate(double per_second, const char* unit) {
  const std::string s = with_unit(per_second, {"", "K", "M", "G", "T"}, 1000);
  return s + unit + "/s";
}
template <class = void>
[[gnu::cold]] std::string print_percent(double share) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f%%", 100 * share);
  return buffer;
}

/// A text table whose columns are as wide as their widest cell. The columns from a given one on are
/// aligned left, the others right.
template <class>
class basic_text_table {
 public:
  basic_text_table(int columns, int left, int lefts = 1) : left_(left), lefts_(lefts) {
    widths_.assign(static_cast<std::size_t>(columns), 0);
  }
  /// The next cell, from left to right, row by row; the first row is the header.
  [[gnu::cold]] void add(std::string cell) {
    std::size_t& width = widths_[cells_.size() % widths_.size()];
    width = std::max(width, cell.size());
    cells_.push_back(std::move(cell));
  }
  [[gnu::cold]] std::string str() const {
    std::string out;
    const std::size_t columns = widths_.size();
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const std::size_t c = i % columns, space = widths_[c] - cells_[i].size();
      const int after = static_cast<int>(c) - left_;
      const bool left = after >= 0 && after < lefts_;
      if (c > 0) out += "  ";
      if (!left) out.append(space, ' ');
      out += cells_[i];
      if (left && c + 1 < columns) out.append(space, ' ');
      if (c + 1 == columns) out += '\n';
      if (i + 1 != columns) continue;
      for (std::size_t k = 0; k < columns; ++k) {
        if (k > 0) out += "  ";
        out.append(widths_[k], '-');
      }
      out += '\n';
    }
    return out;
  }

 private:
  int left_, lefts_;
  std::vector<std::size_t> widths_;
  std::vector<std::string> cells_;
};
using text_table = basic_text_table<void>;

/// Step numbers, sorted from the highest value; ties keep their order.
template <class = void>
[[gnu::cold]] std::vector<int> sorted_steps(const ProfileFunction& f, ProfileSort by) {
  std::vector<int> all;
  for (std::size_t i = 0; i < f.steps.size(); ++i) all.push_back(static_cast<int>(i));
  auto key = [&](int i) {
    const ProfileStep& s = f.steps[static_cast<std::size_t>(i)];
    if (by == ProfileSort::order) return 0.0;
    if (by == ProfileSort::flops) return s.flops;
    return by == ProfileSort::bytes ? s.bytes_read + s.bytes_written : s.seconds;
  };
  std::sort(all.begin(), all.end(), [&](int a, int b) {
    const double x = key(a), y = key(b);
    return x == y ? a < b : x > y;
  });
  return all;
}

template <class = void>
[[gnu::cold]] std::string print_giga(double n) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", 1e-9 * n);
  return buffer;
}
template <class = void>
[[gnu::cold]] int threads_of(const ProfileStep& s) {
  int most = 0;
  for (const ProfileSpan& x : s.spans) most = std::max(most, x.thread);
  int n = 1;  // the thread that ran the function
  for (int t = 1; t <= most; ++t)
    for (const ProfileSpan& x : s.spans)
      if (x.thread == t) {
        ++n;
        break;
      }
  return n;
}

/// One line of the table, and one for each step of a loop; cells without information are empty.
template <class = void>
[[gnu::cold]] void add_cells(text_table& table, const Profile& p, const ProfileStep& s,
                             const std::string& index, double sum, bool modules,
                             std::size_t indent = 0) {
  const double bytes = s.bytes_read + s.bytes_written;
  const bool timed = s.seconds > 0, computes = timed && s.flops > 0;
  std::string name = std::string(indent, ' ') + s.name;
  if (s.runs > 0) ((name += " x ") += std::to_string(s.runs));
  if (!s.source.empty()) (name += " @") += s.source;
  table.add(index);
  table.add(std::move(name));
  if (modules) table.add(s.module);
  table.add(s.once ? "once" : print_seconds(s.seconds));
  table.add(timed ? print_percent(s.seconds / sum) : "");
  table.add(computes ? print_giga(s.flops / s.seconds) : "");
  table.add(computes ? print_percent(p.flop_share(s)) : "");
  table.add(print_size(bytes));
  table.add(timed ? print_giga(bytes / s.seconds) : "");
  table.add(timed ? print_percent(p.byte_share(s)) : "");
  table.add(std::to_string(threads_of(s)));
  for (std::size_t i = 0; i < s.body.size(); ++i)
    add_cells(table, p, s.body[i], index + "." + std::to_string(i), sum, modules, indent + 2);
}

template <class = void>
[[gnu::cold]] std::string profile_table(const Profile& p, const ProfileFunction& f, ProfileSort by,
                                        int limit) {
  double sum = 0, rest = 0;
  bool modules = false;
  for (const ProfileStep& s : f.steps) sum += s.seconds, modules |= !s.module.empty();
  text_table table(modules ? 11 : 10, 1, modules ? 2 : 1);
  for (const char* head : {"#", "step", "module", "time", "share", "GFLOP/s", "of peak", "bytes",
                           "GB/s", "of memory", "threads"})
    if (modules || std::string_view(head) != "module") table.add(head);
  const std::vector<int> all = sorted_steps(f, by);
  const std::size_t shown = limit < 0 ? all.size() : static_cast<std::size_t>(limit);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ProfileStep& s = f.steps[static_cast<std::size_t>(all[i])];
    if (i < shown) add_cells(table, p, s, std::to_string(all[i]), sum, modules);
    else rest += s.seconds;
  }
  std::string out = table.str();
  if (all.size() > shown) {
    out += "and ";
    out += std::to_string(all.size() - shown);
    ((out += " more steps, ") += print_seconds(rest)) += '\n';
  }
  return out;
}

/// "the backend interpreter ran 3 times"
template <class = void>
[[gnu::cold]] std::string backend_text(const ProfileBackend& e) {
  return join(
      {"the backend ", e.name, " ran ", std::to_string(e.runs), e.runs == 1 ? " time" : " times"});
}

/// "  OutboundData: 20 samples, 6.11KB, of a run 312.80B"
template <class = void>
[[gnu::cold]] std::string metric_line(const ProfileMetric& m, std::int64_t runs) {
  const std::string samples = std::to_string(m.samples);
  if (m.unit.empty()) return join({"  ", m.name, ": ", samples, "\n"});
  const metric_unit unit = m.unit == "bytes" ? metric_unit::bytes : metric_unit::time;
  return join({"  ", m.name, ": ", samples, m.samples == 1 ? " sample, " : " samples, ",
               print_value(unit, m.total), ", of a run ",
               print_value(unit, m.total / static_cast<double>(runs)), "\n"});
}

template <class = void>
[[gnu::cold]] void add_cells(text_table& table, const event_group& g, double whole,
                             std::size_t indent) {
  table.add(std::string(indent, ' ') + g.name);
  table.add(std::to_string(g.times));
  table.add(print_seconds(g.seconds));
  table.add(whole > 0 ? print_percent(g.seconds / whole) : "");
}

/// The groups within a group (-1: the top level), the longest first; those that are not scopes are
/// at most `limit`.
template <class = void>
[[gnu::cold]] void add_events(text_table& table, const std::vector<event_group>& groups, int parent,
                              int limit, std::size_t indent) {
  std::vector<int> inner;
  double sum = 0;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].parent == parent) inner.push_back(static_cast<int>(i)), sum += groups[i].seconds;
  const auto group = [&](int i) -> const event_group& {
    return groups[static_cast<std::size_t>(i)];
  };
  std::stable_sort(inner.begin(), inner.end(),
                   [&](int a, int b) { return group(a).seconds > group(b).seconds; });
  const double whole = parent < 0 ? sum : group(parent).seconds;
  event_group others;
  for (const int i : inner) {
    const event_group& g = group(i);
    if (g.kind != "scope" && limit >= 0 && limit-- == 0) {
      limit = 0;
      others.times += g.times;
      others.seconds += g.seconds;
      continue;
    }
    add_cells(table, g, whole, indent);
    add_events(table, groups, i, limit < 0 ? limit : 10, indent + 2);
  }
  others.name = "others";
  if (others.times > 0) add_cells(table, others, whole, indent);
}

/// The scopes of the program, each with its events.
template <class = void>
[[gnu::cold]] std::string events_table(const Profile& p, int limit) {
  text_table table(4, 0);
  for (const char* head : {"scope", "times", "time", "share"}) table.add(head);
  add_events(table, group_events(p.events), -1, limit < 0 ? limit : 10, 0);
  std::string out = table.str();
  if (p.dropped_events > 0)
    out +=
        join({"without ", std::to_string(p.dropped_events), " events, as there were too many\n"});
  return out;
}

template <class = void>
[[gnu::cold]] std::string profile_text(const Profile& p, ProfileSort by, int limit) {
  std::string out = "Machine, as measured in this program on ";
  (out += std::to_string(p.peaks.threads)) += p.peaks.threads == 1 ? " thread: " : " threads: ";
  (out += print_rate(p.peaks.flops, "FLOP")) += " of float32 multiply-adds, ";
  (out += print_rate(p.peaks.bytes, "B")) += " of memory copied\n";
  for (const ProfileBackend& e : p.backends)
    (out += "without steps to show: ") += backend_text(e) += '\n';
  std::int64_t runs = 0;
  for (const ProfileBackend& e : p.backends) runs += e.runs;
  for (const ProfileMetric& m : p.metrics) out += metric_line(m, runs);
  if (!p.events.empty()) (out += '\n') += events_table(p, limit);
  for (const ProfileFunction& f : p.functions) {
    (((out += '\n') += f.name) += ' ') += f.signature;
    ((out += '\n') += std::to_string(f.steps.size())) += " steps, ";
    out += print_seconds(f.seconds);
    if (f.calls > 1) ((out += " (median of ") += std::to_string(f.calls)) += " calls)";
    (out += ", ") += print_rate(f.seconds > 0 ? f.flops() / f.seconds : 0, "FLOP");
    (out += ", arena ") += print_size(static_cast<double>(f.arena_bytes));
    ((out += " (without reuse ") += print_size(static_cast<double>(f.unshared_bytes))) += ")\n\n";
    out += profile_table(p, f, by, limit);
  }
  return out;
}

}  // namespace detail

template <class V>
std::string BasicProfile<V>::table(ProfileSort sort_by, int row_limit) const {
  return detail::profile_text(*this, sort_by, row_limit);
}
template <class>
std::ostream& operator<<(std::ostream& out, const Profile& p) {
  return out << p.to_string();
}

}  // namespace xla
