// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cores that a device's loops may use. It starts no thread: pool.hpp does.

#include <atomic>

namespace xla::kernel::detail {

template <class>
class basic_pool;

/// A device's share of the machine's cores.
struct core_share {
  std::atomic<int> threads{0};                   ///< that one loop may use; 0: not yet determined
  std::atomic<basic_pool<void>*> pool{nullptr};  ///< determined by the first loop
};

inline constexpr int max_shares = 256;
/// By the number of the device.
inline constinit core_share core_shares[max_shares];
/// That of this thread's device.
inline constinit thread_local core_share* own_cores = core_shares;

/// Restricts this thread to the cores of a share, if there are several shares.
inline constinit std::atomic<void (*)(const core_share&)> pin_to_cores{nullptr};

}  // namespace xla::kernel::detail
