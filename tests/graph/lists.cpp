// SPDX-License-Identifier: Apache-2.0
// Ops of any number of inputs: in the graph, through the passes, and in every mode.
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/trace/checkpoint.hpp"
#include "xla/transform/print.hpp"

namespace own {

/// Reads any number of tensors, and makes 1 + their sum.
struct total {
  static constexpr auto name = "own_total";
  static constexpr auto kind = xla::op::op_kind::library;
  struct attributes {
    int count = 0;
    XLA_ATTRIBUTES(count)
  };
  static constexpr auto shape_of(const xla::op::shape_rule& r) {
    if (r.count == 0) return r.op.dims_shape();
    xla::detail::shape s = r.in[0];
    for (int k = 1; k < r.count; ++k)
      if (!r.sizes.equal(s[0], r.input(k)[0])) r.sizes.fail("inputs have one size");
    return s;
  }
  static constexpr void gradient(auto& g) {
    for (int k = 0; k < g.attributes().count; ++k)
      if (g.needs(k)) g.to(k, g.grad());
  }
};

}  // namespace own

XLA_DETAIL_OP_ID(own::total);

template <class T>
struct xla::detail::kernel_of<own::total, T, T> {
  static void run(const kernel_call& call) {
    T* const out = static_cast<T*>(call.out);
    for (int i = 0; i < count(*call.out_shape); ++i) {
      out[i] = 1;
      for (int k = 0; k < call.attributes<own::total>().count; ++k)
        out[i] += static_cast<const T*>(call.in[k])[i];
    }
  }
};

namespace {

using namespace xla::detail;
using test::numbers;
using xla::Tensor;

constexpr auto& info = info_of<own::total, float, float, op_parts::facts>;

/// A graph of four leaves and ops that read them.
struct built {
  graph_storage<64> g;
  constexpr built() {
    shape three;
    three.push(3);
    for (int i = 0; i < 4; ++i)
      g.slots[g.add_slot({})].leaf = g.add_leaf(i, false, xla::dtype::float32, three);
  }
  /// Of inputs 0, 1, 2, 3, 0, 1 … but for the last, which is `last`.
  constexpr int add(int count, int last = 0) {
    node n;
    n.op = &info;
    n.set_shape(g.nodes[0].dims_shape());
    n.set<own::total>({count});
    g.lists.open(n, count);
    for (int k = 0; k < count; ++k) g.inputs(n)[k] = k + 1 == count ? last : k % 4;
    return g.add(n);
  }
  constexpr bool reads(int at, int count, int last = 0) const {
    const node& n = g.nodes[at];
    bool all = n.arity == count;
    for (int k = 0; k < count; ++k)
      all &= g.inputs(n)[k] == (k + 1 == count ? last : k % 4);
    return all;
  }
};

constexpr bool keeps_lists() {
  built b;
  for (int round = 0; round < 3; ++round)
    for (int count : {0, 1, 3, 4, 100}) b.add(count, round);
  bool all = b.g.lists.count == 3 * 104;
  for (int round = 0, at = 4; round < 3; ++round)
    for (int count : {0, 1, 3, 4, 100}) all &= b.reads(at++, count, round);
  return all;
}
static_assert(keeps_lists());

/// A copy of a node that reads something else leaves the node as it was.
constexpr bool copies_own_theirs() {
  built b;
  const int few = b.add(3), many = b.add(5);
  for (int of : {few, many}) {
    node n = b.g.nodes[of];
    b.g.lists.own(n);
    b.g.inputs(n)[2] = 3;
    b.g.add(n);
  }
  return b.reads(few, 3) && b.reads(many, 5) && b.g.inputs(b.g.nodes[6])[2] == 3 &&
         b.g.inputs(b.g.nodes[7])[2] == 3 && b.g.inputs(b.g.nodes[7])[4] == 0;
}
static_assert(copies_own_theirs());

/// Equal lists are shared; those that differ in one input, or are longer, are not.
constexpr bool shares_equal() {
  built b;
  const int one = b.add(100), same = b.add(100), other = b.add(100, 1), longer = b.add(101);
  int results[] = {one, same, other, longer};
  pass_state s(b.g, {results, 4, nullptr, 0}, false);
  share(s);
  return s.to[same] == one && s.to[other] == other && s.to[longer] == longer;
}
static_assert(shares_equal());

constexpr bool marks_what_is_read() {
  built b;
  b.add(4, 2);  // of 0, 1, 2 and 2: dead
  node n;
  n.op = &info;
  n.set_shape(b.g.nodes[0].dims_shape());
  b.g.lists.open(n, 6);
  for (int k = 0; k < 6; ++k) b.g.inputs(n)[k] = k == 5 ? 3 : 1;
  int result = b.g.add(n);
  pass_state s(b.g, {&result, 1, nullptr, 0}, false);
  drop_dead(s);
  return !s.live[0] && s.live[1] && !s.live[2] && s.live[3] && !s.live[4] && s.live[5] &&
         verify(s).empty();
}
static_assert(marks_what_is_read());

constexpr text verdict(int input, int place) {
  built b;
  int result = b.add(5);
  b.g.inputs(b.g.nodes[result])[4] = input;
  b.g.nodes[result].in[0] += place;
  pass_state s(b.g, {&result, 1, nullptr, 0}, false);
  return verify(s);
}
static_assert(verdict(3, 0).empty());
static_assert(verdict(4, 0).view() == "node 4 reads a node that does not come before it");
static_assert(verdict(3, 1).view() == "node 4 has inputs that are in no list");

template <int Count, class T>
constexpr Tensor<T, 1> total_of(const std::array<Tensor<T, 1>, 100>& x) {
  return apply_to_all<own::total, T, T, 1>(unknown_caller, with<own::total>({Count}), x.data(),
                                           Count);
}
/// Rows of x, each made of the row by an op of its own.
template <class X>
constexpr auto parts_of(const X& x) {
  std::array<Tensor<typename X::value_type, 1>, 100> parts;
  for (std::size_t k = 0; k < parts.size(); ++k)
    parts[k] = xla::select(x, 0, static_cast<int>(k * 37 % 100)) * static_cast<int>(k % 7 + 1);
  return parts;
}
constexpr auto joined = [](auto& x) {
  const auto parts = parts_of(x);
  const auto all = xla::cat(parts);
  return std::tuple(all, xla::tanh(total_of<4>(parts)) * total_of<100>(parts), total_of<1>(parts),
                    xla::stack(parts, 1));
};
constexpr auto trained = [](auto& p) {
  const auto [all, some, one, stacked] = joined(p);
  auto loss = xla::sum(xla::tanh(all) * all) + xla::sum(some) + xla::sum(one * one) +
              xla::sum(xla::relu(stacked) * stacked);
  loss.backward();
  return loss;
};

}  // namespace

