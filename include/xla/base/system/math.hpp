// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions of the C library that C++ lacks in a form for several threads.

#include <cmath>

#include "xla/base/system/platform.hpp"

#if defined(__APPLE__)
extern "C" double lgamma_r(double, int*);  // <math.h> declares it only with _REENTRANT
#endif

namespace xla::sys {

/// log |gamma(x)|; std::lgamma would write the sign to a variable shared by all threads.
inline double log_gamma(double x) {
#if XLA_POSIX
  int sign = 0;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

}  // namespace xla::sys
