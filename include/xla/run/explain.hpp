// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::explain(): what runs when, by line of the program. It is not in xla.hpp, because it adds the
// code that records and prints; programs include it to find the line that breaks a graph.

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/explain/explanation.hpp"

namespace xla {

namespace detail {

/// The recording of events; run/explain/recording.hpp defines it.
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

/// Runs when this header is included.
inline const bool explain_can_start = explain_on_request();

}  // namespace detail

/// Calls a function, and reports line by line what ran when: which ops ran at once and which were
/// recorded; where a graph ended, why, and whose ops it had; which compiled functions ran; and for
/// each of those why a new plan was necessary. The call is an ordinary one, with its effects; only
/// its result is dropped. Other threads' work during the call is included.
///
///     std::cout << xla::explain([&] { train_epoch(model, loader, optimizer); });
///
/// Lines come from debug information (-g, or -g1), read by addr2line of binutils or LLVM. Without
/// it, a line is that of the call of a named function, or the name of the enclosing function.
///
/// In a program that includes this header (the compiler's option -include xla/run/explain.hpp does
/// it without a change), XLA_EXPLAIN=1 in the environment does the same for the whole program: it
/// prints the report to standard error at the end. XLA_EXPLAIN with the name of a file writes it
/// there. It corresponds to PT_XLA_DEBUG.
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
