// SPDX-License-Identifier: Apache-2.0
#include "xla/op/collectives.hpp"

#include <array>

#include "support/gradient.hpp"
#include "support/replicas.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/ragged_all_to_all.hpp"
#include "xla/op/derived/statistics.hpp"
#include "xla/op/local_shard.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/tanh.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/trace/checkpoint.hpp"

using test::mode;
using test::numbers;
using xla::reduce_type;

namespace {

/// Each replica has other numbers.
template <class T, std::size_t R>
xla::Tensor<T, static_cast<int>(R)> numbers_of(int ordinal, const xla::Size (&sizes)[R]) {
  return numbers<T>(sizes, static_cast<std::uint64_t>(100 + ordinal));
}

/// f on tensors of the given sizes in every mode, against what want(all, ordinal) makes of all
/// replicas' tensors.
template <class T, class F, class Want, std::size_t R>
void check_values(int replicas, F f, const Want& want, const xla::Size (&sizes)[R]) {
  const auto made =
      test::check_replicas(replicas, f, [&](int i) { return std::tuple(numbers_of<T>(i, sizes)); });
  const xla::eager_mode_guard eager;
  std::vector<xla::Tensor<T, static_cast<int>(R)>> all;
  for (int i = 0; i < replicas; ++i) all.push_back(numbers_of<T>(i, sizes));
  for (int i = 0; i < replicas; ++i) {
    test::snapshot expected;
    for (int call = 0; call < 2; ++call) {
      expected.add(want(all, i));
      expected.add(all[static_cast<std::size_t>(i)]);
    }
    INFO("replica " << i << " of " << replicas);
    CHECK(made[static_cast<std::size_t>(i)].difference(expected) == "");
  }
}

/// The terms in the order of the tree: ((0, 1), 2), ((0, 1), (2, 3)).
template <class X, class F>
X combined(const std::vector<X>& x, const F& f, std::size_t from, std::size_t to) {
  if (to - from == 1) return x[from];
  std::size_t half = 1;
  while (2 * half < to - from) half *= 2;
  return f(combined(x, f, from, from + half), combined(x, f, from + half, to));
}
template <class X, class F>
X combined(const std::vector<X>& x, const F& f) {
  return combined(x, f, 0, x.size());
}
constexpr auto plus = [](const auto& a, const auto& b) { return a + b; };

template <class X>
X joined(const std::vector<X>& x, int axis) {
  X all = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) all = xla::cat({all, x[i]}, axis);
  return all;
}
/// Part `which` of `parts` equal ones.
template <class X>
X part(const X& x, int axis, int parts, int which) {
  const auto size = x.size(axis) / parts;
  return narrow(x, axis, size * which, size);
}

template <class T, std::size_t R>
void check_all_reduce(int replicas, const xla::Size (&sizes)[R]) {
  check_values<T>(
      replicas,
      [](auto& x) {
        return std::tuple(all_reduce(x), all_reduce(x, reduce_type::max), all_reduce(x, "min"),
                          all_reduce(x, "mul"));
      },
      [](auto& all, int) {
        return std::tuple(combined(all, plus),
                          combined(all, [](const auto& a, const auto& b) { return maximum(a, b); }),
                          combined(all, [](const auto& a, const auto& b) { return minimum(a, b); }),
                          combined(all, [](const auto& a, const auto& b) { return a * b; }));
      },
      sizes);
}

}  // namespace

TEST_CASE("all_reduce combines the replicas' elements in one fixed tree") {
  for (const int n : {2, 3}) {
    check_all_reduce<float>(n, {7, 13});
    check_all_reduce<std::int64_t>(n, {5});
  }
  check_all_reduce<double>(4, {1});
  check_all_reduce<float>(2, {0, 3});
  check_values<float>(
      3,
      [](auto& x) {
        return std::tuple(all_reduce(x, reduce_type::mean), all_reduce(cast<xla::bfloat16>(x)));
      },
      [](auto& all, int) {
        std::vector<xla::Tensor<float, 1>> rounded;  // summed as floats, rounded once
        for (auto& x : all) rounded.push_back(cast<float>(cast<xla::bfloat16>(x)));
        return std::tuple(combined(all, plus) * (1.f / 3),
                          cast<xla::bfloat16>(combined(rounded, plus)));
      },
      {31});
}

