// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/attention.hpp"

#include "support/bfloat16_algorithms.hpp"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/sanitized.hpp"
#include "support/threads.hpp"
#include "xla/op/abs.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/run/trace/autocast.hpp"

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

/// Attention as it is composed of other ops.
template <class T>
constexpr auto composed(const auto& q, const auto& k, const auto& v,
                        const xla::AttentionOptions& options) {
  return xla::detail::attend(q, k, v, xla::detail::unknown_caller,
                             xla::detail::weigh_all<T>{options});
}
template <class T, class B, int M>
constexpr auto composed(const auto& q, const auto& k, const auto& v, const xla::Tensor<B, M>& mask,
                        const xla::AttentionOptions& options) {
  return xla::detail::attend(
      q, k, v, xla::detail::unknown_caller,
      xla::detail::weigh_masked<T, B, M>{mask, options, xla::detail::unknown_caller});
}

struct lengths {
  std::int64_t batch, heads, kv_heads, queries, keys, width, out;
};
/// One query, one key, a few queries, several blocks of either, key heads whose keys are shared
/// among threads.
constexpr lengths awkward[] = {{1, 1, 1, 1, 1, 1, 1},      {2, 4, 2, 1, 33, 7, 5},
                               {2, 2, 2, 5, 1, 3, 4},      {1, 6, 2, 17, 33, 20, 9},
                               {1, 2, 1, 33, 17, 16, 1},   {2, 3, 3, 3, 130, 8, 8},
                               {1, 2, 2, 101, 203, 5, 33}, {1, 2, 1, 60, 1100, 8, 8}};

/// The result and the gradients of f(q, k, v, mask...), one after the other.
template <class T, class F>
std::vector<T> with_gradients(const lengths& s, F f, const auto&... mask) {
  const auto q = test::parameter(numbers<T>({s.batch, s.heads, s.queries, s.width}, 1)),
             k = test::parameter(numbers<T>({s.batch, s.kv_heads, s.keys, s.width}, 2)),
             v = test::parameter(numbers<T>({s.batch, s.kv_heads, s.keys, s.out}, 3));
  const auto y = f(q, k, v, mask...);
  sum(y * numbers<T>({s.batch, s.heads, s.queries, s.out}, 4)).backward();
  std::vector<T> all = y.to_vector();
  const auto add = [&](const auto& p) {
    const auto g = p.grad().to_vector();
    all.insert(all.end(), g.begin(), g.end());
  };
  (add(q), add(k), add(v));
  if constexpr (sizeof...(mask) == 1)
    if ((mask.requires_grad() || ...)) (add(mask), ...);
  return all;
}
template <class T>
void check_near(const std::vector<T>& is, const std::vector<T>& wanted) {
  REQUIRE(is.size() == wanted.size());
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-13;
  double most = 1, off = 0;
  bool numbers = true;
  for (std::size_t i = 0; i < is.size(); ++i) {
    most = std::max(most, std::abs(double(wanted[i])));
    off = std::max(off, std::abs(double(is[i]) - double(wanted[i])));
    numbers &= is[i] == is[i];
  }
  CHECK(numbers);
  CHECK(off <= tolerance * most);
}

}  // namespace

