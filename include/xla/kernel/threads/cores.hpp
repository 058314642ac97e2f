// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cores that a device's loops may use. It starts no thread: pool.hpp does.

#include <atomic>

namespace xla::kernel::detail {

template <class>
class basic_pool;

/// A device's share of the machine's cores.
struct core_share {
  std::atomic<int> threads{0};                   ///< that one loop may use; 0: not yet known
  std::atomic<basic_pool<void>*> pool{nullptr};  ///< once a loop has wanted it
};

inline constexpr int max_shares = 256;
/// By the number of the device.
inline constinit core_share core_shares[max_shares];
/// That of the device which this thread works on.
inline constinit thread_local core_share* own_cores = core_shares;

/// Keeps this thread on the cores of a share, where there are several.
inline constinit std::atomic<void (*)(const core_share&)> pin_to_cores{nullptr};

}  // namespace xla::kernel::detail
