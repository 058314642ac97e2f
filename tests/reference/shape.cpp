// SPDX-License-Identifier: Apache-2.0
#include "support/pytorch.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {
xla::Tensor<float, 3> input() { return numbers<float>({4, 7, 5}); }
}  // namespace

TEST_CASE("parts and orders, against PyTorch") {
  check_pytorch(
      "transpose", 0, [](const auto& x) { return transpose(x, 0, 2); }, input());
  check_pytorch(
      "permute", 0,
      [](const auto& x) {
        return permute(x, {2, 0, 1});
      },
      input());
  check_pytorch(
      "narrow", 0, [](const auto& x) { return narrow(x, 1, 2, 3); }, input());
  check_pytorch(
      "slice", 0, [](const auto& x) { return slice(x, 1, 1, 6, 2); }, input());
  check_pytorch(
      "slice/negative", 0, [](const auto& x) { return slice(x, 1, -3); }, input());
  check_pytorch(
      "select", 0, [](const auto& x) { return select(x, -1, -2); }, input());
  check_pytorch(
      "flip", 0,
      [](const auto& x) {
        return flip(x, {0, 2});
      },
      input());
  check_pytorch(
      "roll", 0, [](const auto& x) { return roll(x, 2, 1); }, input());
}

TEST_CASE("joining and growing, against PyTorch") {
  const auto a = numbers<float>({2, 3});
  check_pytorch(
      "cat", 1e-7,
      [](const auto& x, const auto& y) {
        return xla::cat({x * 1, y * 1, x * 1}, 1);
      },
      a, numbers<float>({2, 4}, 1));
  check_pytorch(
      "stack", 0,
      [](const auto& x, const auto& y) {
        return xla::stack({x * 1, y * 1}, 1);
      },
      a, numbers<float>({2, 3}, 1));
  check_pytorch(
      "pad", 0,
      [](const auto& x) {
        return pad(x, {{0, 3}, {1, 2}}, 0.5);
      },
      a);
  check_pytorch(
      "repeat", 1e-7,
      [](const auto& x) {
        return repeat(x, {2, 3});
      },
      a);
  check_pytorch(
      "tril", 0, [](const auto& x) { return tril(x, -1); }, numbers<float>({5, 7}));
  check_pytorch(
      "triu", 0, [](const auto& x) { return triu(x, 1); }, numbers<float>({5, 7}));
}

TEST_CASE("indices, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto index = abs(numbers<std::int64_t>({4, 3, 5}, 5)) % 7;
  check_pytorch(
      "gather", 1e-7, [&](const auto& x) { return gather(x, 1, index); }, input());
  check_pytorch(
      "scatter_add", 1e-7,
      [&](const auto& x, const auto& s) { return scatter_add(x, 1, index, s); }, input(),
      numbers<float>({4, 3, 5}, 6));
  const auto small = abs(numbers<std::int64_t>({3, 9, 2}, 5)) % 7;
  const auto apart = argsort(numbers<float>({3, 5, 2}, 5), 1);
  const auto large = numbers<float>({5, 9, 4}, 6);
  const auto put = [&](const auto& x, const auto& s) { return scatter(x, 1, apart, s); };
  check_pytorch(
      "gather/small", 1e-7, [&](const auto& x) { return gather(x, 1, small); }, input());
  check_pytorch(
      "gather/transposed", 1e-7,
      [&](const auto& x) { return gather(transpose(x, 0, 2), 1, small); },
      numbers<float>({5, 7, 4}));
  const auto add = [&](const auto& x, const auto& s) { return scatter_add(x, 1, small, s); };
  check_pytorch("scatter_add/large", add(input(), large), 1e-6);
  check_pytorch("scatter_add/small", 1e-6, add, input(), numbers<float>({3, 9, 2}, 6));
  check_pytorch("scatter/small", 0, put, input(), numbers<float>({3, 5, 2}, 6));
  check_pytorch("scatter/large", put(input(), large), 0);
  const auto last = narrow(small, 1, 0, 6) % 5;
  check_pytorch("scatter/number", scatter(input(), -1, last, 0.5f), 0);
  const auto few = small.index(xla::Slice(0, 1), xla::Slice(), xla::Slice(0, 1)) * 1;
  check_pytorch(
      "take_along_dim", 1e-7, [&](const auto& x) { return take_along_dim(x, few, 1); }, input());
  const auto rows = xla::tensor<std::int64_t>({0, 6, 3, 3});
  check_pytorch(
      "index_select", 1e-7, [&](const auto& x) { return index_select(x, 1, rows); }, input());
  const auto i = xla::tensor<std::int64_t>({{3}, {0}});
  const auto apart_columns = xla::tensor<std::int64_t>({{1, 6, 4}});
  const auto columns = xla::tensor<std::int64_t>({{1, 4, 1}});
  check_pytorch(
      "index_put", 0,
      [&](const auto& x, const auto& v) {
        return index_put(x, {i, apart_columns}, v);
      },
      input(), numbers<float>({2, 3, 5}, 6));
  check_pytorch(
      "index_put/accumulate", 1e-6,
      [&](const auto& x, const auto& v) {
        return index_put(x, {i, columns}, v, true);
      },
      input(), numbers<float>({3, 1}, 6));
  const auto boundaries = sort(numbers<float>({4, 3}, 7), 1).first;
  const auto edges = xla::tensor<std::int64_t>({-6, -3, -3, 1, 2});
  for (const bool right : {false, true}) {
    const std::string suffix = right ? "/1" : "/0";
    check_pytorch("searchsorted" + suffix, searchsorted(boundaries, select(input(), 2, 0), right),
                  0);
    check_pytorch("bucketize" + suffix, bucketize(numbers<std::int64_t>({9}, 8), edges, right), 0);
  }
  check_pytorch("one_hot", one_hot(xla::tensor<std::int64_t>({0, 2, 1}), 4), 0);
  check_pytorch("sort/order", sort(input(), 1).second, 0);
  check_pytorch(
      "sort/values", 0, [](const auto& x) { return sort(x, 1).first; }, input());
  check_pytorch(
      "topk/values", 0, [](const auto& x) { return topk(x, 3, 1).first; }, input());
  check_pytorch(
      "topk/smallest", 0, [](const auto& x) { return topk(x, 3, 0, false).first; }, input());
}

TEST_CASE("ranges, against PyTorch") {
  const xla::eager_mode_guard eager;
  check_pytorch("eye", xla::eye<float>(3, 4), 0);
  check_pytorch("linspace", xla::linspace<float>(-1, 2, 7), 1e-7);
  check_pytorch("arange", xla::arange<float>(1.0, 4.0, 0.5), 0);
}
