// SPDX-License-Identifier: Apache-2.0
#include "xla/data/subset.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "catch.hpp"
#include "xla/data/distributed_sampler.hpp"
#include "xla/data/padding.hpp"
#include "xla/data/sequences.hpp"
#include "xla/xla.hpp"

namespace {

using xla::data::Buckets;
using xla::data::DataLoader;
using xla::data::DistributedSampler;
using xla::data::pad_last;
using xla::data::random_split;
using xla::data::SequenceDataset;
using xla::data::Subset;
using xla::data::TensorDataset;
using numbers = std::vector<std::int64_t>;

auto samples(std::int64_t n) { return TensorDataset{xla::arange(n) * 10, xla::arange(n)}; }

template <class Parts>
numbers sizes(const Parts& parts) {
  numbers out;
  for (const auto& part : parts) out.push_back(part.size());
  return out;
}

// Samples that keep which of them were read.
struct Noted {
  std::int64_t count;
  numbers* read;
  std::int64_t size() const { return count; }
  auto batch(std::span<const std::int64_t> which) const {
    read->insert(read->end(), which.begin(), which.end());
    return xla::from_blob(which.data(), {std::ssize(which)});
  }
};

// The samples of an epoch, as a replica reads them.
numbers part(std::int64_t count, std::int64_t n, std::int64_t rank, bool drop_last = false,
             xla::data::loader_options how = {}) {
  numbers read;
  DataLoader loader{Noted{count, &read}, how,
                    DistributedSampler{{.num_replicas = n, .rank = rank, .drop_last = drop_last}}};
  std::int64_t batches = 0;
  for ([[maybe_unused]] auto& batch : loader) ++batches;
  CHECK(batches == loader.size());
  return read;
}

}  // namespace

TEST_CASE("a subset numbers its samples from 0") {
  const Subset subset{samples(5), {4, 0, 4}};
  CHECK(subset.size() == 3);
  const numbers both{2, 1};
  const auto [data, target] = subset.batch(both);
  CHECK(data.to_vector() == numbers{40, 0});
  CHECK(target.to_vector() == numbers{4, 0});
  DataLoader loader{subset, {.batch_size = 2, .prefetch = 1}};
  numbers seen;
  for (auto& [x, y] : loader)
    for (const auto i : y.to_vector()) seen.push_back(i);
  CHECK(seen == numbers{4, 0, 4});
  const Subset inner{subset, {1}};
  CHECK(inner.batch(numbers{0}).second.to_vector() == numbers{0});
}

TEST_CASE("a subset refuses samples that are not there") {
  CHECK_THROWS_AS((Subset{samples(3), {0, 3}}), xla::index_error);
  CHECK_THROWS_AS((Subset{samples(3), {-1}}), xla::index_error);
  const Subset subset{samples(5), {1, 2}};
  CHECK_THROWS_WITH(subset.batch(numbers{2}), "Subset: sample 2 of 2");
}

TEST_CASE("a random split deals every sample out once") {
  const auto data = samples(100);
  const auto [training, held_out] = random_split(data, {80, 20}, 7);
  CHECK(training.size() == 80);
  CHECK(held_out.size() == 20);
  auto all = training.samples();
  CHECK(std::is_sorted(all.begin(), all.end()));
  CHECK(all != numbers(all.size(), 0));
  all.insert(all.end(), held_out.samples().begin(), held_out.samples().end());
  std::sort(all.begin(), all.end());
  CHECK(all == xla::arange(100).to_vector());
  CHECK(held_out.samples().front() < 80);  // not simply the last 20
  CHECK(random_split(data, {80, 20}, 7)[1].samples() == held_out.samples());
  CHECK(random_split(data, {80, 20}, 8)[1].samples() != held_out.samples());
}

