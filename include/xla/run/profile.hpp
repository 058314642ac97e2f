// SPDX-License-Identifier: Apache-2.0
#pragma once

// xla::profile(): where the time of one call goes, step by step. It is not in xla.hpp, because it
// adds the code that measures and prints; programs include it for tuning.

#include <type_traits>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/run/profile/data.hpp"

namespace xla {

/// Options of xla::profile.
struct ProfileOptions {
  int calls = 1;   ///< recorded calls; times are medians over them
  int warmup = 0;  ///< calls before them, not recorded
};

namespace detail {

/// The recording of some calls; run/profile/recording.hpp defines it.
template <class In>
class basic_profile_recording {
 public:
  explicit basic_profile_recording(const ProfileOptions& options);
  basic_profile_recording(const basic_profile_recording&) = delete;
  basic_profile_recording& operator=(const basic_profile_recording&) = delete;
  ~basic_profile_recording();
  /// To be called after each call: runs what the call has left pending, as part of it.
  void called();
  Profile take();

 private:
  struct state;
  state* state_;
};

/// Starts a profile of the whole program if XLA_PROFILE is set.
template <class = void>
bool profile_on_request();

/// Runs when this header is included.
inline const bool profile_can_start = profile_on_request();

}  // namespace detail

/// Calls a function and reports where the time went: step by step, with operations, bytes and the
/// share of the machine's peaks (measured at first use). The call is an ordinary one, with its
/// effects, as often as the options say; only its result is dropped.
///
///     auto profile = xla::profile({.calls = 10, .warmup = 2}, step, model, data, target, …);
///     std::cout << profile;
///     profile.write_html("step.html");
///
/// The function is a result of xla::compile, or any function that calls one or works in traced
/// mode: every plan that runs during it is recorded, on other threads as well. It is an error if
/// none does: ops in eager mode have no plan. A step's time includes a reading of the clock.
///
/// In a program that includes this header (the compiler's option -include xla/run/profile.hpp does
/// it without a change), XLA_PROFILE=step.html in the environment profiles the whole program. It
/// records every compiled function and traced graph, at each signature: ten calls after the first
/// three (which find the caches cold), or the last one if there are fewer. The file is written when
/// the program ends: as a page (.html), as JSON (.json), or as text.
template <class F, class... A>
Profile profile(const ProfileOptions& options, F&& f, A&&... a) {
  dependent<F, detail::basic_profile_recording<void>> recording(options);
  for (int i = 0; i < options.warmup + options.calls; ++i) {
    f(a...);
    recording.called();
  }
  return recording.take();
}
template <class F, class... A>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ProfileOptions>)
Profile profile(F&& f, A&&... a) {
  return profile(ProfileOptions{}, f, a...);
}

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/profile/recording.hpp"
#endif