TEST_CASE("all_gather, reduce_scatter and all_to_all along any axis") {
  static constexpr auto along = []<int Axis>(std::integral_constant<int, Axis>, int n,
                                             const xla::Size(&sizes)[3]) {
    check_values<float>(
        n,
        [](auto& x) {
          return std::tuple(all_gather(x, Axis), reduce_scatter(x, Axis),
                            all_to_all(x, Axis, (Axis + 1) % 3));
        },
        [n](auto& all, int i) {
          std::vector<xla::Tensor<float, 3>> parts;
          for (auto& x : all) parts.push_back(part(x, Axis, n, i));
          return std::tuple(joined(all, Axis), part(combined(all, plus), Axis, n, i),
                            joined(parts, (Axis + 1) % 3));
        },
        sizes);
  };
  for (const int n : {2, 3}) {
    along(std::integral_constant<int, 0>{}, n, {6, 5, 3});
    along(std::integral_constant<int, 1>{}, n, {2, 6, 3});
    along(std::integral_constant<int, 2>{}, n, {2, 1, 12});
  }
  along(std::integral_constant<int, 1>{}, 2, {0, 4, 2});
  check_values<bool>(
      2, [](auto& x) { return all_gather(all_to_all(x, 0, 0), 0); },
      [](auto& all, int) {
        std::vector<xla::Tensor<bool, 1>> parts;
        for (int i = 0; i < 2; ++i)
          for (auto& x : all) parts.push_back(part(x, 0, 2, i));
        return joined(parts, 0);
      },
      {8});
}

TEST_CASE("reduce_scatter with zeros after the end, and all_gather up to a size") {
  constexpr auto f = [](auto& x) {
    return std::tuple(
        reduce_scatter(x, 0, reduce_type::mean, xla::tags::padded),
        all_gather(reduce_scatter(x, 0, reduce_type::sum, xla::tags::padded), 0, x.size(0)));
  };
  for (const int size : {1, 2, 5, 6, 7})
    check_values<double>(
        3, f,
        [&](auto& all, int i) {
          const int each = (size + 2) / 3;
          const auto sum = combined(all, plus);
          const auto filled = xla::cat({sum * (1.0 / 3), xla::zeros<double>({3 * each - size})});
          return std::tuple(narrow(filled, 0, each * i, each), sum);
        },
        {size});
}

TEST_CASE("local_shard is what a replica would get of a sum, and exchanges nothing") {
  const auto check = []<class T, int Axis>(T, std::integral_constant<int, Axis>, int n,
                                           const xla::Size(&sizes)[3]) {
    check_values<T>(
        n, [](auto& x) { return local_shard(x, Axis); },
        [&](auto& all, int i) {
          const auto& x = all[static_cast<std::size_t>(i)];
          const std::int64_t size = x.size(Axis), each = (size + n - 1) / n;
          auto zeros = x.sizes();
          zeros[Axis] = n * each - size;
          const auto filled =
              xla::cat({x, xla::cast<T>(xla::zeros<float>({zeros[0], zeros[1], zeros[2]}))}, Axis);
          return narrow(filled, Axis, each * i, each);
        },
        sizes);
  };
  check(1.0f, std::integral_constant<int, 0>{}, 2, {6, 1, 3});
  check(1.0f, std::integral_constant<int, 1>{}, 3, {2, 7, 3});
  check(std::int64_t{1}, std::integral_constant<int, 2>{}, 3, {2, 3, 2});
  check(1.0f, std::integral_constant<int, 0>{}, 4, {1, 2, 2});
  check(1.0f, std::integral_constant<int, 1>{}, 2, {0, 4, 2});
  test::check_modes([](auto& x) { return local_shard(x, 1) + 1; }, numbers<float>({3, 5}));
  // The same graph, on a device that is alone, then with another.
  const auto second_part = [] {
    const xla::eager_mode_guard traced(false);
    return local_shard(xla::arange<float>(1) + 3.f).to_vector();
  };
  {
    const xla::device_guard alone(xla::device(1));
    CHECK(second_part() == std::vector<float>{3});
  }
  std::vector<float> part;
  test::replicate(2, [&](int i) {
    if (i == 1) part = second_part();
  });
  CHECK(part == std::vector<float>{0});
  xla::Parameter<float, 1> p{xla::Tensor<float, 1>(numbers<float>({3}))};
  CHECK_THROWS_WITH(sum(local_shard(p)).backward(), test::contains("local_shard has no gradient"));
}

