// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/attention.hpp"

#include "support/gradient.hpp"
#include "support/modes.hpp"

using test::check_equal;
using test::numbers;
using test::sizes_t;

namespace {

/// Attention by plain loops in double; sees(batch, head, query, key) tells which keys count.
template <class T, class F>
std::vector<T> reference(const xla::Tensor<T, 4>& q, const xla::Tensor<T, 4>& k,
                         const xla::Tensor<T, 4>& v, F sees) {
  const auto qs = q.sizes(), ks = k.sizes(), vs = v.sizes();
  const std::int64_t group = qs[1] / ks[1], keys = ks[2], d = qs[3];
  std::vector<T> out;
  for (std::int64_t b = 0; b < qs[0]; ++b)
    for (std::int64_t h = 0; h < qs[1]; ++h)
      for (std::int64_t i = 0; i < qs[2]; ++i) {
        const T* row = q.data() + ((b * qs[1] + h) * qs[2] + i) * d;
        const std::int64_t shared = b * ks[1] + h / group;
        std::vector<double> weight;
        double total = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < d; ++c)
            score += double(row[c]) * double(k.data()[(shared * keys + j) * d + c]);
          weight.push_back(sees(b, h, i, j) ? std::exp(score / std::sqrt(double(d))) : 0);
          total += weight.back();
        }
        for (std::int64_t c = 0; c < vs[3]; ++c) {
          double y = 0;
          for (std::int64_t j = 0; j < keys; ++j)
            y += weight[std::size_t(j)] * double(v.data()[(shared * keys + j) * vs[3] + c]);
          out.push_back(static_cast<T>(total > 0 ? y / total : 0));
        }
      }
  return out;
}

constexpr auto every = [](auto...) { return true; };
constexpr auto causal = [](auto, auto, std::int64_t query, std::int64_t key) {
  return key <= query;
};

}  // namespace

TEMPLATE_TEST_CASE("attention, full and causal, heads that share keys or not", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-13;
  struct sizes {
    std::int64_t batch, heads, kv_heads, queries, keys, width, out;
  };
  for (auto s : {sizes{2, 4, 2, 7, 7, 6, 6},
                 {1, 1, 1, 1, 1, 1, 1},
                 {3, 3, 3, 5, 9, 4, 13},
                 {1, 6, 1, 13, 3, 2, 5},
                 {0, 2, 2, 3, 3, 4, 4},
                 {2, 2, 1, 0, 3, 4, 4}}) {
    const auto q = numbers<T>({s.batch, s.heads, s.queries, s.width}, 1);
    const auto k = numbers<T>({s.batch, s.kv_heads, s.keys, s.width}, 2);
    const auto v = numbers<T>({s.batch, s.kv_heads, s.keys, s.out}, 3);
    const sizes_t to{s.batch, s.heads, s.queries, s.out};
    check_equal(scaled_dot_product_attention(q, k, v), to, reference(q, k, v, every), tolerance);
    check_equal(scaled_dot_product_attention(q, k, v, {.causal = true}), to,
                reference(q, k, v, causal), tolerance);
  }
}

TEST_CASE("attention sees what the mask shows; a query that sees nothing gets 0") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({2, 4, 5, 6}, 1), k = numbers<float>({2, 2, 5, 6}, 2),
             v = numbers<float>({2, 2, 5, 6}, 3);
  const sizes_t to{2, 4, 5, 6};
  const auto some = numbers<float>({5, 5}, 4) > 1.5;
  const auto by_pair = [&](auto, auto, std::int64_t i, std::int64_t j) {
    return some.data()[i * 5 + j];
  };
  const auto y = scaled_dot_product_attention(q, k, v, some);
  check_equal(y, to, reference(q, k, v, by_pair), 1e-5);

  const auto each = numbers<float>({2, 4, 5, 5}, 5) > 0;
  check_equal(scaled_dot_product_attention(q, k, v, each), to,
              reference(q, k, v,
                        [&](auto b, auto h, auto i, auto j) {
                          return each.data()[((b * 4 + h) * 5 + i) * 5 + j];
                        }),
              1e-5);
  const auto padding = numbers<float>({2, 1, 1, 5}, 6) > 0;
  check_equal(
      scaled_dot_product_attention(q, k, v, padding, {.causal = true}), to,
      reference(q, k, v,
                [&](auto b, auto, auto i, auto j) { return padding.data()[b * 5 + j] && j <= i; }),
      1e-5);
  check_equal(scaled_dot_product_attention(q, k, v, xla::full<bool>({1, 1}, false)), to,
              std::vector<float>(2 * 4 * 5 * 6, 0));
}

