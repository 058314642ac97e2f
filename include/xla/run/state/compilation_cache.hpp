// SPDX-License-Identifier: Apache-2.0
#pragma once

// The limit on bytes of compiled plans of a process. The caches of signatures read it; the public
// function is in run/plan/memory.hpp.

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "xla/base/instance.hpp"

namespace xla::detail {

/// See set_compilation_cache_limit().
template <class = void>
std::atomic<std::int64_t>& compilation_cache_limit() {
  static std::atomic<std::int64_t> bytes = [] {
    const char* const text = std::getenv("XLA_COMPILATION_CACHE_LIMIT");
    return text && *text ? std::strtoll(text, nullptr, 10) : std::int64_t{256} << 20;
  }();
  return bytes;
}
XLA_INSTANCE(std::atomic<std::int64_t>& compilation_cache_limit<void>());

}  // namespace xla::detail
