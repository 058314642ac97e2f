// SPDX-License-Identifier: Apache-2.0
#pragma once

// Events of a recording beyond the steps of plans: scopes of xla::Trace and what ran in them.
// profiler.hpp collects it; text.hpp, json.hpp and the page show it.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/system/thread.hpp"
#include "xla/run/profile/data.hpp"

namespace xla::detail {

/// An event before it is known which others are around it.
struct noticed_event {
  std::string name;
  std::string_view kind;   ///< of ProfileEvent
  std::uint64_t plan = 0;  ///< the executable that ran; 0: none
  std::int64_t step = -1;  ///< of a StepTrace
  sys::thread_id thread;
  std::int64_t from = 0, to = 0;  ///< of now_ns()
};

inline constexpr std::size_t most_events = 1 << 16;  ///< the events of one recording

/// Sorts events by their start, and finds each one's enclosing event. If no scope is among them,
/// none are left.
template <class = void>
[[gnu::cold]] std::vector<ProfileEvent> place_events(std::vector<noticed_event> all,
                                                     std::int64_t origin) {
  std::vector<ProfileEvent> out;
  if (std::none_of(all.begin(), all.end(), [](const auto& e) { return e.kind == "scope"; }))
    return out;
  std::stable_sort(all.begin(), all.end(), [](const noticed_event& a, const noticed_event& b) {
    return a.from == b.from ? a.to > b.to : a.from < b.from;
  });
  struct open_events {
    sys::thread_id thread;
    std::vector<int> stack;
  };
  std::vector<open_events> threads;
  for (noticed_event& e : all) {
    auto t = std::find_if(threads.begin(), threads.end(),
                          [&](const open_events& o) { return o.thread == e.thread; });
    if (t == threads.end()) t = threads.insert(t, {e.thread, {}});
    std::vector<int>& stack = t->stack;
    while (!stack.empty() && all[static_cast<std::size_t>(stack.back())].to < e.to)
      stack.pop_back();
    ProfileEvent& p = out.emplace_back();
    p.name = e.name;  // e stays valid for events within it
    p.kind = e.kind;
    p.step = e.step;
    p.thread = static_cast<int>(t - threads.begin());
    p.start = 1e-9 * static_cast<double>(e.from - origin);
    p.seconds = 1e-9 * static_cast<double>(e.to - e.from);
    p.parent = stack.empty() ? -1 : stack.back();
    stack.push_back(static_cast<int>(out.size()) - 1);
  }
  return out;
}

/// Events of one name in one scope, combined.
struct event_group {
  std::string name;
  std::string kind;
  int parent = -1;  ///< the enclosing group
  std::int64_t times = 0;
  double seconds = 0;
};

/// Groups in the order of their first start.
template <class = void>
[[gnu::cold]] std::vector<event_group> group_events(const std::vector<ProfileEvent>& events) {
  std::vector<event_group> groups;
  std::vector<int> group_of;
  for (const ProfileEvent& e : events) {
    const int parent = e.parent < 0 ? -1 : group_of[static_cast<std::size_t>(e.parent)];
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const event_group& g) {
      return g.parent == parent && g.kind == e.kind && g.name == e.name;
    });
    const auto index = at - groups.begin();
    if (at == groups.end()) groups.push_back({e.name, e.kind, parent});
    event_group& g = groups[static_cast<std::size_t>(index)];
    ++g.times;
    g.seconds += e.seconds;
    group_of.push_back(static_cast<int>(index));
  }
  return groups;
}

}  // namespace xla::detail
