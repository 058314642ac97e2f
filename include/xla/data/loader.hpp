// SPDX-License-Identifier: Apache-2.0
#pragma once

// DataLoader and TensorDataset: shuffled batches of a dataset. Batches are made ahead on a thread
// (prefetch.hpp); what a dataset needs is the concept Dataset.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/prefetch.hpp"
#include "xla/kernel/random/permutation.hpp"
#include "xla/op/create.hpp"
#include "xla/tensor.hpp"

namespace xla::data {
namespace detail {

template <class... Tensors>
struct batch_of {
  using type = std::tuple<Tensors...>;
};
template <class A, class B>
struct batch_of<A, B> {
  using type = std::pair<A, B>;
};

/// The rows of a tensor with these numbers, in that order, copied into a new tensor.
template <class T, int R>
Tensor<T, R> take_rows(const Tensor<T, R>& from, std::span<const std::int64_t> rows) {
  auto sizes = from.sizes();
  std::size_t width = 1;
  for (int i = 1; i < R; ++i) width *= static_cast<std::size_t>(sizes[static_cast<std::size_t>(i)]);
  sizes[0] = static_cast<std::int64_t>(rows.size());
  const auto make = [&]<std::size_t... I>(const T* values, std::index_sequence<I...>) {
    return from_blob(values, {sizes[I]...});
  };
  constexpr auto axes = std::make_index_sequence<static_cast<std::size_t>(R)>{};
  const T* const all = from.data();
  const auto jump = [](auto a, auto b) { return b != a + 1; };
  if (!rows.empty() && std::adjacent_find(rows.begin(), rows.end(), jump) == rows.end())
    return make(all + static_cast<std::size_t>(rows[0]) * width, axes);
  const auto gathered = std::make_unique_for_overwrite<T[]>(rows.size() * width);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(all + static_cast<std::size_t>(rows[i]) * width, width, gathered.get() + i * width);
  return make(gathered.get(), axes);
}

}  // namespace detail

/// One pass over the data: its seed and its number. Random augmentation of a sample may depend on
/// these and on the sample's number, and on nothing else.
struct Epoch {
  std::uint64_t seed = 0, number = 0;
};

/// What a `DataLoader` needs: how many samples there are, and a batch of those with given numbers.
/// Where samples are changed at random it is `dataset.batch(samples, epoch)`.
template <class D>
concept Dataset = requires(const D& dataset, std::span<const std::int64_t> samples) {
  { dataset.size() } -> std::convertible_to<std::int64_t>;
  dataset.batch(samples);
};

/// Samples in tensors whose first axis counts them. With two tensors a batch is a `std::pair` of
/// tensors (batch, …), otherwise a `std::tuple`.
template <class... Tensors>
class TensorDataset {
 public:
  using batch_type = typename detail::batch_of<Tensors...>::type;

  /// Throws `xla::shape_error` unless all tensors have the same number of samples. Pending values
  /// are computed now, so that a loader's thread only copies.
  explicit TensorDataset(Tensors... tensors) : tensors_(std::move(tensors)...) {
    static_assert(sizeof...(Tensors) > 0 && ((Tensors::rank > 0) && ...),
                  "TensorDataset: tensors of at least one axis, the first of which counts samples");
    const auto counts =
        std::apply([](const auto&... t) { return std::array{t.sizes()[0]...}; }, tensors_);
    size_ = counts[0];
    for (std::size_t i = 1; i < counts.size(); ++i)
      if (counts[i] != size_)
        throw shape_error("TensorDataset: tensor 0 has " + std::to_string(size_) +
                          " samples, tensor " + std::to_string(i) + " has " +
                          std::to_string(counts[i]));
    std::apply([](const auto&... t) { (t.data(), ...); }, tensors_);
  }

  /// The number of samples.
  std::int64_t size() const { return size_; }

  /// The samples with these numbers, in this order. Throws `xla::index_error` outside [0, size).
  batch_type batch(std::span<const std::int64_t> samples) const {
    for (const auto i : samples)
      if (i < 0 || i >= size_)
        throw index_error("TensorDataset: sample " + std::to_string(i) + " of " +
                          std::to_string(size_));
    return std::apply(
        [&](const auto&... t) { return batch_type{detail::take_rows(t, samples)...}; }, tensors_);
  }

