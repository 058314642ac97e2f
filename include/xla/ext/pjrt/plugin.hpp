// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads a plugin and calls its functions, with errors as exceptions. Nothing above this header sees
// abi.hpp's error objects.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "xla/base/error.hpp"
#include "xla/base/system/fork.hpp"
#include "xla/base/system/library.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/system/path.hpp"
#include "xla/base/system/process.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/abi.hpp"

namespace xla::ext::pjrt {

/// An error that a plugin reports, with its message and absl::StatusCode.
class error : public runtime_error {
 public:
  error(const std::string& sentence, abi::code code) : runtime_error(sentence), code_(code) {}
  abi::code code() const noexcept { return code_; }

 private:
  abi::code code_;
};

namespace detail {

/// The number of forks between this process and the one that loaded the first plugin, counted by
/// plugin::load().
inline std::atomic<unsigned> forks{0};

}  // namespace detail

/// A loaded plugin: a library with XLA's compiler and devices behind PJRT's C interface. It stays
/// loaded until the process ends.
class plugin {
 public:
  /// Loads the plugin in a file, once. Silences the plugin's own log, whose messages are also
  /// thrown, unless TF_CPP_MIN_LOG_LEVEL is set. Throws `xla::runtime_error` if the file is no
  /// plugin, or has an interface version that this library does not support.
  static const plugin& load(const std::string& path);
  plugin(const plugin&) = delete;

  const std::string& path() const { return path_; }
  const abi::version& version() const { return table_->speaks; }
  /// The plugin's attributes, such as "xla_version" or "stablehlo_current_version".
  std::map<std::string, std::string> attributes() const;

  bool has(abi::entry e) const {
    const auto at = static_cast<std::size_t>(e);
    return at < entries_ && (&table_->first_entry)[at];
  }
  /// Calls an entry; throws its error, with the name of the operation in front.
  template <class A>
  void call(abi::entry e, abi::padded<A>& arguments, std::string_view doing) const {
    if (!has(e)) refuse_entry(e, doing);
    if (abi::error* const refused = enter(e, &arguments)) fail(refused, doing);
  }
  /// Destroys an object of the plugin. In a forked process it is leaked, because destroying it may
  /// wait for threads that the child does not have.
  template <class Of>
  void destroy(abi::entry e, Of* what) const noexcept {
    if (!what || is_forked()) return;
    abi::padded<abi::about<Of>> a;
    a->of = what;
    if (abi::error* const refused = enter(e, &a)) destroy_error(refused);
  }
  /// Waits for an event and destroys it; throws its error.
  void await(abi::event* e, std::string_view doing) const {
    abi::padded<abi::about<abi::event>> a;
    a->of = e;
    abi::error* const brought = enter(abi::entry::event_await, &a);
    destroy(abi::entry::event_destroy, e);
    if (brought) fail(brought, doing);
  }
  /// To be called before each use: throws in a process that was forked after the first such call,
  /// which is when the plugin starts its threads.
  void check_process() const {
    if (is_forked()) refuse_fork();
  }

 private:
  explicit plugin(const std::string& path);
  bool is_forked() const noexcept {
    const unsigned now = detail::forks.load(std::memory_order_relaxed);
    unsigned first = used_after_.load(std::memory_order_relaxed);
    if (first == unused && used_after_.compare_exchange_strong(first, now)) return false;
    return first != now;
  }
  abi::error* enter(abi::entry e, void* arguments) const {
    return (&table_->first_entry)[static_cast<int>(e)](arguments);
  }
  void destroy_error(abi::error* e) const noexcept {
    abi::padded<abi::about<abi::error>> a;
    a->of = e;
    enter(abi::entry::error_destroy, &a);  // its result is not an error
  }
  [[noreturn, gnu::cold]] void fail(abi::error* e, std::string_view doing) const;
  [[noreturn, gnu::cold]] void refuse_entry(abi::entry e, std::string_view doing) const;
  [[noreturn, gnu::cold]] static void refuse_fork();

