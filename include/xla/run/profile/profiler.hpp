// SPDX-License-Identifier: Apache-2.0
#pragma once

// Times every step while a profile is active, by running the steps of plans itself. Otherwise plans
// time nothing.

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/fork.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/thread.hpp"
#include "xla/base/text.hpp"
#include "xla/kernel/threads/pool.hpp"
#include "xla/run/profile/data.hpp"
#include "xla/run/profile/describe.hpp"
#include "xla/run/profile/events.hpp"
#include "xla/run/state/metrics.hpp"
#include "xla/run/state/scope_watch.hpp"

namespace xla::detail {

/// The times of one call: a mark before each step and after the last one, and the intervals in
/// which each thread worked.
struct timed_call {
  struct span {
    sys::thread_id thread;
    std::int64_t from, to;
  };
  /// All runs of a loop's body in the call.
  struct body {
    std::uint64_t id = 0;  ///< the loop's runner
    std::int64_t runs = 0;
    std::vector<std::int64_t> ns;  ///< per step
  };
  sys::thread_id thread;  ///< that ran the plan
  std::vector<std::int64_t> marks;
  std::vector<span> spans;
  std::vector<body> bodies;
  std::int64_t total() const { return marks.back() - marks.front(); }

  template <class = void>
  const body* find_body(std::uint64_t id) const {
    for (const body& b : bodies)
      if (b.id == id) return &b;
    return nullptr;
  }
};

/// Collects the spans that threads report for the loops of one call.
template <class>
class basic_span_sink : public kernel::detail::loop_watch {
 public:
  explicit basic_span_sink(std::vector<timed_call::span>& to)
      : loop_watch{&take}, to_(to), outer_(std::exchange(kernel::detail::watched_loops, this)) {}
  ~basic_span_sink() { kernel::detail::watched_loops = outer_; }
  basic_span_sink(const basic_span_sink&) = delete;
  basic_span_sink& operator=(const basic_span_sink&) = delete;

 private:
  [[gnu::cold]] static void take(loop_watch& self, time from, time to) noexcept {
    auto& sink = static_cast<basic_span_sink&>(self);
    auto ns = [](time t) {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
    };
    const std::lock_guard hold(sink.lock_);
    if (sink.to_.size() < sink.to_.capacity())  // nothing may throw here
      sink.to_.push_back({sys::this_thread_id(), ns(from), ns(to)});
  }
  sys::mutex lock_;
  std::vector<timed_call::span>& to_;
  loop_watch* outer_;
};
using span_sink = basic_span_sink<void>;

/// The backends that have run since the counts in `before`, and how often.
template <class = void>
[[gnu::cold]] std::vector<ProfileBackend> backends_since(
    const std::vector<ProfileBackend>& before) {
  constexpr std::string_view prefix = "Backend::";
  std::vector<ProfileBackend> all;
  for (const std::string& counter : counter_names()) {
    if (!counter.starts_with(prefix)) continue;
    ProfileBackend e{counter.substr(prefix.size()), counter_value(counter).value_or(0)};
    for (const ProfileBackend& b : before)
      if (b.name == e.name) e.runs -= b.runs;
    if (e.runs > 0) all.push_back(std::move(e));
  }
  return all;
}

/// Metrics that say how backends spent their time.
inline constexpr std::string_view backend_metrics[] = {
    "ExecuteTime",  "CompileTime",          "Pjrt::CompileTime", "Pjrt::LoadTime",
    "OutboundData", "TransferToDeviceTime", "InboundData",       "TransferFromDeviceTime"};
inline constexpr std::string_view backend_counters[] = {
    "CachedCompile", "UncachedCompile", "PersistentCacheHit", "PersistentCacheMiss"};

/// Their growth since `before`.
template <class = void>
[[gnu::cold]] std::vector<ProfileMetric> metrics_since(const std::vector<ProfileMetric>& before) {
  std::vector<ProfileMetric> all;
  const auto add = [&](ProfileMetric m) {
    for (const ProfileMetric& b : before)
      if (b.name == m.name) m.samples -= b.samples, m.total -= b.total;
    if (m.samples > 0) all.push_back(std::move(m));
  };
  for (const std::string_view name : backend_metrics)
    if (const auto m = metric_data(name))
      add({std::string(name), name.ends_with("Data") ? "bytes" : "ns", m->total_samples,
           m->accumulator});
  for (const std::string_view name : backend_counters)
    add({std::string(name), "", counter_value(name).value_or(0), 0});
  return all;
}

/// The recording of one profile.
struct profile_session {
  /// The limit on recorded calls per function, and how many first calls are left out if there are
  /// more.
  int warmup = 0, calls = 1;
  struct function {
    std::uint64_t id = 0;
    ProfileFunction about;
    list<std::uint64_t> bodies;  ///< of the loops among its steps
    std::vector<timed_call> recorded;
  };
  std::vector<function> functions;
  std::vector<ProfileBackend> backends_before;  ///< and how often they had run at that time
  std::vector<ProfileMetric> metrics_before;
  std::int64_t began = 0;
  std::vector<noticed_event> events;
  std::int64_t dropped_events = 0;

