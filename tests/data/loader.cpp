// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "xla/xla.hpp"

namespace {

using xla::data::DataLoader;
using xla::data::TensorDataset;
using numbers = std::vector<std::int64_t>;

// Sample i is the row {i, i + 0.5}, its target is 10 i.
auto samples(std::int64_t n) {
  std::vector<float> x;
  numbers y;
  for (std::int64_t i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(i));
    x.push_back(static_cast<float>(i) + 0.5f);
    y.push_back(10 * i);
  }
  return TensorDataset{xla::from_blob(x.data(), {n, 2}), xla::from_blob(y.data(), {n})};
}

// One epoch: the samples in the order they came, and the sizes of the batches.
template <class Loader>
std::pair<numbers, numbers> epoch(Loader& loader) {
  std::pair<numbers, numbers> out;
  for (auto& [data, target] : loader) {
    static_assert(std::is_same_v<decltype(data), xla::Tensor<float, 2>>);
    static_assert(std::is_same_v<decltype(target), xla::Tensor<std::int64_t, 1>>);
    REQUIRE(data.sizes() == numbers{target.sizes()[0], 2});
    const auto x = data.to_vector();
    const auto y = target.to_vector();
    for (std::size_t i = 0; i < y.size(); ++i) {
      REQUIRE(x[2 * i] * 10 == static_cast<float>(y[i]));
      REQUIRE(x[2 * i + 1] == x[2 * i] + 0.5f);
      out.first.push_back(y[i] / 10);
    }
    out.second.push_back(static_cast<std::int64_t>(y.size()));
  }
  return out;
}

}  // namespace

static_assert(xla::data::Dataset<TensorDataset<xla::Tensor<float, 2>>>);
static_assert(std::input_iterator<DataLoader<TensorDataset<xla::Tensor<float, 2>>>::iterator>);

TEST_CASE("batches come in order, the short last one too") {
  DataLoader loader{samples(10), {.batch_size = 4}};
  CHECK(loader.size() == 3);
  CHECK(epoch(loader) == std::pair{numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, numbers{4, 4, 2}});
  CHECK(epoch(loader).first == numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});

  DataLoader dropping{samples(10), {.batch_size = 4, .drop_last = true}};
  CHECK(dropping.size() == 2);
  CHECK(epoch(dropping).second == numbers{4, 4});

  DataLoader even{samples(8), {.batch_size = 4}};
  CHECK(epoch(even).second == numbers{4, 4});
  DataLoader large{samples(3), {.batch_size = 100}};
  CHECK(epoch(large).second == numbers{3});
  DataLoader none{samples(2), {.batch_size = 4, .drop_last = true}};
  CHECK(none.size() == 0);
  CHECK(epoch(none).second.empty());
}

TEST_CASE("shuffling shows every sample once, in an order of seed and epoch") {
  const auto data = samples(50);
  DataLoader loader{data, {.batch_size = 7, .shuffle = true, .seed = 1}};
  const auto first = epoch(loader).first;
  const auto second = epoch(loader).first;
  CHECK(loader.epoch() == 2);
  CHECK(std::set(first.begin(), first.end()).size() == 50);
  CHECK(std::set(second.begin(), second.end()).size() == 50);
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  CHECK(first != second);

  DataLoader again{data, {.batch_size = 50, .shuffle = true, .seed = 1}};
  CHECK(epoch(again).first == first);
  again.set_epoch(1);
  CHECK(epoch(again).first == second);
  DataLoader other{data, {.batch_size = 7, .shuffle = true, .seed = 2}};
  CHECK(epoch(other).first != first);
}

TEST_CASE("an epoch that is gone on with has the batches that were left of it") {
  for (const std::int64_t ahead : {0, 2}) {
    DataLoader loader{samples(10),
                      {.batch_size = 3, .shuffle = true, .seed = 3, .prefetch = ahead}};
    const auto first = epoch(loader).first, second = epoch(loader).first;
    for (std::int64_t batch = 0; batch <= 4; ++batch) {
      loader.set_epoch(0, batch);
      const auto left = std::min<std::ptrdiff_t>(3 * batch, 10);
      CHECK(epoch(loader).first == numbers(first.begin() + left, first.end()));
      CHECK(epoch(loader).first == second);
    }
    CHECK_THROWS_WITH(loader.set_epoch(0, 5), "DataLoader: batch 5 of 4");
    CHECK_THROWS_AS(loader.set_epoch(0, -1), xla::index_error);
    CHECK(loader.epoch() == 2);
  }
}

TEST_CASE("a batch outlives its loop, and loops may be nested") {
  DataLoader loader{samples(4), {.batch_size = 2}};
  std::vector<xla::Tensor<std::int64_t, 1>> kept;
  for (auto& [data, target] : loader) {
    kept.push_back(target);
    CHECK(epoch(loader).first == numbers{0, 1, 2, 3});
  }
  CHECK(kept[0].to_vector() == numbers{0, 10});
  CHECK(kept[1].to_vector() == numbers{20, 30});
}

TEST_CASE("other numbers of tensors make tuples, other ranks are kept") {
  const std::vector<float> images(24, 1.0f);
  const std::vector<std::int64_t> labels{5, 6, 7};
  const TensorDataset three{xla::from_blob(images.data(), {3, 2, 2, 2}), xla::tensor(labels),
                            xla::tensor(labels)};
  const numbers rows{2, 0};
  const auto [image, label, weight] = three.batch(rows);
  CHECK(image.sizes() == numbers{2, 2, 2, 2});
  CHECK(label.to_vector() == numbers{7, 5});
  CHECK(weight.to_vector() == numbers{7, 5});

  DataLoader one{TensorDataset{xla::tensor(labels)}, {.batch_size = 2}};
  for (auto& [only] : one) CHECK(only.sizes()[0] <= 2);
}

TEST_CASE("unequal tensors, wrong samples and empty batches are refused") {
  const std::vector<float> two(2), three(3);
  CHECK_THROWS_AS((TensorDataset{xla::tensor(two), xla::tensor(three)}), xla::shape_error);
  const numbers outside{0, 3}, negative{-1};
  CHECK_THROWS_AS(samples(3).batch(outside), xla::index_error);
  CHECK_THROWS_AS(samples(3).batch(negative), xla::index_error);
  CHECK_THROWS_AS((DataLoader{samples(3), {.batch_size = 0}}), xla::error);
}
