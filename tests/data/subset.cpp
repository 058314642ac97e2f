// SPDX-License-Identifier: Apache-2.0
#include "xla/data/subset.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "xla/xla.hpp"

namespace {

using xla::data::DataLoader;
using xla::data::random_split;
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
