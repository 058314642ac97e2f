// SPDX-License-Identifier: Apache-2.0
#pragma once

// Points at which all replicas of a world meet: rendezvous, mesh_reduce, broadcast of parameters,
// saving by one of them. For texts and small numbers; tensors are exchanged by ops
// (op/collectives.hpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/module.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/create.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/run/trace/step.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla {
namespace parallel::detail {

/// Gathers a list of integers from every replica, in the order of ordinals. All lists have the same
/// length.
inline std::vector<std::int64_t> gather_numbers(const std::vector<std::int64_t>& mine) {
  return all_gather(from_blob(mine.data(), {mine.size()}), 0).to_vector();
}

/// Gathers a text from every replica, in the order of ordinals.
inline std::vector<std::string> gather_texts(std::string_view mine) {
  constexpr std::size_t unit = sizeof(std::int64_t);
  const auto lengths = gather_numbers({static_cast<std::int64_t>(mine.size())});
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::int64_t> words(longest / unit + 1);
  if (!mine.empty()) std::memcpy(words.data(), mine.data(), mine.size());
  const auto all = gather_numbers(words);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    texts.emplace_back(reinterpret_cast<const char*>(&all[i * words.size()]),
                       static_cast<std::size_t>(lengths[i]));
  return texts;
}

inline std::string rendezvous_refusal(std::string_view tag, std::string_view other,
                                      std::size_t ordinal) {
  return "xla::rendezvous: this replica came to \"" + std::string(tag) + "\", replica " +
         std::to_string(ordinal) + " to \"" + std::string(other) + "\"";
}

template <class T>
std::string to_payload(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (requires {
                         value.data(), value.size();
                         typename T::value_type;
                       }) {
    static_assert(std::is_trivially_copyable_v<typename T::value_type>);
    return {reinterpret_cast<const char*>(value.data()),
            value.size() * sizeof(typename T::value_type)};
  } else {
    static_assert(std::is_trivially_copyable_v<T>,
                  "xla::mesh_reduce: numbers, plain structs, vectors of them, and std::string");
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
  }
}
template <class T>
T from_payload(const std::string& payload) {
  if constexpr (std::is_same_v<T, std::string>) {
    return payload;
  } else if constexpr (requires(T v) {
                         v.resize(std::size_t{1});
                         v.data();
                       }) {
    T value;
    value.resize(payload.size() / sizeof(typename T::value_type));
    if (!payload.empty()) std::memcpy(value.data(), payload.data(), payload.size());
    return value;
  } else {
    T value;
    std::memcpy(&value, payload.data(), sizeof(T));
    return value;
  }
}

}  // namespace parallel::detail

/// Whether this thread's replica is the first of its world, the one that prints and saves.
inline bool is_master_ordinal() { return global_ordinal() == 0; }

/// Waits until every replica of the world has called it, and returns the payload of each, by
/// ordinal. Pending traced ops are run first. Throws `xla::error` on all replicas if one waits at a
/// rendezvous with another tag.
inline std::vector<std::string> rendezvous(std::string_view tag, std::string_view payload = {}) {
  if (records_ops()) sync(true);
  const eager_mode_guard now;
  const auto tags = parallel::detail::gather_texts(tag);
  for (std::size_t i = 0; i < tags.size(); ++i)
    if (tags[i] != tag) throw runtime_error(parallel::detail::rendezvous_refusal(tag, tags[i], i));
  return parallel::detail::gather_texts(payload);
}

/// reduce_fn(values), where values is a std::vector of the replicas' values, by ordinal. A value is
/// a number or another plain struct, a std::vector of such, or a std::string. Throws like
/// `rendezvous`.
template <class T, class Reduce>
auto mesh_reduce(std::string_view tag, const T& data, Reduce&& reduce_fn) {
  const auto payloads = rendezvous(tag, parallel::detail::to_payload(data));
  std::vector<T> values;
  values.reserve(payloads.size());
  for (const auto& payload : payloads) values.push_back(parallel::detail::from_payload<T>(payload));
  return std::forward<Reduce>(reduce_fn)(std::as_const(values));
}

/// Writes replica 0's parameters and buffers into the modules of all others.
template <class Module>
void broadcast_master_param(Module& model) {
  if (world_size() == 1) return;
  if (records_ops()) sync(true);
  const eager_mode_guard now;
  no_grad([&] {
    visit_states(model, [](auto& state, const auto&) {
      if (state.defined()) state.copy_(broadcast(state.detach(), 0));
    });
  });
}

/// Calls write() on replica 0 while the others wait, so that one file is written for all:
/// `xla::save([&] { xla::ext::save_checkpoint("last.safetensors", {}, model, optimizer); })`. When
/// it throws, all of them end.
template <class Write>
void save(Write&& write) {
  if (is_master_ordinal()) std::forward<Write>(write)();
  if (world_size() > 1) rendezvous("xla::save");
}

}  // namespace xla
