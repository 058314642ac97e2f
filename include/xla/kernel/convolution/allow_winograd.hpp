// SPDX-License-Identifier: Apache-2.0
#pragma once

// The public switch set_winograd(). Kernels read it through conv_sizes::direct; algorithms.hpp
// obeys.

#include "xla/base/instance.hpp"

namespace xla {

/// Sets whether convolutions may use Winograd's algorithm; they may by default. It needs stride 1.
/// For kernels of 3 x 3 it multiplies a quarter to four ninths as often, for those of four columns
/// or more about half as often. Errors are up to a hundred-thousandth of the largest output. The
/// setting holds for the whole process and every mode, from the next convolution that runs.
template <class = void>
void set_winograd(bool allowed);

/// The argument of the last set_winograd().
template <class = void>
bool winograd_allowed();

}  // namespace xla

#if XLA_RUNTIME_HERE
#include <atomic>

namespace xla {
namespace kernel::detail {

template <class = void>
inline std::atomic<bool>& winograd_switch() {
  static std::atomic<bool> allowed{true};
  return allowed;
}

}  // namespace kernel::detail

template <class>
[[gnu::cold]] void set_winograd(bool allowed) {
  kernel::detail::winograd_switch<>() = allowed;
}
XLA_INSTANCE(void set_winograd<void>(bool));

template <class>
bool winograd_allowed() {
  return kernel::detail::winograd_switch<>();
}
XLA_INSTANCE(bool winograd_allowed<void>());

}  // namespace xla
#endif
