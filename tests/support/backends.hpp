// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "xla/run/backend/backend.hpp"

namespace test {

/// Compiled functions and traced graphs run on a backend while it lives.
class on_backend {
 public:
  explicit on_backend(const char* name) : before_(xla::backend_name()) { xla::set_backend(name); }
  ~on_backend() { xla::set_backend(before_); }
  on_backend(const on_backend&) = delete;
  on_backend& operator=(const on_backend&) = delete;

 private:
  std::string before_;
};

}  // namespace test
