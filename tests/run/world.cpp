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

#include "catch.hpp"
#include "support/exchanges.hpp"
#include "support/slow_world.hpp"
#include "support/threads.hpp"
#include "support/world.hpp"
#include "xla/run/world/launch.hpp"

namespace {

using test::expected;
using test::kind;
using test::numbers;
using test::of;
using xla::reduce_type;
using xla::detail::exchange;
using xla::detail::exchange_piece;
using xla::detail::open_world;
using xla::detail::replica;

template <class T>
void check_sums(int world, reduce_type how) {
  CHECK(test::objection_to_sums<T>(*open_world(world), how) == "");
}

}  // namespace

TEST_CASE("replicas combine elements in one fixed tree") {
  for (const int world : {1, 2, 3, 5, 8}) {
    INFO(world << " replicas");
    for (const reduce_type how : {reduce_type::sum, reduce_type::mean, reduce_type::max,
                                  reduce_type::min, reduce_type::product}) {
      if (world != 3 && how > reduce_type::mean) continue;
      INFO(xla::name_of(how));
      check_sums<float>(world, how);
      if (world != 3) continue;
      check_sums<double>(world, how);
      if (how != reduce_type::mean) check_sums<std::int64_t>(world, how);
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
  CHECK(test::objection_to_moves<std::uint8_t>(*open_world(3)) == "");
}

TEST_CASE("exchanges in flight are waited for in any order") {
  const test::restore_threads threads(2);  // whose pool the replicas share
  CHECK(test::objection_to_flights(*open_world(4), 40, 5) == "");
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

TEST_CASE("one replica runs a program for all, with each one's arguments") {
  for (const bool fails : {false, true}) {
    const auto w = open_world(4);
    CHECK(w->at(0).shares_memory());
    std::vector<std::vector<int>> seen(4);
    const auto thrown = test::on_replicas(*w, [&](replica& r) {
      for (int turn = 0; turn < 50; ++turn) {
        int mine = 10 * turn + r.ordinal;
        const exchange_piece piece{.out = &mine, .count = 1};
        exchange e;
        e.what = kind::program;
        e.pieces = &piece;
        e.piece_count = 1;
        e.run = fails ? [](void* const*, int) { throw std::runtime_error("no more paper"); }
                      : [](void* const* shares, int replicas) {
                          int sum = 0;
                          for (int i = 0; i < replicas; ++i) sum += *static_cast<int*>(shares[i]);
                          for (int i = 0; i < replicas; ++i) *static_cast<int*>(shares[i]) = sum;
                        };
        r.run(e);
        seen[static_cast<std::size_t>(r.ordinal)].push_back(mine);
      }
    });
    for (const std::exception_ptr& e : thrown)
      if (fails) CHECK_THAT(test::sentence(e), test::contains("no more paper"));
      else CHECK(test::sentence(e) == "");
    for (const std::vector<int>& one : seen) {
      REQUIRE(one.size() == (fails ? 0 : 50));
      for (std::size_t turn = 0; turn < one.size(); ++turn)
        CHECK(one[turn] == 40 * static_cast<int>(turn) + 6);
    }
  }
}

TEST_CASE("replicas that do not do the same get an error") {
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
        "replica 2 of 3: has other passes or options than replica 0, or is compiled for another "
        "instruction set" +
            end);
  CHECK(of_program({1, 2, 3, 9}) ==
        "replica 2 of 3: has another seed of random numbers than replica 0" + end);
  // Where replica 0 runs none, the others are compared with the first that does.
  const xla::detail::fingerprint other{9, 2, 3, 4};
  CHECK(said([&](exchange& e, int r) {
          if (r == 0) e.program = nullptr;
          if (r == 2) e.program = &other;
        }) == "replica 2 of 3: runs another program than replica 1" + end);
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

TEST_CASE("replicas that bring gradients of different parameters get an error") {
  const auto said = [](int count, int of_replica_1) {
    const auto w = open_world(2);
    test::on_replicas(*w, [&](replica& r) {
      std::vector<float> x(8);
      const int second = r.ordinal == 1 ? of_replica_1 : 7;
      const exchange_piece p[] = {{x.data(), x.data(), 4, 8},
                                  {x.data() + 4, x.data() + 4, 4, second}};
      exchange e = of<float>(kind::all_reduce, {}, reduce_type::mean);
      e.pieces = p + 2 - count, e.piece_count = count;
      r.run(e);
    });
    return test::sentence(w->error());
  };
  CHECK(said(1, 7) == "");
  CHECK(said(2, 7) == "");
  const std::string sum = "all_reduce (mean) of 4 float32",
                    end = "; all replicas have to do the same";
  CHECK(said(1, 6) == "replica 1 of 2: is at " + sum +
                          ", the gradient of parameter 6, and replica 0 at " + sum +
                          ", the gradient of parameter 7" + end +
                          ": a parameter that the loss of one of them does not depend on has no "
                          "gradient there; add 0 * sum(p) of it to the loss");
  CHECK(said(1, -1) == "replica 1 of 2: is at " + sum + ", and replica 0 at " + sum +
                           ", the gradient of parameter 7" + end);
  CHECK(said(2, 6) ==
        "replica 1 of 2: has another root, other parts or other pairs in all_reduce (mean) of 8 "
        "float32 than replica 0" +
            end);
}

TEST_CASE("a replica that does not come is an error after the timeout") {
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

TEST_CASE("a replica that arrives at the timeout is either named as missing or causes no error") {
  for (int repeat = 0; repeat < 100; ++repeat) {
    const auto w = open_world(2, 1e-6);
    test::on_replicas(*w, [&](replica& r) {
      if (r.ordinal == 1) std::this_thread::sleep_for(std::chrono::microseconds(4 * repeat));
      r.run({});
    });
    const std::string said = test::sentence(w->error());
    CAPTURE(said);
    CHECK((said.empty() || said.ends_with("in barrier for replica 0") ||
           said.ends_with("in barrier for replica 1")));
  }
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
