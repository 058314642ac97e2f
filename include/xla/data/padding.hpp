// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pads batches to few sizes, so that a compiled step has few signatures. Nothing is padded unless a
// program includes this and asks for it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/loader.hpp"
#include "xla/op/derived/pad.hpp"

namespace xla::data {

/// Gives every batch the same size, so that a step is compiled for one: `for (auto& [data, target,
/// mask] : DataLoader{dataset, {.batch_size = 64}, pad_last})`. The mask (batch) of bool is false
/// in the rows that fill the last batch up. Samples from the beginning of the epoch fill it, as in
/// torch's DistributedSampler, so that batch norm sees images and labels are in range.
struct PadLast {
  static std::int64_t count(const auto& dataset, const loader_options& how) {
    return Unpadded::count(dataset, how);
  }
  /// Throws `xla::error` together with `drop_last`, which leaves nothing to pad.
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

/// Appends `value` along an axis until its size is the smallest of `lengths` that is large enough:
/// pad_to(tokens, 1, {64, 128, 256}, pad_id). A compiled step then has one signature for each
/// length. Throws `xla::shape_error` if all lengths are too small or x does not have that axis.
template <class T, int R>
Tensor<T, R> pad_to(const Tensor<T, R>& x, int axis, std::initializer_list<std::int64_t> lengths,
                    std::type_identity_t<T> value = T()) {
  const int at = axis < 0 ? axis + R : axis;
  if (at < 0 || at >= R)
    throw shape_error("data::pad_to: a tensor with " + std::to_string(R) + " axes has no axis " +
                      std::to_string(axis));
  const std::int64_t size = x.sizes()[static_cast<std::size_t>(at)];
  std::int64_t padded = -1;
  for (const auto n : lengths)
    if (n >= size && (padded < 0 || n < padded)) padded = n;
  if (padded < 0)
    throw shape_error("data::pad_to: axis " + std::to_string(at) + " has " + std::to_string(size) +
                      " elements, more than every length given; cut them, or add a length");
  Padding around[R];
  around[at].after = padded - size;
  return pad(x, around, value);
}
/// The same with one length.
template <class T, int R>
Tensor<T, R> pad_to(const Tensor<T, R>& x, int axis, std::int64_t length,
                    std::type_identity_t<T> value = T()) {
  return pad_to(x, axis, {length}, value);
}

}  // namespace xla::data
