// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prints an explanation as text: a block a line of the program, in the order of files and lines.

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/text.hpp"
#include "xla/run/explain/explanation.hpp"

namespace xla {
namespace detail {

/// Prints an explanation: in the first column a source line, in the second what ran there.
template <class>
class basic_explanation_text {
 public:
  [[gnu::cold]] explicit basic_explanation_text(const Explanation& e) : of_(e) {
    for (const ExplainedLine& line : e.lines) width_ = std::max(width_, line.source.size() + 2);
  }
  [[gnu::cold]] std::string run() {
    out_ = of_.lines.empty() ? "nothing ran\n" : "What ran when, by line:\n";
    for (const ExplainedLine& line : of_.lines) {
      source_ = line.source;
      if (!line.ops.empty()) add_ops(line);
      for (const ExplainedGraph& g : line.graphs) add_graph(g);
    }
    if (of_.waiting > 0)
      out_ += join({numbered(of_.waiting, "op is", "ops are"),
                    " recorded and waiting: sync(), a read, or the next graph runs them\n"});
    return std::move(out_);
  }

 private:
  [[gnu::cold]] static std::string numbered(std::int64_t n, std::string_view one,
                                            std::string_view more) {
    return join({decimal(n), " ", n == 1 ? one : more});
  }
  // The first line of a block begins with its name.
  [[gnu::cold]] void put(std::string_view what) {
    out_ += source_;
    out_.append(width_ - source_.size(), ' ');
    (out_ += what) += '\n';
    source_ = "";
  }
  [[gnu::cold]] void add_ops(const ExplainedLine& line) {
    std::string what;
    const auto part = [&](std::int64_t n, std::string_view how) {
      if (n > 0) what += join({what.empty() ? "" : ", ", numbered(n, "op ", "ops "), how});
    };
    part(line.at_once, "at once");
    part(line.recorded, "recorded");
    part(line.deferred, "deferred");
    constexpr std::size_t most = 6;
    for (std::size_t i = 0; i < line.ops.size() && i <= most; ++i) {
      const auto& [name, count] = line.ops[i];
      what += i == 0 ? ": " : ", ";
      if (i == most) what += "…";
      else what += count == 1 ? name : join({decimal(count), " ", name});
    }
    put(what);
  }
  [[gnu::cold]] void add_graph(const ExplainedGraph& g) {
    if (g.cause == "compiled") put(join({g.name, " called", times(g.runs)}));
    else put(join({"a graph ended here", times(g.runs), ": ", g.cause}));
    for (const ExplainedGraph::Part& p : g.parts)
      put(join({"  ", numbered(p.ops, "op", "ops"), " of ", p.source}));
    for (const ExplainedGraph::Plan& p : g.plans)
      put(join({"  planned in run ", decimal(p.run), ": ", p.changed}));
  }
  [[gnu::cold]] static std::string times(std::int64_t n) {
    return n == 1 ? "" : join({" ", decimal(n), " times"});
  }

  const Explanation& of_;
  std::string_view source_;
  std::size_t width_ = 0;
  std::string out_;
};

}  // namespace detail

template <class In>
[[gnu::cold]] std::string BasicExplanation<In>::to_string() const {
  return detail::basic_explanation_text<In>(*this).run();
}
template <class In>
[[gnu::cold]] std::ostream& operator<<(std::ostream& out, const BasicExplanation<In>& e) {
  return out << e.to_string();
}

}  // namespace xla
