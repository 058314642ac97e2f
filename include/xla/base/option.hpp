// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the numbers that a user gives as options, such as a dropout rate. Layers and optimizers
// call it in their constructors; sizes of tensors are checked elsewhere, by the rules of ops.

#include <cstdio>
#include <initializer_list>
#include <limits>

#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"

namespace xla {

namespace detail {
inline constexpr double unbounded = std::numeric_limits<double>::infinity();
}  // namespace detail

/// An option's value and its range: from `least` to `most`, or below `most`. NaN is out of every
/// range.
struct OptionBounds {
  const char* name;
  double value;
  double least = 0, most = detail::unbounded;
  bool below = false;

  constexpr bool fits() const { return value >= least && (below ? value < most : value <= most); }
};

namespace detail {
template <class = void>
[[noreturn, gnu::noinline]] void refuse_option(const char* owner, const OptionBounds& o) {
  char sentence[200];
  std::snprintf(sentence, sizeof sentence,
                o.most == unbounded ? "%s: %s is %g, and has to be at least %g"
                                    : "%s: %s is %g, and has to be from %g to %s%g",
                owner, o.name, o.value, o.least, o.below ? "below " : "", o.most);
  throw runtime_error(sentence);
}
XLA_INSTANCE(void refuse_option<void>(const char*, const OptionBounds&));
}  // namespace detail

/// For layers and optimizers: check_options("nn::Dropout", {{"p", p, 0, 1}}). Throws xla::error if
/// one is out of range, or stops the build if the options are constants.
template <class In = void>
constexpr void check_options(const char* owner, std::initializer_list<OptionBounds> all) {
  for (const OptionBounds& o : all)
    if (!o.fits()) detail::refuse_option<In>(owner, o);
}

}  // namespace xla
