// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace xla::detail {

class engine;

/// The engines that a process has, and the one that runs its programs.
struct engine_state {
  std::atomic<engine*> linked{nullptr};        ///< the last; each knows the one before it
  std::atomic<const engine*> chosen{nullptr};  ///< nullptr: none, plans run
  const engine* usual = nullptr;               ///< to begin with, where XLA_ENGINE names none
  std::atomic<bool> settled{false};  ///< somebody has chosen, or the environment was asked
};
inline constinit engine_state engines;

}  // namespace xla::detail
