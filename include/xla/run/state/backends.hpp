// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of backends in this process and the chosen one. run/backend/backend.hpp adds and reads
// them.

#include <atomic>

namespace xla::detail {

class backend;

/// The backends that a process has, and the one that runs its programs.
struct backend_state {
  std::atomic<backend*> linked{nullptr};        ///< the last; each knows the one before it
  std::atomic<const backend*> chosen{nullptr};  ///< nullptr: none, plans run
  const backend* usual = nullptr;               ///< to begin with, where XLA_BACKEND names none
  std::atomic<bool> settled{false};  ///< somebody has chosen, or the environment was asked
};
inline constinit backend_state backends;

}  // namespace xla::detail