TEST_CASE("broadcast and collective_permute") {
  check_values<float>(
      3, [](auto& x) { return broadcast(x, 2); }, [](auto& all, int) { return all[2]; }, {4, 5});
  check_values<std::int64_t>(
      2, [](auto& x) { return broadcast(x); }, [](auto& all, int) { return all[0]; }, {3});
  check_values<float>(
      3,
      [](auto& x) {
        return collective_permute(x, {{0, 1}, {2, 0}});
      },
      [](auto& all, int i) { return i == 2 ? xla::zeros_like(all[0]) : all[i == 1 ? 0 : 2]; },
      {2, 3});
  test::replicate(3, [](int i) {
    const xla::eager_mode_guard eager;
    std::vector<std::array<int, 2>> ring;
    for (int k = 0; k < xla::world_size(); ++k) ring.push_back({k, (k + 1) % xla::world_size()});
    const auto from =
        collective_permute(xla::tensor<float>(static_cast<float>(xla::global_ordinal())), ring)
            .item();
    if (from != (i + 2) % 3) throw std::runtime_error("the ring goes another way");
  });
}

namespace {

/// One number of several results.
constexpr auto number_of = [](const auto& results) {
  return std::apply([](const auto&... y) { return (test::weighted_sum(y) + ...); }, results);
};

/// All of them are linear: the sum over replicas of <f(x), w> is that of <x, gradient>, whatever x
/// is; w is other numbers on each.
template <class F>
void check_gradients(int replicas, F, const xla::Size (&sizes)[2]) {
  const auto make = [&](int i) {
    return std::tuple(test::parameter(numbers_of<double>(i, sizes)), xla::tensor(1.5 + i));
  };
  const auto made = test::check_replicas(
      replicas,
      [](auto& p, auto& weight) {
        const auto loss = number_of(F{}(p)) * weight;
        loss.backward();
        return std::tuple(loss,
                          grad(number_of(F{}(p * p * p)) * weight, p, {.create_graph = true}));
      },
      make);
  CHECK(made.size() == static_cast<std::size_t>(replicas));
  std::vector<double> losses(made.size()), products(made.size());
  test::replicate(replicas, [&](int i) {
    const xla::eager_mode_guard eager;
    auto [p, weight] = make(i);
    const auto loss = number_of(F{}(p)) * weight;
    loss.backward();
    losses[static_cast<std::size_t>(i)] = loss.item();
    products[static_cast<std::size_t>(i)] = sum(p * p.grad()).item();
  });
  double loss = 0, product = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    loss += losses[i];
    product += products[i];
  }
  CHECK(std::abs(loss - product) <= 1e-10 * std::max(1.0, std::abs(loss)));
}

}  // namespace

TEST_CASE("gradients go back to the replicas that elements came from") {
  constexpr auto sums = [](const auto& x) {
    return std::tuple(
        all_reduce(x), all_reduce(x, "mean"), reduce_scatter(x, 1),
        reduce_scatter(x, 1, reduce_type::mean),
        reduce_scatter(x, 0, reduce_type::sum, xla::tags::padded),
        all_gather(reduce_scatter(x, 0, reduce_type::mean, xla::tags::padded), 0, x.size(0)));
  };
  constexpr auto moves = [](const auto& x) {
    return std::tuple(all_gather(x, 1), all_to_all(x, 1, 0), broadcast(x, 1),
                      collective_permute(x, {{1, 0}}));
  };
  for (const int n : {2, 3}) {
    check_gradients(n, sums, {7, 6});
    check_gradients(n, moves, {2, 6});
  }
}

TEST_CASE("a maximum, minimum or product over replicas has no gradient, and says so") {
  test::replicate(2, [](int) {
    for (const bool is_eager : {true, false}) {
      const xla::eager_mode_guard as_told(is_eager);
      auto p = test::parameter(numbers<float>({3}));
      for (const char* how : {"max", "min", "product"}) {
        const auto loss = sum(all_reduce(p, how));
        std::string said;
        try {
          loss.backward();
        } catch (const xla::error& e) {
          said = e.what();
        }
        if (said.find("all_reduce has a gradient of a sum and of a mean alone") == said.npos)
          throw std::runtime_error("it said: " + said);
      }
    }
  });
}

