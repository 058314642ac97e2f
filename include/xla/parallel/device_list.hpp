// SPDX-License-Identifier: Apache-2.0
#pragma once

// The devices that DataParallel takes, as one argument: numbers, Device objects or names. Nothing
// else uses it.

#include <charconv>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/device.hpp"

namespace xla::parallel {

/// Devices of this process: by number, {0, 1}; from `xla::devices()`; from
/// `xla::get_xla_supported_devices()`; or none, {}.
class DeviceList {
 public:
  DeviceList() = default;
  /// Throws `xla::error` for a device that does not exist or is repeated.
  DeviceList(std::initializer_list<int> numbers) {
    for (const int number : numbers) add(number);
  }
  DeviceList(const std::vector<Device>& list) {
    for (const Device& device : list) add(device.index);
  }
  DeviceList(const std::vector<std::string>& names) {
    for (const auto& name : names) add(number_of(name));
  }

  const std::vector<Device>& list() const { return list_; }

 private:
  void add(int number) {
    const Device found = device(number);
    for (const Device& other : list_)
      if (other == found)
        throw runtime_error("xla::parallel: device " + found.str() + " is named twice");
    list_.push_back(found);
  }
  static int number_of(std::string_view name) {
    constexpr std::string_view kind = "xla:";
    int number = 0;
    if (name.starts_with(kind)) {
      const char* const end = name.data() + name.size();
      const auto [at, failed] = std::from_chars(name.data() + kind.size(), end, number);
      if (failed == std::errc{} && at == end) return number;
    }
    throw runtime_error("xla::parallel: \"" + std::string(name) +
                        "\" names no device; they are called xla:0, xla:1, ...");
  }

  std::vector<Device> list_;
};

}  // namespace xla::parallel
