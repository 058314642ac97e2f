// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the devices of the process: how many, which cores each has, and which one a thread works
// on. tensor/device.hpp declares the public functions.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/system/cores.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/text.hpp"
#include "xla/kernel/threads/pool.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/tensor/device.hpp"

namespace xla::detail {

/// The cores that this process may use, and the devices' parts of them.
template <class>
class basic_cores {
 public:
  static basic_cores& instance() { return made_once(the_process.cores); }
  static constexpr fork_order order = fork_order::stores;
  void before_fork() { dividing.lock(); }
  void after_fork(bool) noexcept { dividing.unlock(); }
  /// If there are fewer cores than devices, the system places the threads.
  [[gnu::cold]] bool suffice(int devices) const { return devices > 1 && all_.count() >= devices; }
  [[gnu::cold]] void pin(int i, int n) const { all_.part(i, n).pin_this_thread(); }
  /// Notes where this thread may run, for restore_thread().
  [[gnu::cold]] void note_thread() { of_thread = sys::core_set::of_this_thread(); }
  [[gnu::cold]] void restore_thread() { of_thread.pin_this_thread(); }
  [[gnu::cold]] void unpin() const { all_.pin_this_thread(); }

  sys::mutex dividing;  ///< held while the devices get their shares

 private:
  static inline thread_local sys::core_set of_thread;
  const sys::core_set all_ = sys::core_set::of_this_thread();
};

/// Gives each of n devices its share of the machine; force: also if set_num_threads() was called.
template <class In = void>
[[gnu::cold]] void share_machine(int n, bool force) {
  if (n > 1) the_process.crossing.store(&dependent<In, basic_crossing<void>>::all);
  at_fork<In>::entangled.store([] {
    int replicas = 0;
    for (const device_context& d : the_devices) replicas += d.replica.load() != nullptr;
    return replicas > 1;
  });
  the_process.devices.store(n);
  const int all = kernel::detail::machine_threads(), each = std::max(1, all / n);
  for (int i = 0; i < n; ++i) {
    std::atomic<int>& own = kernel::detail::core_shares[i].threads;
    if (const int known = own.load(); force || known == 0 || known == all) own.store(each);
  }
  const bool pinned = basic_cores<void>::instance().suffice(n);
  kernel::detail::pin_to_cores.store(pinned ? +[](const kernel::detail::core_share& own) {
    basic_cores<void>::instance().pin(static_cast<int>(&own - kernel::detail::core_shares),
                                          the_process.devices.load());
  } : nullptr);
}

template <class In>
[[gnu::cold]] int basic_devices<In>::count() {
  if (const int n = the_process.devices.load()) return n;
  const char* const wanted = std::getenv("XLA_DEVICES");
  const long n = wanted ? std::strtol(wanted, nullptr, 10) : 1;
  const std::lock_guard hold(basic_cores<In>::instance().dividing);
  if (the_process.devices.load() == 0)
    share_machine<In>(static_cast<int>(std::clamp<long>(n, 1, max_devices)), false);
  return the_process.devices.load();
}

template <class In>
[[gnu::cold]] void basic_devices<In>::set_count(int n, const call_site& site) {
  int used = 1;
  for (int i = 1; i < max_devices; ++i)
    if (the_devices[i].used.load()) used = i + 1;
  text t;
  if (n < 1 || n > max_devices) t << "there can be 1 to " << max_devices << " devices, not " << n;
  else if (n < used) t << "xla:" << used - 1 << " has been used, so there cannot be only " << n;
  if (!t.empty()) throw runtime_error(join({site.function, ": ", t.view()}));
  const std::lock_guard hold(basic_cores<In>::instance().dividing);
  share_machine<In>(n, true);
}

template <class In>
[[gnu::cold]] int basic_devices<In>::current() {
  return this_thread.number;
}

template <class In>
[[gnu::cold]] int basic_devices<In>::enter(int device) {
  count();  // if the number is not determined yet
  const int own = this_thread.number, before = this_thread.chose ? own : ~own;
  if (!this_thread.chose && kernel::detail::pin_to_cores.load())
    basic_cores<In>::instance().note_thread();
  this_thread.chose = true;
  work_on<In>(device_of(device));
  if (const auto pin = kernel::detail::pin_to_cores.load()) pin(*kernel::detail::own_cores);
  return before;
}

template <class In>
[[gnu::cold]] void basic_devices<In>::leave(int before) {
  if (before >= 0) return void(enter(before));
  this_thread.chose = false;
  work_on<In>(device_of(~before));  // that of the tensor concerned, as in a gradient rule
  if (kernel::detail::pin_to_cores.load()) basic_cores<In>::instance().restore_thread();
}

template <class In>
[[gnu::cold]] void basic_devices<In>::use_all_cores() {
  if (kernel::detail::pin_to_cores.load()) basic_cores<In>::instance().unpin();
}

template <class In>
[[noreturn, gnu::cold]] void basic_devices<In>::refuse(int index, const call_site& site) {
  const int n = count();
  text sentence;
  sentence << site.function << ": there is no device " << index << "; there ";
  if (n == 1) sentence << "is device 0; more by set_device_count(n) or XLA_DEVICES=n";
  else sentence << "are devices 0 to " << n - 1;
  sentence << site.at;
  throw runtime_error(std::string(sentence.view()));
}

XLA_INSTANCE(struct basic_devices<void>);

/// Makes a replica's thread work on a device within a scope; like xla::device_guard.
template <class In>
class basic_device_scope {
 public:
  explicit basic_device_scope(device_context& d) : before_(basic_devices<In>::enter(d.number())) {}
  ~basic_device_scope() { basic_devices<In>::leave(before_); }
  basic_device_scope(const basic_device_scope&) = delete;
  basic_device_scope& operator=(const basic_device_scope&) = delete;

 private:
  int before_;
};
using device_scope = basic_device_scope<void>;

}  // namespace xla::detail