TEST_CASE("collectives refuse what they cannot do") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({4, 3});
  using test::contains;
  CHECK_THROWS_WITH(broadcast(x, 1), contains("broadcast: there is no replica 1 in a world of 1"));
  CHECK_THROWS_WITH(broadcast(x, -1), contains("replicas count from 0 on: there is no -1"));
  CHECK_THROWS_WITH(collective_permute(x, {{0, 1}}),
                    contains("there is no replica 1 in a world of 1"));
  CHECK_THROWS_WITH(collective_permute(x, {{0, 0}, {0, 0}}), contains("once as sender"));
  CHECK_THROWS_WITH(all_reduce(x, "avg"), contains("\"avg\" is none of sum, mean, max"));
  CHECK_THROWS_WITH(all_reduce(numbers<std::int64_t>({3}), reduce_type::mean),
                    contains("all_reduce: integers have no mean"));
  CHECK_THROWS_WITH(all_gather(x, 2), contains("all_gather"));
  CHECK_THROWS_WITH(all_gather(x, 0, 5), contains("the replicas have 4 of 5 along axis 0"));
  CHECK_THROWS_WITH(all_gather(x, 1, 2),
                    contains("3 of 2 along axis 1, of which each has to have 2"));
  test::replicate(2, [](int) {
    const xla::eager_mode_guard own;
    const auto odd = numbers<float>({4, 3});
    auto step = xla::compile([](auto& a) { return reduce_scatter(a, 1); });
    auto send = xla::compile([](auto& a) { return broadcast(a, 2); });
    const auto said = [](auto f) -> std::string {
      try {
        f();
      } catch (const xla::shape_error& e) {
        return e.what();
      }
      return "nothing";
    };
    const auto require = [](const std::string& what, const char* wanted) {
      if (what.find(wanted) == what.npos) throw std::runtime_error("it said: " + what);
    };
    require(
        said([&] { reduce_scatter(odd, 1); }),
        "reduce_scatter: axis 1 of (4, 3) does not divide into equal parts for 2 replicas; pad it");
    require(said([&] { all_to_all(odd, 1, 0); }), "all_to_all: axis 1 of (4, 3)");
    require(said([&] { step(odd); }), "reduce_scatter: ");
    require(said([&] { step(odd); }),
            "what the replicas can divide into equal parts is 2, axis 1 of argument 0 is 3");
    require(said([&] { send(odd); }), "the number of replicas is 2 and has to be at least 3");
  });
}

namespace {

using int_list = std::vector<std::int64_t>;
constexpr std::int64_t ragged_width = 3;

/// What a ragged exchange of n replicas takes, by ordinal: two parts for each receiver. Parts have
/// 0 to 3 rows, the first result row and the last operand row are free.
struct ragged_case {
  std::vector<int_list> from, sizes, to, received;
  std::int64_t rows = 0, places = 0;

