// SPDX-License-Identifier: Apache-2.0
#include "xla/data/padding.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "xla/data/sequences.hpp"
#include "xla/data/subset.hpp"
#include "xla/xla.hpp"

namespace {

using xla::data::Buckets;
using xla::data::DataLoader;
using xla::data::pad_last;
using xla::data::SequenceDataset;
using xla::data::TensorDataset;
using numbers = std::vector<std::int64_t>;
using sequences = std::vector<numbers>;

auto samples(std::int64_t n) { return TensorDataset{xla::arange(n) * 10, xla::arange(n)}; }

// Sequence i is i, i + 100, i + 200 …; these are its lengths, and its label is -i.
auto texts(const numbers& lengths) {
  sequences tokens;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    tokens.emplace_back();
    for (std::int64_t k = 0; k < lengths[i]; ++k)
      tokens.back().push_back(static_cast<std::int64_t>(i) + 100 * k);
  }
  const auto count = static_cast<std::int64_t>(lengths.size());
  return SequenceDataset{tokens, xla::arange(count) * -1};
}

// The sum over what the mask shows, compiled: counts the sizes that it met.
auto masked_sum() {
  return xla::compile(
      [](auto& x, auto& mask) { return xla::sum(xla::where(mask, x, xla::zeros_like(x))); },
      {.name = "masked_sum"});
}
std::int64_t compiled() { return xla::counter_value("UncachedCompile").value_or(0); }

