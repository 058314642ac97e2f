// SPDX-License-Identifier: Apache-2.0
#pragma once

// Passes XLA_FLAGS as options, so that an unknown flag is an error instead of the end of the
// process. client.hpp holds it while a plugin starts.

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/system/path.hpp"
#include "xla/base/system/process.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/pjrt/options.hpp"

namespace xla::ext::pjrt::detail {

/// Hides XLA_FLAGS from XLA for its lifetime: XLA ends the process for a flag that it cannot parse,
/// but reports an error for an unknown compile option.
class flags_override {
 public:
  flags_override() {
    const char* const set = std::getenv("XLA_FLAGS");
    if (!set) return;
    all_ = set;
    parse();
    sys::unset_environment("XLA_FLAGS");
    taken_ = true;
  }
  flags_override(const flags_override&) = delete;
  ~flags_override() {
    if (taken_) sys::set_environment("XLA_FLAGS", all_, true);
  }
  const debug_options& options() const { return options_; }

 private:
  // Flags separated by spaces; or the name of a file with flags.
  void parse() {
    std::string text = all_;
    if (const auto at = text.find_first_not_of(" \t\n"); at != text.npos && text[at] != '-') {
      std::ifstream from(sys::path_of(text));
      if (!from)
        throw io_error(xla::detail::join(
            {"XLA_FLAGS: '", text, "' is neither a flag, which begins with --, nor a file"}));
      text.assign(std::istreambuf_iterator<char>(from), {});
    }
    std::istringstream words(text);
    for (std::string flag; words >> flag;) {
      flag.erase(0, flag.find_first_not_of('-'));
      const auto equals = flag.find('=');
      const std::string value = equals == flag.npos ? "true" : flag.substr(equals + 1);
      auto& option = options_[flag.substr(0, equals)];
      if (value == "true" || value == "false") option = value == "true";
      else option = value;
    }
  }

  std::string all_;
  debug_options options_;
  bool taken_ = false;
};

}  // namespace xla::ext::pjrt::detail