  ragged_case(int n, bool repeats) {
    const auto all = static_cast<std::size_t>(n);
    from = sizes = to = received = std::vector(all, int_list(2 * all));
    int_list filled(all, 1);
    for (std::size_t s = 0; s < all; ++s) {
      std::int64_t next = 0;
      for (std::size_t i = 0; i < 2 * all; ++i) {
        const std::size_t r = i / 2;
        const auto size = static_cast<std::int64_t>((3 * s + 5 * i + 1) % 4);
        sizes[s][i] = received[r][2 * s + i % 2] = size;
        from[s][i] = repeats ? static_cast<std::int64_t>(i % 2) : next;
        to[s][i] = filled[r];
        next += size;
        filled[r] += size;
        rows = std::max(rows, from[s][i] + size + 1);
        places = std::max(places, filled[r] + 2);
      }
    }
  }
  auto arguments(int ordinal) const {
    const auto i = static_cast<std::size_t>(ordinal);
    const auto list = [&](const int_list& of) { return xla::tensor(of); };
    return std::tuple(test::parameter(numbers_of<double>(ordinal, {rows, ragged_width})),
                      test::parameter(numbers_of<double>(50 + ordinal, {places, ragged_width})),
                      list(from[i]), list(sizes[i]), list(to[i]), list(received[i]),
                      numbers_of<double>(90 + ordinal, {places, ragged_width}));
  }
  /// Calls with sender, its row, receiver and its row of each row that is sent.
  template <class F>
  void each_row(const F& f) const {
    for (std::size_t s = 0; s < from.size(); ++s)
      for (std::size_t i = 0; i < from[s].size(); ++i)
        for (std::int64_t k = 0; k < sizes[s][i]; ++k) f(s, from[s][i] + k, i / 2, to[s][i] + k);
  }
};

constexpr auto ragged_step = [](auto& x, auto& y, auto& from, auto& sizes, auto& to, auto& received,
                                auto& weight) {
  const auto made = ragged_all_to_all(x, y, from, sizes, to, received);
  sum(made * weight).backward();
  return std::tuple(made, x.grad(), y.grad());
};

/// Results and gradients of all replicas, row by row.
void check_ragged(int n, bool repeats) {
  const ragged_case all(n, repeats);
  test::check_replicas(n, ragged_step, [&](int i) { return all.arguments(i); });
  std::vector<std::array<std::vector<double>, 3>> made(static_cast<std::size_t>(n)), want = made;
  std::vector<std::vector<double>> weights(made.size()), operands = weights;
  test::replicate(n, [&](int ordinal) {
    const xla::eager_mode_guard eager;
    const auto i = static_cast<std::size_t>(ordinal);
    auto given = all.arguments(ordinal);
    const auto [y, gx, gy] = std::apply(ragged_step, given);
    made[i] = {y.to_vector(), gx.to_vector(), gy.to_vector()};
    operands[i] = std::get<0>(given).to_vector();
    weights[i] = std::get<6>(given).to_vector();
    want[i] = {std::get<1>(given).to_vector(), std::vector<double>(operands[i].size()), weights[i]};
  });
  all.each_row([&](std::size_t s, std::int64_t row, std::size_t r, std::int64_t place) {
    for (std::int64_t c = 0; c < ragged_width; ++c) {
      const auto in = static_cast<std::size_t>(row * ragged_width + c);
      const auto out = static_cast<std::size_t>(place * ragged_width + c);
      want[r][0][out] = operands[s][in];
      want[s][1][in] += weights[r][out];
      want[r][2][out] = 0;
    }
  });
  for (std::size_t i = 0; i < made.size(); ++i) {
    INFO("replica " << i << " of " << n << (repeats ? ", rows sent several times" : ""));
    CHECK(made[i][0] == want[i][0]);
    CHECK(made[i][2] == want[i][2]);
    for (std::size_t k = 0; k < want[i][1].size(); ++k)
      CHECK(std::abs(made[i][1][k] - want[i][1][k]) <= 1e-14);
  }
}

/// What a ragged exchange of vectors gives two replicas, or what the first of them to fail says.
template <class T>
std::string ragged(const std::vector<std::vector<T>>& operand, const std::vector<T>& output,
                   const std::vector<int_list> (&lists)[4]) {
  std::string made[2];
  try {
    test::replicate(2, [&](int ordinal) {
      const xla::eager_mode_guard eager;
      const auto i = static_cast<std::size_t>(ordinal);
      const auto list = [&](int k) { return xla::tensor(lists[k][i]); };
      const auto y = ragged_all_to_all(xla::tensor(operand[i]), xla::tensor(output), list(0),
                                       list(1), list(2), list(3));
      for (const T& e : y.to_vector()) made[i] += std::to_string(e) + " ";
    });
  } catch (const xla::error& e) {
    return e.what();
  }
  return made[0] + "| " + made[1];
}

}  // namespace

TEST_CASE("ragged_all_to_all sends parts of any size, and its gradients go back to their rows") {
  for (const bool repeats : {false, true})
    for (const int n : {1, 2, 3}) check_ragged(n, repeats);
  // As jax.lax.ragged_all_to_all's documentation.
  using ints = std::vector<std::int64_t>;
  const std::vector<ints> operand{{1, 2, 2}, {3, 4, 0}};
  const std::vector<int_list> from{{0, 1}, {0, 1}}, sizes{{1, 2}, {1, 1}}, to{{0, 0}, {1, 2}},
      received{{1, 1}, {2, 1}};
  CHECK(ragged(operand, ints(4), {from, sizes, to, received}) == "1 3 0 0 | 2 2 4 0 ");
  // Of parts that overlap the last sender's counts.
  CHECK(ragged(operand, ints(4), {from, sizes, {{0, 0}, {0, 1}}, received}) ==
        "3 0 0 0 | 2 4 0 0 ");
}