TEMPLATE_TEST_CASE("attention by its own kernels and as other ops compose it", "", float, double) {
  using T = TestType;
  const xla::eager_mode_guard eager;
  for (const lengths& s : awkward)
    for (const bool causal : {false, true}) {
      if (test::sanitized && s.keys > 1000 && (sizeof(T) == 8 || causal))
        continue;  // seconds there
      CAPTURE(s.queries, s.keys, causal);
      const auto whole = [&](auto&... x) {
        return scaled_dot_product_attention(x..., {.causal = causal});
      };
      const auto parts = [&](auto&... x) { return composed<T>(x..., {.causal = causal}); };
      const auto check = [&](const auto&... mask) {
        const auto is = with_gradients<T>(s, whole, mask...);
        if (test::sanitized) return;  // the others are sanitized elsewhere
        check_near(is, with_gradients<T>(s, parts, mask...));
      };
      check();
      // Of the first also queries that see nothing.
      const auto shown = numbers<T>({s.queries, s.keys}, 5) > T(1);
      check(shown);
      check(numbers<T>({s.batch, 1, 1, s.keys}, 6) > T(-1));
      check(numbers<T>({s.batch, s.heads, s.queries, s.keys}, 7) > T(0));
      check(numbers<T>({1, 1, s.queries, s.keys}, 8));
      // Numbers that hide as well as infinity where there are others, and where there are none
      // weigh all alike.
      for (const T low : {std::numeric_limits<T>::lowest(), T(-1e30)}) {
        check(xla::full<T>({1, 1, s.queries, 1}, low));
        check(where(shown, numbers<T>({s.queries, s.keys}, 8), low));
      }
      auto added = xla::Parameter<T, 4>::like(numbers<T>({1, s.heads, s.queries, 1}, 9));
      added.copy_(numbers<T>({1, s.heads, s.queries, 1}, 9));
      auto each = xla::Parameter<T, 2>::like(numbers<T>({s.queries, s.keys}, 9));
      each.copy_(
          where(shown, numbers<T>({s.queries, s.keys}, 9), -std::numeric_limits<T>::infinity()));
      for (int way = 0; way < 2; ++way) {
        const auto both = [&](auto f) {
          added.zero_grad();
          each.zero_grad();
          return way == 0 ? with_gradients<T>(s, f, added) : with_gradients<T>(s, f, each);
        };
        const auto is = both(whole);
        if (!test::sanitized) check_near(is, both(parts));
      }
    }
}

namespace {

/// As a product in autocast reads it.
template <int R>
xla::Tensor<double, R> rounded(const xla::Tensor<float, R>& x) {
  return xla::cast<double>(xla::cast<xla::bfloat16>(x));
}
/// The largest difference in parts of the largest number, of each of some tensors.
template <int R>
double apart(const xla::Tensor<float, R>& is, const xla::Tensor<double, R>& wanted) {
  REQUIRE(is.sizes() == wanted.sizes());
  double most = 0, off = 0;
  for (std::int64_t i = 0; i < is.numel(); ++i) {
    most = std::max(most, std::abs(wanted.data()[i]));
    off = std::max(off, std::abs(is.data()[i] - wanted.data()[i]));
    if (!std::isfinite(is.data()[i])) return 1;
  }
  return off / std::max(most, 1e-3);
}

/// Attention in autocast and its gradients, against those composed in double of operands that are
/// rounded: what is left are the weights' rounding and that of the scores' gradients.
template <class... Mask>
void check_rounded(const lengths& s, bool causal, const Mask&... mask) {
  const auto q = test::parameter(numbers<float>({s.batch, s.heads, s.queries, s.width}, 1)),
             k = test::parameter(numbers<float>({s.batch, s.kv_heads, s.keys, s.width}, 2)),
             v = test::parameter(numbers<float>({s.batch, s.kv_heads, s.keys, s.out}, 3));
  const auto d = numbers<float>({s.batch, s.heads, s.queries, s.out}, 4);
  const auto y = autocast(
      q, [&] { return scaled_dot_product_attention(q, k, v, mask..., {.causal = causal}); });
  sum(y * d).backward();
  if (test::sanitized) return;  // the other ops are sanitized elsewhere
  const auto wq = test::parameter(rounded(q)), wk = test::parameter(rounded(k)),
             wv = test::parameter(rounded(v));
  [[maybe_unused]] const auto wide = [](const auto& m) {
    if constexpr (std::is_same_v<typename std::remove_cvref_t<decltype(m)>::value_type, bool>)
      return m;
    else return xla::cast<double>(m);
  };
  const auto want = composed<double>(wq, wk, wv, wide(mask)..., {.causal = causal});
  sum(want * rounded(d)).backward();
  CHECK(apart(y, want) < 0x1p-8);
  CHECK(apart(q.grad(), wq.grad()) < 0x1p-6);
  CHECK(apart(k.grad(), wk.grad()) < 0x1p-6);
  CHECK(apart(v.grad(), wv.grad()) < 0x1p-6);
}

}  // namespace

