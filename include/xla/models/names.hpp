// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "xla/io/named_array.hpp"

namespace xla::models {

/// A part of a name, and what stands in its place elsewhere. One that begins with a point is looked
/// for anywhere in a name, others at its beginning.
struct RenamedPart {
  std::string_view from, to;
};

/// Values by other names: in each name every part of the list is replaced once, in its order.
template <class = void>
inline StateDict renamed(StateDict state, std::span<const RenamedPart> parts) {
  for (auto& value : state)
    for (const auto& part : parts) {
      const auto at = value.name.find(part.from);
      if (at == 0 || (at != std::string::npos && part.from.starts_with('.')))
        value.name.replace(at, part.from.size(), part.to);
    }
  return state;
}

/// The values whose names begin with a prefix, by what is left of these: a part of a model.
template <class = void>
inline StateDict part_of(const StateDict& state, std::string_view prefix) {
  StateDict part;
  for (const auto& value : state)
    if (value.name.starts_with(prefix)) {
      part.push_back(value);
      part.back().name.erase(0, prefix.size());
    }
  return part;
}

}  // namespace xla::models
