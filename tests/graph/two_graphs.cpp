// SPDX-License-Identifier: Apache-2.0
// What is recorded in one graph is no value in another: it is refused, whatever reads it.
#include "support/modes.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/create.hpp"
#include "xla/op/matmul.hpp"
#include "xla/transform/backward.hpp"

namespace {

using namespace xla::detail;
using xla::Tensor;

constexpr std::string_view refusal_of_others =
    "xla: a tensor that belongs to another graph was used: what is recorded there is no value "
    "here; pass it as an argument, or record both in one graph";

/// A leaf of each, of two axes; the second graph has symbols of sizes that the first has not.
struct two_graphs {
  graph_storage<32> first, second;
  Tensor<float, 2> x, y;

  constexpr explicit two_graphs(bool known) {
    x = leaf(first, known);
    for (int i = 0; i < 5; ++i) leaf(second, known);
    y = leaf(second, known);
  }
  static constexpr Tensor<float, 2> leaf(graph& g, bool known) {
    const int at = g.add_slot({});
    shape s;
    for (int axis = 0; axis < 2; ++axis) s.push(known ? extent{3} : g.sizes.variable(at, axis));
    Tensor<float, 2> t;
    t.name_node(&g, g.slots[at].leaf = g.add_leaf(at, false, xla::dtype::float32, s));
    return t;
  }
  constexpr bool refused(const handle& made, const graph& by) const {
    return made.owner() == &by && by.sizes.refused.why.view() == refusal_of_others;
  }
};

constexpr bool refuses_operands(bool known) {
  two_graphs g(known);
  const bool second = g.refused(g.x + g.y, g.first);
  return second && g.refused(g.y * g.x, g.second);
}

constexpr bool refuses_in_products(bool known) {
  two_graphs g(known);
  return g.refused(matmul(g.x, g.y), g.first);
}

constexpr bool refuses_the_last_of_many(bool known) {
  two_graphs g(known);
  return g.refused(xla::cat({g.x, g.x, g.x, g.x, g.y}), g.first);
}

/// What is made after a refusal does not replace it, and what is in the graph is legal.
constexpr bool goes_on() {
  two_graphs g(false);
  int result = (g.x + g.y + g.x).lift(&g.first);
  pass_state s(g.first, {&result, 1, nullptr, 0}, false);
  return g.first.sizes.refused.why.view() == refusal_of_others && verify(s).empty();
}

constexpr bool lift_refuses(bool known) {
  two_graphs g(known);
  const bool own = g.x.lift(&g.first) == g.x.node_index() && !g.first.sizes.refused.failed();
  const int other = g.y.lift(&g.first);
  return own && g.refused(g.x, g.first) && other >= 0 && other < g.first.count;
}

/// A constant belongs to none, until it meets one.
constexpr bool constants_meet_both() {
  two_graphs g(true);
  const Tensor<float, 2> two = xla::full({3, 3}, 2.f);
  const auto a = g.x + two, b = g.y + two;
  return a.owner() == &g.first && b.owner() == &g.second && !g.first.sizes.refused.failed() &&
         !g.second.sizes.refused.failed();
}

}  // namespace

TEST_CASE("a tensor of another graph is refused by what reads it") {
  STATIC_REQUIRE(refuses_operands(true));
  STATIC_REQUIRE(refuses_operands(false));
  STATIC_REQUIRE(refuses_in_products(true));
  STATIC_REQUIRE(refuses_in_products(false));
  STATIC_REQUIRE(refuses_the_last_of_many(true));
  STATIC_REQUIRE(refuses_the_last_of_many(false));
  STATIC_REQUIRE(lift_refuses(true));
  STATIC_REQUIRE(lift_refuses(false));
}

TEST_CASE("a graph that has refused a tensor goes on, and keeps the sentence") {
  STATIC_REQUIRE(goes_on());
}

TEST_CASE("a constant belongs to no graph until it meets one") {
  STATIC_REQUIRE(constants_meet_both());
}
