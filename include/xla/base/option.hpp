// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <initializer_list>
#include <limits>

#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"

namespace xla::detail {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

/// A number that a user gives, and where it has to lie: from least to most, or below it. NaN lies
/// nowhere.
struct option {
  const char* name;
  double value;
  double least = 0, most = unbounded;
  bool below = false;

  constexpr bool fits() const { return value >= least && (below ? value < most : value <= most); }
};

template <class = void>
[[noreturn, gnu::noinline]] void refuse_option(const char* owner, const option& o) {
  char sentence[200];
  std::snprintf(sentence, sizeof sentence,
                o.most == unbounded ? "%s: %s is %g, and has to be at least %g"
                                    : "%s: %s is %g, and has to be from %g to %s%g",
                owner, o.name, o.value, o.least, o.below ? "below " : "", o.most);
  throw runtime_error(sentence);
}
XLA_INSTANCE(void refuse_option<void>(const char*, const option&));

/// Throws xla::error, or stops the build where the options are constants, when one lies outside.
template <class In = void>
constexpr void check_options(const char* owner, std::initializer_list<option> all) {
  for (const option& o : all)
    if (!o.fits()) refuse_option<In>(owner, o);
}

}  // namespace xla::detail
