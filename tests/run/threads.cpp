// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/memory_spaces.hpp"
#include "support/reference.hpp"
#include "support/threads.hpp"
#include "xla/xla.hpp"

namespace {

using named = std::pair<std::string, std::vector<double>>;

/// Results of kernels whose work is divided, at sizes for which it is.
std::vector<named> results() {
  std::vector<named> all;
  const auto add = [&](const char* name, const auto& x) {
    const auto values = x.to_vector();
    all.emplace_back(name, std::vector<double>(values.begin(), values.end()));
  };
  xla::manual_seed(9);
  add("rand", xla::rand<float>({321, 517}));
  add("randn of double", xla::randn<double>({123, 457}));
  add("randint", xla::randint(-5, 1000, {70001}));
  const auto x = test::numbers<float>({3, 65, 257, 5});
  const auto y = test::numbers<float>({512, 300});
  add("permute that keeps the last axis", xla::permute(x, {2, 0, 1, 3}));
  add("permute", xla::permute(x, {3, 1, 0, 2}));
  add("transpose", xla::transpose(y, 0, 1));
  add("map", xla::exp(y) * y + 1.f);
  add("row", xla::softmax(y));
  add("sum over rows", xla::sum(y, {1}));
  add("sum over columns", xla::sum(y, {0}));
  add("sum", xla::sum(y));
  add("matmul", xla::matmul(y, xla::transpose(y, 0, 1)));

  xla::nn::Embedding table{1000, 300};
  table.weight.copy_(test::numbers<float>({1000, 300}));
  const auto index = xla::randint(0, 1000, {777});
  const auto rows = table(index);
  add("embedding", rows);
  xla::sum(rows * rows).backward();
  add("gradient of embedding", table.weight.grad());
  return all;
}

}  // namespace

TEST_CASE("results do not depend on the number of threads") {
  const xla::eager_mode_guard eager;
  const test::restore_threads guard;
  xla::set_num_threads(1);
  const auto alone = results();
  for (const int threads : {2, 3, 7}) {
    xla::set_num_threads(threads);
    const auto together = results();
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      INFO(alone[i].first << ", " << threads << " threads");
      CHECK(together[i].second == alone[i].second);
    }
  }
}

TEST_CASE("threads that read elements of a backend share one copy") {
  const xla::eager_mode_guard eager;
  const auto x = test::numbers<float>({31, 17});
  const auto y = test::laid_out(x, {1, 0}, test::backend_memory);
  std::array<const float*, 4> seen;
  std::array<std::thread, 4> threads;
  for (std::size_t i = 0; i < seen.size(); ++i)
    threads[i] = std::thread([&, i] { seen[i] = y.data(); });
  for (auto& t : threads) t.join();
  for (const float* p : seen) CHECK(p == seen[0]);
  CHECK(y.to_vector() == x.to_vector());
}
