// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parts of a dataset: a subset, or a random split. They store sample numbers and copy no data.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/loader.hpp"
#include "xla/kernel/random/philox.hpp"

namespace xla::data {

/// Some samples of a dataset, as a dataset; as torch.utils.data.Subset.
template <Dataset D>
class Subset {
 public:
  /// Sample i is sample `samples[i]` of the dataset. Throws `xla::index_error` for one that does
  /// not exist.
  Subset(D dataset, std::vector<std::int64_t> samples)
      : dataset_(std::move(dataset)), samples_(std::move(samples)) {
    for (const auto i : samples_) check(i, dataset_.size());
  }

  std::int64_t size() const { return static_cast<std::int64_t>(samples_.size()); }

  /// The samples with these numbers; further arguments go to the dataset's `batch`.
  template <class... More>
    requires requires(const D& d, std::span<const std::int64_t> samples, const More&... more) {
      d.batch(samples, more...);
    }
  auto batch(std::span<const std::int64_t> samples, const More&... more) const {
    std::vector<std::int64_t> of_all;
    of_all.reserve(samples.size());
    for (const auto i : samples) of_all.push_back(of_dataset(i));
    return dataset_.batch(of_all, more...);
  }

  /// The length of a sample, if samples are sequences.
  std::int64_t length(std::int64_t sample) const
    requires requires(const D& d) { d.length(sample); }
  {
    return dataset_.length(of_dataset(sample));
  }

  const D& dataset() const { return dataset_; }
  /// Which samples of the dataset these are.
  const std::vector<std::int64_t>& samples() const { return samples_; }

 private:
  std::int64_t of_dataset(std::int64_t sample) const {
    check(sample, size());
    return samples_[static_cast<std::size_t>(sample)];
  }
  static void check(std::int64_t sample, std::int64_t size) {
    if (sample < 0 || sample >= size)
      throw index_error("Subset: sample " + std::to_string(sample) + " of " + std::to_string(size));
  }
  D dataset_;
  std::vector<std::int64_t> samples_;
};

/// One part of a split: this many samples, or a share of all.
struct split_part {
  std::int64_t count = -1;
  double share = 0;
  constexpr split_part(std::integral auto samples) : count(static_cast<std::int64_t>(samples)) {}
  constexpr split_part(std::floating_point auto part) : share(static_cast<double>(part)) {}
};

namespace detail {

/// The number of samples of each part. Samples lost by rounding the shares down go to the first
/// parts, one each, as in PyTorch.
inline std::vector<std::int64_t> split_sizes(std::span<const split_part> parts, std::int64_t all) {
  std::vector<std::int64_t> sizes;
  std::int64_t sum = 0;
  double shares = 0;
  for (const auto& part : parts) {
    const bool counts = part.count >= 0 || part.share == 0;
    if (counts != (parts[0].count >= 0))
      throw runtime_error("random_split: give either counts or shares above 0, for every part");
    if (!counts && !(part.share > 0 && part.share <= 1))
      throw runtime_error("random_split: a share is above 0 and at most 1");
    shares += part.share;
    sizes.push_back(
        counts ? part.count
               : static_cast<std::int64_t>(std::floor(static_cast<double>(all) * part.share)));
    sum += sizes.back();
  }
  if (parts[0].count < 0) {
    if (std::abs(shares - 1) > 1e-6)
      throw runtime_error("random_split: the shares do not add up to 1");
    for (std::size_t i = 0; sum < all; ++i, ++sum) ++sizes[i % sizes.size()];
  }
  if (sum != all)
    throw runtime_error("random_split: the parts have " + std::to_string(sum) +
                        " samples together, the dataset " + std::to_string(all));
  return sizes;
}

}  // namespace detail

/// Deals the samples out to parts at random: counts, `random_split(dataset, {8000, 2000}, seed)`,
/// or shares that add up to 1, `{0.8, 0.2}`. The same seed gives the same parts; each keeps the
/// order of the dataset. Throws `xla::error` unless the parts add up to the whole.
template <Dataset D, std::size_t N>
std::array<Subset<D>, N> random_split(const D& dataset, const split_part (&parts)[N],
                                      std::uint64_t seed = 0) {
  const auto sizes = detail::split_sizes(parts, dataset.size());
  std::vector<std::int64_t> order(static_cast<std::size_t>(dataset.size()));
  fill_permutation(order.data(), dataset.size(), seed, 0);
  auto next = order.begin();
  const auto deal = [&](std::size_t i) {
    const auto end = next + static_cast<std::ptrdiff_t>(sizes[i]);
    std::sort(next, end);
    return Subset<D>{dataset, std::vector<std::int64_t>(std::exchange(next, end), end)};
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Subset<D>, N>{deal(I)...};
  }(std::make_index_sequence<N>{});
}

}  // namespace xla::data