struct seen_batches {
  std::map<std::int64_t, std::set<std::int64_t>> sizes;  // of each length the batch sizes
  numbers labels;                                        // of the rows that are not only padding
  std::int64_t batches = 0;
};
template <class Loader>
seen_batches epoch(Loader& loader) {
  seen_batches out;
  for (auto& [tokens, label, mask] : loader) {
    static_assert(std::is_same_v<decltype(tokens), xla::Tensor<std::int64_t, 2>>);
    static_assert(std::is_same_v<decltype(mask), xla::Tensor<bool, 2>>);
    REQUIRE(tokens.sizes() == mask.sizes());
    const auto rows = tokens.size(0), length = tokens.size(1);
    out.sizes[length].insert(rows);
    ++out.batches;
    const auto values = tokens.to_vector();
    const auto shown = mask.to_vector();
    const auto labels = label.to_vector();
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row = static_cast<std::size_t>(r * length),
                 end = row + static_cast<std::size_t>(length);
      std::int64_t real = 0;
      for (auto at = row; at < end; ++at) {
        const auto place = static_cast<std::int64_t>(at - row);
        if (shown[at]) {
          REQUIRE(real++ == place);
          REQUIRE(values[at] == -labels[static_cast<std::size_t>(r)] + 100 * place);
        }
      }
      if (real > 0) out.labels.push_back(-labels[static_cast<std::size_t>(r)]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the last batch is filled up with the first samples, and a mask says so") {
  for (const std::int64_t ahead : {0, 2}) {
    DataLoader loader{samples(10), {.batch_size = 4, .prefetch = ahead}, pad_last};
    CHECK(loader.size() == 3);
    numbers all;
    std::vector<bool> masks;
    for (auto& [data, target, mask] : loader) {
      static_assert(std::is_same_v<decltype(mask), xla::Tensor<bool, 1>>);
      CHECK(data.sizes() == numbers{4});
      for (const auto i : target.to_vector()) all.push_back(i);
      for (const auto m : mask.to_vector()) masks.push_back(m);
    }
    CHECK(all == numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1});
    CHECK(std::count(masks.begin(), masks.end(), true) == 10);
    CHECK(std::find(masks.begin(), masks.end(), false) - masks.begin() == 10);
  }
  DataLoader small{TensorDataset{xla::arange(2)}, {.batch_size = 5}, pad_last};
  for (auto& [only, mask] : small) {
    CHECK(only.to_vector() == numbers{0, 1, 0, 1, 0});
    CHECK(xla::sum(xla::cast<std::int64_t>(mask)).item() == 2);
  }
  DataLoader none{samples(0), {.batch_size = 5}, pad_last};
  CHECK(none.size() == 0);
  for ([[maybe_unused]] auto& batch : none) CHECK(false);
  CHECK_THROWS_WITH((DataLoader{samples(3), {.batch_size = 2, .drop_last = true}, pad_last}),
                    "DataLoader: give either drop_last or pad_last");
}

TEST_CASE("a compiled step meets one size an epoch when the last batch is padded") {
  const auto data = samples(23);
  DataLoader padded{data, {.batch_size = 5, .shuffle = true, .seed = 3}, pad_last};
  auto step = masked_sum();
  for (int e = 0; e < 3; ++e) {
    const auto before = compiled();
    std::int64_t sum = 0;
    for (auto& [x, y, mask] : padded) sum += step(x, mask).item();
    CHECK(sum == 10 * 22 * 23 / 2);
    CHECK(compiled() - before == (e == 0 ? 1 : 0));
  }
  DataLoader plain{data, {.batch_size = 5}};
  auto other = xla::compile([](auto& x) { return xla::sum(x); }, {.name = "plain_sum"});
  const auto before = compiled();
  for (auto& [x, y] : plain) other(x).item();
  CHECK(compiled() - before == 2);
}

TEST_CASE("sequences are padded to the longest of a batch, or further") {
  const auto data = texts({2, 0, 3});
  CHECK(data.size() == 3);
  CHECK(data.length(2) == 3);
  const numbers all{2, 0, 1};
  const auto [tokens, label] = data.batch(all);
  CHECK(tokens.sizes() == numbers{3, 3});
  CHECK(tokens.to_vector() == numbers{2, 102, 202, 0, 100, 0, 0, 0, 0});
  CHECK(label.to_vector() == numbers{-2, 0, -1});
  CHECK(data.batch(all, 5).first.sizes() == numbers{3, 5});
  CHECK(data.batch(numbers{}).first.sizes() == numbers{0, 0});
  CHECK_THROWS_AS(data.batch(numbers{3}), xla::index_error);

  const SequenceDataset tagged{sequences{{1, 2}, {3}},
                               std::vector<std::vector<float>>{{.1f, .2f}, {.3f}}};
  const auto [words, tags] = tagged.batch(numbers{1, 0});
  CHECK(tags.to_vector() == std::vector<float>{.3f, 0, .1f, .2f});
  CHECK_THROWS_WITH((SequenceDataset{sequences{{1, 2}}, sequences{{1}}}),
                    "SequenceDataset: argument 1 has 1 values in sequence 0, argument 0 has 2");
  CHECK_THROWS_WITH((SequenceDataset{sequences{{1, 2}}, xla::arange(3)}),
                    "SequenceDataset: argument 1 has 3 samples, argument 0 has 1");
}

TEST_CASE("sequences come in batches of one bucket, padded to its length") {
  numbers lengths, every;
  for (std::int64_t i = 0; i < 61; ++i) lengths.push_back(1 + i * 7 % 30), every.push_back(i);
  const auto data = texts(lengths);
  for (const bool shuffle : {false, true})
    for (const std::int64_t ahead : {0, 2}) {
      DataLoader loader{data,
                        {.batch_size = 4, .shuffle = shuffle, .seed = 9, .prefetch = ahead},
                        Buckets{{8, 16, 30}}};
      auto first = epoch(loader), second = epoch(loader);
      CHECK(first.sizes ==
            std::map<std::int64_t, std::set<std::int64_t>>{{8, {4}}, {16, {4}}, {30, {4}}});
      CHECK(first.batches == loader.size());
      CHECK((first.labels == second.labels) == !shuffle);
      std::ranges::sort(first.labels), std::ranges::sort(second.labels);
      CHECK(first.labels == every);
      CHECK(second.labels == every);
    }
  // As many values in each batch; what does not fill one is dropped.
  DataLoader even{data, {.drop_last = true}, Buckets{{8, 16, 30}, {8, 4, 2}}};
  const auto seen = epoch(even);
  CHECK(seen.sizes ==
        std::map<std::int64_t, std::set<std::int64_t>>{{8, {8}}, {16, {4}}, {30, {2}}});
  CHECK(seen.batches == even.size());
  CHECK(seen.labels.size() < 61);
  // Parts of a split have their own.
  const auto [some, others] = xla::data::random_split(data, {40, 21}, 1);
  DataLoader part{some, {.batch_size = 4}, Buckets{{30}}};
  CHECK(part.size() == 10);
  CHECK(epoch(part).labels == some.samples());
  CHECK(part.dataset().length(1) == lengths[static_cast<std::size_t>(some.samples()[1])]);
}

TEST_CASE("a compiled step is compiled once for each bucket") {
  numbers lengths;
  for (std::int64_t i = 0; i < 50; ++i) lengths.push_back(i * 11 % 32);
  std::int64_t wanted = 0;
  for (std::int64_t i = 0; i < 50; ++i)
    for (std::int64_t k = 0; k < lengths[static_cast<std::size_t>(i)]; ++k) wanted += i + 100 * k;
  DataLoader loader{texts(lengths), {.batch_size = 8, .shuffle = true}, Buckets{{8, 32}}};
  auto step = masked_sum();
  for (int e = 0; e < 3; ++e) {
    const auto before = compiled();
    std::int64_t sum = 0;
    for (auto& [tokens, label, mask] : loader) sum += step(tokens, mask).item();
    CHECK(sum == wanted);
    CHECK(compiled() - before == (e == 0 ? 2 : 0));
  }
}

TEST_CASE("buckets that cannot hold the sequences are refused") {
  const auto data = texts({3, 9});
  const auto with = [&](Buckets buckets) { DataLoader{data, {}, std::move(buckets)}; };
  CHECK_THROWS_WITH(with({{4, 8}}),
                    "Buckets: sequence 1 has 9 values, the longest bucket 8; cut the sequence, or "
                    "add a bucket");
  CHECK_THROWS_WITH(with({{8, 8, 9}}), "Buckets: lengths have to rise, from 1 on");
  CHECK_THROWS_AS(with({{0, 9}}), xla::error);
  CHECK_THROWS_AS(with({{}}), xla::error);
  CHECK_THROWS_WITH(with({{4, 9}, {1}}), "Buckets: give a batch size for each length, or none");
  CHECK_THROWS_WITH(with({{9}, {0}}), "Buckets: batch sizes have to be at least 1");
}

TEST_CASE("a tensor padded to one of some lengths") {
  const auto x = xla::reshape(xla::arange(6), {2, 3});
  using xla::data::pad_to;
  CHECK(pad_to(x, 1, 5, -1).to_vector() == numbers{0, 1, 2, -1, -1, 3, 4, 5, -1, -1});
  CHECK(pad_to(x, -2, {8, 3, 4}).to_vector() == numbers{0, 1, 2, 3, 4, 5, 0, 0, 0});
  CHECK(pad_to(x, 1, {64, 3}).to_vector() == x.to_vector());
  CHECK_THROWS_WITH(pad_to(x, 1, {1, 2}),
                    "data::pad_to: axis 1 has 3 elements, more than every length given; cut them, or "
                    "add a length");
  CHECK_THROWS_AS(pad_to(x, 2, 8), xla::shape_error);

  const xla::eager_mode_guard eager(true);
  auto step = masked_sum();
  const auto before = compiled();
  for (std::int64_t n = 1; n <= 32; ++n) {
    const auto row = xla::reshape(xla::arange(n), {1, xla::Size(n)});
    const auto kept = xla::full<bool>({1, xla::Size(n)}, true);
    const auto padded = pad_to(row, 1, {8, 32}, 99);
    const auto mask = pad_to(kept, 1, {8, 32});
    CHECK(step(padded, mask).item() == n * (n - 1) / 2);
  }
  CHECK(compiled() - before == 2);
}
