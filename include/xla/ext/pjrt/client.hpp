// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plugin's client: its devices, compiled programs and buffers. There is one for each set of
// options, until the process ends.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xla/base/system/mutex.hpp"
#include "xla/base/system/process.hpp"
#include "xla/ext/pjrt/array_type.hpp"
#include "xla/ext/pjrt/find.hpp"
#include "xla/ext/pjrt/flags.hpp"
#include "xla/ext/pjrt/options.hpp"
#include "xla/ext/pjrt/plugin.hpp"
#include "xla/kernel/threads/parallel.hpp"
#include "xla/kernel/threads/pool.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla::ext::pjrt {

class executable;

/// How a buffer uses an array of the host. It can use the array's memory in place if the device is
/// the CPU, the address is 64-byte aligned, and the array outlives the buffer and everything that
/// the buffer is donated to. Otherwise the elements are copied.
enum class host_memory : int { copied = 0, read_in_place = 2, written_in_place = 3 };

struct client_options {
  /// How many devices the CPU has; 0: as CPU_NUM_DEVICES in the environment says.
  int devices = 0;
  int at_least = 1;  ///< if nothing says how many
  /// Further options of the plugin by name, such as "memory_fraction" on GPUs.
  named_options more = {};
};

/// A plugin's devices, their compiled programs and buffers. It lives until the process ends, so
/// that objects of static storage may hold buffers. All functions may be called from several
/// threads. In a process that was forked after the client was made, all of them throw.
class client {
 public:
  /// The client for a device, "CPU", "CUDA" or "TPU"; made once for each plugin and options. A
  /// single CPU device uses num_threads() threads, several use as many as the machine has, unless
  /// PJRT_NPROC is set. Throws `xla::runtime_error` like find_plugin() and plugin::load(), or if
  /// there is no such device.
  static client& of(std::string_view device, const client_options& options = {});
  client(const client&) = delete;

  const plugin& loaded_plugin() const { return plugin_; }
  /// "cpu", "cuda", "tpu".
  const std::string& platform() const { return platform_; }
  /// The platform with the plugin's version, and the kind of its devices.
  const std::string& description() const { return description_; }
  int devices() const { return static_cast<int>(devices_.size()); }
  /// Whether the host can read the devices' memory, as on the CPU. For tests,
  /// XLA_PJRT_MEMORY=device in the environment treats the CPU like other devices.
  bool on_host() const { return on_host_; }
  void check() const { plugin_.check_process(); }

  /// Compiles a StableHLO program, once while someone holds it. If XLA_CACHE is set, the code is
  /// stored in that folder, and read again if the plugin's file, the processor and the options are
  /// the same. ext/pjrt/compile.hpp defines it. Throws `pjrt::error` for programs that XLA refuses.
  std::shared_ptr<const executable> compile(std::string_view text,
                                            compile_options options = {}) const;
  /// Loads a program that compile_ahead() wrote to a file for such a device.
  std::shared_ptr<const executable> load(const std::string& path) const;

  // Buffers as raw handles, for callers that make thousands of them. ext/pjrt/buffer.hpp has an
  // owning class.

  /// A buffer with elements of the host in row-major order.
  abi::buffer* put(const void* data, const array_type& type,
                   host_memory semantics = host_memory::copied, int device = 0) const;
  void drop(abi::buffer* b) const noexcept { plugin_.destroy(abi::entry::buffer_destroy, b); }
  /// Waits for its elements.
  void wait(const abi::buffer* b) const;
  /// Waits for its elements and copies them to the host in row-major order.
  void read(const abi::buffer* b, const array_type& type, void* to) const;
  /// The address of its elements on its device.
  void* address(const abi::buffer* b) const;
  abi::buffer* copy_to(const abi::buffer* b, int device) const;

 private:
  struct slot {
    sys::mutex making;
    std::weak_ptr<const executable> program;
  };
  client(const plugin& p, std::string_view device, const named_options& options);
  void find_devices(std::string_view device);
  abi::device* device_at(int number, std::string_view function) const;
  void describe();
  std::shared_ptr<slot> slot_of(std::string_view options, std::string_view text) const;
  abi::loaded* find_or_build(std::string_view text, std::string_view options) const;
  abi::loaded* build(std::string_view text, std::string_view options) const;
  abi::loaded* take(std::string_view code) const;
  static named_options of_processor(const client_options& options);

  const plugin& plugin_;
  abi::client* it_ = nullptr;
  std::vector<abi::device*> devices_;
  std::string platform_, description_;
  bool on_host_ = false;
  debug_options flags_;  // of XLA_FLAGS
  mutable sys::mutex finding_;
  mutable std::unordered_map<std::string, std::shared_ptr<slot>> programs_;
  xla::detail::metric &to_device_, &from_device_, &sent_, &received_;
};

