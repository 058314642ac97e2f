// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "xla/base/caller.hpp"
#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"
#include "xla/shape/extent.hpp"

namespace xla {
namespace detail {

/// Stops the use of a device that is not there.
template <class = void>
[[noreturn]] void refuse_device(int index, const call_site& site) {
  text sentence;
  sentence << site.function << ": there is no device " << index << "; there is device 0" << site.at;
  throw runtime_error(std::string(sentence.view()));
}
XLA_INSTANCE(void refuse_device<void>(int, const call_site&));

}  // namespace detail

/// Where tensors live: for now the machine's processor, "xla:0". That of a tensor in a compiled
/// body, x.device(), also says which step random numbers there belong to:
/// randn<float>({4, 2}, x.device()).
class Device {
 public:
  int index = 0;

  constexpr Device() = default;
  constexpr explicit Device(int number, detail::size_table* table = nullptr)
      : index(number), table_(table) {}

  std::string str() const { return "xla:" + std::to_string(index); }
  constexpr detail::size_table* table() const { return table_; }
  /// Throws `xla::error` unless it is there.
  constexpr void check(const detail::call_site& site) const {
    if (index != 0) detail::refuse_device(index, site);
  }
  friend constexpr bool operator==(const Device& a, const Device& b) { return a.index == b.index; }
  friend std::ostream& operator<<(std::ostream& out, const Device& d) { return out << d.str(); }

 private:
  detail::size_table* table_ = nullptr;
};

template <class = void>
constexpr int device_count() {
  return 1;
}

/// The device of that number; an error when there is none.
template <class = void>
constexpr Device device(int index = 0, caller who = here()) {
  const Device d{index};
  d.check({"device", who});
  return d;
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
