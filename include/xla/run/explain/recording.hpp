// SPDX-License-Identifier: Apache-2.0
#pragma once

// One recording of xla::explain(), or that of XLA_EXPLAIN, from its start to the explanation. It
// finds the lines of the events in explainer.hpp.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "xla/run/explain.hpp"
#include "xla/run/explain/call_stack.hpp"
#include "xla/run/explain/explainer.hpp"
#include "xla/run/explain/text.hpp"
#include "xla/run/profile/file.hpp"
#include "xla/run/trace/lazy.hpp"

namespace xla::detail {

/// Joins the records of one line, whatever path led to it.
template <class>
class basic_explanation_maker {
 public:
  [[gnu::cold]] explicit basic_explanation_maker(const std::vector<call_stack>& stacks) {
    basic_symbolizer<void> symbols;
    symbols.add(stacks);
    for (const call_stack& s : stacks) frames_.push_back(program_frame<>(symbols, s));
  }
  [[gnu::cold]] Explanation run(const explain_session& s) {
    std::map<location, std::map<std::string, std::int64_t>> names;
    for (const auto& [key, count] : s.calls) {
      const auto& [from, op, how] = key;
      const location at = location_of(from);
      ExplainedLine& line = lines_[at];
      (how == op_start::at_once    ? line.at_once
       : how == op_start::recorded ? line.recorded
                                   : line.deferred) += count;
      names[at][std::string(op->name)] += count;
    }
    for (const auto& [at, of] : names) {
      auto& ops = lines_[at].ops;
      ops.assign(of.begin(), of.end());
      std::stable_sort(ops.begin(), ops.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
    }
    add_graphs(s);
    Explanation out;
    for (auto& [at, line] : lines_) {
      line.source = shown(at);
      out.lines.push_back(std::move(line));
    }
    return out;
  }

 private:
  struct location {
    std::string file;  ///< or a function, if the line is 0
    unsigned line = 0;
    friend auto operator<=>(const location&, const location&) = default;
  };
  [[gnu::cold]] location location_of(const call_origin& from) const {
    const source_frame none;
    const source_frame& f = from.stack < 0 ? none : frames_[static_cast<std::size_t>(from.stack)];
    if (f.line > 0) return {f.file, static_cast<unsigned>(f.line)};
    if (from.line > 0) return {from.file, from.line};
    std::string name = qualified_name<>(f.function);
    name = name.substr(0, std::min(name.find("::{"), name.find("::operator")));
    if (name.starts_with("::")) name.erase(0, 2);
    return {name};
  }
  [[gnu::cold]] static std::string shown(const location& at) {
    if (at.line > 0) return at.file.substr(at.file.rfind('/') + 1) + ':' + decimal(at.line);
    return at.file.empty() ? "unknown" : join({"in ", at.file, "()"});
  }
  [[gnu::cold]] void add_graphs(const explain_session& s) {
    std::map<std::tuple<location, std::string, std::string>, explain_session::graph_record> joined;
    for (const auto& [key, g] : s.graphs) {
      const auto& [stack, name, cause] = key;
      explain_session::graph_record& to = joined[{location_of({stack}), name, cause}];
      to.runs += g.runs;
      for (const auto& [from, ops] : g.parts) to.parts[from] += ops;
      to.plans.insert(to.plans.end(), g.plans.begin(), g.plans.end());
    }
    for (auto& [key, g] : joined) {
      const auto& [at, name, cause] = key;
      ExplainedGraph to{name, cause, g.runs, {}, {}};
      std::map<location, std::int64_t> parts;
      for (const auto& [from, ops] : g.parts) parts[location_of(from)] += ops;
      for (const auto& [of, ops] : parts) to.parts.push_back({shown(of), ops});
      for (const auto& p : g.plans) {
        const location op = location_of(p.op);
        to.plans.push_back(
            {p.run, op.file.empty() ? p.changed : join({p.changed, ", ", shown(op)})});
      }
      lines_[at].graphs.push_back(std::move(to));
    }
  }

  std::map<location, ExplainedLine> lines_;
  std::vector<source_frame> frames_;  // of the stacks, by number
};

template <class In>
struct basic_explain_recording<In>::state {
  explain_session session;
  bool lines = std::exchange(this_thread.notes_lines, true);
};

template <class In>
[[gnu::cold]] basic_explain_recording<In>::basic_explain_recording() {
  finish_traced<In>();
  state_ = new state;
  explainer::instance().start(state_->session);
}
template <class In>
[[gnu::cold]] basic_explain_recording<In>::~basic_explain_recording() {
  explainer::instance().stop(state_->session);
  this_thread.notes_lines = state_->lines;
  delete state_;
}
template <class In>
[[gnu::cold]] Explanation basic_explain_recording<In>::take() {
  explainer& e = explainer::instance();
  e.stop(state_->session);
  Explanation out = basic_explanation_maker<In>(e.stacks()).run(state_->session);
  out.waiting = own_recording<In>().size();
  return out;
}

/// The explanation for XLA_EXPLAIN, which lasts until the program ends.
template <class>
class basic_environment_explanation : exit_hook {
 public:
  [[gnu::cold]] explicit basic_environment_explanation(std::string path)
      : exit_hook{[](exit_hook& self) {
          delete static_cast<basic_environment_explanation*>(&self);
        }},
        path_(std::move(path)) {
    this_thread.notes_lines = true;
    explainer::instance().start(session_);
    end_at_exit(*this);
  }
  basic_environment_explanation(const basic_environment_explanation&) = delete;
  basic_environment_explanation& operator=(const basic_environment_explanation&) = delete;

 private:
  [[gnu::cold]] ~basic_environment_explanation() {
    explainer& observer = explainer::instance();
    observer.stop(session_);
    try {
      const std::string all =
          basic_explanation_maker<void>(observer.stacks()).run(session_).to_string();
      if (path_ == "1") std::fwrite(all.data(), 1, all.size(), stderr);
      else write_report<>("XLA_EXPLAIN", path_, all);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  }
  std::string path_;
  explain_session session_;
};

template <class>
[[gnu::cold]] bool explain_on_request() {
  const char* const path = std::getenv("XLA_EXPLAIN");
  if (!path || !*path || std::string_view(path) == "0") return false;
  new basic_environment_explanation<void>(path);  // deletes itself at exit
  return true;
}

}  // namespace xla::detail