TEST_CASE("attention in autocast by kernels of its own, by every algorithm of this machine") {
  const xla::eager_mode_guard eager;
  test::each_bfloat16_algorithm([] {
    for (const lengths& s : awkward)
      for (const bool causal : {false, true}) {
        if (test::sanitized && s.keys > 1000 && causal) continue;
        CAPTURE(s.queries, s.keys, causal);
        check_rounded(s, causal);
        check_rounded(s, causal, numbers<float>({s.queries, s.keys}, 5) > 1.f);
        check_rounded(s, causal, numbers<float>({s.batch, 1, 1, s.keys}, 6) > -1.f);
        check_rounded(s, causal, numbers<float>({1, s.heads, s.queries, s.keys}, 8));
      }
    auto all = [](auto& q, auto& k, auto& v, auto& present, auto& added) {
      return autocast(q, [&] {
        auto y = scaled_dot_product_attention(q, k, v, {.causal = true});
        auto z = scaled_dot_product_attention(q, k, v, unsqueeze(unsqueeze(present, 1), 1));
        auto w = scaled_dot_product_attention(q, k, v, added);
        sum(y * y + z + w).backward();
        return std::tuple(y, z, w);
      });
    };
    for (std::int64_t n : {1, 7, 60})
      test::check_modes(all, test::parameter(numbers<float>({2, 4, n, 6}, 1)),
                        test::parameter(numbers<float>({2, 2, n, 6}, 2)),
                        test::parameter(numbers<float>({2, 2, n, 6}, 3)),
                        numbers<float>({2, n}, 4) > 0.f,
                        test::parameter(numbers<float>({n, n}, 5)));
  });
}

TEST_CASE("in autocast nothing comes from keys that no query sees") {
  const xla::eager_mode_guard eager;
  const auto with_nan = [](std::int64_t row) {
    const auto there =
        xla::expand(xla::reshape(xla::arange<std::int64_t>(8) == row, {1, 1, 8, 1}), {1, 1, 8, 4});
    return test::parameter(where(there, std::nanf(""), numbers<float>({1, 1, 8, 4}, 2)));
  };
  const auto finite = [](const auto& x) { return xla::all(xla::isfinite(x)).item(); };
  test::each_bfloat16_algorithm([&] {
    const auto q = test::parameter(numbers<float>({1, 1, 5, 4}, 1));
    const auto check = [&](const auto& k, const auto& v, std::int64_t unseen, const auto&... mask) {
      const auto y = autocast(q, [&] {
        return scaled_dot_product_attention(q, k, v, mask..., {.causal = sizeof...(mask) == 0});
      });
      sum(y * y).backward();
      CHECK(finite(y));
      CHECK(finite(k.grad()));
      CHECK(finite(v.grad()));
      for (const auto& g : {k.grad(), v.grad()})
        CHECK(sum(abs(narrow(g, 2, unseen, 1))).item() == 0);
    };
    check(with_nan(5), with_nan(5), 5);  // the neighbour of the last that is seen
    CHECK(finite(q.grad()));
    check(with_nan(3), test::parameter(numbers<float>({1, 1, 8, 4}, 3)), 3,
          xla::expand(xla::arange<std::int64_t>(8) != 3, {5, 8}));
  });
}

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

TEST_CASE("attention uses the keys that the mask shows; a query without keys gets 0") {
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
  auto v = test::parameter(xla::reshape(xla::tensor<float>({5, 7}), {1, 1, 2, 1}));
  const auto check = [&](bool causal, std::vector<float> wanted, std::vector<float> gradient) {
    const auto y = scaled_dot_product_attention(q, k, v, {.causal = causal});
    check_equal(y, {1, 1, 2, 1}, wanted);
    v.zero_grad();
    sum(y).backward();
    check_equal(v.grad(), {1, 1, 2, 1}, gradient);
  };
  check(false, {7, 7}, {0, 2});
  check(true, {5, 7}, {1, 1});
}

