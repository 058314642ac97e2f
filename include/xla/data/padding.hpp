// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/loader.hpp"

namespace xla::data {

/// Every batch has the same size, so that a step is compiled for one: `for (auto& [data, target,
/// mask] : DataLoader{dataset, {.batch_size = 64}, pad_last})`. The mask, (batch) of bool, is false
/// where the last batch was short; samples from the beginning of the epoch stand there, as in
/// torch's DistributedSampler, so that batch norm sees images and labels are in range.
struct PadLast {
  static std::int64_t count(const auto& dataset, const loader_options& how) {
    return Unpadded::count(dataset, how);
  }
  /// Throws `xla::error` beside `drop_last`, which leaves nothing to pad.
  static void check(const auto&, const loader_options& how) {
    if (how.drop_last) throw runtime_error("DataLoader: give either drop_last or pad_last");
  }
  static std::vector<std::int64_t> plan(const auto& dataset, const loader_options& how,
                                        std::vector<std::int64_t> order) {
    const auto samples = order.size();
    order.resize(static_cast<std::size_t>(count(dataset, how) * how.batch_size));
    for (auto i = samples; i < order.size(); ++i) order[i] = order[i - samples];
    return order;
  }
  static auto batch(const auto& dataset, const loader_options& how,
                    const std::vector<std::int64_t>& order, std::int64_t at, const Epoch& epoch) {
    const auto size = static_cast<std::size_t>(how.batch_size);
    const auto left = dataset.size() - at * how.batch_size;
    const auto mask = std::make_unique<bool[]>(size);
    std::fill_n(mask.get(), std::min(left, how.batch_size), true);
    return detail::with_mask(Unpadded::batch(dataset, how, order, at, epoch),
                             from_blob(mask.get(), {how.batch_size}));
  }
};
inline constexpr PadLast pad_last{};

}  // namespace xla::data
