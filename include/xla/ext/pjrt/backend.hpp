// SPDX-License-Identifier: Apache-2.0
#pragma once

// The backend that runs programs by a PJRT plugin. It compiles, and chooses between one device, a
// mesh and replicas; ext/pjrt.hpp makes it known.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/system/mutex.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/pjrt/compiled.hpp"
#include "xla/ext/pjrt/replicas.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/run/backend/common.hpp"
#include "xla/run/state/devices.hpp"
#include "xla/run/trace/to_device.hpp"
#include "xla/run/world/world.hpp"
#include "xla/tensor/device.hpp"

namespace xla::detail {

/// Lets this thread, and the threads that a plugin starts, run on all cores for its lifetime.
/// Otherwise the plugin's threads would stay on the cores of one device.
class on_all_cores {
 public:
  on_all_cores() {
    if (pinned_) basic_devices<void>::use_all_cores();
  }
  on_all_cores(const on_all_cores&) = delete;
  ~on_all_cores() {
    if (pinned_) kernel::detail::pin_to_cores.load()(*kernel::detail::own_cores);
  }

 private:
  const bool pinned_ = this_thread.chose && kernel::detail::pin_to_cores.load();
};

/// XLA on the devices of a plugin, which is found when the first program is compiled. The CPU has
/// as many devices as this library: replicas that exchange run on one each.
class pjrt_backend final : public common_backend {
 public:
  explicit pjrt_backend(std::string device)
      : device_(std::move(device)), name_("pjrt:" + device_) {}
  std::string_view name() const override { return name_; }
  /// "openxla" is PyTorch's name of XLA: the device that PJRT_DEVICE names, or the CPU.
  bool answers_to(std::string_view called) const override {
    const bool usual = backends.usual ? backends.usual == this : device_ == "CPU";
    return called == name_ || (called == "openxla" && usual);
  }
  const op_info* lacks(const program& ops) const override {
    // Replicas of other processes run programs of their own.
    const replica* const here = world_now() > 1 ? replica_now() : nullptr;
    for (int v = 0; v < ops.count.values && here && !here->shares_memory(); ++v)
      if (ops.values[v].op->alone_is_input) return ops.values[v].op;
    return without_stablehlo(ops);
  }
  std::string_view why(const op_info& lacked) const override {
    const std::string_view no_form = why_not_stablehlo(lacked);
    return no_form.empty() ? "replicas of several processes exchange by plans alone" : no_form;
  }
  std::unique_ptr<executable> make(sized_program&& p) const override {
    refuse_huge(p);
    const on_all_cores starts_threads;
    const int parts = partitions_of(p);
    const auto& on = client_with(std::max(device_count(), parts));
    if (!is_of_replicas(p)) return std::make_unique<pjrt_program>(*this, on, std::move(p), parts);
    if (parts > 1)
      throw runtime_error(
          "xla::mark_sharding: a function in which replicas exchange runs on a device for each of "
          "them, and has no mesh");
    p.world = world_now();
    return std::make_unique<pjrt_replicas>(*this, on, std::move(p));
  }
  void note_fallback(const op_info& lacked) const override {
    get_counter(join({"fallback::", lacked.name})).add();
  }
  bool runs_single_ops() const override { return true; }

 private:
  /// Finding a plugin searches folders, so a known one is used again.
  struct known {
    int devices;
    const ext::pjrt::client& on;
    const known* before;
  };
  const ext::pjrt::client& client_with(int devices) const {
    const known* const last = known_.load(std::memory_order_acquire);
    for (const known* k = last; k; k = k->before)
      if (k->devices == devices) return k->on;
    const auto& on = ext::pjrt::client::of(device_, {.at_least = devices});
    known* const now = new known{devices, on, last};
    while (!known_.compare_exchange_weak(now->before, now, std::memory_order_acq_rel)) {}
    return on;
  }
  static void refuse_huge(const sized_program& p) {
    for (int v = 0; v < p.source.count.values; ++v)
      if (p.bytes(v) > ext::pjrt::max_bytes)
        throw out_of_memory(text(p.source.values[v].op->name)
                            << ": " << p.shapes[v] << " is more than any machine's memory");
  }
  static bool is_of_replicas(const sized_program& p) {
    bool any = false;
    for (int v = 0; v < p.source.count.values && world_now() > 1; ++v)
      any |= p.source.values[v].op->alone_is_input;
    return any;
  }
  static int partitions_of(const sized_program& p) {
    int most = 1;
    for (int i = 0; i < p.source.count.slots; ++i)
      most = std::max(most, p.source.slots[i].sharded_as.devices());
    return most;
  }

  std::string device_, name_;
  mutable std::atomic<const known*> known_{nullptr};
};

/// The backend for a device; never destroyed, because executables refer to it.
template <class = void>
pjrt_backend& pjrt_backend_of(std::string_view device) {
  static sys::mutex making;
  const std::lock_guard hold(making);
  const std::string name = join({"pjrt:", device});
  if (const backend* known = backend_list<void>::find(name))
    return const_cast<pjrt_backend&>(static_cast<const pjrt_backend&>(*known));
  auto& made = *new pjrt_backend(std::string(device));
  backend_list<void>::add(made);
  return made;
}

}  // namespace xla::detail
