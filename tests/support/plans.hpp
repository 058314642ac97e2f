// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks at the plans that run, for tests of what they are made of.

#include <string>
#include <utility>

#include "xla/run/execute/planned.hpp"

namespace test {

/// Calls f(plan) for each plan that runs while the object exists, before its steps do.
template <class F>
class on_each_plan : xla::detail::plan_watch {
 public:
  explicit on_each_plan(F f) : plan_watch{&run_steps, &is_new, &introduce}, f_(std::move(f)) {
    xla::detail::the_process.watch = this;
  }
  ~on_each_plan() { xla::detail::the_process.watch = nullptr; }
  on_each_plan(const on_each_plan&) = delete;

 private:
  static bool is_new(plan_watch&, const xla::detail::planned&) { return false; }
  static void introduce(plan_watch&, const xla::detail::planned&, const std::string&,
                        const xla::detail::list<std::string>&) {}
  static void run_steps(plan_watch& self, const xla::detail::planned& e,
                        const xla::detail::frame& f, const xla::rng_state* random) {
    static_cast<on_each_plan&>(self).f_(e.get_plan());
    e.run_all(f, random);
  }

  F f_;
};

}  // namespace test
