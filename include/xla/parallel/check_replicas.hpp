// SPDX-License-Identifier: Apache-2.0
#pragma once

// check_replicas(): throws unless all replicas have the same bits in their parameters and
// optimizers. It is for tests and debugging: it exchanges a checksum for every tensor, so it is not
// part of a training step.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/module.hpp"
#include "xla/op/collectives.hpp"
#include "xla/op/create.hpp"
#include "xla/run/trace/runtime.hpp"

namespace xla {

namespace parallel::detail {

/// A checksum of an array's bits. Different arrays have the same one with a probability of one in
/// 2^64.
inline std::int64_t sum_of_bits(const void* data, std::size_t bytes) {
  std::uint64_t sum = bytes;
  const auto* const from = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, bytes - i < 8 ? bytes - i : 8);
    sum = (sum ^ word) * 0xff51afd7ed558ccdull;
    sum ^= sum >> 32;
  }
  return static_cast<std::int64_t>(sum);
}

/// The checksums of all tensors that must be equal on all replicas, with their names.
struct checked_tensors {
  std::vector<std::string> names;
  std::vector<std::int64_t> sums;

  template <class State>
  void add(const std::string& name, State& s) {
    if constexpr (requires { s.data(); }) {
      names.push_back(name);
      sums.push_back(
          sum_of_bits(s.data(), static_cast<std::size_t>(s.numel()) * sizeof(*s.data())));
    }
  }
  /// A module's parameters; or an optimizer's state.
  template <class Part>
  void add_all(Part& part) {
    if constexpr (requires { requires Part::reduces_gradients; }) return;  // parts of its state
    else if constexpr (requires { part.visit_state([](auto&, const tree_path&) {}); })
      part.visit_state([&](auto& s, const tree_path& path) { add("optimizer " + path.str(), s); });
    else named_parameters(part, [&](const std::string& name, auto& p) { add(name, p); });
  }
};

}  // namespace parallel::detail

/// Throws `xla::error` on all replicas unless they have the same bits in all parameters of these
/// modules and in the state of these optimizers. It names the first tensor that differs, and the
/// replica. Buffers, such as running statistics, belong to each replica, and so does the state that
/// a ZeroRedundancy has distributed. It reads every element: call it every hundredth step, or while
/// you look for an error.
template <class... Parts>
void check_replicas(Parts&... parts) {
  if (world_size() == 1) return;
  parallel::detail::checked_tensors mine;
  (mine.add_all(parts), ...);
  const auto count = static_cast<std::int64_t>(mine.sums.size());
  const auto all = all_gather(from_blob(mine.sums.data(), {1, count}), 0).to_vector();
  for (std::size_t r = 1; r < static_cast<std::size_t>(world_size()); ++r)
    for (std::size_t i = 0; i < mine.sums.size(); ++i)
      if (all[r * mine.sums.size() + i] != all[i])
        throw runtime_error("check_replicas: " + mine.names[i] + " of replica " +
                            std::to_string(r) + " has other bits than that of replica 0");
}

}  // namespace xla