TEST_CASE("ragged_all_to_all refuses sizes that do not match and rows that do not exist") {
  using test::contains;
  using floats = std::vector<double>;
  const std::vector<floats> two{floats(2), floats(2)};
  const std::vector<int_list> none{{0, 0}, {0, 0}}, one{{1, 1}, {1, 1}}, two_of{{2, 2}, {2, 2}};
  const auto said = [&](const std::vector<int_list>& from, const std::vector<int_list>& sizes,
                        const std::vector<int_list>& to, const std::vector<int_list>& received) {
    return ragged(two, floats(2), {from, sizes, to, received});
  };
  CHECK_THAT(said(two_of, one, none, one), contains("input_offsets + send_sizes: index 3 at "
                                                    "position 0 is outside [0, 3)"));
  CHECK_THAT(said({{-1, 0}, {-1, 0}}, one, none, one), contains("input_offsets: index -1"));
  CHECK_THAT(said(one, {{-1, 0}, {-1, 0}}, none, one), contains("send_sizes: index -1"));
  CHECK_THAT(said(none, one, {{-1, 0}, {0, 0}}, one), contains("output_offsets: index -1"));
  CHECK_THAT(said(none, one, two_of, one),
             contains("output_offsets + recv_sizes: index 3 at position 0 is outside [0, 3)"));
  CHECK_THAT(said(none, one, none, two_of),
             contains("recv_sizes - the senders' send_sizes: index 1 at position 0"));
  CHECK_THAT(said({{0}, {0}}, {{0}, {0}}, {{0}, {0}}, {{0}, {0}}),
             contains("ragged_all_to_all: axis 0 of (1,) does not divide into equal parts for 2"));
  CHECK_THAT(said(none, one, {{0}, {0}}, one),
             contains("ragged_all_to_all: offsets and sizes of 2 and of 1 parts"));
  CHECK_THAT(said({{}, {}}, {{}, {}}, {{}, {}}, {{}, {}}),
             contains("ragged_all_to_all: there are no parts"));
  CHECK_THAT(ragged({floats{}, floats{}}, floats(2), {none, none, none, none}),
             contains("ragged_all_to_all: an operand of (0,) has no rows"));
  const xla::eager_mode_guard eager;
  const auto list = xla::tensor<std::int64_t>({0});
  CHECK_THROWS_WITH(
      ragged_all_to_all(numbers<float>({2, 3}), numbers<float>({2, 4}), list, list, list, list),
      contains("ragged_all_to_all: rows of (2, 3) do not fit an output of (2, 4)"));
}

namespace {

struct Net {
  xla::nn::Linear fc1{20, 30}, fc2{30, 4};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return fc2(xla::maximum(fc1(x), 0.f));
  }
  XLA_MODULE(fc1, fc2)
};
template <bool Exchanges>
constexpr auto step = [](auto& net, auto& x, auto& optimizer) {
  optimizer.zero_grad();
  const auto y = net(x);
  auto loss = mean(y * y);
  loss.backward();
  if constexpr (Exchanges) {
    xla::for_each_parameter(net, [](auto& p) {
      if (const auto g = p.grad(); g.defined()) p.set_grad(all_reduce(g, "mean"));
    });
    optimizer.step();
    return all_reduce(loss, "mean");
  } else {
    optimizer.step();
    return loss;
  }
};

}  // namespace

TEST_CASE("in a world of one a program has the same steps as without collectives") {
  auto alone = xla::compile(step<false>);
  auto together = xla::compile(step<true>);
  const auto x = numbers<float>({9, 20});
  Net a;
  Net b = a;
  xla::optim::SGD first{a, {.lr = 0.1f, .momentum = 0.9f}},
      second{b, {.lr = 0.1f, .momentum = 0.9f}};
  const auto steps = [](const std::string& plan) {
    std::size_t n = 0, at = 0;
    for (; (at = plan.find("step ", at)) != plan.npos; ++at) ++n;
    return n;
  };
  const std::string plan = alone.graph(xla::Stage::planned, a, x, first),
                    same = together.graph(xla::Stage::planned, b, x, second);
  CHECK(steps(plan) == steps(same));
  for (int i = 0; i < 3; ++i) {
    test::snapshot s, t;
    s.add(alone(a, x, first));
    t.add(together(b, x, second));
    s.add(a);
    t.add(b);
    CHECK(t.difference(s) == "");
  }
  CHECK(xla::world_size() == 1);
  CHECK(xla::global_ordinal() == 0);
  const auto from = numbers<float>({3, 4});
  for (const bool is_eager : {true, false}) {
    const xla::eager_mode_guard as_told(is_eager);
    CHECK(all_to_all(broadcast(reduce_scatter(all_gather(from))), 1, 0).to_vector() ==
          from.to_vector());
    CHECK(collective_permute(from, {{0, 0}}).to_vector() == from.to_vector());
  }
}

