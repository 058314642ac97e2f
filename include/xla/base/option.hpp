// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <initializer_list>
#include <limits>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/join.hpp"

namespace xla::detail {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

/// A number that a user gives, and where it has to lie: from least to most, or below it. NaN lies
/// nowhere.
struct option {
  const char* name;
  double value;
  double least = 0, most = unbounded;
  bool below = false;

  constexpr bool fits() const {
    return value >= least && (below ? value < most : value <= most);
  }
};

template <class = void>
[[noreturn, gnu::noinline]] void refuse_option(const char* owner, const option& o) {
  char value[32], least[32], most[32];
  std::snprintf(value, sizeof value, "%g", o.value);
  std::snprintf(least, sizeof least, "%g", o.least);
  std::snprintf(most, sizeof most, "%g", o.most);
  const std::string range =
      o.most == unbounded ? join({"at least ", least})
                          : join({"from ", least, o.below ? " to below " : " to ", most});
  throw runtime_error(join({owner, ": ", o.name, " is ", value, ", and has to be ", range}));
}
XLA_INSTANCE(void refuse_option<void>(const char*, const option&));

/// Throws xla::error, or stops the build where the options are constants, when one lies outside.
template <class In = void>
constexpr void check_options(const char* owner, std::initializer_list<option> all) {
  for (const option& o : all)
    if (!o.fits()) refuse_option<In>(owner, o);
}

}  // namespace xla::detail
