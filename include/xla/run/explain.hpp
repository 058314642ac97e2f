// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::explain(): what runs when, by line of the program. It is not in xla.hpp, as it brings the
// code that notes and prints; programs include it while they look for the line that cuts a graph.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"

namespace xla {

/// What ran from a line of the program: a compiled function, or graphs that ended there.
struct ExplainedGraph {
  struct Part {
    std::string source;
    std::int64_t ops = 0;  ///< in all runs
  };
  struct Plan {
    std::int64_t run = 0;  ///< the first that used it, counted from 1
    std::string changed;   ///< against the nearest known graph or signature
  };
  std::string name;  ///< of a compiled function; "traced"
  /// "compiled"; why the graph ended: "user sync", "value read before sync", "optimizer step", …
  std::string cause;
  std::int64_t runs = 0;
  std::vector<Part> parts;  ///< of a graph: the lines that called its ops
  std::vector<Plan> plans;  ///< that were made for it, as none was known
};

/// A line of the program, and what it made the library do.
struct ExplainedLine {
  std::string source;         ///< "train.cpp:42"; "in prepare()" without debug information
  std::int64_t at_once = 0;   ///< ops that ran at the call, as in eager mode
  std::int64_t recorded = 0;  ///< ops that waited for the end of a graph
  std::int64_t deferred = 0;  ///< first values of parameters, made when they are read
  std::vector<std::pair<std::string, std::int64_t>> ops;  ///< each one's name and number of calls
  std::vector<ExplainedGraph> graphs;
};

/// What xla::explain() has seen.
template <class V>
struct BasicExplanation {
  std::vector<ExplainedLine> lines;  ///< by file and line
  std::int64_t waiting = 0;          ///< ops that are recorded and have not run yet

  /// A block a line, as text.
  std::string to_string() const;
};
using Explanation = BasicExplanation<void>;
template <class V>
std::ostream& operator<<(std::ostream& out, const BasicExplanation<V>& e);

namespace detail {

/// The recording of what happens; run/explain/recording.hpp defines it.
template <class In>
class basic_explain_recording {
 public:
  basic_explain_recording();
  basic_explain_recording(const basic_explain_recording&) = delete;
  basic_explain_recording& operator=(const basic_explain_recording&) = delete;
  ~basic_explain_recording();
  Explanation take();

 private:
  struct state;
  state* state_;
};

/// Starts an explanation of the whole program if XLA_EXPLAIN is set.
template <class = void>
bool explain_on_request();

/// Including this header calls it.
inline const bool explain_can_start = explain_on_request();

}  // namespace detail

/// Calls a function, and says line by line what ran when: which ops ran at once and which were
/// recorded; where a graph ended, why, and whose ops it had; which compiled functions ran; and for
/// each of those what made a new plan necessary. The call is an ordinary one, with its effects;
/// only its result is dropped. What other threads do during the call is in it, too.
///
///     std::cout << xla::explain([&] { train_epoch(model, loader, optimizer); });
///
/// Lines come from debug information (-g, or -g1), which addr2line of binutils or LLVM reads.
/// Without, a line is the one that called a named function, or the name of the function in which it
/// stands.
///
/// In a program that includes this header (the compiler's option -include xla/run/explain.hpp does
/// it without a change), XLA_EXPLAIN=1 in the environment does the same for the whole program: it
/// prints the report on standard error at the end. XLA_EXPLAIN=<file> writes it there. As PT_XLA_DEBUG does.
template <class F, class... A>
Explanation explain(F&& f, A&&... a) {
  dependent<F, detail::basic_explain_recording<void>> recording;
  std::forward<F>(f)(std::forward<A>(a)...);
  return recording.take();
}

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/explain/recording.hpp"
#endif
