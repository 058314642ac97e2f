// SPDX-License-Identifier: Apache-2.0
// Carries that are updated where they are: then a loop has one place for them, that of its result.
#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"

using test::numbers;

namespace {

constexpr std::int64_t rows = 50, columns = 16, bytes = 4 * rows * columns;

struct row_number {
  constexpr auto operator()(const auto& i) const { return xla::reshape(i, {1}); }
};
constexpr row_number row;

/// A loop that carries a table and a number, which counts its steps; body(table, number, x).
template <class Body>
struct table_loop {
  constexpr auto operator()(const auto& table, const auto& xs) const {
    const auto step = [](const auto& carry, const auto& x) {
      const auto& [t, i] = carry;
      return std::pair(std::tuple(Body()(t, i, x), i + 1), std::tuple<>());
    };
    return xla::scan(step, std::tuple(table, xla::tensor<std::int64_t>(0)), xs).first;
  }
};
template <class Body>
bool has_one_place(Body) {
  const table_loop<Body> f;
  const auto table = numbers<float>({rows, columns}), xs = numbers<float>({20, columns});
  test::check_modes(f, table, xs);
  auto compiled = xla::compile(f);
  return compiled.memory_analysis(table, xs).arena < bytes;
}

}  // namespace

TEST_CASE("steps that write some rows of a table copy none") {
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    return xla::index_copy(t, 0, row(i), unsqueeze(x, 0));
  }));
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    return xla::index_add(t, 0, row(i), unsqueeze(x, 0));
  }));
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    auto next = t;
    next.index_copy_(0, row(i), unsqueeze(x, 0));
    return next;
  }));
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    const auto where = xla::expand(xla::reshape(i, {1, 1}), {1, columns});
    return xla::scatter(t, 0, where, unsqueeze(x, 0));
  }));
  CHECK(has_one_place([](const auto& t, const auto&, const auto& x) {
    auto next = t;
    next[3] = x;
    return next;
  }));
}

TEST_CASE("a step reads old rows before it writes them") {
  CHECK(has_one_place([](const auto& t, const auto& i, const auto& x) {
    const auto old = xla::index_select(t, 0, row(i));
    return xla::index_copy(t, 0, row(i), old * 0.5f + x);
  }));
  CHECK(has_one_place([](const auto& t, const auto&, const auto& x) {
    return t - 0.1f * tanh(matmul(t, unsqueeze(x, 1))) * x;
  }));
}

TEST_CASE("accumulators are written over what they read") {
  CHECK(has_one_place([](const auto& t, const auto&, const auto& x) { return t + x; }));
}

TEST_CASE("a table of which a step needs the old rows after its write has two places") {
  CHECK(!has_one_place([](const auto& t, const auto& i, const auto& x) {
    return xla::index_copy(t, 0, row(i), unsqueeze(x, 0)) + xla::flip(t, {0});
  }));
}

namespace {

/// index_copy, without a check, whose kernel counts the copies that it makes of its first input.
struct counted_copy : xla::op::slicing {
  static constexpr auto name = "counted_copy";
  static inline int copies = 0;
};
/// The same elements, whose kernel keeps where they are.
struct located {
  static constexpr auto name = "located";
  static constexpr auto kind = xla::detail::op_kind::library;
  static constexpr xla::op::shape shape_of(const xla::op::shape_rule& r) { return r.in[1]; }
  static inline std::set<const void*> places;
};

}  // namespace

template <class T>
struct xla::detail::kernel_of<counted_copy, T, T> {
  static void run(const kernel_call& call) {
    counted_copy::copies += call.in[0] != call.out;
    kernel_of<op::index_copy, T, T>::run(call);
  }
};
template <class T>
struct xla::detail::kernel_of<located, T, T> {
  static void run(const kernel_call& call) {
    located::places.insert(call.in[0]);
    std::copy_n(static_cast<const T*>(call.in[1]), count(*call.out_shape),
                static_cast<T*>(call.out));
  }
};