TEST_CASE("a head count that cannot be shared is an error") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({1, 3, 2, 4}), k = numbers<float>({1, 2, 2, 4});
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k),
                    test::contains("3 query heads cannot share 2 key heads evenly"));
}

TEST_CASE("attention drops weights whenever it is given a probability, those kept are scaled") {
  const xla::eager_mode_guard eager;
  constexpr double p = 0.4, keys = 50;
  const auto q = xla::zeros<float>({2, 4, 200, 4}), k = numbers<float>({2, 2, 50, 4}, 1),
             v = xla::ones<float>({2, 2, 50, 1});
  const auto all = scaled_dot_product_attention(q, k, v);
  check_equal(scaled_dot_product_attention(q, k, v, {.dropout_p = 0}), all);
  const auto moments = [&](const auto& y) {
    const double average = mean(y).item(), spread = mean((y - 1) * (y - 1)).item();
    CHECK(average == Approx(1).margin(0.02));
    CHECK(spread == Approx(p / (1 - p) / keys).epsilon(0.15));
  };
  moments(scaled_dot_product_attention(q, k, v, {.dropout_p = p}));
  moments(scaled_dot_product_attention(q, k, v, xla::ones<bool>({1, 50}), {.dropout_p = p}));
  moments(sum(attention_weights(q, k, {.dropout_p = p}), {3}, xla::keepdim));
  check_equal(scaled_dot_product_attention(q, k, v, {.dropout_p = 1}), 0 * all);
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k, v, {.dropout_p = 1.5}), xla::error);
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k, v, {.dropout_p = NAN}), xla::error);
}

TEST_CASE("attention drops the same weights in every mode, of numbers and hyper-parameters") {
  auto f = [](auto& q, auto& k, auto& v, auto& p, auto& present) {
    const auto shown = unsqueeze(unsqueeze(present, 1), 1);
    auto y = scaled_dot_product_attention(q, k, v, {.causal = true, .dropout_p = 0.3});
    auto z = scaled_dot_product_attention(q, k, v, shown, {.dropout_p = p, .scale = 0.5});
    sum(y * y + z * y).backward();
    return std::tuple(y, z);
  };
  for (const double p : {0.25, 0.})
    test::check_modes(f, test::parameter(numbers<float>({2, 4, 7, 6}, 1)),
                      test::parameter(numbers<float>({2, 2, 9, 6}, 2)),
                      test::parameter(numbers<float>({2, 2, 9, 6}, 3)), xla::Scalar(p),
                      numbers<float>({2, 9}, 4) > 0);
}

TEST_CASE("scores are scaled as given, by numbers and hyper-parameters") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({2, 4, 7, 6}, 1), k = numbers<float>({2, 2, 9, 6}, 2),
             v = numbers<float>({2, 2, 9, 6}, 3);
  const auto by = [](double scale) { return xla::AttentionOptions{.scale = scale}; };
  const auto each_twice = [](const auto& x) {
    return reshape(xla::expand(unsqueeze(x, 2), {2, 2, 2, 9, 6}), {2, 4, 9, 6});
  };
  const auto as_usual = scaled_dot_product_attention(q, k, v);
  check_equal(scaled_dot_product_attention(q, k, v, by(1 / std::sqrt(6.))), as_usual, 1e-5);
  check_equal(scaled_dot_product_attention(q * 3, k, v, by(1 / std::sqrt(54.))), as_usual, 1e-5);
  check_equal(attention_weights(q, k, by(1 / std::sqrt(6.))), attention_weights(q, k), 1e-5);
  // Every key weighs the same; hidden ones nothing.
  check_equal(attention_weights(q, k, by(0)), xla::full<float>({2, 4, 7, 9}, 1 / 9.f), 1e-5);
  const auto some = unsqueeze(xla::arange(9), 0) < 3;
  check_equal(
      scaled_dot_product_attention(q, k, v, some, by(0)),
      scaled_dot_product_attention(q, k, v, some, {.dropout_p = xla::Scalar(0), .scale = 0}), 1e-5);
  for (const double scale : {1.5, -0.7})
    check_equal(scaled_dot_product_attention(q, k, v, by(scale)),
                matmul(attention_weights(q, k, by(scale)), each_twice(v)), 1e-5);
  auto f = [](auto& q, auto& k, auto& v, auto& scale) {
    auto y = scaled_dot_product_attention(q, k, v, {.scale = 0.3});
    auto z = scaled_dot_product_attention(q, k, v, {.causal = true, .scale = scale});
    auto w = attention_weights(q, k, {.scale = scale});
    (sum(y * z) + sum(w * w)).backward();
    return std::tuple(y, z, w);
  };
  test::check_modes(f, test::parameter(q), test::parameter(k), test::parameter(v),
                    xla::Scalar(-0.4));
}