namespace {

/// Writes down what is exchanged, in its order: what, and how many elements.
class noting_replica final : public xla::detail::replica {
 public:
  explicit noting_replica(replica& to) : replica(to.ordinal, to.world_size), to_(to) {}
  std::uint64_t start(const xla::detail::exchange& e) override {
    for (int i = 0; i < e.piece_count; ++i)
      said += std::string(name_of(e.what)) + " " + std::to_string(e.pieces[i].count) + "; ";
    return to_.start(e);
  }
  void wait(std::uint64_t ticket) override { to_.wait(ticket); }
  void abort(std::exception_ptr why) noexcept override { to_.abort(why); }
  bool progresses_alone() const noexcept override { return to_.progresses_alone(); }

  std::string said;

 private:
  replica& to_;
};

/// What body(ordinal) exchanges on each of two replicas, which has to be the same.
template <class Body>
std::string exchanged(const Body& body) {
  std::string said[2];
  test::replicate(2, [&](int i) {
    auto& own = xla::detail::this_thread.device->replica;
    noting_replica notes(*own.load());
    own.store(&notes);
    body(i);
    said[i] = notes.said;
  });
  CHECK(said[0] == said[1]);
  return said[0];
}

/// What a function exchanges on a vector, in each mode.
template <class F>
std::array<std::string, 3> exchanged_in_modes(F f) {
  const auto in_mode = [&](mode m, auto call) {
    return exchanged([&](int i) {
      const xla::eager_mode_guard as_told(m == mode::eager);
      auto p = test::parameter(numbers_of<float>(i, {6}));
      call(p);
      xla::sync();
    });
  };
  return {in_mode(mode::eager, [&](auto& p) { f(p); }),
          in_mode(mode::traced, [&](auto& p) { f(p); }), in_mode(mode::compiled, [&](auto& p) {
            auto g = xla::compile(f);
            g(p);
          })};
}

}  // namespace

TEST_CASE("every exchange runs once, in every mode, however often it is read") {
  const auto twice = exchanged_in_modes([](auto& p) { return all_reduce(p) + all_reduce(p); });
  const auto unread = exchanged_in_modes([](auto& p) {
    broadcast(p);
    return p * 2;
  });
  const auto again = exchanged_in_modes([](auto& p) {
    const auto f = [](const auto& x) { return tanh(all_reduce(tanh(x), "mean")); };
    const auto y = xla::checkpoint(f, p);
    sum(y * y).backward();
    return y;
  });
  for (std::size_t m = 0; m < 3; ++m) {
    INFO("mode " << m);
    CHECK(twice[m] == "all_reduce 6; all_reduce 6; ");
    CHECK(unread[m] == "broadcast 6; ");
    CHECK(again[m] == "all_reduce 6; all_reduce 6; ");
  }
}

TEST_CASE("one compiled function serves worlds of any size, and its exchanges are counted") {
  auto f = xla::compile([](auto& x) {
    const auto parts = reduce_scatter(x, 0, reduce_type::sum, xla::tags::padded);
    return all_gather(parts, 0, x.size(0)) / (world_size(x) * 2);
  });
  const auto want = (numbers<double>({7}) / 2).to_vector();
  const auto bytes = [] {
    const auto seen = xla::metric_data("ExchangedBytes");
    return seen ? seen->accumulator : 0;
  };
  const double before = bytes();
  for (const int n : {2, 1, 4, 2, 3}) {
    std::vector<std::vector<double>> all(static_cast<std::size_t>(n));
    test::replicate(n, [&](int i) {
      const auto x = numbers<double>({7});
      all[static_cast<std::size_t>(i)] = f(x).to_vector();
    });
    for (const auto& own : all)
      for (std::size_t k = 0; k < 7; ++k) CHECK(std::abs(own[k] - want[k]) <= 1e-14);
  }
  CHECK(bytes() - before == 8 * (2 * (7 + 4) + 4 * (7 + 2) + 2 * (7 + 4) + 3 * (7 + 3)));
  CHECK(xla::metric_data("ExchangeTime").has_value());
}

