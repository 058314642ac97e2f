// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps compiled programs in the folder that XLA_CACHE names, so that the next process does not
// compile them again. compile.hpp asks it.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "xla/base/hash.hpp"
#include "xla/base/system/path.hpp"
#include "xla/base/system/process.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/pjrt/saved_program.hpp"

namespace xla::ext::pjrt::detail {

/// The processor's name and features, for which code is compiled.
inline const std::string& processor() {
  static const std::string facts = [] {
    std::ifstream from("/proc/cpuinfo");
    std::string out;
    for (std::string line; std::getline(from, line) && !line.empty();)  // of the first core
      if (line.starts_with("model") || line.starts_with("flags") || line.starts_with("Features"))
        out += line + "\n";
    return out;
  }();
  return facts;
}

/// The plugin and the machine for which a client compiles. Code for another one may load, and then
/// fail or give wrong results.
inline std::string maker(const client& c) {
  namespace fs = std::filesystem;
  const std::string& path = c.loaded_plugin().path();
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  const auto time = fs::last_write_time(path, ignored).time_since_epoch().count();
  return xla::detail::join({path, "\n", std::to_string(size), " bytes of ", std::to_string(time),
                            "\nPJRT 0.", std::to_string(c.loaded_plugin().version().minor), ", ",
                            c.description(), "\n", processor()});
}

/// The folder of compiled programs that XLA_CACHE names. If anything goes wrong there, the program
/// is compiled.
class disk_cache {
 public:
  /// Without a name it has no files.
  disk_cache(std::string_view folder, const client& c, std::string_view options,
             std::string_view text) {
    if (folder.empty()) return;
    key_.made_by = maker(c);
    key_.options = options;
    key_.text = text;
    file_ = sys::path_of(folder) / (name(1) + name(2) + ".xla");
  }
  explicit operator bool() const { return !file_.empty(); }

  /// The plugin's code, if the file is whole and of the same program.
  std::optional<std::string> find() const {
    std::ifstream from(file_, std::ios::binary | std::ios::ate);
    if (!from) return {};
    std::string bytes(static_cast<std::size_t>(std::max<std::streamoff>(from.tellg(), 0)), 0);
    from.seekg(0).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    auto there = saved_program::unpack(bytes);
    if (!there || there->made_by != key_.made_by || there->options != key_.options ||
        there->text != key_.text)
      return {};
    return std::move(there->code);
  }
  /// Written to another name and renamed, as other processes may read and write it at the same
  /// time.
  void keep(std::string code) {
    namespace fs = std::filesystem;
    static std::atomic<int> written{0};
    std::error_code failed;
    if (fs::create_directories(file_.parent_path(), failed))  // code: only the user may write it
      fs::permissions(file_.parent_path(), fs::perms::owner_all, failed);
    fs::path aside = file_;
    aside += "." + std::to_string(sys::process_id()) + "." + std::to_string(++written) + ".tmp";
    key_.code = std::move(code);
    const std::string bytes = key_.pack();
    std::ofstream to(aside, std::ios::binary);
    to.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    to.close();
    if (to) fs::rename(aside, file_, failed);
    if (!to || failed) fs::remove(aside, failed);
  }

 private:
  /// Half of a hash of the key, in hexadecimal.
  std::string name(std::uint64_t seed) const {
    std::uint64_t h = seed;
    for (const std::string* part : {&key_.made_by, &key_.options, &key_.text}) {
      for (const char c : *part) h = xla::detail::mix(h, static_cast<unsigned char>(c));
      h = xla::detail::mix(h, part->size() + 256);
    }
    char digits[17] = {};
    std::to_chars(digits, digits + 16, h, 16);
    return std::string(16 - std::string_view(digits).size(), '0') + digits;
  }

  saved_program key_;
  std::filesystem::path file_;
};

}  // namespace xla::ext::pjrt::detail