  template <class = void>
  bool wants(const function& f) const {
    return static_cast<int>(f.recorded.size()) < warmup + calls;
  }
  template <class = void>
  function* find(std::uint64_t id) {
    for (function& f : functions)
      if (f.id == id) return &f;
    return nullptr;
  }
};

/// Computes the numbers of a profile from recorded times.
template <class>
class basic_profile_summary {
 public:
  basic_profile_summary(profile_session::function& f, int warmup)
      : out_(std::move(f.about)), bodies_(f.bodies), calls_(f.recorded) {
    const auto few = std::min(static_cast<std::size_t>(warmup), calls_.size() - 1);
    calls_.erase(calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(few));
  }

  [[gnu::cold]] ProfileFunction run() {
    std::vector<std::int64_t> totals;
    for (const timed_call& c : calls_) totals.push_back(c.total());
    const std::int64_t middle = median(totals);
    std::size_t at = 0;
    while (calls_[at].total() != middle) ++at;
    const timed_call& shown = calls_[at];
    out_.calls = static_cast<int>(calls_.size());
    out_.seconds = 1e-9 * static_cast<double>(shown.total());
    for (std::size_t i = 0; i < out_.steps.size(); ++i) {
      out_.steps[i].start = since(shown, shown.marks[i]);
      out_.steps[i].seconds = out_.steps[i].once ? 0 : of_step(i);
    }
    int loop = 0;
    add_bodies(out_.steps, shown, loop);
    threads_ = {shown.thread};
    for (const timed_call::span& s : shown.spans) add(shown, s);
    out_.threads = static_cast<int>(threads_.size());
    return std::move(out_);
  }

 private:
  static double since(const timed_call& c, std::int64_t t) {
    return 1e-9 * static_cast<double>(t - c.marks.front());
  }
  [[gnu::cold]] static std::int64_t median(std::vector<std::int64_t>& ns) {
    std::sort(ns.begin(), ns.end());
    return ns[ns.size() / 2];
  }
  [[gnu::cold]] double of_step(std::size_t i) const {
    std::vector<std::int64_t> ns;
    for (const timed_call& c : calls_) ns.push_back(c.marks[i + 1] - c.marks[i]);
    return 1e-9 * static_cast<double>(median(ns));
  }
  // Bodies come in the order in which the loops were described.
  [[gnu::cold]] void add_bodies(std::vector<ProfileStep>& steps, const timed_call& shown,
                                int& loop) const {
    for (ProfileStep& s : steps) {
      if (s.body.empty()) continue;
      const std::uint64_t id = bodies_[loop++];
      const timed_call::body* const b = shown.find_body(id);
      s.runs = b ? b->runs : 0;
      for (std::size_t i = 0; i < s.body.size(); ++i)
        s.body[i].seconds = s.body[i].once ? 0 : of_body(id, i);
      add_bodies(s.body, shown, loop);
      s.flops = 0;
      for (ProfileStep& of : s.body) {
        if (of.once) continue;
        const auto runs = static_cast<double>(s.runs);
        if (of.body.empty()) of.flops *= runs;
        of.bytes_read *= runs;
        of.bytes_written *= runs;
        s.flops += of.flops;
      }
    }
  }
  [[gnu::cold]] double of_body(std::uint64_t id, std::size_t step) const {
    std::vector<std::int64_t> ns;
    for (const timed_call& c : calls_) {
      const timed_call::body* const b = c.find_body(id);
      ns.push_back(b ? b->ns[step] : 0);
    }
    return 1e-9 * static_cast<double>(median(ns));
  }
  [[gnu::cold]] void add(const timed_call& c, const timed_call::span& s) {
    const auto after = std::upper_bound(c.marks.begin(), c.marks.end(), s.from);
    if (after == c.marks.begin() || after == c.marks.end()) return;
    auto t = std::find(threads_.begin(), threads_.end(), s.thread);
    if (t == threads_.end()) t = threads_.insert(t, s.thread);
    out_.steps[static_cast<std::size_t>(after - c.marks.begin()) - 1].spans.push_back(
        {static_cast<int>(t - threads_.begin()), since(c, s.from),
         1e-9 * static_cast<double>(s.to - s.from)});
  }

