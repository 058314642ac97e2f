// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <xla/base/error.hpp>

/// The names of classes, one a line of a file; without a file their numbers.
class Labels {
 public:
  Labels(const std::string& path, std::int64_t classes) {
    if (path.empty()) {
      for (std::int64_t i = 0; i < classes; ++i) names_.push_back("class " + std::to_string(i));
      return;
    }
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
      if (line.ends_with('\r')) line.pop_back();
      names_.push_back(line);
    }
    if (std::ssize(names_) != classes)
      throw xla::runtime_error("'" + path + "' has " + std::to_string(names_.size()) +
                               " lines, and the weights are for " + std::to_string(classes) +
                               " classes");
  }

  const std::string& operator[](std::size_t i) const { return names_[i]; }

 private:
  std::vector<std::string> names_;
};
