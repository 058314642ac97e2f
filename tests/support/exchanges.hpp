// SPDX-License-Identifier: Apache-2.0
#pragma once

// What replicas exchange and what they must get, with any transport.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/world.hpp"
#include "xla/run/world/launch.hpp"

namespace test {

using xla::reduce_type;
using xla::detail::exchange;
using xla::detail::exchange_piece;
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
inline const std::vector<std::int64_t> sizes{5, 0, 1, 40001, 16384, 3};
inline std::int64_t total() {
  std::int64_t n = 0;
  for (const std::int64_t s : sizes) n += s;
  return n;
}
/// Pieces of blocks that are one after the other.
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

/// The first complaint of a replica in this process; "" if there is none.
template <class Body>
std::string objection(xla::detail::world& w, const Body& body) {
  for (const auto& t : on_replicas(w, body))
    if (t) return sentence(t);
  return "";
}
inline void want(bool right, const char* what) {
  if (!right) throw std::logic_error(what);
}

/// An all_reduce of several pieces in place and of the same in one, and a reduce_scatter.
template <class T>
std::string objection_to_sums(xla::detail::world& w, reduce_type how) {
  return objection(w, [&](replica& r) {
    const int world = r.world_size;
    const std::int64_t n = total();
    std::vector<T> out = numbers<T>(r.ordinal, n), whole(out.size()), scattered(out.size());
    const std::vector<T> in = out, blocks = numbers<T>(r.ordinal, n * world);
    r.run(of<T>(kind::all_reduce, pieces(out, out, 1, 1), how));
    r.run(of<T>(kind::all_reduce, {{in.data(), whole.data(), n}}, how));
    r.run(of<T>(kind::reduce_scatter, pieces(blocks, scattered, world, 1), how));
    want(whole == out, "other bits in one piece");
    for (std::int64_t i = 0; i < n; i += i % 97 + 1)
      want(out[static_cast<std::size_t>(i)] == expected<T>(how, world, i), "all_reduce");
    std::int64_t at = 0;
    for (const std::int64_t s : sizes) {
      for (std::int64_t i = 0; i < s; i += i % 89 + 1)
        want(scattered[static_cast<std::size_t>(at + i)] ==
                 expected<T>(how, world, at * world + r.ordinal * s + i),
             "reduce_scatter");
      at += s;
    }
  });
}

/// What only moves, in a world of three replicas or more.
template <class T>
std::string objection_to_moves(xla::detail::world& w) {
  return objection(w, [](replica& r) {
    const int world = r.world_size;
    const std::int64_t n = total();
    const auto each = [&](auto f) {
      std::int64_t at = 0;
      for (const std::int64_t s : sizes) {
        for (std::int64_t i = 0; i < s; ++i) f(at, s, i);
        at += s;
      }
    };
    const auto put = [](auto x) { return static_cast<std::size_t>(x); };
    const auto mine = numbers<T>(r.ordinal, n), blocks = numbers<T>(r.ordinal, n * world);
    std::vector<T> all(put(n * world)), one(put(n));

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
    const auto whole = pieces(mine, one, 1, 1);
    exchange e = of<T>(kind::broadcast, whole);
    e.root = 2;
    r.run(e);
    want(one == numbers<T>(2, n), "broadcast");
    const xla::detail::replica_pair pairs[] = {{0, 1}, {world - 1, 0}, {1, world - 1}};
    e = of<T>(kind::permute, whole);
    e.pairs = pairs, e.pair_count = 3;
    r.run(e);
    int from = -1;
    for (const auto& p : pairs)
      if (p.to == r.ordinal) from = p.from;
    want(one == (from < 0 ? std::vector<T>(put(n)) : numbers<T>(from, n)), "permute");
    r.run({});
  });
}

/// Several exchanges under way, waited for in any order, again and again.
inline std::string objection_to_flights(xla::detail::world& w, int flights, int repeats) {
  return objection(w, [=](replica& r) {
    std::mt19937 random(static_cast<unsigned>(r.ordinal));
    for (int repeat = 0; repeat < repeats; ++repeat) {
      std::vector<std::vector<float>> x(static_cast<std::size_t>(flights));
      std::vector<std::pair<std::uint64_t, int>> tickets;
      for (int i = 0; i < flights; ++i) {
        auto& mine = x[static_cast<std::size_t>(i)];
        mine = numbers<float>(r.ordinal, 1 + i * i * 20);
        tickets.emplace_back(
            r.start(of<float>(kind::all_reduce, {{mine.data(), mine.data(), std::ssize(mine)}})),
            i);
      }
      std::shuffle(tickets.begin(), tickets.end(), random);
      for (const auto& [ticket, i] : tickets) {
        r.wait(ticket);
        const auto& mine = x[static_cast<std::size_t>(i)];
        want(mine.back() == expected<float>(reduce_type::sum, r.world_size, std::ssize(mine) - 1),
             "sum");
      }
    }
  });
}

}  // namespace test