  ProfileFunction out_;
  const list<std::uint64_t>& bodies_;
  std::vector<timed_call>& calls_;
  std::vector<sys::thread_id> threads_;
};

/// Runs plans while a profile is active, times every step, and observes scopes.
template <class>
class basic_profiler : plan_watch, scope_watch {
 public:
  static basic_profiler& instance() { return made_once(the_process.profiler); }
  static constexpr fork_order order = fork_order::memory_caches;  // take() locks the metrics
  void before_fork() { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  basic_profiler() : plan_watch{&run, &is_new, &introduce}, scope_watch{&left, &ran} {}
  static bool on() { return watched_plans() != nullptr; }

  [[gnu::cold]] void start(profile_session& s) {
    s.backends_before = backends_since({});
    s.metrics_before = metrics_since({});
    const std::lock_guard hold(lock_);
    sessions_.push_back(&s);
    s.began = now_ns();
    the_process.watch.store(this, std::memory_order_release);
    the_process.scopes.store(this, std::memory_order_release);
  }
  [[gnu::cold]] void stop(profile_session& s) {
    const std::lock_guard hold(lock_);
    std::erase(sessions_, &s);
    if (!sessions_.empty()) return;
    the_process.watch.store(nullptr, std::memory_order_release);
    the_process.scopes.store(nullptr, std::memory_order_release);
  }
  /// The records of a session, to be called once; functions that never ran are left out.
  [[gnu::cold]] Profile take(profile_session& s, const MachinePeaks& peaks) {
    const std::lock_guard hold(lock_);
    Profile p;
    p.peaks = peaks;
    p.backends = backends_since(s.backends_before);
    if (!p.backends.empty()) p.metrics = metrics_since(s.metrics_before);
    for (noticed_event& e : s.events)
      if (const auto* f = e.plan == 0 ? nullptr : s.find(e.plan))
        e.name = join({f->about.name, " ", f->about.signature});
    for (profile_session::function& f : s.functions)
      if (!f.recorded.empty())
        p.functions.push_back(basic_profile_summary<void>(f, s.warmup).run());
    p.events = place_events(std::move(s.events), s.began);
    p.dropped_events = p.events.empty() ? 0 : s.dropped_events;
    return p;
  }

 private:
  [[gnu::cold]] static void run(plan_watch& self, const planned& e, const frame& f,
                                const rng_state* random) {
    // Runs during a timed call are those of loop bodies.
    if (timed_call* const outer = this_thread.timed) return run_body(*outer, e, f, random);
    auto& p = static_cast<basic_profiler&>(self);
    const std::int64_t start = now_ns();
    run_timed(p, e, f, random);
    p.notice("", "plan", e.id(), -1, start, now_ns());
  }
  [[gnu::cold]] static void run_timed(basic_profiler& p, const planned& e, const frame& f,
                                      const rng_state* random) {
    if (!p.wants(e.id())) return e.run_all(f, random);
    const int steps = e.get_plan().steps.size();  // limits the number of marks
    timed_call c;
    c.thread = sys::this_thread_id();
    c.marks.reserve(static_cast<std::size_t>(steps) + 1);
    c.spans.reserve(static_cast<std::size_t>(8 * steps * num_threads() + 64));
    {
      const span_sink sink(c.spans);
      const timing now(c);
      c.marks.push_back(now_ns());
      for (int i = 0; i < steps; i = e.after(i)) {
        if (!e.is_once(i)) e.run_one(i, f, random);
        c.marks.push_back(now_ns());
      }
    }
    p.keep(e.id(), std::move(c));
  }

  class timing {
   public:
    explicit timing(timed_call& c) { this_thread.timed = &c; }
    ~timing() { this_thread.timed = nullptr; }
    timing(const timing&) = delete;
  };
  [[gnu::cold]] static void run_body(timed_call& call, const planned& e, const frame& f,
                                     const rng_state* random) {
    const int steps = e.get_plan().steps.size();
    if (!call.find_body(e.id())) {
      call.bodies.emplace_back().id = e.id();
      call.bodies.back().ns.resize(static_cast<std::size_t>(steps));
    }
    const auto at = call.find_body(e.id()) - call.bodies.data();  // nested loops may add others
    ++call.bodies[static_cast<std::size_t>(at)].runs;
    std::size_t unit = 0;
    for (int i = 0; i < steps; i = e.after(i), ++unit) {
      if (e.is_once(i)) continue;
      const std::int64_t start = now_ns();
      e.run_one(i, f, random);
      call.bodies[static_cast<std::size_t>(at)].ns[unit] += now_ns() - start;
    }
  }

  [[gnu::cold]] static bool is_new(plan_watch& self, const planned& e) {
    auto& p = static_cast<basic_profiler&>(self);
    const std::lock_guard hold(p.lock_);
    for (profile_session* s : p.sessions_)
      if (!s->find(e.id())) return true;
    return false;
  }
  [[gnu::cold]] static void introduce(plan_watch& self, const planned& e, const std::string& name,
                                      const list<std::string>& slots) {
    auto& p = static_cast<basic_profiler&>(self);
    const std::lock_guard hold(p.lock_);
    for (profile_session* s : p.sessions_) {
      if (s->find(e.id())) continue;
      s->functions.emplace_back();
      s->functions.back().id = e.id();
      plan_description description(e, slots);
      s->functions.back().about = description.run();
      s->functions.back().bodies = description.bodies();
      s->functions.back().about.name = name;
    }
  }
  [[gnu::cold]] static void left(scope_watch& self, std::string_view name, std::int64_t step,
                                 std::int64_t from, std::int64_t to) noexcept {
    static_cast<basic_profiler&>(self).notice(name, "scope", 0, step, from, to);
  }
  [[gnu::cold]] static void ran(scope_watch& self, const impl& t, std::int64_t from) noexcept {
    const std::int64_t to = now_ns();
    const text name = text() << t.op->name << ' ' << t.dims_shape();
    static_cast<basic_profiler&>(self).notice(name.view(), "op", 0, -1, from, to);
  }
  /// Adds an event to the recordings that were active when it began; without memory it is dropped.
  [[gnu::cold]] void notice(std::string_view name, std::string_view kind, std::uint64_t plan,
                            std::int64_t step, std::int64_t from, std::int64_t to) noexcept {
    const std::lock_guard hold(lock_);
    for (profile_session* s : sessions_) {
      if (from < s->began) continue;
      try {
        if (s->events.size() >= most_events) throw std::bad_alloc();
        s->events.push_back({std::string(name), kind, plan, step, sys::this_thread_id(), from, to});
      } catch (const std::bad_alloc&) {
        ++s->dropped_events;
      }
    }
  }
  [[gnu::cold]] bool wants(std::uint64_t id) {
    const std::lock_guard hold(lock_);
    bool some = false;
    for (profile_session* s : sessions_)
      if (auto* f = s->find(id)) some |= s->wants(*f);
    return some;
  }
  [[gnu::cold]] void keep(std::uint64_t id, timed_call c) {
    const std::lock_guard hold(lock_);
    for (profile_session* s : sessions_)
      if (auto* f = s->find(id))
        if (s->wants(*f)) f->recorded.push_back(c);
  }

  sys::mutex lock_;
  std::vector<profile_session*> sessions_;
};
using profiler = basic_profiler<void>;

}  // namespace xla::detail