TEST_CASE("gradients of attention with masks, scales and shared heads") {
  const auto q = numbers<double>({2, 4, 3, 2}, 1), k = numbers<double>({2, 2, 4, 2}, 2),
             v = numbers<double>({2, 2, 4, 3}, 3);
  test::check_gradient(
      [](auto& a, auto& b, auto& c) {
        return scaled_dot_product_attention(a, b, c, {.scale = 0.9, .enable_gqa = true});
      },
      q, k, v);
  test::check_gradient(
      [](auto& a, auto& b, auto& c, auto& m) {
        return scaled_dot_product_attention(a, b, c, m, {.scale = -0.6});
      },
      q, k, v, numbers<double>({4, 1, 4}, 4));
}

TEST_CASE("masks that broadcast are the same in every mode, as numbers and as bool") {
  auto f = [](auto& q, auto& k, auto& v, auto& pairs, auto& heads, auto& keys) {
    const auto every_text = unsqueeze(unsqueeze(pairs, 0), 0);
    const auto every_query = unsqueeze(unsqueeze(keys, 1), 1);
    const auto shown = [&](const auto& m) {
      return scaled_dot_product_attention(q, k, v, m > -0.5, {.scale = 0.7});
    };
    const auto added = [&](const auto& m) {
      return scaled_dot_product_attention(q, k, v, m, {.causal = true});
    };
    auto y = shown(pairs) + shown(heads) * shown(every_text) + shown(every_query);
    auto z = added(pairs) + added(heads) * added(every_text) + added(every_query);
    auto w = scaled_dot_product_attention(q, k, v, heads, {.dropout_p = 0.2});
    auto u = scaled_dot_product_attention(q, k, v, every_query > 0, {.dropout_p = 0.2});
    sum(y * z + w * u).backward();
    return std::tuple(y, z, w, u);
  };
  test::check_modes(
      f, test::parameter(numbers<float>({2, 4, 5, 6}, 1)),
      test::parameter(numbers<float>({2, 2, 7, 6}, 2)),
      test::parameter(numbers<float>({2, 2, 7, 6}, 3)), test::parameter(numbers<float>({5, 7}, 4)),
      test::parameter(numbers<float>({4, 5, 7}, 5)), test::parameter(numbers<float>({2, 7}, 6)));
}

TEST_CASE("heads that differ are refused where they are not to share") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({1, 4, 2, 4}), k = numbers<float>({1, 2, 2, 4});
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k, {.enable_gqa = false}),
                    test::contains("4 query heads and 2 key heads differ: enable_gqa"));
  check_equal(scaled_dot_product_attention(q, k, k, {.enable_gqa = true}),
              scaled_dot_product_attention(q, k, k));
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

