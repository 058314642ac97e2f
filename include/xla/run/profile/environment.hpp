// SPDX-License-Identifier: Apache-2.0
#pragma once

// The profile of the variable XLA_PROFILE, over the whole run of a program. xla::profile() measures
// single calls instead.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "xla/run/profile.hpp"
#include "xla/run/profile/file.hpp"
#include "xla/run/profile/peaks.hpp"
#include "xla/run/profile/profiler.hpp"

namespace xla::detail {

/// The profile of XLA_PROFILE: from the first compiled function or traced graph until the program
/// ends.
template <class>
class basic_environment_profile : exit_hook {
 public:
  [[gnu::cold]] explicit basic_environment_profile(std::string path)
      : exit_hook{[](exit_hook& self) { delete static_cast<basic_environment_profile*>(&self); }},
        path_(std::move(path)),
        peaks_(machine_peaks<>(num_threads())) {
    session_.warmup = 3;
    session_.calls = 10;
    profiler::instance().start(session_);
    end_at_exit(*this);
  }
  basic_environment_profile(const basic_environment_profile&) = delete;
  basic_environment_profile& operator=(const basic_environment_profile&) = delete;

 private:
  [[gnu::cold]] ~basic_environment_profile() {
    profiler::instance().stop(session_);
    try {
      profiler::instance().take(session_, peaks_).write(path_);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "XLA_PROFILE: %s\n", e.what());
    }
  }
  std::string path_;
  MachinePeaks peaks_;
  profile_session session_;
};

/// Starts it, once; called before the first plan is made.
template <class = void>
[[gnu::cold]] void profile_from_environment() {
  sys::call_once(the_process.profile, [] {
    const char* path = std::getenv("XLA_PROFILE");
    if (path && *path) new basic_environment_profile<void>(path);  // deletes itself at exit
  });
}

template <class>
bool profile_on_request() {
  the_process.before_plans.store(&profile_from_environment<>, std::memory_order_release);
  return true;
}

}  // namespace xla::detail