TEST_CASE("shares are rounded down and the rest goes to the first parts") {
  CHECK(sizes(random_split(samples(10), {0.8, 0.2})) == numbers{8, 2});
  CHECK(sizes(random_split(samples(11), {0.5, 0.25, 0.25})) == numbers{6, 3, 2});
  CHECK(sizes(random_split(samples(1), {0.5f, 0.5f})) == numbers{1, 0});
  CHECK(sizes(random_split(samples(0), {0.5, 0.5})) == numbers{0, 0});
  const auto n = samples(9).size();
  CHECK(sizes(random_split(samples(9), {n - 4, 4})) == numbers{5, 4});
  CHECK(sizes(random_split(samples(9), {9, 0})) == numbers{9, 0});
}

TEST_CASE("parts that are not the whole are refused") {
  const auto data = samples(10);
  CHECK_THROWS_WITH(random_split(data, {8, 3}),
                    "random_split: the parts have 11 samples together, the dataset 10");
  CHECK_THROWS_AS(random_split(data, {0.8, 0.1}), xla::error);
  CHECK_THROWS_AS(random_split(data, {8, 0.2}), xla::error);
  CHECK_THROWS_AS(random_split(data, {0.8, 2}), xla::error);
  CHECK_THROWS_AS(random_split(data, {-1, 11}), xla::error);
  CHECK_THROWS_AS(random_split(data, {1.5, -0.5}), xla::error);
}

// The numbers are those of torch.utils.data.DistributedSampler(range(count), n, rank,
// shuffle=False).
TEST_CASE("a replica reads its part of the samples and no others, all equally many") {
  CHECK(part(10, 4, 0) == numbers{0, 4, 8});
  CHECK(part(10, 4, 2) == numbers{2, 6, 0});
  CHECK(part(10, 4, 3) == numbers{3, 7, 1});
  CHECK(part(10, 4, 3, true) == numbers{3, 7});
  CHECK(part(8, 4, 1) == numbers{1, 5});
  CHECK(part(3, 8, 7) == numbers{1});
  CHECK(part(3, 8, 7, true).empty());
  CHECK(part(0, 2, 1).empty());
  CHECK(part(5, 1, 0) == numbers{0, 1, 2, 3, 4});
  CHECK(part(10, 4, 3, false, {.batch_size = 2}) == numbers{3, 7, 1});
  CHECK(part(10, 4, 3, false, {.batch_size = 2, .drop_last = true}) == numbers{3, 7});
  CHECK(part(10, 4, 3, false, {.batch_size = 2, .prefetch = 2}) == numbers{3, 7, 1});
}

TEST_CASE("the batches of all replicas are together those of one loader with larger ones") {
  const xla::data::loader_options large{.batch_size = 12, .shuffle = true, .seed = 5};
  auto small = large;
  small.batch_size = 4;
  DataLoader whole{samples(60), large};
  std::vector<DataLoader<decltype(samples(1)), DistributedSampler<>>> parts;
  for (std::int64_t rank = 0; rank < 3; ++rank)
    parts.emplace_back(samples(60), small, DistributedSampler{{.num_replicas = 3, .rank = rank}});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<numbers>> seen(3);
    for (std::size_t rank = 0; rank < 3; ++rank)
      for (auto& [data, target] : parts[rank]) seen[rank].push_back(target.to_vector());
    std::size_t batch = 0;
    for (auto& [data, target] : whole) {
      const auto all = target.to_vector();
      for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == seen[i % 3][batch][i / 3]);
      ++batch;
    }
    CHECK(batch == 5);
  }
  parts[1].set_epoch(1, 3);
  std::int64_t left = 0;
  for ([[maybe_unused]] auto& b : parts[1]) ++left;
  CHECK(left == 2);
}