TEST_CASE("masks of every kind are the same in every mode, and the gradients under them") {
  auto all = [](auto& q, auto& k, auto& v, auto& shown, auto& added) {
    auto y = scaled_dot_product_attention(q, k, v, shown);
    auto z = scaled_dot_product_attention(q, k, v, added, {.causal = true});
    sum(y * y + z * y).backward();
    return std::tuple(y, z);
  };
  auto some = [](auto& q, auto& k, auto& v, auto& present, auto& added) {
    auto y = scaled_dot_product_attention(q, k, v, unsqueeze(unsqueeze(present, 1), 1));
    auto z = scaled_dot_product_attention(q, k, v, added, {.causal = true});
    sum(y * y + z * y).backward();
    return std::tuple(y, z);
  };
  struct sizes {
    std::int64_t queries, keys;
  };
  for (const auto [queries, keys] : {sizes{1, 5}, {17, 33}, {60, 140}}) {
    const auto q = test::parameter(numbers<float>({2, 4, queries, 6}, 1)),
               k = test::parameter(numbers<float>({2, 2, keys, 6}, 2)),
               v = test::parameter(numbers<float>({2, 2, keys, 6}, 3));
    test::check_modes(all, q, k, v, numbers<float>({queries, keys}, 4) > 1,
                      numbers<float>({2, 4, queries, keys}, 5));
    test::check_modes(some, q, k, v, numbers<float>({2, keys}, 4) > 0,
                      test::parameter(numbers<float>({queries, keys}, 5)));
  }
}

TEST_CASE("attention has the same bits for any number of threads") {
  const xla::eager_mode_guard eager;
  for (const lengths& s : awkward) {
    const auto f = [&](auto&... x) { return scaled_dot_product_attention(x..., {.causal = true}); };
    const auto in_autocast = xla::autocast(f);
    std::vector<float> one, rounded;
    for (int n : {1, 2, 3}) {
      const test::restore_threads some(n);
      const auto now = with_gradients<float>(s, f);
      const auto rounded_now = with_gradients<float>(s, in_autocast);
      if (n == 1) one = now;
      if (n == 1) rounded = rounded_now;
      CHECK(now == one);
      CHECK(rounded_now == rounded);
    }
  }
}

TEST_CASE("sizes that attention cannot bring together are errors") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({2, 4, 3, 6}), k = numbers<float>({2, 4, 5, 6});
  const auto refused = [](auto f, const char* sentence) {
    CHECK_THROWS_AS(f(), xla::shape_error);
    CHECK_THROWS_WITH(f(), test::contains(sentence));
  };
  refused(
      [&] {
        scaled_dot_product_attention(q, k, numbers<float>({2, 4, 4, 6}));
      },
      "(2, 4, 4, 6) differ in the number of keys and values");
  refused(
      [&] {
        scaled_dot_product_attention(q, numbers<float>({2, 4, 5, 8}), k);
      },
      "differ in the width of queries and keys");
  refused(
      [&] {
        scaled_dot_product_attention(q, numbers<float>({1, 4, 5, 6}), k);
      },
      "differ in their batch");
  refused(
      [&] {
        scaled_dot_product_attention(q, k, numbers<float>({2, 2, 5, 6}));
      },
      "differ in the heads of keys and values");
  refused(
      [&] {
        scaled_dot_product_attention(q, k, k, xla::ones<bool>({3, 4}));
      },
      "a mask of (1, 1, 3, 4) does not broadcast to scores of (2, 4, 3, 5)");
}

TEST_CASE("second gradients of attention") {
  const auto twice = [](auto f) {
    return [f](auto& a, auto& b, auto& c) {
      const auto y = f(a, b, c);
      const auto [x, z, w] = grad(sum(y * y), std::tie(a, b, c), {.create_graph = true});
      return xla::cat({flatten(x), flatten(z), flatten(w)});
    };
  };
  const auto q = numbers<double>({1, 4, 3, 2}, 1), k = numbers<double>({1, 2, 4, 2}, 2),
             v = numbers<double>({1, 2, 4, 3}, 3);
  test::check_gradient(
      twice([](auto&... x) { return scaled_dot_product_attention(x..., {.causal = true}); }), q, k,
      v);
  test::check_gradient(twice([](auto&... x) {
                         return scaled_dot_product_attention(
                             x...,
                             xla::arange<double>(4) > xla::unsqueeze(xla::arange<double>(3), 1));
                       }),
                       q, k, v);
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
