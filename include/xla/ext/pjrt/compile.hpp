// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compiles and loads programs, with the cache of executables in memory and on disk. It defines what
// client.hpp declares.

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/pjrt/disk_cache.hpp"
#include "xla/ext/pjrt/executable.hpp"
#include "xla/ext/pjrt/options.hpp"
#include "xla/ext/pjrt/saved_program.hpp"
#include "xla/ext/pjrt/text_limits.hpp"
#include "xla/io/file.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla::ext::pjrt {

namespace detail {

/// A program as a plugin takes it; it points into the text.
inline abi::padded<abi::program> as_program(std::string_view text) {
  static constexpr std::string_view format = "mlir";
  abi::padded<abi::program> p;
  p->code = text.data();
  p->code_size = text.size();
  p->format = format.data();
  p->format_size = format.size();
  return p;
}

}  // namespace detail

[[gnu::cold]] inline abi::loaded* client::build(std::string_view text,
                                                std::string_view options) const {
  const xla::detail::timed sample(xla::detail::get_metric("Pjrt::CompileTime"));
  const auto source = detail::as_program(text);
  abi::padded<abi::client_compile> a;
  a->by = it_;
  a->source = &source.given;
  a->options = options.data();
  a->options_size = options.size();
  plugin_.call(abi::entry::client_compile, a, "pjrt: XLA's compiler");
  return a->made;
}

[[gnu::cold]] inline abi::loaded* client::take(std::string_view code) const {
  const xla::detail::timed sample(xla::detail::get_metric("Pjrt::LoadTime"));
  abi::padded<abi::deserialize> a;
  a->by = it_;
  a->bytes = code.data();
  a->size = code.size();
  plugin_.call(abi::entry::loaded_deserialize, a, "pjrt: loading a program");
  return a->made;
}

[[gnu::cold]] inline abi::loaded* client::find_or_build(std::string_view text,
                                                        std::string_view options) const {
  detail::disk_cache files(detail::variable("XLA_CACHE"), *this, options, text);
  if (!files) return build(text, options);
  try {
    if (const auto code = files.find()) {
      abi::loaded* const there = take(*code);
      xla::detail::get_counter("PersistentCacheHit").add();
      return there;
    }
  } catch (const std::exception&) {}  // as if the file did not exist
  xla::detail::get_counter("PersistentCacheMiss").add();
  abi::loaded* const made = build(text, options);
  try {
    files.keep(detail::serialize(plugin_, detail::program_code(plugin_, made).it));
  } catch (const std::exception&) {}  // the program is compiled nevertheless
  return made;
}

[[gnu::cold]] inline std::shared_ptr<client::slot> client::slot_of(std::string_view options,
                                                                   std::string_view text) const {
  std::string key = xla::detail::join({options, "\n", text});
  const std::lock_guard hold(finding_);
  if (const auto there = programs_.find(key); there != programs_.end()) return there->second;
  std::erase_if(programs_, [](const auto& p) {
    return p.second.use_count() == 1 && p.second->program.expired();
  });
  return programs_[std::move(key)] = std::make_shared<slot>();
}

[[gnu::cold]] inline std::shared_ptr<const executable> client::compile(
    std::string_view text, compile_options options) const {
  check();
  options.debug.insert(flags_.begin(), flags_.end());
  // Otherwise XLA's maximum on the CPU loses a NaN in its second operand.
  if (platform_ == "cpu") options.debug.emplace("xla_cpu_enable_fast_min_max", false);
  const std::string how = options.encode();
  if (options.devices() > devices())
    throw runtime_error(xla::detail::join(
        {"pjrt::client::compile: a program for ", std::to_string(options.devices()),
         " devices, and there are ", std::to_string(devices()), " of the platform ", platform_}));
  const auto entry = slot_of(how, text);
  const std::lock_guard hold(entry->making);
  if (auto there = entry->program.lock()) return there;
  check_text(text);
  auto made = std::make_shared<const executable>(*this, find_or_build(text, how), text);
  entry->program = made;
  return made;
}

[[gnu::cold]] inline std::shared_ptr<const executable> client::load(const std::string& path) const {
  check();
  const auto bytes = io::read_file(path);
  const auto saved =
      saved_program::unpack({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!saved) throw io_error("'" + path + "' is no whole program that was compiled ahead");
  return std::make_shared<const executable>(*this, take(saved->code), saved->text);
}

}  // namespace xla::ext::pjrt
