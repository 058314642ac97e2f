// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::explain(): what runs when, by line of the program. It is not in xla.hpp, as it brings the
// code that notes and prints; programs include it while they look for the line that cuts a graph.

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/explain/explanation.hpp"

namespace xla {

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
/// Without, a line is the one that called a named function, or the name of the function that it is
/// in.
///
/// In a program that includes this header (the compiler's option -include xla/run/explain.hpp does
/// it without a change), XLA_EXPLAIN=1 in the environment does the same for the whole program: it
/// prints the report on standard error at the end, and XLA_EXPLAIN with the name of a file writes
/// it there. As PT_XLA_DEBUG does.
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
