// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compiles a StableHLO program ahead of time for devices that this machine lacks. Tools include it;
// xla::compile() compiles for the devices of this machine.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/ext/pjrt/compile.hpp"
#include "xla/ext/pjrt/find.hpp"
#include "xla/ext/pjrt/options.hpp"
#include "xla/ext/pjrt/plugin.hpp"
#include "xla/ext/pjrt/saved_program.hpp"
#include "xla/ext/pjrt/text_limits.hpp"
#include "xla/io/atomic_file.hpp"

namespace xla::ext::pjrt {

/// Devices to compile for, which need not exist here.
struct target {
  std::string topology;   ///< by name, as TPUs have them: "v5e:2x2"
  named_options options;  ///< of the options that the plugin knows
};

namespace detail {

/// Whether a message in protobuf's text format sets a field to a number other than 0.
inline bool has_number(std::string_view message, std::string_view field) {
  const std::string begins = std::string(field) + ":";
  const auto at = message.find(begins);
  if (at == message.npos) return false;
  const auto digit = message.find_first_not_of(' ', at + begins.size());
  return digit != message.npos && message[digit] >= '1' && message[digit] <= '9';
}

}  // namespace detail

/// GPUs of a model, given by its GpuTargetConfigProto as text. XLA's repository has one for each
/// model, in xla/backends/gpu/target_config/specs.
inline target gpu_target(std::string config, int gpus = 1) {
  if (gpus < 1) throw runtime_error("pjrt::gpu_target: needs 1 GPU or more");
  // The plugin divides by these fields.
  for (const std::string_view field :
       {"threads_per_warp", "threads_per_block_limit", "threads_per_core_limit", "core_count",
        "fpus_per_core", "block_dim_limit_x", "block_dim_limit_y", "block_dim_limit_z"})
    if (!detail::has_number(config, field))
      throw runtime_error(xla::detail::join(
          {"pjrt::gpu_target: the GpuTargetConfigProto has no ", field,
           "; XLA's repository has whole ones in xla/backends/gpu/target_config/specs"}));
  return {"", {{"target_config", std::move(config)}, {"topology", "1x1x" + std::to_string(gpus)}}};
}

/// Compiles a StableHLO program for devices that need not exist here, with the plugin for `device`,
/// and writes it to a file. client::load() reads it on a machine with such devices; xla::compile()
/// does not, as it has the cache XLA_CACHE. The plugin for GPUs looks for the program ptxas on the
/// path, in /usr/local/cuda, or next to itself. Throws `pjrt::error` for programs that XLA refuses,
/// and `xla::io_error`.
[[gnu::cold]] inline void compile_ahead(std::string_view device, const target& for_these,
                                        std::string_view text, const std::string& to,
                                        const compile_options& options = {}) {
  const plugin& p = plugin::load(find_plugin(device));
  p.check_process();
  check_text(text);
  const auto values = detail::point_at(for_these.options);
  abi::padded<abi::topology_create> made;
  made->name = for_these.topology.data();
  made->name_size = for_these.topology.size();
  made->options = values.data();
  made->option_count = values.size();
  p.call(abi::entry::topology_create, made, "pjrt::compile_ahead");

  saved_program out{p.path(), options.encode(), std::string(text), {}};
  const auto source = detail::as_program(text);
  abi::padded<abi::compile_for> a;
  a->target = made->made;
  a->source = &source.given;
  a->options = out.options.data();
  a->options_size = out.options.size();
  const struct ending {
    const plugin& of;
    const abi::topology* topology;
    const abi::compile_for& code;
    ~ending() {
      of.destroy(abi::entry::executable_destroy, code.made);
      of.destroy(abi::entry::topology_destroy, topology);
    }
  } end{p, made->made, a.given};
  p.call(abi::entry::compile, a, "pjrt::compile_ahead");
  out.code = detail::serialize(p, a->made);
  const std::string bytes = out.pack();
  io::atomic_file file(to);
  file.write({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  file.commit();
}

}  // namespace xla::ext::pjrt