namespace {

constexpr auto write_row = [](const auto& t, const auto& i, const auto& x) {
  return xla::detail::put_along<counted_copy>(t, 0, row(i), unsqueeze(x, 0));
};
/// x, by a step that reads all of a table.
constexpr auto beside = [](const auto& t, const auto& x) {
  return xla::detail::apply<located, float, float, 1>(xla::detail::node(), t, x);
};

struct counts {
  int copies = 0, places = 0;
  bool operator==(const counts&) const = default;
};
std::ostream& operator<<(std::ostream& to, const counts& c) {
  return to << c.copies << " copies, " << c.places << " places";
}
template <class Call>
counts count(Call call) {
  counted_copy::copies = 0;
  located::places.clear();
  call();
  xla::sync();
  return {counted_copy::copies, static_cast<int>(located::places.size())};
}
/// The same results in every mode, and the same counts, of a call compiled and traced.
template <class F, class... X>
counts counts_of(F f, X... x) {
  test::check_modes(f, x...);
  auto compiled = xla::compile(f);
  const counts once = count([&] { compiled(x...); });
  const xla::eager_mode_guard traced(false);
  CHECK(count([&] {
          const auto results = f(x...);  // that somebody wants
          xla::sync();
        }) == once);
  return once;
}

const auto table_of_rows = numbers<float>({rows, columns});
const auto of_steps = numbers<float>({20, columns});

}  // namespace

TEST_CASE("twenty steps copy a table once: from the argument into the result") {
  CHECK(counts_of(
            [](const auto& table, const auto& xs) {
              const auto step = [&](const auto& t, const auto& x) {
                return std::pair(write_row(t, xla::tensor<std::int64_t>(3), beside(t, x)), sum(x));
              };
              return xla::scan(step, table, xs);
            },
            table_of_rows, of_steps) == counts{1, 2});
}

TEST_CASE("several updates in a step go on in one place") {
  CHECK(counts_of(
            [](const auto& table, const auto& xs) {
              const auto step = [&](const auto& t, const auto& x) {
                const auto once = write_row(t, xla::tensor<std::int64_t>(3), beside(t, x));
                const auto twice = write_row(once, xla::tensor<std::int64_t>(4), x * 2.0f);
                return std::pair(write_row(twice, xla::tensor<std::int64_t>(5), x), sum(x));
              };
              return xla::scan(step, table, xs);
            },
            table_of_rows, of_steps) == counts{1, 2});
  test::check_modes(  // the second one needs the old table
      [](const auto& table, const auto& xs) {
        const auto step = [&](const auto& t, const auto& x) {
          const auto once = write_row(t, xla::tensor<std::int64_t>(3), x);
          const auto old = t[3] + xla::flip(once, {0})[7];
          return std::pair(write_row(once, xla::tensor<std::int64_t>(4), old), t[4]);
        };
        return xla::scan(step, table, xs);
      },
      table_of_rows, of_steps);
}

TEST_CASE("loops and loops in them go on in a table that nothing else reads") {
  CHECK(counts_of(
            [](const auto& table, const auto& x) {
              const auto outer = [&](const auto& i, const auto& now) {
                const auto inner = [&](const auto& k, const auto& t) {
                  return write_row(t, i * 2 + k, beside(t, x));
                };
                return xla::fori_loop(0, 3, inner, now);
              };
              const auto step = [&](const auto& i, const auto& t) { return write_row(t, i, x); };
              const auto first = xla::fori_loop(0, 5, outer, table * 2.0f);
              return sum(xla::fori_loop(5, 20, step, first), {0});
            },
            table_of_rows, xla::ones<float>({columns})) == counts{0, 1});
}

TEST_CASE("a loop leaves what something else reads") {
  CHECK(counts_of(
            [](const auto& xs, const auto& x) {
              const auto table = xs * 2.0f;
              const auto by_old = [&](const auto& i, const auto& t) {
                const auto old = xla::index_select(table, 0, row(i - 1));
                return write_row(t, i, beside(table, xla::squeeze<0>(old)) + x);
              };
              return xla::fori_loop(5, 15, by_old, table);
            },
            table_of_rows, xla::ones<float>({columns})) == counts{1, 1});
  CHECK(counts_of(
            [](const auto& xs, const auto& x) {
              const auto table = xs * 2.0f;
              const auto step = [&](const auto& i, const auto& t) { return write_row(t, i, x); };
              const auto two = [&](const auto& i, const auto& c) {
                return std::array{write_row(c[0], i, x), write_row(c[1], i + 1, x)};
              };
              const auto a = xla::fori_loop(0, 10, step, table);
              const auto [b, c] = xla::fori_loop(0, 10, two, std::array{a, a});
              return std::tuple(sum(table - a), b, c * 2.0f);
            },
            table_of_rows, xla::ones<float>({columns})) == counts{3, 0});
}

