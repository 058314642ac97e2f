// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives each replica its own samples of an epoch, as torch's DistributedSampler. It wraps a dataset
// for a DataLoader; DataParallel deals out whole batches instead.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/loader.hpp"
#include "xla/op/collectives.hpp"

namespace xla::data {

/// Which part of the samples a replica takes, by PyTorch's names.
struct DistributedSamplerOptions {
  std::int64_t num_replicas = 0;  ///< 0: as many as the world has when an epoch begins.
  std::int64_t rank = -1;         ///< From 0; -1: the replica on whose thread an epoch begins.
  /// Leave out samples that are too few for all replicas. Else the first ones come once more.
  bool drop_last = false;
};

namespace detail {

/// The samples of a dataset that one replica reads.
template <class D>
struct sampled_dataset {
  const D& all;
  std::int64_t samples;

  std::int64_t size() const { return samples; }
  template <class... More>
    requires requires(const D& d, std::span<const std::int64_t> which, const More&... more) {
      d.batch(which, more...);
    }
  auto batch(std::span<const std::int64_t> which, const More&... more) const {
    return all.batch(which, more...);
  }
};

}  // namespace detail

/// Deals the samples of an epoch out to the replicas of a world, equally many to each, like torch's
/// DistributedSampler: `DataLoader{dataset, {.batch_size = 32, .shuffle = true, .seed = 1},
/// DistributedSampler{}}`. Seed and epoch give the same order everywhere; replica r of n takes
/// samples r, r + n, … of it. So the i-th batches of all replicas together are the i-th batch of
/// one loader with n times the batch size. A replica reads only its own samples. The loader counts
/// the epochs. `set_epoch(epoch, first)` resumes, also in a world of another size; `first` counts
/// batches of all replicas together. For it, divide the samples that they have read in the epoch by
/// the samples that all replicas now read at once. It is for programs that `launch` runs;
/// DataParallel deals out batches itself and refuses it. A second argument pads batches, like the
/// loader's third: `DistributedSampler{{}, pad_last}`, `DistributedSampler{{}, Buckets{{16, 64}}}`.
/// With `Buckets` the batches of all replicas have one length.
template <class Batching = Unpadded>
class DistributedSampler {
  // Deals out the samples of the epoch, or those of each batch if lengths decide about batches.
  static constexpr bool by_batches = requires(const Batching& b) { b.times(1); };

 public:
  static constexpr bool reads_part = true;

  /// Throws `xla::error` if no replica has that rank.
  explicit DistributedSampler(DistributedSamplerOptions options = {}, Batching batching = {})
      : options_(options), batching_(std::move(batching)) {
    if (options.num_replicas < 0)
      throw runtime_error("DistributedSampler: num_replicas is " +
                          std::to_string(options.num_replicas) + ", it has to be at least 0");
    if (options.num_replicas > 0) replica();
  }

  void check(const auto& dataset, const loader_options& how) const {
    if constexpr (by_batches)
      if (options_.drop_last)
        throw runtime_error("DistributedSampler: with Buckets set drop_last of the loader instead");
    if constexpr (requires { batching_.check(dataset, how); }) batching_.check(dataset, how);
  }

  std::int64_t count(const auto& dataset, const loader_options& how) const {
    const auto n = replica().count;
    if constexpr (by_batches) return batching_.times(n).count(dataset, times(how, n));
    else return batching_.count(sampled(dataset, samples(dataset.size(), n)), how);
  }

  auto plan(const auto& dataset, const loader_options& how, std::vector<std::int64_t> order) const {
    const auto [n, rank] = replica();
    if constexpr (by_batches) {
      const auto together = batching_.times(n);
      return together.part(together.plan(dataset, times(how, n), std::move(order)), n, rank);
    } else {
      std::vector<std::int64_t> part(static_cast<std::size_t>(samples(std::ssize(order), n)));
      auto next = static_cast<std::size_t>(rank);
      for (auto& sample : part) {
        sample = order[next % order.size()];
        next += static_cast<std::size_t>(n);
      }
      const auto size = std::ssize(part);
      return std::pair{batching_.plan(sampled(dataset, size), how, std::move(part)), size};
    }
  }

  auto batch(const auto& dataset, const loader_options& how, const auto& plan, std::int64_t at,
             const Epoch& epoch) const {
    if constexpr (by_batches) return batching_.batch(dataset, how, plan, at, epoch);
    else return batching_.batch(sampled(dataset, plan.second), how, plan.first, at, epoch);
  }

 private:
  struct replica_rank {
    std::int64_t count, rank;
  };
  replica_rank replica() const {
    const auto count = options_.num_replicas > 0 ? options_.num_replicas : world_size();
    const auto rank = options_.rank >= 0 ? options_.rank : global_ordinal();
    if (options_.rank < -1 || rank >= count)
      throw runtime_error("DistributedSampler: rank is " +
                          std::to_string(options_.rank < 0 ? options_.rank : rank) + " of " +
                          std::to_string(count) + " replicas: it has to be 0 to " +
                          std::to_string(count - 1) + ", or -1, the replica's own");
    return {count, rank};
  }
  std::int64_t samples(std::int64_t all, std::int64_t replicas) const {
    return all / replicas + (!options_.drop_last && all % replicas != 0 ? 1 : 0);
  }
  template <class D>
  static detail::sampled_dataset<D> sampled(const D& all, std::int64_t samples) {
    return {all, samples};
  }
  static loader_options times(loader_options how, std::int64_t replicas) {
    how.batch_size *= replicas;
    return how;
  }

  DistributedSamplerOptions options_;
  [[no_unique_address]] Batching batching_;
};

}  // namespace xla::data