namespace detail {

/// The limit on threads: with a hundred thousand of them a plugin, or its client, never finishes.
inline constexpr int max_threads = 4096;

/// One device gets this thread's number of threads. Several devices share the machine, like the
/// library's own.
inline int threads_for(const named_options& options) {
  const auto devices = options.find("cpu_device_count");
  const bool several = devices != options.end() && std::get<std::int64_t>(devices->second) > 1;
  const int own = num_threads();
  return std::min(max_threads, several ? std::max(own, kernel::detail::machine_threads()) : own);
}
inline void refuse_threads(std::string_view wanted) {
  if (std::strtoll(std::string(wanted).c_str(), nullptr, 10) > max_threads)
    throw runtime_error(xla::detail::join({"PJRT_NPROC=", wanted, ": a plugin has at most ",
                                           std::to_string(max_threads), " threads"}));
}

/// Refuses arrays for which a plugin would abort or read out of bounds.
inline void check_host_array(const void* data, const array_type& type) {
  check_element(type.type, "pjrt::client::put");
  for (int i = 0; i < type.sizes.rank; ++i)
    if (type.sizes[i] < 0)
      throw runtime_error("pjrt::client::put: a size of " + describe(type) + " is not known");
  if (!data && type.bytes() > 0)
    throw runtime_error("pjrt::client::put: a null pointer for " + describe(type));
}

}  // namespace detail

[[gnu::cold]] inline client& client::of(std::string_view device, const client_options& options) {
  struct registry {
    sys::mutex mutex;
    std::map<std::string, std::unique_ptr<client>> all;
  };
  static registry& r = *new registry;
  const std::string name = detail::upper_case(device);
  const plugin& p = plugin::load(find_plugin(name));
  p.check_process();
  const auto asked = name == "CPU" ? of_processor(options) : options.more;
  const std::string key = xla::detail::join({p.path(), "\n", name, "\n", detail::spell(asked)});
  const std::lock_guard hold(r.mutex);
  auto& c = r.all[key];
  if (!c) c.reset(new client(p, name, asked));
  return *c;
}

inline named_options client::of_processor(const client_options& options) {
  std::int64_t devices = options.devices;
  if (const std::string wanted(detail::variable("CPU_NUM_DEVICES")); devices == 0)
    devices = wanted.empty() ? options.at_least : std::strtoll(wanted.c_str(), nullptr, 10);
  named_options all = options.more;
  if (const auto other = all.find("cpu_device_count"); other != all.end()) {
    const auto* const number = std::get_if<std::int64_t>(&other->second);
    if (!number) throw runtime_error("pjrt::client: cpu_device_count is a std::int64_t");
    devices = *number;
  }
  constexpr std::int64_t most = 4096;  // each takes memory, and a thread once it has a program
  if (devices < 1 || devices > most)
    throw runtime_error(xla::detail::join({"pjrt::client: ", std::to_string(devices),
                                           " devices of the processor: at least 1, at most ",
                                           std::to_string(most)}));
  all.emplace("cpu_device_count", devices);
  // Calls wait for their program; synchronous execution is faster then.
  all.emplace("asynchronous", detail::variable("XLA_PJRT_MEMORY") == "device");
  return all;
}

[[gnu::cold]] inline client::client(const plugin& p, std::string_view device,
                                    const named_options& options)
    : plugin_(p),
      to_device_(xla::detail::get_metric("TransferToDeviceTime")),
      from_device_(xla::detail::get_metric("TransferFromDeviceTime")),
      sent_(xla::detail::get_metric("OutboundData", xla::detail::metric_unit::bytes)),
      received_(xla::detail::get_metric("InboundData", xla::detail::metric_unit::bytes)) {
  const detail::flags_override flags;
  flags_ = flags.options();
  static const bool threads_are_set = std::getenv("PJRT_NPROC") != nullptr;
  if (threads_are_set) detail::refuse_threads(detail::variable("PJRT_NPROC"));
  if (device == "CPU" && !threads_are_set)
    sys::set_environment("PJRT_NPROC", std::to_string(detail::threads_for(options)), true);
  const auto values = detail::point_at(options);
  abi::padded<abi::client_create> a;
  a->options = values.data();
  a->option_count = values.size();
  p.call(abi::entry::client_create, a, xla::detail::join({"PJRT_DEVICE=", device}));
  it_ = a->made;
  try {
    describe();
    find_devices(device);
  } catch (...) {
    p.destroy(abi::entry::client_destroy, it_);
    throw;
  }
}

