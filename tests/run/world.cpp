// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <xla/run/world/open_world.hpp>

#include "catch.hpp"
#include "support/slow_world.hpp"
#include "support/threads.hpp"
#include "support/world.hpp"

namespace {

using xla::reduce_type;
using xla::detail::exchange;
using xla::detail::exchange_piece;
using xla::detail::open_world;
using xla::detail::replica;
using kind = exchange::kind;

/// What replica r has at place i: numbers whose sum depends on the order.
template <class T>
T number(int r, std::int64_t i) {
  const auto h = static_cast<std::uint64_t>(r * 7919 + i + 1) * 0x9e3779b97f4a7c15ull;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(h >> 7);
  else return static_cast<T>(std::sin(static_cast<double>(h >> 40)) * std::pow(10., h % 7));
}
template <class T>
std::vector<T> numbers(int r, std::int64_t n) {
  std::vector<T> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(number<T>(r, i));
  return all;
}
template <class T>
T combined(reduce_type how, T a, T b) {
  if (how == reduce_type::max) return std::max(a, b);
  if (how == reduce_type::min) return std::min(a, b);
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(how == reduce_type::product ? x * y : x + y);
  } else {
    return how == reduce_type::product ? a * b : a + b;
  }
}
/// The fixed tree, as it is written down.
template <class T>
T tree(reduce_type how, int lo, int hi, std::int64_t i) {
  if (hi - lo == 1) return number<T>(lo, i);
  int k = 1;
  while (2 * k < hi - lo) k *= 2;
  return combined(how, tree<T>(how, lo, lo + k, i), tree<T>(how, lo + k, hi, i));
}
template <class T>
T expected(reduce_type how, int world, std::int64_t i) {
  const T sum = tree<T>(how, 0, world, i);
  return how == reduce_type::mean ? sum * (T(1) / static_cast<T>(world)) : sum;
}

/// Sizes of pieces: none, one, some that vectors and chunks do not divide.
const std::vector<std::int64_t> sizes{5, 0, 1, 40001, 16384, 3};
std::int64_t total() {
  std::int64_t n = 0;
  for (const std::int64_t s : sizes) n += s;
  return n;
}
/// Pieces of blocks that lie one behind the other.
template <class T>
std::vector<exchange_piece> pieces(const std::vector<T>& in, std::vector<T>& out, int in_blocks,
                                   int out_blocks) {
  std::vector<exchange_piece> all;
  std::int64_t at = 0;
  for (const std::int64_t s : sizes) {
    all.push_back({in.data() + at * in_blocks, out.data() + at * out_blocks, s});
    at += s;
  }
  return all;
}

template <class T>
exchange of(kind what, const std::vector<exchange_piece>& p, reduce_type how = reduce_type::sum) {
  return {.what = what,
          .how = how,
          .type = xla::dtype_of<T>,
          .pieces = p.data(),
          .piece_count = static_cast<int>(p.size())};
}

template <class T>
void check_reduction(int world, reduce_type how) {
  const auto w = open_world(world);
  std::vector<std::vector<T>> out(static_cast<std::size_t>(world));
  std::vector<std::vector<T>> scattered(static_cast<std::size_t>(world));
  const std::int64_t n = total();
  const auto thrown = test::on_replicas(*w, [&](replica& r) {
    const auto me = static_cast<std::size_t>(r.ordinal);
    out[me] = numbers<T>(r.ordinal, n);
    const std::vector<T> in = out[me];
    r.run(of<T>(kind::all_reduce, pieces(out[me], out[me], 1, 1), how));
    const std::vector<T> blocks = numbers<T>(r.ordinal, n * world);
    scattered[me].resize(static_cast<std::size_t>(n));
    r.run(of<T>(kind::reduce_scatter, pieces(blocks, scattered[me], world, 1), how));
    // In one piece: the same bits.
    std::vector<T> whole(in.size());
    const exchange_piece one{in.data(), whole.data(), n};
    exchange e = of<T>(kind::all_reduce, {}, how);
    e.pieces = &one, e.piece_count = 1;
    r.run(e);
    if (whole != out[me]) throw std::logic_error("other bits in one piece");
  });
  for (const auto& t : thrown) REQUIRE(test::sentence(t) == "");
  for (int r = 0; r < world; ++r) {
    const auto me = static_cast<std::size_t>(r);
    for (std::int64_t i = 0; i < n; i += i % 97 + 1)
      REQUIRE(out[me][static_cast<std::size_t>(i)] == expected<T>(how, world, i));
    std::int64_t at = 0;
    for (const std::int64_t s : sizes) {
      for (std::int64_t i = 0; i < s; i += i % 89 + 1)
        REQUIRE(scattered[me][static_cast<std::size_t>(at + i)] ==
                expected<T>(how, world, at * world + r * s + i));
      at += s;
    }
  }
}

}  // namespace

