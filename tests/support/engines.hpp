// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "xla/run/engine/engine.hpp"

namespace test {

/// Compiled functions and traced graphs run on an engine while it lives.
class on_engine {
 public:
  explicit on_engine(const char* name) : before_(xla::engine_name()) { xla::set_engine(name); }
  ~on_engine() { xla::set_engine(before_); }
  on_engine(const on_engine&) = delete;
  on_engine& operator=(const on_engine&) = delete;

 private:
  std::string before_;
};

}  // namespace test
