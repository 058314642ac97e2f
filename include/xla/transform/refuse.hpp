// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/base/text.hpp"

namespace xla {

/// A piece of a sentence as a template argument, of the length that compilers print whole.
struct line {
  char text[36] = {};
};

/// Instantiated with the sentence that says why a function cannot be compiled.
template <line A, line B, line C, line D, line E, line F>
struct refused {
  static_assert(
      A.text[0] == '\0',
      "xla::compile refused this function: the reason is the quoted text in refused<...>");
};

namespace detail {

constexpr line part_of(const text& t, int index) {
  line l;
  for (int i = 0; i < 35; ++i) {
    const int at = index * 35 + i;
    l.text[i] = at < t.length ? t.chars[at] : ' ';
  }
  return l;
}

/// The type that stops the build with the sentence.
template <const text& Why>
using refusal_type = refused<part_of(Why, 0), part_of(Why, 1), part_of(Why, 2), part_of(Why, 3),
                             part_of(Why, 4), part_of(Why, 5)>;

}  // namespace detail
}  // namespace xla
