// SPDX-License-Identifier: Apache-2.0
#pragma once

// One recording of xla::profile(), from its start to the profile. It joins profiler.hpp, which
// takes times, with describe.hpp, which names steps.

#include <memory>
#include <string>

#include "xla/base/error.hpp"
#include "xla/run/profile.hpp"
#include "xla/run/profile/environment.hpp"
#include "xla/run/profile/file.hpp"
#include "xla/run/profile/peaks.hpp"
#include "xla/run/profile/profiler.hpp"
#include "xla/run/trace/lazy.hpp"

namespace xla::detail {

template <class In>
struct basic_profile_recording<In>::state {
  profile_session session;
};

template <class In>
basic_profile_recording<In>::basic_profile_recording(const ProfileOptions& options) {
  if (options.calls < 1 || options.warmup < 0)
    throw runtime_error(
        "profile: needs at least 1 call and no less than 0 for warm-up, got calls = " +
        std::to_string(options.calls) + ", warmup = " + std::to_string(options.warmup));
  finish_traced<In>();
  auto made = std::make_unique<state>();
  made->session.calls = options.calls;
  made->session.warmup = options.warmup;
  profiler::instance().start(made->session);
  state_ = made.release();
}

template <class In>
basic_profile_recording<In>::~basic_profile_recording() {
  profiler::instance().stop(state_->session);
  delete state_;
}

template <class In>
void basic_profile_recording<In>::called() {
  finish_traced<In>();
}

template <class In>
Profile basic_profile_recording<In>::take() {
  // Measured after the calls; otherwise they would find their data evicted from the caches.
  const MachinePeaks peaks = machine_peaks<In>(num_threads());
  Profile p = profiler::instance().take(state_->session, peaks);
  if (p.functions.empty() && p.backends.empty() && p.events.empty())
    throw runtime_error(
        "profile: no compiled function and no traced graph ran; ops in eager mode have no "
        "plan, so give a function that xla::compile made, switch eager mode off, or name a part "
        "of the program with xla::Trace");
  return p;
}

}  // namespace xla::detail