 private:
  std::tuple<Tensors...> tensors_;
  std::int64_t size_ = 0;
};

/// How a `DataLoader` divides an epoch into batches. The order is a function of `seed` and epoch.
struct loader_options {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< Leave out a last batch that is short.
  /// The number of batches that a separate thread prepares ahead; 0 for none. `dataset.batch` then
  /// runs on that thread, one call at a time for each loop. If ops are recorded it must not compute
  /// with tensors.
  std::int64_t prefetch = 0;
};

namespace detail {

template <class D>
auto make_batch(const D& dataset, std::span<const std::int64_t> samples, const Epoch& epoch) {
  if constexpr (requires { dataset.batch(samples, epoch); }) return dataset.batch(samples, epoch);
  else return dataset.batch(samples);
}

/// Appends the mask to a batch: to a tuple of tensors, or else as a pair.
template <class Batch, class Mask>
auto with_mask(Batch batch, Mask mask) {
  if constexpr (requires { std::tuple_size<Batch>::value; })
    return std::tuple_cat(std::move(batch), std::tuple{std::move(mask)});
  else return std::pair{std::move(batch), std::move(mask)};
}

}  // namespace detail

/// The batches of an epoch that this process takes: of every `of` successive batches, `count`
/// beginning with number `first`. Batches at the end that do not fill a whole round are dropped.
struct BatchShare {
  std::int64_t first = 0, count = 1, of = 1;
};

/// Batches as the dataset makes them; the last one may be shorter.
struct Unpadded {
  static std::int64_t count(const auto& dataset, const loader_options& how) {
    const std::int64_t samples = dataset.size(), batch = how.batch_size;
    return samples / batch + (!how.drop_last && samples % batch != 0 ? 1 : 0);
  }
  static std::vector<std::int64_t> plan(const auto&, const loader_options&,
                                        std::vector<std::int64_t> order) {
    return order;
  }
  static auto batch(const auto& dataset, const loader_options& how,
                    const std::vector<std::int64_t>& order, std::int64_t at, const Epoch& epoch) {
    const auto size = static_cast<std::size_t>(how.batch_size);
    const auto first = static_cast<std::size_t>(at) * size;
    const std::span<const std::int64_t> all{order};
    return detail::make_batch(dataset, all.subspan(first, std::min(size, all.size() - first)),
                              epoch);
  }
};

/// Iterates over a dataset in batches: `for (auto& [data, target] : loader)`. Each such loop is the
/// next epoch, with a new order if shuffled. The loader holds a copy of the dataset; tensors are
/// shared. A third argument pads batches, so that few sizes are compiled: `pad_last`
/// (data/padding.hpp), `Buckets` (data/sequences.hpp).
template <Dataset D, class Batching = Unpadded>
class DataLoader {
 public:
  /// Whether each replica's loader reads its own samples only.
  static constexpr bool reads_part = requires { requires Batching::reads_part; };

  /// Throws `xla::error` for a batch size below 1 or a negative prefetch.
  explicit DataLoader(D dataset, loader_options options = {}, Batching batching = {})
      : dataset_(std::move(dataset)), options_(options), batching_(std::move(batching)) {
    if (options.batch_size < 1)
      throw runtime_error("DataLoader: batch_size is " + std::to_string(options.batch_size) +
                          ", it has to be at least 1");
    if (options.prefetch < 0)
      throw runtime_error("DataLoader: prefetch is " + std::to_string(options.prefetch) +
                          ", it has to be at least 0");
    if constexpr (requires { batching_.check(dataset_, options_); })
      batching_.check(dataset_, options_);
  }

  /// The number of batches in an epoch.
  std::int64_t size() const { return batching_.count(dataset_, options_); }

  const D& dataset() const { return dataset_; }

  /// The number of the next epoch, from 0; set it to resume. That epoch alone then begins with its
  /// batch `first`.
  std::uint64_t epoch() const { return epoch_; }
  void set_epoch(std::uint64_t epoch, std::int64_t first = 0) {
    if (first < 0 || first > size())
      throw index_error("DataLoader: batch " + std::to_string(first) + " of " +
                        std::to_string(size()));
    epoch_ = epoch;
    first_ = first;
  }

 private:
  using plan_type = decltype(std::declval<const Batching&>().plan(
      std::declval<const D&>(), loader_options{}, std::vector<std::int64_t>{}));

 public:
  using value_type = decltype(std::declval<const Batching&>().batch(
      std::declval<const D&>(), loader_options{}, std::declval<const plan_type&>(), 0, Epoch{}));

  /// An input iterator over the batches of one epoch; it holds the current batch. If the dataset
  /// throws, the loop throws in place of that batch, also when batches are prefetched.
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = DataLoader::value_type;

    iterator(const DataLoader& loader, plan_type plan, const Epoch& epoch, std::int64_t first,
             const BatchShare& share)
        : batches_((loader.size() - first) / share.of * share.count),
          left_out_((loader.size() - first) % share.of),
          make_{&loader, std::move(plan), epoch, first, share} {
      if (const auto ahead = loader.options_.prefetch; ahead > 0 && batches_ > 0)
        ahead_ = std::make_unique<Prefetcher<value_type>>(batches_, ahead, std::move(make_));
      load();
    }

    value_type& operator*() const { return *batch_; }
    iterator& operator++() {
      ++at_;
      load();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) {
      return i.at_ == i.batches_;
    }
    /// Batches at the end of the epoch that do not fill a round of all replicas.
    std::int64_t left_out() const { return left_out_; }

   private:
    /// The function that makes batch `at` of this share.
    struct maker {
      const DataLoader* loader;
      plan_type plan;
      Epoch epoch;
      std::int64_t first;
      BatchShare share;

      value_type operator()(std::int64_t at) const {
        const auto number = first + at / share.count * share.of + share.first + at % share.count;
        return loader->batching_.batch(loader->dataset_, loader->options_, plan, number, epoch);
      }
    };

    void load() {
      batch_.reset();
      if (at_ == batches_) ahead_.reset();
      else batch_ = ahead_ ? ahead_->take() : std::make_unique<value_type>(make_(at_));
    }

    std::int64_t at_ = 0, batches_, left_out_;
    maker make_;
    std::unique_ptr<value_type> batch_;
    std::unique_ptr<Prefetcher<value_type>> ahead_;
  };

  /// Starts the next epoch. A share makes only its own batches.
  iterator begin(const BatchShare& share = {}) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(dataset_.size()));
    if (options_.shuffle)  // 2^40 counters per epoch, so that orders of different epochs share none
      fill_permutation(order.data(), dataset_.size(), options_.seed, epoch_ << 40);
    else
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    const Epoch epoch{options_.seed, epoch_++};
    return {*this, batching_.plan(dataset_, options_, std::move(order)), epoch,
            std::exchange(first_, 0), share};
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  D dataset_;
  loader_options options_;
  [[no_unique_address]] Batching batching_;
  std::uint64_t epoch_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace xla::data
