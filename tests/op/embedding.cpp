// SPDX-License-Identifier: Apache-2.0
#include "xla/op/embedding.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/nn/embedding.hpp"
#include "xla/op/pow.hpp"

using test::check_equal;
using test::check_modes;
using test::numbers;

namespace {

xla::Tensor<std::int64_t, 2> some_indices(std::int64_t rows, std::int64_t columns,
                                          std::int64_t limit) {
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    v.push_back((test::number<std::int64_t>(5, static_cast<std::uint64_t>(i)) + 8) % limit);
  return xla::from_blob(v.data(), {rows, columns});
}

}  // namespace

TEMPLATE_TEST_CASE("embedding picks rows by index", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (const std::int64_t width : {1, 7, 33}) {
    const auto table = numbers<T>({11, width});
    const auto index = some_indices(3, 5, 11);
    std::vector<T> want;
    for (std::int64_t i = 0; i < 15; ++i)
      for (std::int64_t k = 0; k < width; ++k)
        want.push_back(table.data()[index.data()[i] * width + k]);
    check_equal(embedding(index, table), {3, 5, width}, want);
  }
  const auto table = numbers<T>({2, 3});
  check_equal(embedding(xla::tensor(std::int64_t{1}), table), {3}, table[1].to_vector());
  check_equal(embedding(xla::zeros<std::int64_t>({0}), table), {0, 3}, {});
}

TEST_CASE("embedding refuses an index outside the table, in every mode") {
  const xla::eager_mode_guard guard;
  const auto table = numbers<float>({4, 2});
  auto look_up = [](auto& i, auto& t) { return embedding(i, t); };
  auto compiled = xla::compile(look_up);
  for (const std::int64_t bad : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 60}) {
    auto index = xla::tensor<std::int64_t>({0, bad, 3});
    xla::eager_mode(true);
    CHECK_THROWS_AS(look_up(index, table), xla::index_error);
    CHECK_THROWS_WITH(compiled(index, table),
                      test::contains("embedding") &&
                          test::contains(std::to_string(bad)) &&
                          test::contains("[0, 4)"));
    xla::eager_mode(false);
    auto result = look_up(index, table);
    CHECK_THROWS_AS(result.to_vector(), xla::index_error);
  }
}

TEST_CASE("embedding is the same in every mode") {
  auto all = [](auto& index, auto& table) {
    auto rows = embedding(index, table);
    auto loss = sum(rows * rows * 0.5);
    loss.backward();
    return std::tuple(rows, loss, rows + 1);
  };
  auto table = xla::Parameter<float, 2>::like(numbers<float>({11, 7}));
  table.copy_(numbers<float>({11, 7}));
  check_modes(all, some_indices(3, 5, 11), table);
  check_modes(all, some_indices(33, 2, 3), table);
  check_modes(all, some_indices(0, 2, 3), table);
}

TEST_CASE("the gradient of embedding adds up the rows that were used") {
  test::check_gradient(
      [](auto& table) {
        const auto rows = embedding(xla::tensor<std::int64_t>({{0, 2, 2}, {3, 2, 0}}), table);
        return rows * rows;
      },
      numbers<double>({4, 3}));
}

TEST_CASE("nn::Embedding is a table with a standard normal start") {
  const xla::eager_mode_guard eager;
  xla::manual_seed(1);
  xla::nn::Embedding layer(100, 50);
  CHECK(mean(layer.weight).item() == Approx(0).margin(0.05));
  CHECK(mean(layer.weight * layer.weight).item() == Approx(1).margin(0.05));
  check_equal(layer(some_indices(2, 3, 100)), embedding(some_indices(2, 3, 100), layer.weight));
}

TEST_CASE("a padding row starts at 0 and gets no gradient, in every mode") {
  auto all = [](auto& layer, auto& index) {
    const auto rows = layer(index);
    sum(rows * rows * rows).backward();
    return rows;
  };
  xla::manual_seed(1);
  for (const std::int64_t padding : {1, -2, 0}) {
    const xla::eager_mode_guard eager;
    xla::nn::Embedding layer(3, 7, padding);
    const auto row = layer.padding_idx;
    CHECK(row == (padding + 3) % 3);
    const auto start = layer.weight.to_vector();
    for (std::int64_t i = 0; i < 3; ++i) CHECK((start[std::size_t(i * 7 + 2)] == 0) == (i == row));
    layer.weight.copy_(layer.weight + 1);
    auto index = some_indices(4, 5, 3);
    all(layer, index);
    const auto got = layer.weight.grad().to_vector();
    layer.weight.zero_grad();
    sum(pow(embedding(index, layer.weight), 3)).backward();
    const auto want = layer.weight.grad().to_vector();
    for (std::size_t k = 0; k < 21; ++k)
      CHECK(got[k] == (std::int64_t(k / 7) == row ? 0 : want[k]));
    check_equal(embedding(index, layer.weight, padding), embedding(index, layer.weight));
  }
  CHECK_THROWS_AS(xla::nn::Embedding(3, 7, 3), xla::error);
  CHECK_THROWS_AS(xla::nn::Embedding(3, 7, -4), xla::error);
  const auto table = numbers<float>({3, 7});
  CHECK_THROWS_WITH(embedding(some_indices(1, 1, 3), table, 3), test::contains("padding_idx 3"));
  CHECK_THROWS_AS(embedding(some_indices(1, 1, 3), table, -4), xla::shape_error);
  check_modes(
      [](auto& table, auto& index) {
        const auto rows = embedding(index, table, 1);
        sum(rows * rows).backward();
        return rows;
      },
      test::parameter(numbers<float>({3, 7})), some_indices(4, 5, 3));
  struct Bag {
    xla::nn::Embedding words{3, 7, 1};
    XLA_MODULE(words)
  };
  check_modes(
      [](auto& bag, auto& index) {
        sum(bag.words(index)).backward();
        return bag.words(index);
      },
      Bag{}, some_indices(4, 5, 3));
}
