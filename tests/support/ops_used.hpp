// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "xla/run/state/metrics.hpp"

namespace test {

/// Which ops the interpreter runs from here on. For tests/conformance.cmake, which looks for ops
/// that no body is right with in every mode.
class ops_used {
 public:
  ops_used() {
    if (file().is_open()) before_ = counts();
  }
  /// The body that used them was right in every mode.
  void note() const {
    if (!file().is_open()) return;
    for (const auto& [name, n] : counts())
      if (const auto at = before_.find(name); at == before_.end() || at->second != n)
        file() << name.substr(5) << '\n';
    file().flush();
  }

 private:
  static std::map<std::string, std::int64_t> counts() {
    std::map<std::string, std::int64_t> all;
    for (const auto& name : xla::counter_names())
      if (name.starts_with("xla::")) all[name] = xla::counter_value(name).value_or(0);
    return all;
  }
  static std::ofstream& file() {
    static std::ofstream to = [] {
      const char* path = std::getenv("XLA_TEST_OPS_USED");
      return path ? std::ofstream(path) : std::ofstream();
    }();
    return to;
  }
  std::map<std::string, std::int64_t> before_;
};

}  // namespace test
