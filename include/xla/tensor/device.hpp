// SPDX-License-Identifier: Apache-2.0
#pragma once

// The public functions about devices, and the scope that selects one. A device is a share of the
// machine's cores, or a device of a plugin. run/state/devices.hpp defines the rest.

#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "xla/base/caller.hpp"
#include "xla/base/dependent.hpp"
#include "xla/shape/extent.hpp"

namespace xla {
namespace detail {

/// The devices of this process, and the current one of a thread; run/state/devices.hpp defines it.
template <class In>
struct basic_devices {
  static int count();
  static void set_count(int n, const call_site& site);
  /// This thread's device.
  static int current();
  /// Makes this thread work on a device, and on its cores; the result is the argument of leave().
  static int enter(int device);
  static void leave(int before);
  static void use_all_cores();
  [[noreturn]] static void refuse(int index, const call_site& site);
};
template <class T>
using devices_of = dependent<T, basic_devices<void>>;

}  // namespace detail

/// The device of a tensor: a share of the machine's cores, "xla:0". In a compiled body, x.device()
/// also says to which step random numbers belong: randn<float>({4, 2}, x.device()).
class Device {
 public:
  int index = 0;

  constexpr Device() = default;
  constexpr explicit Device(int number, detail::size_table* table = nullptr)
      : index(number), table_(table) {}

  std::string str() const { return "xla:" + std::to_string(index); }
  constexpr detail::size_table* table() const { return table_; }
  /// Throws `xla::error` unless the device exists. A compiled body runs on the device of its
  /// arguments, and cannot name another one.
  template <class In = void>
  constexpr void check(const detail::call_site& site) const {
    if (index == 0) return;
    if (!__builtin_is_constant_evaluated())
      if (index > 0 && index < detail::devices_of<In>::count()) return;
    detail::devices_of<In>::refuse(index, site);
  }
  friend constexpr bool operator==(const Device& a, const Device& b) { return a.index == b.index; }
  friend std::ostream& operator<<(std::ostream& out, const Device& d) { return out << d.str(); }

 private:
  detail::size_table* table_ = nullptr;
};

/// How many devices this process has: XLA_DEVICES, or 1.
template <class In = void>
int device_count() {
  return detail::devices_of<In>::count();
}
/// Divides the machine's cores among n devices, c / n of c each and at least one thread, before
/// they are used. Throws `xla::error` for less than 1, more than 256, and if a used device would
/// disappear.
template <class In = void>
void set_device_count(int n, caller loc = here()) {
  detail::devices_of<In>::set_count(n, {"set_device_count", loc});
}

/// The device that this thread works on: the first, or that of a device_guard.
template <class In = void>
constexpr Device device() {
  return __builtin_is_constant_evaluated() ? Device() : Device(detail::devices_of<In>::current());
}
/// The device of that number; an error if it does not exist.
template <class In = void>
constexpr Device device(int index, caller loc = here()) {
  const Device d{index};
  d.check<In>({"device", loc});
  return d;
}
template <class In = void>
inline std::vector<Device> devices() {
  std::vector<Device> all;
  for (int i = 0; i < device_count<In>(); ++i) all.push_back(Device(i));
  return all;
}
/// The devices' names, in PyTorch/XLA's form.
template <class In = void>
inline std::vector<std::string> get_xla_supported_devices() {
  std::vector<std::string> all;
  for (const Device& d : devices<In>()) all.push_back(d.str());
  return all;
}

/// Lets this thread run on all cores of the process from now on. A thread that is started within a
/// device_guard is otherwise restricted to those of the device.
template <class In = void>
void use_all_cores() {
  detail::devices_of<In>::use_all_cores();
}

/// Makes this thread work on a device within a scope, and only on its cores if the system allows
/// that: its new tensors are on that device. Ops run on the device of their tensors, whatever the
/// thread's. Throws `xla::error` if the device does not exist. A thread started within the scope
/// makes its own guard.
template <class In>
class BasicDeviceGuard {
 public:
  explicit BasicDeviceGuard(const Device& device, caller loc = here()) {
    device.check<In>({"device_guard", loc});
    before_ = detail::devices_of<In>::enter(device.index);
  }
  ~BasicDeviceGuard() { detail::devices_of<In>::leave(before_); }
  BasicDeviceGuard(const BasicDeviceGuard&) = delete;
  BasicDeviceGuard& operator=(const BasicDeviceGuard&) = delete;

 private:
  int before_;
};
using device_guard = BasicDeviceGuard<void>;

}  // namespace xla
