// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset of sequences of different lengths, padded per batch or bucketed by length. Buckets tell
// a DataLoader how to form its batches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/loader.hpp"
#include "xla/data/padding.hpp"

namespace xla::data {
namespace detail {

/// What a dataset of sequences holds: sequences of any lengths, or a tensor with a row for each.
template <class T>
struct sequence_column;
template <class T>
struct sequence_column<std::vector<std::vector<T>>> {
  static constexpr bool is_ragged = true;
  using batch_type = Tensor<T, 2>;
};
template <class T, int R>
struct sequence_column<Tensor<T, R>> {
  static constexpr bool is_ragged = false;
  using batch_type = Tensor<T, R>;
};

template <class T>
std::int64_t samples_of(const std::vector<std::vector<T>>& sequences) {
  return static_cast<std::int64_t>(sequences.size());
}
template <class T, int R>
std::int64_t samples_of(const Tensor<T, R>& rows) {
  return rows.sizes()[0];
}

template <class T>
Tensor<T, 2> take_padded(const std::vector<std::vector<T>>& from,
                         std::span<const std::int64_t> samples, std::int64_t length) {
  const auto width = static_cast<std::size_t>(length);
  const auto out = std::make_unique<T[]>(samples.size() * width);
  for (std::size_t i = 0; i < samples.size(); ++i)
    std::ranges::copy(from[static_cast<std::size_t>(samples[i])], out.get() + i * width);
  return from_blob(out.get(), {static_cast<std::int64_t>(samples.size()), length});
}
template <class T, int R>
Tensor<T, R> take_padded(const Tensor<T, R>& from, std::span<const std::int64_t> samples,
                         std::int64_t) {
  return take_rows(from, samples);
}

}  // namespace detail

/// Sequences of different lengths, `std::vector<std::vector<T>>`, such as tokens. Further sequences
/// of the same lengths, such as a tag per token, and tensors with a row per sequence can go with
/// them. A batch has a tensor (batch, length) for each kind of sequence, padded with zeros, and the
/// rows (batch, …).
template <class... Columns>
class SequenceDataset {
  template <class C>
  using column = detail::sequence_column<C>;

 public:
  using batch_type = typename detail::batch_of<typename column<Columns>::batch_type...>::type;

  /// Throws `xla::shape_error` unless all have the same number of samples, and all sequences of a
  /// sample the same length.
  explicit SequenceDataset(Columns... columns)
      : columns_(std::make_shared<const std::tuple<Columns...>>(std::move(columns)...)) {
    static_assert(column<std::tuple_element_t<0, std::tuple<Columns...>>>::is_ragged,
                  "SequenceDataset: the first argument holds the sequences, a std::vector of "
                  "std::vector");
    std::size_t number = 0;
    std::apply([&](const auto&... c) { (check(c, number++), ...); }, *columns_);
  }

  /// The number of samples.
  std::int64_t size() const { return detail::samples_of(std::get<0>(*columns_)); }

  /// The length of a sample.
  std::int64_t length(std::int64_t sample) const {
    return static_cast<std::int64_t>(
        std::get<0>(*columns_)[static_cast<std::size_t>(sample)].size());
  }

  /// The samples with these numbers, padded to the longest. Throws `xla::index_error` outside [0,
  /// size).
  batch_type batch(std::span<const std::int64_t> samples) const { return batch(samples, 0); }

  /// The same, padded to at least `length`.
  batch_type batch(std::span<const std::int64_t> samples, std::int64_t length) const {
    for (const auto i : samples) {
      if (i < 0 || i >= size())
        throw index_error("SequenceDataset: sample " + std::to_string(i) + " of " +
                          std::to_string(size()));
      length = std::max(length, this->length(i));
    }
    return std::apply(
        [&](const auto&... c) { return batch_type{detail::take_padded(c, samples, length)...}; },
        *columns_);
  }

 private:
  template <class C>
  void check(const C& of, std::size_t number) const {
    const auto argument = "SequenceDataset: argument " + std::to_string(number);
    if (detail::samples_of(of) != size())
      throw shape_error(argument + " has " + std::to_string(detail::samples_of(of)) +
                        " samples, argument 0 has " + std::to_string(size()));
    if constexpr (column<C>::is_ragged) {
      for (std::size_t i = 0; i < of.size(); ++i)
        if (of[i].size() != std::get<0>(*columns_)[i].size())
          throw shape_error(argument + " has " + std::to_string(of[i].size()) +
                            " values in sequence " + std::to_string(i) + ", argument 0 has " +
                            std::to_string(std::get<0>(*columns_)[i].size()));
    } else {
      of.data();  // pending values are computed now, so that a loader's thread only copies
    }
  }

  std::shared_ptr<const std::tuple<Columns...>> columns_;  // copies of a dataset share them
};

/// Forms batches of sequences of similar length, like tf.data's bucket_by_sequence_length. A
/// sequence goes to the shortest of `lengths` that holds it, and is padded to it. A bucket yields a
/// batch as soon as it is full; the rest come at the end of the epoch. `for (auto& [tokens, label,
/// mask] : DataLoader{dataset, {.batch_size = 32}, Buckets{{16, 64, 256}}})`. All batches of a
/// bucket have one size, so that a step is compiled once for each. The mask (batch, length) of bool
/// is false after the end of a sequence and in rows that fill a batch up, which repeat others.
struct Buckets {
  std::vector<std::int64_t> lengths;           ///< Rising.
  std::vector<std::int64_t> batch_sizes =
      {};  ///< For each bucket; by default the loader's for all.

