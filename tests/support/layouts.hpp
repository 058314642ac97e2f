// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/op/op.hpp"
#include "xla/transform/layouts.hpp"

namespace test {

/// An order of the axes for every result of an elementwise op, drawn at random.
struct random_order {
  std::uint64_t seed;

  constexpr xla::detail::layout operator()(const xla::detail::node& n, xla::detail::layout) const {
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + n.op->id;
    for (int in : n.in) state = state * 6364136223846793005u + static_cast<unsigned>(in);
    int axes[xla::detail::max_rank] = {0, 1, 2, 3, 4, 5};
    for (int i = n.rank - 1; i > 0; --i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      std::swap(axes[i], axes[static_cast<int>(state >> 33) % (i + 1)]);
    }
    return {axes[0], axes[1], axes[2], axes[3], axes[4], axes[5]};
  }
};

/// Where it is in a graph, all that is elementwise there is in orders drawn at random.
struct shuffled_layouts {
  static constexpr auto name = "shuffled_layouts";
  static constexpr auto kind = xla::detail::op_kind::alias;
  struct attributes {
    int seed = 0;
    XLA_ATTRIBUTES(seed)
  };
  static constexpr xla::detail::shape shape_of(const xla::detail::shape_rule& r) { return r.in[0]; }
  static constexpr void shuffle(xla::detail::pass_state& s) {
    std::uint64_t seed = 0;
    for (int i = 0; i < s.g.count; ++i)
      if (s.live[i] && xla::detail::is<shuffled_layouts>(s.g.nodes[i]))
        seed = static_cast<std::uint64_t>(s.g.nodes[i].attributes<shuffled_layouts>().seed);
    xla::detail::layout_pass(s, random_order{seed}).run();
  }
  static constexpr auto layouts = &shuffle;
};

/// x; the values of its graph are laid out as the seed says.
template <class T, int R>
constexpr xla::Tensor<T, R> shuffled(const xla::Tensor<T, R>& x, unsigned seed) {
  return xla::detail::apply<shuffled_layouts, T, T, R>(
      xla::detail::with<shuffled_layouts>({static_cast<int>(seed)}), x);
}

/// The same as f, a function of tensors that returns a tuple of them.
template <class F>
struct shuffled_program {
  F f;
  unsigned seed;
  constexpr auto operator()(auto&... x) const {
    auto result = f(x...);
    std::get<0>(result) = shuffled(std::get<0>(result), seed);
    return result;
  }
};
/// The same of an f without data, as a function that can be compiled.
template <unsigned Seed, class F>
struct fixed_shuffled_program {
  constexpr auto operator()(auto&... x) const { return shuffled_program<F>{{}, Seed}(x...); }
};

/// What f gives eagerly; traced it gives the same, also where its values are in other orders.
template <class F, class... X>
snapshot check_traced(const F& f, unsigned seed, const X&... x) {
  INFO("seed " << seed);
  const snapshot want = run_mode<mode::eager>(f, x...);
  REQUIRE(run_mode<mode::traced>(f, x...).difference(want) == "");
  INFO("in other orders");
  REQUIRE(run_mode<mode::traced>(shuffled_program<F>{f, seed}, x...).difference(want) == "");
  return want;
}

}  // namespace test

XLA_DETAIL_OP_ID(test::shuffled_layouts);