TEST_CASE("exchanges keep the order of the program, whatever is read or freed between them") {
  CHECK(exchanged([](int i) {
          const auto x = numbers_of<float>(i, {8});
          auto first = all_reduce(x);
          if (i == 0) first = xla::Tensor<float, 1>();
          const auto second = all_gather(narrow(x, 0, 0, 3) * 2);
          if (i == 1) second.to_vector();
          all_reduce(sum(second));
          const auto third = reduce_scatter(x);
          if (i == 0) third.to_vector();
          const auto fourth = all_reduce(narrow(third, 0, 0, 2));
          xla::sync();
          fourth.to_vector();
        }) == "all_reduce 8; all_gather 3; all_reduce 1; reduce_scatter 4; all_reduce 2; ");
  CHECK(exchanged([](int i) {
          const auto x = numbers_of<float>(i, {8});
          const auto recorded = all_reduce(x);
          const auto large = all_reduce(xla::ones<float>({1 << 17}));
          xla::sync();
          auto step = xla::compile([](auto& a) { return all_reduce(narrow(a, 0, 0, 3)); });
          const auto compiled = step(x);
          const auto more = all_reduce(narrow(x, 0, 0, 5));
          const xla::eager_mode_guard eager;
          all_reduce(narrow(x, 0, 0, 4));
        }) == "all_reduce 8; all_reduce 131072; all_reduce 3; all_reduce 5; all_reduce 4; ");
}

TEST_CASE("exchanges keep the program's order even if replicas are ready at different times") {
  test::replicate(2, [](int i) {
    const xla::eager_mode_guard traced(false);
    const auto own = tanh(numbers_of<float>(i, {6})), nothing = xla::zeros_like(own);
    const auto first = all_reduce(i == 0 ? own : nothing);
    const auto second = all_reduce(i == 1 ? own : nothing);
    xla::sync();
    for (int k = 0; k < 2; ++k)
      if ((k == 0 ? first : second).to_vector() != tanh(numbers_of<float>(k, {6})).to_vector())
        throw std::runtime_error("what replica " + std::to_string(k) + " has is lost");
  });
}

TEST_CASE("a step's gradients are the mean of the replicas', also of frozen parameters' none") {
  for (const bool freezes : {false, true}) {
    test::snapshot made[2][3];
    test::replicate(2, [&](int i) {
      for (int m = 0; m < 3; ++m) {
        const xla::eager_mode_guard as_told(m == 0);
        xla::manual_seed(3);
        Net net;  // each device draws numbers of its own
        xla::for_each_parameter(net, [](auto& p) { p.copy_(broadcast(p)); });
        xla::optim::SGD optimizer{net, {.lr = 0.1f, .momentum = 0.9f}};
        net.fc1.weight.requires_grad_(!freezes);
        auto compiled = xla::compile(step<true>);
        for (int k = 0; k < 3; ++k) {
          auto x = numbers_of<float>(10 * i + k, {5 + k, 20});
          if (m == 2) compiled(net, x, optimizer);
          else step<true>(net, x, optimizer);
          xla::sync();
        }
        made[i][m].add(net);
      }
    });
    for (int i = 0; i < 2; ++i)
      for (int m = 0; m < 3; ++m) {
        INFO("replica " << i << ", mode " << m);
        CHECK(made[i][m].difference(made[0][0]) == "");
      }
  }
}

TEST_CASE("backward() outside goes through what a compiled function exchanged") {
  std::vector<float> gradients[2];
  test::replicate(2, [&](int i) {
    auto p = test::parameter(numbers_of<float>(i, {4}));
    auto f = xla::compile([](auto& p) { return sum(all_reduce(p * p)); });
    f(p).backward();
    gradients[i] = p.grad().to_vector();
  });
  for (int i = 0; i < 2; ++i) CHECK(gradients[i] == (numbers_of<float>(i, {4}) * 4).to_vector());
}
