// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts strings together for error sentences. It exists to keep code small; where speed matters
// strings are appended to as usual.

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "xla/base/instance.hpp"

namespace xla::detail {

/// The parts after one another. Sentences are put together with it: each + between strings would be
/// a piece of code of its own in the program.
template <class = void>
[[gnu::noinline]] std::string join(std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view p : parts) size += p.size();
  std::string out;
  out.reserve(size);
  for (const std::string_view p : parts) out += p;
  return out;
}
XLA_INSTANCE(std::string join<void>(std::initializer_list<std::string_view>));

}  // namespace xla::detail
