// SPDX-License-Identifier: Apache-2.0
#pragma once

// The log of XLA_DEBUG: what was compiled, why, and its cost. Compiled functions and recorded
// graphs write to it; metrics for programs are in run/state/metrics.hpp.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/compiler.hpp"
#include "xla/base/dependent.hpp"
#include "xla/base/fork.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/open_file.hpp"
#include "xla/base/text.hpp"
#include "xla/run/plan/memory_of.hpp"
#include "xla/run/state/scope_watch.hpp"

namespace xla::detail {

/// XLA_DEBUG: 0 nothing, 1 an analysis of each new graph or signature, 2 each execution as well.
/// XLA_DEBUG_FILE redirects the output from standard error.
template <class In>
class basic_debug_log {
 public:
  static basic_debug_log& instance() { return made_once(the_process.log); }
  static constexpr fork_order order = fork_order::stores;
  [[gnu::cold]] basic_debug_log() {
    if (const char* l = std::getenv("XLA_DEBUG")) level_ = std::atoi(l);
    if (const char* f = std::getenv("XLA_DEBUG_FILE")) file_ = std::string(f);
  }
  void before_fork() { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  int level() const { return level_; }
  void write(std::string_view s) {
    const std::lock_guard hold(lock_);
    std::FILE* to = file_.empty() ? stderr : sys::open_file(file_, "a");
    if (!to) return;
    std::fwrite(s.data(), 1, s.size(), to);
    if (to != stderr) std::fclose(to);
  }
  /// Like the environment variables; for tests.
  void set(int level, std::string file) {
    const std::lock_guard hold(lock_);
    level_ = level;
    file_ = std::move(file);
  }

 private:
  sys::mutex lock_;
  int level_ = 0;
  std::string file_;
};
using debug_log = basic_debug_log<void>;

template <class In = void>
inline std::string str(const shape& s) {
  return std::string((text() << s).view());
}

/// The log entry about a new graph or signature.
struct analysis {
  std::string cause;  ///< "compile", "user sync", "value read before sync"
  std::string name;
  std::uint64_t hash = 0;
  std::string changed{};  ///< compared with the nearest known signature or graph
  int op = -1;            ///< the first op that differs from that graph; -1: none
};

/// A run of a graph or compiled function.
struct graph_run {
  std::string_view name, cause;
  std::uint64_t hash = 0;
  const list<ref<impl>>* ops = nullptr;  ///< of a graph, in recorded order
};

/// Whether compilations are logged; runs are from level 2 on.
template <class In = void>
bool explains(int level) {
  return dependent<In, debug_log>::instance().level() >= level || watched_runs();
}

[[gnu::cold]] inline std::string hexadecimal(std::uint64_t n) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(n));
  return digits;
}

template <class In = void>
[[gnu::cold]] void report(const analysis& a, const dependent<In, sized_program>& p,
                          const MemoryAnalysis& m) {
  if (run_watch* const w = watched_runs()) w->planned(*w, a);
  dependent<In, debug_log>& log = dependent<In, debug_log>::instance();
  if (log.level() < 1) return;
  std::string out;
  // Not inline, because it is large and used for debugging only.
  auto line = [&](const char* label, std::string_view value) XLA_COLD_LAMBDA {
    ((out += "Compilation Analysis: ") += label) += value;
    out += '\n';
  };
  line("", std::string(58, '='));
  line("Cause: ", a.cause);
  line("Graph Info:", "");
  line("  Name: ", a.name);
  line("  Graph Hash: ", hexadecimal(a.hash));
  line("  Number of Graph Inputs: ", decimal(p.slot_shapes.size()));
  line("  Number of Graph Outputs: ", decimal(p.source.count.results + p.source.count.writes));
  line("  Steps: ", decimal(p.source.count.steps));
  text memory;
  memory << m.arguments << " bytes, outputs " << m.outputs << ", aliased " << m.aliased
         << ", intermediates " << m.arena << " (without reuse " << m.arena + m.reused << ')';
  line("  Memory: arguments ", memory.view());
  line("What changed: ", a.changed);
  log.write(out);
}
XLA_INSTANCE(void report<void>(const analysis&, const sized_program&, const MemoryAnalysis&));

template <class In = void>
[[gnu::cold]] void report_execution(const graph_run& r) {
  if (run_watch* const w = watched_runs()) w->runs(*w, r);
  dependent<In, debug_log>& log = dependent<In, debug_log>::instance();
  if (log.level() < 2) return;
  log.write(join({"Execution: ", r.name, " ", hexadecimal(r.hash), "\n"}));
}
XLA_INSTANCE(void report_execution<void>(const graph_run&));

/// One op of a traced graph, as far as two graphs can differ in it.
template <class In>
struct basic_op_summary {
  std::string_view op;
  dtype type = dtype::float32;
  shape dims;
  friend bool operator==(const basic_op_summary&, const basic_op_summary&) = default;
  [[gnu::cold]] text& print(text& to) const {
    return to << "`" << op << "` " << name_of(type) << " " << dims;
  }
};
using op_summary = basic_op_summary<void>;
using graph_summary = list<op_summary>;

/// The first difference between a new graph and the known one that agrees with it in most ops; the
/// new graph's op, if it has one there.
template <class In = void>
[[gnu::cold]] std::string what_changed(const dependent<In, graph_summary>& now,
                                       const list<const graph_summary*>& known, int& op) {
  if (known.empty()) return "the first graph";
  int most = 0;
  const dependent<In, graph_summary>* nearest = known.back();
  for (const dependent<In, graph_summary>* k : known) {
    int n = k->size() == now.size() ? 1 : 0;
    for (int i = 0; i < k->size() && i < now.size(); ++i) n += (*k)[i] == now[i];
    if (n > most) {
      most = n;
      nearest = k;
    }
  }
  int best = 0;
  while (best < nearest->size() && best < now.size() && (*nearest)[best] == now[best]) ++best;
  if (best == now.size() && best == nearest->size())
    return "the same ops on the same shapes, with other shared inputs or other results";
  if (best < now.size()) op = best;
  text out("op ");
  out << best << ": ";
  const int more = now.size() - best;
  if (best == nearest->size())
    now[best].print(out << more << (more == 1 ? " more op, from " : " more ops, from ")) << " on";
  else if (best == now.size())
    (*nearest)[best].print(out << "the graph ends here; the known one goes on with ");
  else now[best].print((*nearest)[best].print(out) << " -> ");
  return std::string(out.view());
}

}  // namespace xla::detail
