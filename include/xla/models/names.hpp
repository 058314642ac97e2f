// SPDX-License-Identifier: Apache-2.0
#pragma once

// Renames the parameters in files of other libraries. A family of models gives a list;
// ext/pretrained.hpp applies it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/io/named_array.hpp"

namespace xla::models {

/// A part of a name, and its replacement. A part that begins with a point is searched for anywhere
/// in a name, others at its beginning.
struct RenamedPart {
  std::string_view from, to;
};

/// Renames values: in each name every entry of the list is replaced once, in the list's order.
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

/// The values whose names begin with a prefix, which is removed: a part of a model.
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

namespace detail {

/// Keeps one of the two names that a file has for one parameter. A runtime_error if their values
/// differ, because the model would lose one of them.
template <class = void>
void join_tied(StateDict& state, std::string_view alias, std::string_view name,
               std::string_view function) {
  const auto find = [&](std::string_view n) {
    return std::find_if(state.begin(), state.end(), [&](const auto& a) { return a.name == n; });
  };
  const auto second = find(alias), first = find(name);
  if (second == state.end()) return;
  if (first == state.end()) {
    second->name = name;
    return;
  }
  if (!io::same_values(*first, *second))
    throw runtime_error(std::string(function) + ": '" + std::string(alias) +
                        "' has other values than '" + std::string(name) +
                        "', to which the model ties it");
  state.erase(second);
}

/// The name with `part` replaced by `other`.
inline std::string with_part(std::string name, std::string_view part, std::string_view other) {
  return name.replace(name.find(part), part.size(), other);
}

/// The value whose name has `part` where this value's name has another part (such as "q_proj" and
/// "k_proj"). Its type and sizes must be the same.
template <class = void>
const NamedArray& sibling(const StateDict& state, const NamedArray& value, std::string_view part,
                          std::string_view other, std::string_view function) {
  const auto name = with_part(value.name, part, other);
  const auto at = std::find_if(state.begin(), state.end(), [&](const auto& a) {
    return a.name == name && a.type == value.type && a.sizes == value.sizes;
  });
  if (at == state.end() || value.sizes.empty())
    throw runtime_error(std::string(function) + ": there is no '" + name + "' of the sizes of '" +
                        value.name + "', with which it shares one tensor");
  return *at;
}

/// Joins values whose names differ in one of the parts into one value, row after row, with `whole`
/// in its name.
template <class = void>
StateDict joined(const StateDict& state, std::span<const std::string_view> parts,
                 std::string_view whole, std::string_view function) {
  StateDict out;
  for (const auto& value : state) {
    const auto has = [&](auto part) { return value.name.find(part) != std::string::npos; };
    const auto own = std::find_if(parts.begin(), parts.end(), has);
    if (own == parts.end()) {
      out.push_back(value);
      continue;
    }
    std::vector<std::uint8_t> bytes;
    for (const auto part : parts) {
      const auto& each = sibling(state, value, *own, part, function);
      if (own == parts.begin()) bytes.insert(bytes.end(), each.bytes.begin(), each.bytes.end());
    }
    if (own != parts.begin()) continue;  // joined with the first part
    out.push_back({with_part(value.name, *own, whole), value.type, value.sizes, std::move(bytes)});
    auto& rows = out.back().sizes[0];  // without columns a file may claim any number of rows
    rows = static_cast<std::int64_t>(static_cast<std::uint64_t>(rows) * parts.size());
  }
  return out;
}

/// Splits such values again, into parts with equal numbers of rows.
template <class = void>
StateDict unpacked(const StateDict& state, std::span<const std::string_view> parts,
                   std::string_view whole) {
  StateDict out;
  for (const auto& value : state) {
    const auto n = static_cast<std::int64_t>(parts.size());
    if (value.name.find(whole) == std::string::npos || value.sizes.empty() ||
        value.sizes[0] % n != 0) {
      out.push_back(value);
      continue;
    }
    const std::span all(value.bytes.data(), value.bytes.size());
    const std::size_t size = all.size() / parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out.push_back({with_part(value.name, whole, parts[i]), value.type, value.sizes,
                     value.bytes.view(all.subspan(i * size, size))});
      out.back().sizes[0] /= n;
    }
  }
  return out;
}

}  // namespace detail
}  // namespace xla::models