TEST_CASE("another world goes on in the middle of an epoch: no sample twice, and none left out") {
  struct world {
    std::int64_t replicas, batch, first;  // after 24 of 72 samples
  };
  const auto read = [](const world& w, std::int64_t most) {
    numbers all;
    for (std::int64_t rank = 0; rank < w.replicas; ++rank) {
      DataLoader loader{samples(72),
                        {.batch_size = w.batch, .shuffle = true, .seed = 5},
                        DistributedSampler{{.num_replicas = w.replicas, .rank = rank}}};
      loader.set_epoch(3, w.first);
      std::int64_t batches = 0;
      for (auto& [data, target] : loader) {
        if (batches++ == most) break;
        for (const auto i : target.to_vector()) all.push_back(i);
      }
    }
    return all;
  };
  const auto before = read({3, 4, 0}, 2);
  CHECK(before.size() == 24);
  // Batches of 12 together are counted alike; of 8 or 24, by the samples read.
  for (const world after : {world{3, 4, 2}, {2, 6, 2}, {1, 12, 2}, {4, 2, 3}, {2, 12, 1}}) {
    auto all = before;
    for (const auto i : read(after, 100)) all.push_back(i);
    std::sort(all.begin(), all.end());
    CHECK(all == xla::arange(72).to_vector());
  }
}

TEST_CASE("padded batches are dealt out with one size and as much in the mask everywhere") {
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const xla::data::DistributedSamplerOptions one{.num_replicas = 2, .rank = rank};
    DataLoader last{samples(7), {.batch_size = 3}, DistributedSampler{one, pad_last}};
    numbers shown, targets;
    for (auto& [data, target, mask] : last) {
      shown.push_back(xla::sum(xla::cast<std::int64_t>(mask)).item());
      for (const auto i : target.to_vector()) targets.push_back(i);
    }
    CHECK(shown == numbers{3, 1});
    CHECK(targets == (rank == 0 ? numbers{0, 2, 4, 6, 0, 2} : numbers{1, 3, 5, 0, 1, 3}));

    // Sequences of 1, 2, … 7 values; the shorter ones fill one batch for both and a half.
    std::vector<numbers> tokens;
    for (std::int64_t i = 1; i <= 7; ++i) tokens.emplace_back(static_cast<std::size_t>(i), i);
    DataLoader bucketed{
        SequenceDataset{tokens}, {.batch_size = 2}, DistributedSampler{one, Buckets{{5, 8}}}};
    CHECK(bucketed.size() == 3);
    std::vector<numbers> sizes;
    numbers first, real;
    for (auto& [values, mask] : bucketed) {
      sizes.push_back(values.sizes());
      const auto v = values.to_vector();
      for (std::size_t r = 0; r < 2; ++r) first.push_back(v[r * v.size() / 2]);
      real.push_back(xla::sum(xla::cast<std::int64_t>(mask)).item());
    }
    CHECK(sizes == std::vector<numbers>{{2, 5}, {2, 5}, {2, 8}});
    CHECK(first == (rank == 0 ? numbers{1, 3, 5, 5, 6, 6} : numbers{2, 4, 5, 5, 7, 7}));
    CHECK(real == (rank == 0 ? numbers{4, 5, 6} : numbers{6, 5, 7}));
  }
}

TEST_CASE("a part that no replica has, or that lengths cannot leave out, is refused") {
  CHECK_THROWS_WITH((DistributedSampler{{.num_replicas = 2, .rank = 2}}),
                    "DistributedSampler: rank is 2 of 2 replicas: it has to be 0 to 1, or -1, the "
                    "replica's own");
  CHECK_THROWS_WITH((DistributedSampler{{.num_replicas = -1}}),
                    "DistributedSampler: num_replicas is -1, it has to be at least 0");
  CHECK_THROWS_WITH((DistributedSampler{{.num_replicas = 2, .rank = -2}}),
                    test::contains("rank is -2 of 2 replicas"));
  CHECK_THROWS_AS((DataLoader{SequenceDataset{std::vector<numbers>{{1}}},
                              {},
                              DistributedSampler{{.drop_last = true}, Buckets{{4}}}}),
                  xla::error);
}