TEST_CASE("ops of 1, 3, 4 and 100 inputs are the same in every mode, with gradients") {
  test::check_modes(joined, numbers<float>({100, 3}));
  test::check_modes(trained, test::parameter(numbers<float>({100, 3}, 2) / 9));
}

TEST_CASE("lists of inputs: without passes, and with each alone") {
  const auto p = test::parameter(numbers<float>({100, 3}, 2) / 9);
  test::check_modes<xla::tags::without<"simplify", "share", "dead", "recompute", "fuse">>(trained,
                                                                                          p);
  test::check_modes<xla::tags::without<"fuse">>(trained, p);
}

TEST_CASE("the numbers of ops with many inputs") {
  const auto x = numbers<double>({100, 3}, 1);
  const auto check = [&](auto mode) {
    INFO(static_cast<int>(mode()));
    const xla::eager_mode_guard eager(mode() == test::mode::eager);
    const auto [all, some, one, stacked] = joined(x);
    std::vector<double> rows, sums(3, 1), columns(300);
    for (std::size_t k = 0; k < 100; ++k)
      for (std::size_t i = 0; i < 3; ++i) {
        const double v = x.to_vector()[k * 37 % 100 * 3 + i] * static_cast<double>(k % 7 + 1);
        rows.push_back(v);
        columns[i * 100 + k] = v;
      }
    test::check_equal(all, {300}, rows);
    test::check_equal(stacked, {3, 100}, columns);
    test::check_equal(one, {3}, std::vector<double>{rows[0] + 1, rows[1] + 1, rows[2] + 1});
  };
  check([] { return test::mode::eager; });
  check([] { return test::mode::traced; });
}

TEST_CASE("gradients of many inputs, against differences") {
  test::check_gradient(
      [](auto& x) {
        const auto parts = parts_of(x);
        return xla::tanh(total_of<100>(parts) / 100) * total_of<4>(parts) +
               xla::sum(xla::tanh(xla::cat(parts)));
      },
      numbers<double>({100, 3}, 3) / 20);
}

TEST_CASE("ops of many inputs are computed again for a checkpoint") {
  test::check_modes(
      [](auto& p) {
        const auto block = [](const auto& x) {
          const auto parts = parts_of(x);
          return xla::tanh(xla::reshape(xla::cat(parts), {100, 3})) * total_of<5>(parts);
        };
        auto loss = xla::sum(xla::checkpoint(block, xla::checkpoint(block, p) * p));
        loss.backward();
        return loss;
      },
      test::parameter(numbers<float>({100, 3}, 4) / 30));
}

TEST_CASE("constants with many inputs float until a graph is there") {
  test::check_modes(
      [](auto& x) {
        const Tensor<float, 1> two = xla::full({3}, 2.f);
        const auto all = xla::cat({two, two * 3.f, two, two, two * 3.f});
        return std::tuple(all * x, xla::cat({x, all, all, x}));
      },
      numbers<float>({15}));
}

TEST_CASE("a graph is printed with all inputs of an op") {
  auto f = xla::compile([](auto& x) {
    return xla::cat({x, x, x + 1, x, x});
  });
  auto x = numbers<float>({3});
  CHECK_THAT(f.graph(xla::Stage::captured, x),
             test::contains("concat(%0, %0, %2, %0, %0) axis 0 parts 5"));
  CHECK_THAT(f.graph(xla::Stage::lowered, x), test::contains("parts 5"));
}

TEST_CASE("more inputs than a stack has room for") {
  const auto x = numbers<float>({2});
  const auto pair = x.to_vector();
  const std::vector<Tensor<float, 1>> many(200000, x);
  for (const bool eager : {true, false}) {
    INFO(eager);
    const xla::eager_mode_guard mode(eager);
    const auto all = concat_all(many.data(), static_cast<int>(many.size()), 0, unknown_caller);
    const auto got = all.to_vector();
    REQUIRE(got.size() == 2 * many.size());
    bool same = true;
    for (std::size_t i = 0; i < got.size(); ++i) same &= got[i] == pair[i % 2];
    CHECK(same);
  }
}