  std::string path_;
  const abi::table* table_ = nullptr;
  std::size_t entries_ = 0;
  static constexpr unsigned unused = ~0u;
  mutable std::atomic<unsigned> used_after_{unused};
};

[[gnu::cold]] inline const plugin& plugin::load(const std::string& path) {
  struct registry {
    sys::mutex mutex;
    std::map<std::string, std::unique_ptr<const plugin>> all;
  };
  static registry& r = *new registry;  // never destroyed: buffers may be released after main
  [[maybe_unused]] static const bool watched = [] {
    sys::at_fork(nullptr, nullptr, [] { ++detail::forks; });
    return true;
  }();
  std::error_code failed;
  const auto canonical = std::filesystem::canonical(sys::path_of(path), failed);
  const std::string file = failed ? path : sys::text_of(canonical);
  const std::lock_guard hold(r.mutex);
  auto& p = r.all[file];
  if (!p) p.reset(new plugin(file));
  return *p;
}

[[gnu::cold]] inline plugin::plugin(const std::string& path) : path_(path) {
  sys::set_environment("TF_CPP_MIN_LOG_LEVEL", "3", false);
  const sys::library library{path};
  if (!library)
    throw runtime_error(xla::detail::join({"cannot load the plugin: ", library.error()}));
  const auto get = library.find<const abi::table*()>("GetPjrtApi");
  if (!get)
    throw runtime_error(
        xla::detail::join({path, " is no plugin of PJRT: it has no function GetPjrtApi"}));
  table_ = get();
  const abi::version& v = table_->speaks;
  if (v.major != abi::major_version || v.minor < abi::oldest_minor_version)
    throw runtime_error(
        xla::detail::join({"the plugin ", path, " speaks PJRT ", std::to_string(v.major), ".",
                           std::to_string(v.minor), "; ", std::to_string(abi::major_version), ".",
                           std::to_string(abi::oldest_minor_version), " or newer is needed"}));
  entries_ = (table_->h.size - offsetof(abi::table, first_entry)) / sizeof(void*);
  abi::padded<abi::about<void>> a;
  call(abi::entry::plugin_initialize, a, path);
}

[[gnu::cold]] inline std::map<std::string, std::string> plugin::attributes() const {
  abi::padded<abi::attributes> a;
  call(abi::entry::plugin_attributes, a, path_);
  std::map<std::string, std::string> all;
  for (std::size_t i = 0; i < a->count; ++i) {
    const abi::named_value& v = a->values[i];
    std::string& text = all[std::string(v.name, v.name_size)];
    if (v.kind == abi::value_kind::string) text.assign(v.string, v.count);
    if (v.kind == abi::value_kind::int64) text = std::to_string(v.int64);
    if (v.kind == abi::value_kind::float32) text = std::to_string(v.float32);
    if (v.kind == abi::value_kind::boolean) text = v.boolean ? "true" : "false";
    if (v.kind == abi::value_kind::int64_list)
      for (std::size_t k = 0; k < v.count; ++k)
        text += (k > 0 ? "." : "") + std::to_string(v.int64s[k]);
  }
  return all;
}

inline void plugin::fail(abi::error* e, std::string_view doing) const {
  abi::padded<abi::text_of<abi::error>> message;
  message->of = e;
  enter(abi::entry::error_message, &message);  // its result is not an error
  abi::padded<abi::number_of<abi::error, abi::code>> number;
  number->of = e;
  if (abi::error* const refused = enter(abi::entry::error_code, &number)) destroy_error(refused);
  const std::string sentence =
      xla::detail::join({doing, ": ", std::string_view(message->text, message->size)});
  destroy_error(e);
  if (number->number == abi::code::out_of_memory) throw out_of_memory(xla::detail::text(sentence));
  throw error(sentence, number->number);
}

inline void plugin::refuse_entry(abi::entry e, std::string_view doing) const {
  throw runtime_error(
      xla::detail::join({doing, ": the plugin ", path_, " has no entry ",
                         std::to_string(static_cast<int>(e)), " in its table; a newer one has"}));
}

inline void plugin::refuse_fork() {
  throw runtime_error(
      "xla: this process was forked after its PJRT client was made, whose threads the parent has "
      "kept: fork before, or use it in the parent alone");
}

}  // namespace xla::ext::pjrt