  /// Throws `xla::error` unless lengths rise from 1 on and batch sizes match them, and
  /// `xla::shape_error` for a sequence longer than all buckets.
  void check(const auto& dataset, const loader_options&) const {
    const auto refuse = [](bool wrong, const char* sentence) {
      if (wrong) throw runtime_error(std::string("Buckets: ") + sentence);
    };
    refuse(lengths.empty() || lengths[0] < 1 ||
               std::ranges::adjacent_find(lengths, std::ranges::greater_equal{}) != lengths.end(),
           "lengths have to rise, from 1 on");
    refuse(!batch_sizes.empty() && batch_sizes.size() != lengths.size(),
           "give a batch size for each length, or none");
    refuse(std::ranges::any_of(batch_sizes, [](auto n) { return n < 1; }),
           "batch sizes have to be at least 1");
    for (std::int64_t i = 0; i < dataset.size(); ++i)
      if (const auto n = dataset.length(i); n > lengths.back())
        throw shape_error("Buckets: sequence " + std::to_string(i) + " has " + std::to_string(n) +
                          " values, the longest bucket " + std::to_string(lengths.back()) +
                          "; cut the sequence, or add a bucket");
  }

  std::int64_t count(const auto& dataset, const loader_options& how) const {
    std::vector<std::int64_t> filled(lengths.size());
    for (std::int64_t i = 0; i < dataset.size(); ++i) ++filled[bucket_of(dataset.length(i))];
    std::int64_t batches = 0;
    for (std::size_t b = 0; b < filled.size(); ++b) {
      const auto size = static_cast<std::int64_t>(batch_size(b, how));
      batches += filled[b] / size + (!how.drop_last && filled[b] % size != 0 ? 1 : 0);
    }
    return batches;
  }

  /// A batch to be made: the first `real` samples count, the others fill it up.
  struct padded_batch {
    std::vector<std::int64_t> samples;
    std::size_t real;
    std::int64_t length;
  };
  std::vector<padded_batch> plan(const auto& dataset, const loader_options& how,
                                 const std::vector<std::int64_t>& order) const {
    std::vector<padded_batch> done, open(lengths.size());
    const auto close = [&](std::size_t b) {
      auto samples = std::exchange(open[b].samples, {});
      const auto real = samples.size();
      samples.resize(batch_size(b, how));
      for (auto i = real; i < samples.size(); ++i) samples[i] = samples[i - real];
      done.push_back({std::move(samples), real, lengths[b]});
    };
    for (const auto sample : order) {
      const auto b = bucket_of(dataset.length(sample));
      open[b].samples.push_back(sample);
      if (open[b].samples.size() == batch_size(b, how)) close(b);
    }
    for (std::size_t b = 0; b < open.size() && !how.drop_last; ++b)
      if (!open[b].samples.empty()) close(b);
    return done;
  }

  static auto batch(const auto& dataset, const loader_options&,
                    const std::vector<padded_batch>& plan, std::int64_t at, const Epoch&) {
    const auto& [samples, real, length] = plan[static_cast<std::size_t>(at)];
    const auto rows = static_cast<std::int64_t>(samples.size());
    const auto mask = std::make_unique<bool[]>(static_cast<std::size_t>(rows * length));
    for (std::size_t i = 0; i < real; ++i)
      std::fill_n(mask.get() + i * static_cast<std::size_t>(length), dataset.length(samples[i]),
                  true);
    return detail::with_mask(dataset.batch(samples, length), from_blob(mask.get(), {rows, length}));
  }

  /// The same buckets with batches for n replicas together.
  Buckets times(std::int64_t n) const {
    Buckets all = *this;
    for (auto& size : all.batch_sizes) size *= n;
    return all;
  }
  /// The part of such batches that one of n replicas takes: every n-th sample. All take equally
  /// many samples that count; where there are too few, the first samples that fill up count as
  /// well.
  static std::vector<padded_batch> part(std::vector<padded_batch> all, std::int64_t n,
                                        std::int64_t rank) {
    const auto replicas = static_cast<std::size_t>(n), mine = static_cast<std::size_t>(rank);
    for (auto& [samples, real, length] : all) {
      const auto size = samples.size() / replicas;
      for (std::size_t i = 0; i < size; ++i) samples[i] = samples[i * replicas + mine];
      samples.resize(size);
      real = (real + replicas - 1) / replicas;
    }
    return all;
  }

 private:
  std::size_t bucket_of(std::int64_t length) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(lengths, length) - lengths.begin());
  }
  std::size_t batch_size(std::size_t bucket, const loader_options& how) const {
    return static_cast<std::size_t>(batch_sizes.empty() ? how.batch_size : batch_sizes[bucket]);
  }
};

}  // namespace xla::data