TEST_CASE("replicas combine elements in one fixed tree") {
  for (const int world : {1, 2, 3, 5, 8}) {
    INFO(world << " replicas");
    for (const reduce_type how : {reduce_type::sum, reduce_type::mean, reduce_type::max,
                                  reduce_type::min, reduce_type::product}) {
      INFO(xla::name_of(how));
      check_reduction<float>(world, how);
      if (world != 3) continue;
      check_reduction<double>(world, how);
      if (how != reduce_type::mean) check_reduction<std::int64_t>(world, how);
    }
  }
}

TEST_CASE("replicas combine NaN as maximum() and minimum() do") {
  const float nan = std::nanf("");
  for (const reduce_type how : {reduce_type::max, reduce_type::min}) {
    const auto w = open_world(3);
    test::on_replicas(*w, [&](replica& r) {
      std::vector<float> x(37, static_cast<float>(r.ordinal));
      x[static_cast<std::size_t>(r.ordinal) * 16] = nan;
      const exchange_piece p{x.data(), x.data(), 37};
      exchange e = of<float>(kind::all_reduce, {}, how);
      e.pieces = &p, e.piece_count = 1;
      r.run(e);
      bool right = true;
      for (std::size_t i = 0; i < x.size(); ++i)
        right &= i % 16 == 0 ? std::isnan(x[i]) : x[i] == (how == reduce_type::max ? 2.f : 0.f);
      if (!right) throw std::logic_error("NaN");
    });
    CHECK(!w->error());
  }
}

TEST_CASE("replicas move elements of any type") {
  using T = std::uint8_t;
  constexpr int world = 3;
  const std::int64_t n = total();
  const auto w = open_world(world);
  const auto thrown = test::on_replicas(*w, [&](replica& r) {
    const auto want = [](bool right, const char* what) {
      if (!right) throw std::logic_error(what);
    };
    const auto each = [&](auto f) {
      std::int64_t at = 0;
      for (const std::int64_t s : sizes) {
        for (std::int64_t i = 0; i < s; ++i) f(at, s, i);
        at += s;
      }
    };
    const auto mine = numbers<T>(r.ordinal, n), blocks = numbers<T>(r.ordinal, n * world);
    std::vector<T> all(static_cast<std::size_t>(n * world)), one(static_cast<std::size_t>(n));
    const auto put = [](auto x) { return static_cast<std::size_t>(x); };

    r.run(of<T>(kind::all_gather, pieces(mine, all, 1, world)));
    each([&](auto at, auto s, auto i) {
      for (int k = 0; k < world; ++k)
        want(all[put(at * world + k * s + i)] == number<T>(k, at + i), "all_gather");
    });
    r.run(of<T>(kind::all_to_all, pieces(blocks, all, world, world)));
    each([&](auto at, auto s, auto i) {
      for (int k = 0; k < world; ++k)
        want(all[put(at * world + k * s + i)] == number<T>(k, at * world + r.ordinal * s + i),
             "all_to_all");
    });
    exchange e = of<T>(kind::broadcast, {});
    auto p = pieces(mine, one, 1, 1);
    e.pieces = p.data(), e.piece_count = static_cast<int>(p.size());
    e.root = 2;
    r.run(e);
    want(one == numbers<T>(2, n), "broadcast");
    const xla::detail::replica_pair pairs[] = {{0, 1}, {1, 0}};
    e.what = kind::permute, e.root = 0;
    e.pairs = pairs, e.pair_count = 2;
    r.run(e);
    want(one == (r.ordinal == 2 ? std::vector<T>(put(n)) : numbers<T>(1 - r.ordinal, n)),
         "permute");
    r.run({});
  });
  for (const auto& t : thrown) CHECK(test::sentence(t) == "");
}

TEST_CASE("exchanges in flight are waited for in any order") {
  constexpr int world = 4, flights = 40;
  const test::restore_threads threads(2);  // whose pool the replicas share
  const auto w = open_world(world);
  const auto thrown = test::on_replicas(*w, [&](replica& r) {
    std::mt19937 random(static_cast<unsigned>(r.ordinal));
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::vector<std::vector<float>> x(flights);
      std::vector<std::pair<std::uint64_t, int>> tickets;
      for (int i = 0; i < flights; ++i) {
        auto& mine = x[static_cast<std::size_t>(i)];
        mine = numbers<float>(r.ordinal, 1 + i * i * 20);
        const exchange_piece p{mine.data(), mine.data(), std::ssize(mine)};
        exchange e = of<float>(kind::all_reduce, {});
        e.pieces = &p, e.piece_count = 1;
        tickets.emplace_back(r.start(e), i);
      }
      std::shuffle(tickets.begin(), tickets.end(), random);
      for (const auto& [ticket, i] : tickets) {
        r.wait(ticket);
        const auto& mine = x[static_cast<std::size_t>(i)];
        if (mine.back() != expected<float>(reduce_type::sum, world, std::ssize(mine) - 1))
          throw std::logic_error("sum");
      }
    }
  });
  for (const auto& t : thrown) CHECK(test::sentence(t) == "");
}

