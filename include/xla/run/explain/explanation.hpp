// SPDX-License-Identifier: Apache-2.0
#pragma once

// The result of xla::explain(): for each line of the program, what ran when. explainer.hpp records
// it.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace xla {

/// Something that ran because of a line of the program: a compiled function, or graphs that ended
/// there.
struct ExplainedGraph {
  struct Part {
    std::string source;
    std::int64_t ops = 0;  ///< in all runs
  };
  struct Plan {
    std::int64_t run = 0;  ///< the first run that used it, counted from 1
    std::string changed;   ///< compared with the nearest known graph or signature
  };
  std::string name;  ///< of a compiled function; "traced"
  /// "compiled"; why the graph ended: "user sync", "value read before sync", "optimizer step", …
  std::string cause;
  std::int64_t runs = 0;
  std::vector<Part> parts;  ///< of a graph: the lines that called its ops
  std::vector<Plan> plans;  ///< that were made for it, as none was known
};

/// A line of the program, and its effects.
struct ExplainedLine {
  std::string source;         ///< "train.cpp:42"; "in prepare()" without debug information
  std::int64_t at_once = 0;   ///< ops that ran at the call, as in eager mode
  std::int64_t recorded = 0;  ///< ops that waited for the end of a graph
  std::int64_t deferred = 0;  ///< initial values of parameters, made when they were read
  std::vector<std::pair<std::string, std::int64_t>> ops;  ///< each one's name and number of calls
  std::vector<ExplainedGraph> graphs;
};

/// The report of xla::explain().
template <class V>
struct BasicExplanation {
  std::vector<ExplainedLine> lines;  ///< by file and line
  std::int64_t waiting = 0;          ///< ops that are recorded and have not run yet

  /// As text, one block per line of the program.
  std::string to_string() const;
};
using Explanation = BasicExplanation<void>;
template <class V>
std::ostream& operator<<(std::ostream& out, const BasicExplanation<V>& e);

}  // namespace xla
