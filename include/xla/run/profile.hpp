// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>

#include "xla/run/lazy.hpp"
#include "xla/run/mode.hpp"
#include "xla/run/profile/environment.hpp"
#include "xla/run/profile/file.hpp"
#include "xla/run/profile/profiler.hpp"

namespace xla {

/// How xla::profile calls a function.
struct ProfileOptions {
  int calls = 1;   ///< recorded; times are medians over them
  int warmup = 0;  ///< before them, not recorded
};

namespace detail {

template <class>
struct basic_profile_scope {
  profile_session session;
  explicit basic_profile_scope(const ProfileOptions& o) {
    session.calls = o.calls;
    session.warmup = o.warmup;
    profiler::instance().start(session);
  }
  ~basic_profile_scope() { profiler::instance().stop(session); }
  basic_profile_scope(const basic_profile_scope&) = delete;
};

/// Runs what is pending in traced mode to its end.
template <class = void>
void finish_traced() {
  if (is_eager_mode()) return;
  tracer::instance().flush("profile", true);
  executor::instance().wait_all();
}

}  // namespace detail

/// Calls a function and says where the time went: step by step, with operations, bytes and what
/// share of the machine's peaks (measured at first use) that is. The call is an ordinary one, with
/// its effects, as often as the options say; only its result is dropped.
///
///     auto profile = xla::profile({.calls = 10, .warmup = 2}, step, model, data, target, …);
///     std::cout << profile;
///     profile.write_html("step.html");
///
/// The function is one that xla::compile made, or any that calls such functions or works in traced
/// mode: every plan that runs meanwhile is recorded, other threads' as well. An error if none does:
/// ops in eager mode have no plan. A step's time includes a reading of the clock.
///
/// In a program that includes this header (the compiler's option -include xla/run/profile.hpp does
/// it without a change), XLA_PROFILE=step.html in the environment does the same for all of it: of
/// every compiled function and traced graph, at each signature, ten calls after the first three
/// (they find the caches cold), or the last one where there are fewer. The file is written when the
/// program ends: as a page (.html), as JSON (.json), or as text.
template <class F, class... A>
Profile profile(const ProfileOptions& options, F&& f, A&&... a) {
  if (options.calls < 1 || options.warmup < 0)
    throw error("profile: needs at least 1 call and no less than 0 for warm-up, got calls = " +
                std::to_string(options.calls) + ", warmup = " + std::to_string(options.warmup));
  detail::finish_traced<>();
  detail::basic_profile_scope<void> scope(options);
  for (int i = 0; i < options.warmup + options.calls; ++i) {
    f(a...);
    detail::finish_traced<>();
  }
  // After the calls, which would find the caches full of this.
  const MachinePeaks peaks = machine_peaks<>(num_threads());
  Profile p = detail::profiler::instance().take(scope.session, peaks);
  if (p.functions.empty())
    throw error(
        "profile: no compiled function and no traced graph ran; ops in eager mode have no "
        "plan, so give a function that xla::compile made, or switch eager mode off");
  return p;
}
template <class F, class... A>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ProfileOptions>)
Profile profile(F&& f, A&&... a) {
  return profile(ProfileOptions{}, f, a...);
}

}  // namespace xla
