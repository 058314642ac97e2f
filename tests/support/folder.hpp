// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "xla/ext/safetensors.hpp"
#include "xla/io/file.hpp"

namespace test {

/// A folder that goes with the test.
struct folder {
  std::string path;
  explicit folder(const std::string& name = "xla_test_pretrained")
      : path((std::filesystem::temp_directory_path() / name).string()) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
  }
  folder(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    xla::io::write_file(path + "/" + name,
                        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  void write(const std::string& name, const xla::StateDict& state) const {
    xla::ext::write_safetensors(path + "/" + name, {state, {{"format", "pt"}}});
  }
  /// The state in three files with their index, one array after the other.
  void write_parts(const xla::StateDict& state) const {
    std::array<xla::StateDict, 3> parts;
    std::string index;
    for (std::size_t i = 0; i < state.size(); ++i) {
      parts[i % 3].push_back(state[i]);
      index += (i == 0 ? "\"" : ", \"") + state[i].name + "\": \"" + part(i % 3) + "\"";
    }
    for (std::size_t i = 0; i < 3; ++i) write(part(i), parts[i]);
    write("model.safetensors.index.json",
          R"({"metadata": {"total_size": 1}, "weight_map": {)" + index + "}}");
  }
  static std::string part(std::size_t i) {
    return "model-0000" + std::to_string(i + 1) + "-of-00003.safetensors";
  }
};

}  // namespace test
