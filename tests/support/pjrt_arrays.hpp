// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "xla/ext/pjrt/compile.hpp"

// What tests of a plugin have in common that know it as a client, and not as a backend.

namespace test {

using xla::ext::pjrt::array_type;
using xla::ext::pjrt::buffer;
using xla::ext::pjrt::client;
using xla::ext::pjrt::element;
using xla::ext::pjrt::host_memory;

inline array_type array(element type, std::initializer_list<std::int64_t> sizes) {
  array_type t{type, {}};
  for (const std::int64_t n : sizes) t.sizes.push(n);
  return t;
}
inline const array_type four = array(element::float32, {4});
inline const std::vector<float> ones{1, 2, 3, 4};

inline buffer on(const client& c, int device = 0) {
  return {c, ones.data(), four, host_memory::copied, device};
}

/// %2 = an op of two arguments, of which the first may give its memory.
inline std::string pair_of(const std::string& op, const std::string& type, bool donates = false) {
  const std::string donated = donates ? " {tf.aliasing_output = 0 : i32}" : "";
  return "module { func.func public @main(%0: " + type + donated + ", %1: " + type + ") -> " +
         type + " {\n  %2 = \"stablehlo." + op + "\"(%0, %1) : (" + type + ", " + type + ") -> " +
         type + "\n  func.return %2 : " + type + " } }";
}
inline const std::string add = pair_of("add", "tensor<4xf32>");
inline const std::string add_to = pair_of("add", "tensor<4xf32>", true);

/// What f throws, or "nothing".
template <class F>
std::string thrown(F&& f) {
  try {
    f();
  } catch (const xla::error& e) {
    return e.what();
  }
  return "nothing";
}

/// A variable of the environment, for a time.
class variable {
 public:
  variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = std::make_unique<std::string>(old);
    setenv(name, value.c_str(), 1);
  }
  ~variable() {
    if (old_) setenv(name_, old_->c_str(), 1);
    else unsetenv(name_);
  }

 private:
  const char* name_;
  std::unique_ptr<std::string> old_;
};

/// An empty folder, for a time.
struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("pjrt_" + std::to_string(getpid()));
  folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~folder() { std::filesystem::remove_all(path); }
};

inline std::string content(const std::filesystem::path& file) {
  std::ifstream from(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

}  // namespace test
