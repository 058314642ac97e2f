// SPDX-License-Identifier: Apache-2.0
#pragma once

// Strings for error sentences and names: pieces put together, and whole numbers as text. They exist
// to keep code small; transform/print.hpp prints numbers of other types.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "xla/base/instance.hpp"
#include "xla/base/text.hpp"

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

/// A number's digits. std::to_string is made in the program once for every type of numbers.
template <class = void>
[[gnu::cold, gnu::noinline]] std::string decimal(std::int64_t number) {
  text digits;
  digits << number;
  return std::string(digits.view());
}
XLA_INSTANCE(std::string decimal<void>(std::int64_t));

}  // namespace xla::detail