[[gnu::cold]] inline void client::find_devices(std::string_view device) {
  abi::padded<abi::addressable_devices> a;
  a->of = it_;
  plugin_.call(abi::entry::client_addressable_devices, a, platform_);
  devices_.assign(a->devices, a->devices + a->count);
  const bool known = std::any_of(std::begin(detail::packages), std::end(detail::packages),
                                 [&](const auto& p) { return p.device == device; });
  if (devices_.empty() || (known && detail::upper_case(platform_) != device))
    throw runtime_error(xla::detail::join({"PJRT_DEVICE=", device, ": the plugin ", plugin_.path(),
                                           " has ", std::to_string(devices_.size()),
                                           " devices of the platform ", platform_}));
  abi::padded<abi::made_of<abi::device, abi::description>> d;
  d->of = devices_[0];
  plugin_.call(abi::entry::device_description, d, platform_);
  abi::padded<abi::text_of<abi::description>> kind;
  kind->of = d->made;
  plugin_.call(abi::entry::description_kind, kind, platform_);
  description_ += " on " + std::string(kind->text, kind->size);
}

[[gnu::cold]] inline void client::describe() {
  for (const auto e : {abi::entry::client_platform_name, abi::entry::client_platform_version}) {
    abi::padded<abi::text_of<abi::client>> a;
    a->of = it_;
    plugin_.call(e, a, "pjrt::client");
    (e == abi::entry::client_platform_name ? platform_ : description_).assign(a->text, a->size);
  }
  on_host_ = platform_ == "cpu" && detail::variable("XLA_PJRT_MEMORY") != "device";
}

inline abi::device* client::device_at(int number, std::string_view function) const {
  if (number < 0 || number >= devices())
    throw runtime_error(xla::detail::join(
        {function, ": device ", std::to_string(number), " of ", std::to_string(devices())}));
  return devices_[static_cast<std::size_t>(number)];
}

inline abi::buffer* client::put(const void* data, const array_type& type, host_memory semantics,
                                int device) const {
  check();
  abi::device* const there = device_at(device, "pjrt::client::put");
  detail::check_host_array(data, type);
  const bool copies = semantics == host_memory::copied || !on_host_;
  const std::int64_t start = copies ? xla::detail::now_ns() : 0;
  abi::padded<abi::buffer_from_host> a;
  a->by = it_;
  a->data = data;
  a->type = type.type;
  a->sizes = type.sizes.dims;
  a->rank = static_cast<std::size_t>(type.sizes.rank);
  a->semantics = static_cast<int>(copies ? host_memory::copied : semantics);
  a->on = there;
  plugin_.call(abi::entry::client_buffer_from_host, a, "pjrt: copying to the device");
  if (!copies) {
    plugin_.destroy(abi::entry::event_destroy, a->host_is_free);
    return a->made;
  }
  try {
    plugin_.await(a->host_is_free, "pjrt: copying to the device");
  } catch (...) {
    drop(a->made);
    throw;
  }
  const std::int64_t end = xla::detail::now_ns();
  to_device_.add_at(end, static_cast<double>(end - start));
  sent_.add_at(end, static_cast<double>(type.bytes()));
  return a->made;
}

inline void client::wait(const abi::buffer* b) const {
  check();
  abi::padded<abi::made_of<abi::buffer, abi::event>> a;
  a->of = b;
  plugin_.call(abi::entry::buffer_ready_event, a, "pjrt: waiting");
  plugin_.await(a->made, "pjrt: waiting");
}

inline void client::read(const abi::buffer* b, const array_type& type, void* to) const {
  static constexpr std::int64_t innermost_first[] = {5, 4, 3, 2, 1, 0};
  static_assert(std::size(innermost_first) == xla::detail::max_rank);
  check();
  if (type.bytes() == 0) return wait(b);  // a plugin takes nullptr for a query of the size
  const std::int64_t start = xla::detail::now_ns();
  abi::memory_layout by_rows;
  by_rows.tiled_h.size = offsetof(abi::memory_layout, kind) - offsetof(abi::memory_layout, tiled_h);
  by_rows.innermost_first = std::end(innermost_first) - type.sizes.rank;
  by_rows.rank = static_cast<std::size_t>(type.sizes.rank);
  abi::padded<abi::buffer_to_host> a;
  a->from = b;
  a->layout = &by_rows;
  a->to = to;
  a->size = type.bytes();
  plugin_.call(abi::entry::buffer_to_host, a, "pjrt: copying from the device");
  plugin_.await(a->done, "pjrt: copying from the device");
  const std::int64_t end = xla::detail::now_ns();
  from_device_.add_at(end, static_cast<double>(end - start));
  received_.add_at(end, static_cast<double>(type.bytes()));
}

inline void* client::address(const abi::buffer* b) const {
  check();
  abi::padded<abi::made_of<abi::buffer, void>> a;
  a->of = b;
  plugin_.call(abi::entry::buffer_address, a, "pjrt: asking for an address");
  return a->made;
}

inline abi::buffer* client::copy_to(const abi::buffer* b, int device) const {
  check();
  abi::padded<abi::buffer_copy_to_device> a;
  a->from = b;
  a->to = device_at(device, "pjrt::client::copy_to");
  plugin_.call(abi::entry::buffer_copy_to_device, a, "pjrt: copying between devices");
  return a->made;
}

}  // namespace xla::ext::pjrt
