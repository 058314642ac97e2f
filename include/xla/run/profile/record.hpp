// SPDX-License-Identifier: Apache-2.0
#pragma once

// ProfileRecording: a profile of a part of a program that is not one function call. xla::profile()
// calls a function instead.

#include <memory>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/run/profile.hpp"

namespace xla {

/// Records every compiled function and traced graph that runs between its construction and stop()
/// or its destruction, on all threads: of each at most `calls` calls after the first `warmup`. So a
/// running program can profile itself, for instance every thousandth step, or on a signal:
///   xla::ProfileRecording recording({.calls = 10, .warmup = 3});
///   …
///   recording.stop().write("step.html");
/// Ops recorded before run first. Several recordings may be active at a time.
template <class In>
class BasicProfileRecording {
 public:
  explicit BasicProfileRecording(const ProfileOptions& options = {.calls = 10})
      : recording_(std::make_unique<detail::basic_profile_recording<In>>(options)) {}

  /// Ends the recording; pending ops run first. Throws `xla::error` if no compiled function and no
  /// traced graph ran, and if it has already ended.
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
