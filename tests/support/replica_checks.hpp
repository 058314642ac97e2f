// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>

#include "xla/nn/state_dict.hpp"

/// Catch2 is for one thread; what a replica finds wrong it throws, and the launch ends with it.
#define REPLICA_CHECK(...) \
  if (!(__VA_ARGS__)) throw std::logic_error("REPLICA_CHECK(" #__VA_ARGS__ ")")

namespace test {

/// A hash of the names and bits of all that modules and optimizers hold, to compare replicas.
template <class... X>
std::size_t bits_of(X&... x) {
  std::string all;
  const auto add = [&](auto& part) {
    for (const auto& array : xla::state_dict(part)) {
      all += array.name;
      all.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    }
  };
  (add(x), ...);
  return std::hash<std::string>{}(all);
}

}  // namespace test
