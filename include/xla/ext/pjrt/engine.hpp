// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/pjrt/run_program.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/run/engine/common.hpp"
#include "xla/run/world/now.hpp"

namespace xla::detail {

/// XLA on the first device of a plugin, which is found when the first program is compiled.
class pjrt_engine final : public common_engine {
 public:
  explicit pjrt_engine(std::string device) : device_(std::move(device)), name_("pjrt:" + device_) {}
  std::string_view name() const override { return name_; }
  const op_info* lacks(const program& ops) const override {
    // Its programs are for one device, and know of no other replica.
    for (int v = 0; v < ops.count.values && world_now() > 1; ++v)
      if (ops.values[v].op->exchanges) return ops.values[v].op;
    return without_stablehlo(ops);
  }
  std::unique_ptr<executable> make(sized_program&& p) const override {
    return std::make_unique<pjrt_program>(*this, ext::pjrt::client::of(device_), std::move(p));
  }
  void note_fallback(const op_info& lacked) const override {
    get_counter(join({"fallback::", lacked.name})).add();
  }
  bool runs_single_ops() const override { return true; }

 private:
  std::string device_, name_;
};

/// The one for a device; never destroyed, as executables know what made them.
template <class = void>
pjrt_engine& pjrt_engine_of(std::string_view device) {
  static std::mutex making;
  const std::lock_guard hold(making);
  const std::string name = join({"pjrt:", device});
  if (const engine* known = engine_list<void>::find(name))
    return const_cast<pjrt_engine&>(static_cast<const pjrt_engine&>(*known));
  auto& made = *new pjrt_engine(std::string(device));
  engine_list<void>::add(made);
  return made;
}

}  // namespace xla::detail
