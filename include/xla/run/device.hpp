// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "xla/base/error.hpp"

namespace xla {

/// Where tensors live: for now the machine's processor, "xla:0".
struct Device {
  int index = 0;
  std::string str() const { return "xla:" + std::to_string(index); }
  friend bool operator==(const Device&, const Device&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Device& d) { return out << d.str(); }
};

template <class = void>
inline int device_count() {
  return 1;
}

/// The device of that number; an error when there is none.
template <class = void>
inline Device device(int index = 0) {
  if (index < 0 || index >= device_count())
    throw error("device: there is no device " + std::to_string(index) + "; there are " +
                std::to_string(device_count()));
  return {index};
}
template <class = void>
inline std::vector<Device> devices() {
  return {device()};
}
/// The devices' names, as PyTorch/XLA gives them.
template <class = void>
inline std::vector<std::string> get_xla_supported_devices() {
  return {device().str()};
}

}  // namespace xla
