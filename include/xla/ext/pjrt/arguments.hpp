// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the arguments of a program into what PJRT takes: types, numbers, positions of random draws.
// call_memory.hpp uses it.

#include <cstdint>
#include <iterator>
#include <string_view>

#include "xla/ext/pjrt/array_type.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/execute/store_number.hpp"

namespace xla::detail {

/// An argument as a plugin takes it.
inline ext::pjrt::array_type pjrt_type_of(const hlo::tensor_type& t) {
  const std::string_view name = hlo::name_of(t.of);
  const auto* of = std::begin(ext::pjrt::all_elements);
  while (of->in_text != name) ++of;
  return {of->type, t.dims};
}

/// The elements of an argument: a number that a call brings, or the position of its random numbers.
struct argument_words {
  std::uint64_t words[2] = {};

  argument_words() = default;
  argument_words(const stablehlo_argument& a, const run_arguments& with) {
    if (a.is == stablehlo_argument::role::draw) {
      words[0] = with.random[a.number].seed;
      words[1] = with.random[a.number].offset;
    } else if (a.is == stablehlo_argument::role::number) {
      const double x = with.slots[a.number].number;
      for (const dtype t : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::int32,
                            dtype::int64, dtype::uint8, dtype::boolean})
        if (hlo::element_of(t) == a.type.of)
          store_number(words, t, {x, static_cast<std::int64_t>(x)});
    }
  }
  bool operator==(const argument_words&) const = default;
};

}  // namespace xla::detail
