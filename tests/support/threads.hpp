// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/kernel/threads/pool.hpp"

namespace test {

/// Restores the number of threads that was set before; until then sets another one, if given.
class restore_threads {
 public:
  restore_threads() = default;
  explicit restore_threads(int n) { xla::set_num_threads(n); }
  ~restore_threads() { xla::set_num_threads(before_); }
  restore_threads(const restore_threads&) = delete;

 private:
  int before_ = xla::num_threads();
};

}  // namespace test
