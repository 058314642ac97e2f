// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whole numbers as text, for sentences and for the names of members. transform/print.hpp prints
// numbers of other types.

#include <cstdint>
#include <string>

#include "xla/base/instance.hpp"
#include "xla/base/text.hpp"

namespace xla::detail {

/// A number's digits. std::to_string is made in the program once for every type of numbers.
template <class = void>
[[gnu::cold, gnu::noinline]] std::string decimal(std::int64_t number) {
  text digits;
  digits << number;
  return std::string(digits.view());
}
XLA_INSTANCE(std::string decimal<void>(std::int64_t));

}  // namespace xla::detail