TEST_CASE("a state is written where it is by steps that draw") {
  constexpr auto fill = [](auto& cache, const auto& xs) {
    const auto step = [&](const auto& i, const auto& x) {
      const auto noisy = beside(cache.detach(), x) + xla::rand_like(x);
      cache.copy_(write_row(cache.detach(), i, noisy));
      return std::pair(i + 1, std::tuple<>());
    };
    return xla::scan(step, xla::tensor<std::int64_t>(0), xs).first;
  };
  auto cache = test::parameter(table_of_rows);
  test::check_modes(fill, cache, of_steps);
  auto compiled = xla::compile(fill);
  const void* const place = cache.data();
  for (const bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    CHECK(count([&] { compiled(cache, of_steps); }) == counts{0, 1});
  }
  const xla::eager_mode_guard traced(false);
  CHECK(count([&] { fill(cache, of_steps); }) == counts{0, 1});
  CHECK(cache.data() == place);
}

TEST_CASE("steps that draw run in each call, also where all that they are given is constant") {
  constexpr auto walk = [](const auto& x) {
    const auto step = [](const auto&, const auto& c) { return c + xla::rand_like(c); };
    return x + xla::fori_loop(0, 3, step, xla::zeros_like(x));
  };
  const auto x = xla::ones<float>({5});
  test::check_modes(walk, x);
  auto compiled = xla::compile(walk);
  const auto once = compiled(x).to_vector();
  CHECK(compiled(x).to_vector() != once);
}

TEST_CASE("a state of a loop's steps is written where it is, unless somebody holds the old one") {
  constexpr auto fill = [](auto& cache, const auto& xs) {
    const auto step = [&](const auto& i, const auto& x) {
      cache.copy_(write_row(cache.detach(), i, beside(cache.detach(), x)));
      return std::pair(i + 1, std::tuple<>());
    };
    return xla::scan(step, xla::tensor<std::int64_t>(0), xs).first;
  };
  auto cache = test::parameter(table_of_rows);
  test::check_modes(fill, cache, of_steps);
  const xla::eager_mode_guard eager(true);
  auto compiled = xla::compile(fill);
  const auto run = [&] { return count([&] { compiled(cache, of_steps); }); };
  const void* const place = cache.data();
  CHECK(run() == counts{0, 1});
  {
    const xla::eager_mode_guard traced(false);
    CHECK(count([&] { fill(cache, of_steps); }) == counts{0, 1});
  }
  CHECK(cache.data() == place);
  const auto old = cache.detach();
  CHECK(old.data() == place);
  CHECK(run() == counts{1, 2});
  CHECK(cache.data() != place);
  CHECK(old.data() == place);
}

TEST_CASE("a failed check leaves a state of a loop's steps as it was") {
  constexpr auto fill = [](auto& cache, const auto& at, const auto& x) {
    const auto step = [&](const auto& empty, const auto& i) {
      cache.copy_(xla::index_copy(cache.detach(), 0, row(i), unsqueeze(x, 0)));
      return std::pair(empty, empty);
    };
    return xla::scan(step, std::tuple<>(), at);
  };
  auto cache = test::parameter(table_of_rows);
  const auto wrong = xla::tensor<std::int64_t>({0, 1, rows});
  const auto x = xla::ones<float>({columns});
  auto compiled = xla::compile(fill);
  CHECK_THROWS_AS(compiled(cache, wrong, x), xla::index_error);
  test::check_equal(cache.detach(), table_of_rows);
  const xla::eager_mode_guard traced(false);
  CHECK_THROWS_AS((fill(cache, wrong, x), xla::sync()), xla::index_error);
  test::check_equal(cache.detach(), table_of_rows);
}

TEST_CASE("a carry that no step changes is read where it is, by any number of steps") {
  constexpr auto kept = [](const auto& table, const auto& xs) {
    const auto step = [](const auto& carry, const auto& x) {
      const auto& [a, b, c] = carry;
      return std::pair(std::tuple(a, b, c + beside(a, x)), c * 2.0f);
    };
    return xla::scan(step, std::tuple(table, table * 2.0f, xla::select(xs, 0, 0)), xs);
  };
  CHECK(counts_of(kept, table_of_rows, of_steps) == counts{0, 1});
  const auto one = xla::slice(of_steps, 0, 0, 1);
  CHECK(counts_of(kept, table_of_rows, one) == counts{0, 1});
  auto compiled = xla::compile(kept);
  CHECK(compiled.memory_analysis(table_of_rows, of_steps).arena < bytes);  // tables are results
}