TEST_CASE("attention by large scores does not overflow, hidden ones leave nothing") {
  const xla::eager_mode_guard eager;
  const auto q = xla::full<float>({1, 1, 2, 1}, 1e18f);
  const auto k = xla::reshape(xla::tensor<float>({1e18f, 3e18f}), {1, 1, 2, 1});
  const auto v = xla::reshape(xla::tensor<float>({5, 7}), {1, 1, 2, 1});
  check_equal(scaled_dot_product_attention(q, k, v), {1, 1, 2, 1}, std::vector<float>{7, 7});
  check_equal(scaled_dot_product_attention(q, k, v, {.causal = true}), {1, 1, 2, 1},
              std::vector<float>{5, 7});
}

TEST_CASE("a head count that cannot be shared is told") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({1, 3, 2, 4}), k = numbers<float>({1, 2, 2, 4});
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k),
                    test::contains("3 query heads cannot share 2 key heads evenly"));
}

TEST_CASE("dropped attention weights: those kept are scaled") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({1, 2, 40, 4}), k = numbers<float>({1, 2, 50, 4}, 1),
             v = xla::ones<float>({1, 2, 50, 1});
  xla::AttentionOptions options{.dropout_p = 0.5};
  check_equal(scaled_dot_product_attention(q, k, v, options), {1, 2, 40, 1},
              std::vector<float>(80, 1), 1e-6);
  options.training = true;
  const auto y = scaled_dot_product_attention(q, k, v, options);
  const float average = mean(y).item();
  CHECK(average > 0.8f);
  CHECK(average < 1.2f);
  CHECK(sum(abs(y - 1)).item() > 1);
}

TEST_CASE("attention is the same in every mode, and its gradients are") {
  auto all = [](auto& q, auto& k, auto& v, auto& present) {
    auto y = scaled_dot_product_attention(q, k, v, {.causal = true});
    auto z = scaled_dot_product_attention(q, k, v, unsqueeze(unsqueeze(present, 1), 1));
    sum(y * y + z).backward();
    return std::tuple(y, z);
  };
  for (std::int64_t n : {7, 1, 20})
    test::check_modes(all, test::parameter(numbers<float>({2, 4, n, 6}, 1)),
                      test::parameter(numbers<float>({2, 2, n, 6}, 2)),
                      test::parameter(numbers<float>({2, 2, n, 6}, 3)),
                      numbers<float>({2, n}, 4) > 0);
}

TEST_CASE("gradients of attention") {
  const auto q = numbers<double>({1, 4, 3, 2}, 1), k = numbers<double>({1, 2, 3, 2}, 2),
             v = numbers<double>({1, 2, 3, 2}, 3);
  test::check_gradient(
      [](auto& a, auto& b, auto& c) {
        return scaled_dot_product_attention(a, b, c, {.causal = true});
      },
      q, k, v);
  test::check_gradient(
      [](auto& a, auto& b, auto& c) {
        const auto mask = xla::arange<double>(3) > xla::unsqueeze(xla::arange<double>(3), 1);
        return scaled_dot_product_attention(a, b, c, mask);
      },
      q, k, v);
}