TEST_CASE("an exception of one replica ends the world") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto w = open_world(3);
    const auto thrown = test::on_replicas(*w, [&](replica& r) {
      std::vector<float> x(100000, 1.f), y(100000, 1.f);
      const exchange_piece p{x.data(), x.data(), 100000}, q{y.data(), y.data(), 100000};
      exchange e = of<float>(kind::all_reduce, {});
      e.piece_count = 1;
      for (int step = 0;; ++step) try {
          e.pieces = &p;
          const auto first = r.start(e);
          e.pieces = &q;
          const auto second = r.start(e);
          if (r.ordinal == 1 && step == repeat % 3) throw std::runtime_error("no more paper");
          r.wait(first);
          r.wait(second);
        } catch (...) {
          r.abort(std::current_exception());  // while its elements are still there
          throw;
        }
    });
    CHECK(test::sentence(thrown[1]) == "no more paper");
    for (const int other : {0, 2}) {
      CHECK(test::sentence(thrown[static_cast<std::size_t>(other)]) ==
            "replica 1 of 3: no more paper");
      try {
        std::rethrow_exception(thrown[static_cast<std::size_t>(other)]);
      } catch (const xla::replica_error& e) {
        CHECK(e.ordinal() == 1);
        CHECK(test::sentence(e.cause()) == "no more paper");
      }
    }
    CHECK(test::sentence(w->error()) == "replica 1 of 3: no more paper");
    CHECK_THROWS_AS(w->at(0).start({}), xla::replica_error);
  }
}

TEST_CASE("replicas that do not the same are told") {
  const auto said = [](const std::function<void(exchange&, int)>& change) {
    const auto w = open_world(3);
    const auto thrown = test::on_replicas(*w, [&](replica& r) {
      std::vector<float> x(100);
      const exchange_piece p[] = {{x.data(), x.data(), 5}, {x.data() + 10, x.data() + 10, 3}};
      const xla::detail::fingerprint same{1, 2, 3, 4};
      exchange e = of<float>(kind::all_reduce, {});
      e.pieces = p, e.piece_count = 2;
      e.program = &same;
      change(e, r.ordinal);
      r.run(e);
    });
    for (const auto& t : thrown) CHECK(test::sentence(t) == test::sentence(w->error()));
    return test::sentence(w->error());
  };
  const auto of_program = [&](xla::detail::fingerprint other) {
    return said([&](exchange& e, int r) {
      if (r == 2) e.program = &other;
    });
  };
  const std::string end = "; all replicas have to do the same";
  CHECK(said([](exchange&, int) {}) == "");
  CHECK(of_program({9, 2, 3, 4}) == "replica 2 of 3: runs another program than replica 0" + end);
  CHECK(of_program({1, 9, 3, 4}) ==
        "replica 2 of 3: has other sizes or element types than replica 0" + end);
  CHECK(of_program({1, 2, 9, 4}) ==
        "replica 2 of 3: has other options, or another version of the library, than replica 0" +
            end);
  CHECK(of_program({1, 2, 3, 9}) ==
        "replica 2 of 3: has another seed of random numbers than replica 0" + end);
  CHECK(said([](exchange& e, int r) {
          if (r == 1) e = {};
        }) ==
        "replica 1 of 3: is at barrier, and replica 0 at all_reduce (sum) of 8 float32" + end);
  CHECK(said([](exchange& e, int r) {
          if (r == 1) e.piece_count = 1, e.how = reduce_type::mean;
        }) ==
        "replica 1 of 3: is at all_reduce (mean) of 5 float32, and replica 0 at all_reduce "
        "(sum) of 8 float32" +
            end);
  CHECK(said([](exchange& e, int r) {
          e.what = kind::broadcast;
          if (r == 1) e.root = 1;
        }) ==
        "replica 1 of 3: has another root, other parts or other pairs in broadcast of 8 "
        "float32 than replica 0" +
            end);
}

TEST_CASE("a replica that does not come is told after the timeout") {
  const auto w = open_world(3, 0.05);
  const auto thrown = test::on_replicas(*w, [&](replica& r) {
    if (r.ordinal != 2) r.run({});
    if (r.ordinal == 1) throw std::logic_error("goes on");
  });
  const std::string said = test::sentence(w->error());
  CHECK(said.ends_with(" of 3: waited 0.05 s in barrier for replica 2"));
  CHECK(test::sentence(thrown[0]) == said);
  CHECK(test::sentence(thrown[1]) == said);
}

TEST_CASE("a slow world takes its time, and none of the processor's") {
  test::slow_world w(2, 0.02, 1e6);
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t worked = std::clock();
  test::on_replicas(w, [&](replica& r) {
    std::vector<float> x(2500, 1.f);
    const exchange_piece p{x.data(), x.data(), 2500};
    exchange e = of<float>(kind::all_reduce, {});
    e.pieces = &p, e.piece_count = 1;
    const auto a = r.start(e), b = r.start(e);  // one after the other
    r.wait(a);
    r.wait(b);
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(w.seconds() == Approx(0.06));
  CHECK(took.count() >= 0.06);
  CHECK(static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC < 0.03);
}
