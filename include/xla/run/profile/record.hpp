// SPDX-License-Identifier: Apache-2.0
#pragma once

// ProfileRecording: a profile of a part of a program that is no function, from one place of it to
// another. xla::profile() calls a function instead.

#include <memory>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/run/profile.hpp"

namespace xla {

/// Records from its construction to stop() or its end every compiled function and traced graph
/// that runs, of all threads: of each at most `calls` calls after the first `warmup`. So a running
/// program can look at itself, at every thousandth step or when it gets a signal:
///   xla::ProfileRecording recording({.calls = 10, .warmup = 3});
///   …
///   recording.stop().write("step.html");
/// What was recorded before runs first. Several may go on at a time.
template <class In>
class BasicProfileRecording {
 public:
  explicit BasicProfileRecording(const ProfileOptions& options = {.calls = 10})
      : recording_(std::make_unique<detail::basic_profile_recording<In>>(options)) {}

  /// Ends it; what is pending runs before. Throws `xla::error` where no compiled function and no
  /// traced graph ran, and where it has ended already.
  Profile stop() {
    const auto recording = std::move(recording_);  // ends with this scope, whatever is thrown
    if (!recording) throw runtime_error("ProfileRecording::stop: it has been called before");
    recording->called();
    return recording->take();
  }

 private:
  std::unique_ptr<detail::basic_profile_recording<In>> recording_;
};
using ProfileRecording = BasicProfileRecording<void>;

}  // namespace xla
