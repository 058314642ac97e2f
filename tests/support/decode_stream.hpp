// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/reference.hpp"
#include "xla/data/decode_stream.hpp"

namespace test {

/// Forty tokens of a vocabulary of this size.
inline std::vector<std::int64_t> random_tokens(std::int64_t size, std::uint64_t n) {
  std::vector<std::int64_t> ids;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const double part = (number<double>(n, i) + 4) / 8;
    ids.push_back(static_cast<std::int64_t>(part * static_cast<double>(size)));
  }
  return ids;
}

/// One after the other, and some at once, tokens give this text of all. skip: as DecodeStream takes
/// it, or nothing.
template <class Tokenizer>
void check_stream_gives(const std::string& text, const Tokenizer& tokenizer,
                        const std::vector<std::int64_t>& ids, auto... skip) {
  for (const std::size_t first : {std::size_t{0}, ids.size() / 2}) {
    xla::data::DecodeStream stream(tokenizer, skip...);
    std::string said = stream.step(std::span{ids}.first(first));
    for (const auto id : std::span{ids}.subspan(first)) said += stream.step(id);
    said += stream.finish();
    INFO("tokens " << ids.size() << ", at once " << first);
    CHECK(said == text);
  }
}
/// A stream gives what decode() does, with special tokens and, where the tokenizer has a choice,
/// without.
template <class Tokenizer>
void check_stream(const Tokenizer& tokenizer, const std::vector<std::int64_t>& ids) {
  check_stream_gives(tokenizer.decode(ids), tokenizer, ids);
  if constexpr (requires { tokenizer.decode(ids, true); }) {
    check_stream_gives(tokenizer.decode(ids), tokenizer, ids, false);
    check_stream_gives(tokenizer.decode(ids, true), tokenizer, ids, true);
  }
}

}  // namespace test
