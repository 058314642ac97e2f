// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/state/metrics.hpp"
#include "xla/run/trace/checkpoint.hpp"
#include "xla/run/trace/custom_gradient.hpp"

using test::numbers;

namespace {

/// So that a gradient of -0 stays one: a compiled function adds to 0 what it finds none of.
template <class... P>
constexpr void forget(P&... p) {
  (p.zero_grad(), ...);
}

struct memory {
  xla::Tensor<float, 2> h, c;
  XLA_MODULE(h, c)
};

struct lstm {
  xla::nn::Linear ih{3, 16}, hh{4, 16};
  constexpr auto operator()(const xla::Tensor<float, 3>& xs, const memory& first) const {
    const auto step = [&](const memory& m, const xla::Tensor<float, 2>& x) {
      const auto [i, f, g, o] = xla::chunk<4>(ih(x) + hh(m.h), 1);
      const auto c = sigmoid(f) * m.c + sigmoid(i) * tanh(g);
      const auto h = sigmoid(o) * tanh(c);
      return std::pair(memory{h, c}, h);
    };
    return xla::scan(step, first, xs);
  }
  XLA_MODULE(ih, hh)
};

}  // namespace

TEST_CASE("gradients through a scan are the same bits in every mode") {
  auto train = [](auto& w, auto& xs, auto& h) {
    forget(w, xs, h);
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          const auto next = tanh(matmul(c, w) + x * w * 3.0f);
          return std::pair(next, next * c);
        },
        h, xs);
    const auto loss = sum(last * 0.5f) + sum(ys * ys);
    loss.backward();
    return std::tuple(loss, w.grad(), xs.grad(), h.grad());
  };
  for (std::int64_t steps : {1, 2, 7})
    test::check_modes(train, test::parameter(numbers<float>({3, 3})),
                      test::parameter(numbers<float>({steps, 3, 3})),
                      test::parameter(numbers<float>({3, 3})));
}

TEST_CASE("argument tensors get gradients through a loop where they require one") {
  const auto train = [](auto& h, auto& xs) {
    const auto [last, ys] = xla::scan(
        [](const auto& c, const auto& x) { return std::pair(tanh(c * x), c * c); }, h, xs);
    const auto loss = sum(last) + sum(ys * xs);
    loss.backward();
    return loss;
  };
  auto compiled = xla::compile(train);
  for (int which : {1, 2, 3}) {
    test::snapshot seen[2];
    for (bool eager : {true, false}) {
      const xla::eager_mode_guard mode(eager);
      auto h = numbers<float>({5});
      auto xs = numbers<float>({4, 5});
      if (which & 1) h.requires_grad_();
      if (which & 2) xs.requires_grad_();
      seen[eager].add(eager ? train(h, xs) : compiled(h, xs));
      if (which & 1) seen[eager].add(h.grad());
      if (which & 2) seen[eager].add(xs.grad());
      CHECK(h.grad().defined() == ((which & 1) != 0));
      CHECK(xs.grad().defined() == ((which & 2) != 0));
    }
    CHECK(seen[0].difference(seen[1]) == "");
  }
}

TEST_CASE("gradients reach layers, the first carry and xs of a recurrent network") {
  auto train = [](auto& m, auto& xs, auto& h, auto& c) {
    forget(xs, h, c);
    const auto [last, hs] = m(xs, memory{h, c});
    const auto loss = sum(hs * hs) + sum(last.c);
    loss.backward();
    return std::tuple(loss, xs.grad(), h.grad(), c.grad());
  };
  for (std::int64_t steps : {1, 3, 12})
    test::check_modes(train, lstm(), test::parameter(numbers<float>({steps, 2, 3})),
                      test::parameter(numbers<float>({2, 4})),
                      test::parameter(numbers<float>({2, 4})));
}

TEST_CASE("one parameter before, in and after a loop, and as its first carry") {
  auto train = [](auto& w, auto& xs) {
    forget(w, xs);
    const auto before = xs * w;
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          const auto twice = w * 3.0f;  // of no step
          return std::pair(c * twice + x, relu(x - w) * before.sum({0}));
        },
        w, before, {.reverse = true});
    const auto loss = sum(last * w) + sum(ys) + sum(w * xs);
    loss.backward();
    return std::tuple(loss, w.grad(), xs.grad());
  };
  for (std::int64_t steps : {1, 2, 5})
    test::check_modes(train, test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({steps, 5})));
}

TEST_CASE("gradients go through loops in loops") {
  auto train = [](auto& xs, auto& h0, auto& w) {
    forget(xs, h0, w);
    const auto outer = [&](const auto& h, const auto& rows) {
      const auto start = tanh(h * w);
      const auto inner = [&](const auto& s, const auto& x) {
        const auto n = tanh(x * w + start * s);
        return std::pair(n, n * start);
      };
      const auto [last, ys] = xla::scan(inner, start + 1.0f, rows);
      return std::pair(last * h + sum(ys, {0}), std::tuple(sum(ys, {0}), start * w));
    };
    const auto [last, ys] = xla::scan(outer, h0, xs);
    const auto loss = sum(last) + sum(std::get<0>(ys)) + sum(std::get<1>(ys) * std::get<1>(ys));
    loss.backward();
    return std::tuple(loss, xs.grad(), h0.grad(), w.grad());
  };
  for (auto [d, t] : {std::pair{3, 4}, {1, 5}, {4, 1}})
    test::check_modes(train, test::parameter(numbers<float>({d, t, 2, 5})),
                      test::parameter(numbers<float>({2, 5})),
                      test::parameter(numbers<float>({2, 5})));
}

TEST_CASE("carries that change places, stay, start from a constant or are not used at the end") {
  auto train = [](auto& a, auto& b, auto& xs) {
    forget(a, b, xs);
    const auto body = [&](const auto& carry, const auto& x) {
      const auto& [p, q, r, s, n] = carry;
      return std::pair(std::tuple(q * x, p, r, s * a + b, n + 1), std::array{x * p, q + s});
    };
    const auto [last, ys] =
        xla::scan(body, std::tuple(a, b, a, xla::zeros_like(b), xla::tensor<std::int64_t>(0)), xs);
    const auto loss = sum(std::get<0>(last)) + sum(ys[0] * ys[1]);
    loss.backward();
    return std::tuple(loss, a.grad(), b.grad(), xs.grad(), std::get<4>(last));
  };
  for (std::int64_t steps : {1, 2, 5})
    test::check_modes(train, test::parameter(numbers<float>({7})),
                      test::parameter(numbers<float>({7})),
                      test::parameter(numbers<float>({steps, 7})));
}

TEST_CASE("parts of what is outside: slices and rows by index") {
  auto train = [](auto& table, auto& places, auto& xs) {
    forget(table, xs);
    const auto body = [&](const auto& c, const auto& all) {
      const auto& [at, x] = all;
      const auto row = index_select(table, 0, at);
      const auto next = c * row + select(table, 0, 1) * x + select(xs, 0, 0);
      return std::pair(next, sum(row * c));
    };
    const auto [last, ys] = xla::scan(body, xla::ones<float>({2, 3}), std::tuple(places, xs));
    const auto loss = sum(last) + sum(ys);
    loss.backward();
    return std::tuple(loss, table.grad(), xs.grad());
  };
  test::check_modes(train, test::parameter(numbers<float>({4, 3})),
                    xla::tensor<std::int64_t>({0, 1, 3, 2, 2, 0}).view({3, 2}),
                    test::parameter(numbers<float>({3, 3})));
}

TEST_CASE("gradients of a loop by its number of steps are added to existing gradients") {
  auto train = [](auto& w, auto& xs) {
    forget(w);
    const auto run = [&] {
      const auto loss = sum(xla::fori_loop(
          0, xs.size(0),
          [&](const auto& i, const auto& c) { return tanh(c * w + xla::cast<float>(i)); }, w));
      loss.backward();
      return loss;
    };
    const auto first = run();
    return first + run();
  };
  for (std::int64_t steps : {1, 2, 6})
    test::check_modes(train, test::parameter(numbers<float>({5})), numbers<float>({steps, 1}));
}

TEST_CASE("grad() of what went into a loop") {
  auto both = [](auto& w, auto& xs) {
    const auto loss =
        sum(xla::scan([&](const auto& c, const auto& x) { return std::pair(c * w + x, c); }, w, xs)
                .first);
    return xla::grad(loss, std::tie(w, xs));
  };
  for (std::int64_t steps : {1, 4})
    test::check_modes(both, test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({steps, 5})));
}

TEST_CASE("checkpoints around a loop and in it, and functions with a gradient of their own") {
  auto train = [](auto& w, auto& xs) {
    forget(w, xs);
    const auto body = [&](const auto& c, const auto& x) {
      const auto f = xla::custom_gradient(
          [](const xla::Tensor<float, 1>& a, const xla::Tensor<float, 1>& b) {
            return xla::save_for_backward(a * b, a, b);
          },
          [](const auto& saved, const auto& g) {
            return std::tuple(g * std::get<1>(saved) * 2.0f, g * std::get<0>(saved));
          });
      const auto inner = [&](const auto& a) { return tanh(a * w) * a; };
      return std::pair(f(xla::checkpoint(inner, c), x), c);
    };
    const auto loop = [&](const auto& first) { return xla::scan(body, first, xs).first; };
    const auto loss = sum(xla::checkpoint(loop, w * 2.0f));
    loss.backward();
    return std::tuple(loss, w.grad(), xs.grad());
  };
  for (std::int64_t steps : {1, 4})
    test::check_modes(train, test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({steps, 5})));
}

TEST_CASE("gradients of loops against differences, and those of compiled functions") {
  const auto recurrence = [](const auto& w, const auto& xs, const auto& h) {
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          const auto next = tanh(matmul(c, w) + x);
          return std::pair(next, next * c);
        },
        h, xs);
    return xla::cat({ys, xla::unsqueeze(last, 0)});
  };
  const auto w = numbers<double>({3, 3}), h = numbers<double>({2, 3});
  const auto xs = numbers<double>({4, 2, 3});
  test::check_gradient(recurrence, w, xs, h);
}

namespace {

/// Products with weights from outside: from the right, transposed, from the left, one of them twice
/// and as an operand of a sum.
template <bool Reverse>
constexpr auto products_of_steps = [](auto& w, auto& v, auto& u, auto& xs, auto& h) {
  forget(w, v, u, xs, h);
  const auto body = [&](const auto& c, const auto& x) {
    const auto next = tanh(matmul(c, w) + xla::linear(x, v) + matmul(u, c) + w * 0.5f);
    return std::pair(next, matmul(next, w) * c);
  };
  const auto [last, ys] = xla::scan(body, h, xs, {.reverse = Reverse});
  const auto loss = sum(last * 0.5f) + sum(ys * ys) + sum(w * v);
  loss.backward();
  return std::tuple(loss, w.grad(), v.grad(), u.grad(), xs.grad(), h.grad());
};

/// No gradient goes on to the first carry.
constexpr auto products_from_zeros = [](auto& w, auto& xs) {
  forget(w, xs);
  const auto body = [&](const auto& c, const auto& x) {
    const auto next = tanh(matmul(c, w) + x);
    return std::pair(next, std::tuple<>());
  };
  const auto last = xla::scan(body, xla::zeros_like(w), xs).first;
  const auto loss = sum(last * last);
  loss.backward();
  return std::tuple(loss, w.grad(), xs.grad());
};

/// In a loop in a loop, where the outer one has a product of its own.
constexpr auto products_of_nested_steps = [](auto& w, auto& xs) {
  forget(w, xs);
  const auto outer = [&](const auto& c, const auto& x) {
    const auto inner = [&](const auto&, const auto& s) { return tanh(matmul(s, w) + x); };
    return std::pair(xla::fori_loop(0, 3, inner, matmul(c, w)), c);
  };
  const auto [last, ys] = xla::scan(outer, select(xs, 0, 0), xs);
  const auto loss = sum(last) + sum(ys * ys);
  loss.backward();
  return std::tuple(loss, w.grad(), xs.grad());
};

/// Where checkpoint() is: around the loop, a part of its body, a loop in its body, in a branch of
/// it. `every`: a loop in the body of one that keeps every second carry.
enum class around { loop, part, inner_loop, branch, every };
template <around Which>
constexpr auto products_and_checkpoints = [](auto& w, auto& v, auto& xs) {
  forget(w, v, xs);
  using matrix = xla::Tensor<float, 2>;
  const auto product = [&](const auto& a) { return tanh(matmul(a, v)); };
  const auto inner = [&](const auto& a) {
    return xla::fori_loop(
        0, 3, [&](const auto&, const auto& s) { return product(s); }, a);
  };
  const auto body = [&](const matrix& c, const matrix& x) {
    const matrix next = tanh(matmul(c, w) + x);
    matrix y = next;
    if (Which == around::loop || Which == around::every) y = inner(next);
    if (Which == around::part) y = xla::checkpoint(product, next);
    if (Which == around::inner_loop) y = xla::checkpoint(inner, next);
    if (Which == around::branch)
      y = xla::cond(
          sum(next) > 0, [&] { return xla::checkpoint(product, next); }, [&] { return next * 2; });
    return std::pair(next, y * next);
  };
  const auto all = [&](const auto& h) {
    return xla::scan(body, h, xs, {.checkpoint_every = Which == around::every ? 2 : 0});
  };
  const matrix h = tanh(w);
  const auto [last, ys] = Which == around::loop ? xla::checkpoint(all, h) : all(h);
  const auto loss = sum(last) + sum(ys * ys) + sum(v * 0.5f);
  loss.backward();
  return std::tuple(loss, w.grad(), v.grad(), xs.grad());
};

}  // namespace

/// How many products a graph has in steps of loops, and how many outside of them.
std::pair<int, int> products_in(const std::string& text) {
  int in_steps = 0, outside = 0;
  for (auto at = text.find(" = matmul("); at != text.npos; at = text.find(" = matmul(", at + 1))
    ++(text.compare(text.rfind('\n', at) + 1, 2, "  ") == 0 ? in_steps : outside);
  return {in_steps, outside};
}

TEST_CASE("the gradient of a weight is one product of all steps, in every mode") {
  const auto square = [](unsigned seed) { return test::parameter(numbers<float>({3, 3}, seed)); };
  for (std::int64_t steps : {1, 2, 7}) {
    const auto xs = test::parameter(numbers<float>({steps, 3, 3}, 4));
    test::check_modes(products_of_steps<false>, square(1), square(2), square(3), xs, square(5));
    test::check_modes(products_of_steps<true>, square(1), square(2), square(3), xs, square(5));
    test::check_modes(products_of_nested_steps, square(1), xs);
    test::check_modes(products_from_zeros, square(1), xs);
    test::check_modes(products_and_checkpoints<around::loop>, square(1), square(2), xs);
    test::check_modes(products_and_checkpoints<around::part>, square(1), square(2), xs);
    test::check_modes(products_and_checkpoints<around::inner_loop>, square(1), square(2), xs);
    test::check_modes(products_and_checkpoints<around::branch>, square(1), square(2), xs);
    test::check_modes(products_and_checkpoints<around::every>, square(1), square(2), xs);
  }
  const auto f = xla::compile(products_of_steps<false>);
  auto w = square(1), v = square(2), u = square(3), h = square(5);
  auto xs = test::parameter(numbers<float>({4, 3, 3}, 4));
  const std::string text = f.graph(xla::Stage::lowered, w, v, u, xs, h);
  INFO(text);
  const auto [in_steps, outside] = products_in(text);
  CHECK(in_steps == 6);  // three, and the gradient of the other factor of each
  CHECK(outside == 6);   // those of x, and of the matrices
  // Rows differ in number from columns, and gradients of gradients go through the product.
  const auto of = [](const auto& w, const auto& u, const auto& xs) {
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = tanh(matmul(matmul(u, c), w) + x);
      return std::pair(next, next * c);
    };
    return xla::scan(body, select(xs, 0, 0), xs).second;
  };
  test::check_gradient(of, numbers<double>({3, 3}), numbers<double>({2, 2}),
                       numbers<double>({3, 2, 3}));
  test::check_gradient(
      [&](const auto& w, const auto& u, const auto& xs) {
        return xla::grad(sum(of(w, u, xs)), w, {.create_graph = true});
      },
      numbers<double>({3, 3}), numbers<double>({2, 2}), numbers<double>({3, 2, 3}));
}

namespace {

/// A cell as one would write it. `mixed` reads x also detached, as a carry, in a loop and a branch.
enum class cell { plain, every, mixed };
template <cell Which>
constexpr auto train_cell = [](auto& w, auto& b, auto& u, auto& xs) {
  forget(w, b, u, xs);
  using matrix = xla::Tensor<float, 2>;
  const auto body = [&](const auto& carry, const matrix& x) {
    const matrix h = std::get<0>(carry), last = std::get<1>(carry);
    const auto sum_of = [&](const matrix& x) { return xla::linear(x, w, b) + matmul(h, u); };
    matrix next = sum_of(x), passed = last;
    if (Which == cell::mixed) {
      passed = x;
      next = next + xla::linear(last, w) - xla::linear(x.detach(), w);
      next = xla::fori_loop(
          0, 2, [&](const auto&, const matrix& s) { return tanh(s) + xla::linear(x, w); }, next);
      next = xla::cond(
          sum(h) > 0, [&] { return sum_of(x) * 2; }, [&] { return next; });
    }
    const matrix made = tanh(next);
    return std::pair(std::tuple(made, passed), made * 0.5f);
  };
  const matrix h = xla::zeros<float>({xs.size(1), u.size(0)}), none = select(xs, 0, 0) * 0;
  const auto [last, ys] =
      xla::scan(body, std::tuple(h, none), xs, {.checkpoint_every = Which == cell::every ? 2 : 0});
  const auto loss = sum(ys * ys) + sum(std::get<0>(last));
  loss.backward();
  return std::tuple(loss, last, ys, w.grad(), b.grad(), u.grad(), xs.grad());
};

template <cell Which, xla::Passes Wanted = xla::Passes{}>
void check_cell(std::int64_t steps, std::int64_t batch) {
  using test::parameter;
  INFO(steps << " steps, a batch of " << batch);
  auto w = parameter(numbers<float>({7, 5}, 1)), u = parameter(numbers<float>({7, 7}, 2));
  auto b = parameter(numbers<float>({7}, 3));
  auto xs = parameter(numbers<float>({steps, batch, 5}, 4));
  test::check_modes<Wanted>(train_cell<Which>, w, b, u, xs);
}

}  // namespace

TEST_CASE("products of x by a weight are one product before the loop, and change no bit") {
  for (std::int64_t batch : {1, 3, 6})
    for (std::int64_t steps : {1, 5}) {
      check_cell<cell::plain>(steps, batch);
      check_cell<cell::plain, xla::tags::without<"batch_products">>(steps, batch);
      check_cell<cell::every>(steps, batch);
      check_cell<cell::mixed>(steps, batch);
    }
  check_cell<cell::plain>(150, 1);
  const auto f = xla::compile(train_cell<cell::plain>);
  auto w = numbers<float>({7, 5}), u = numbers<float>({7, 7});
  auto b = numbers<float>({7});
  auto xs = numbers<float>({4, 3, 5});
  w.requires_grad_();
  xs.requires_grad_();
  const std::string text = f.graph(xla::Stage::lowered, w, b, u, xs);
  INFO(text);
  CHECK(products_in(text) == std::pair(2, 4));  // h u and its gradient; x w; those of w, u and x
}

TEST_CASE("in eager mode the gradient of xs is one product of all steps, with each step's bits") {
  using matrix = xla::Tensor<float, 2>;
  const xla::eager_mode_guard eager;
  const auto w = test::parameter(numbers<float>({7, 5}, 1));
  const auto xs = numbers<float>({40, 5, 5}, 2);
  // Of each step, of one that reads x again, of one that does so first, or of some steps alone.
  enum { each, again, first, some };
  const auto run = [&](int which, bool loop) {
    xla::Tensor<float, 3> x = xs.detach();
    x.requires_grad_();
    int step = 0;
    const auto body = [&](const matrix& h, const matrix& of) {
      matrix next = tanh(h + xla::linear(of, w));
      if ((which == again && step == 3) || (which == first && step == 0))
        next = next + sum(of * 0.5f);
      if (which == some && step++ % 3 == 0) next = h * 0.5f + sum(of.detach());
      ++step;
      return std::pair(next, next);
    };
    matrix h = xla::zeros<float>({5, 7});
    if (loop) h = xla::scan(body, h, x).first;
    else
      for (int i = 0; i < 40; ++i) h = body(h, select(x, 0, i)).first;
    xla::clear_counters();
    sum(h * h).backward();
    return std::pair(x.grad(), xla::counter_value("xla::matmul").value_or(0));
  };
  for (int which : {each, again, first, some}) {
    INFO(which);
    const auto [got, products] = run(which, true);
    const auto [want, written_out] = run(which, false);
    test::snapshot a, b;
    a.add(got + 0.f);  // written out, what no step reads has a gradient of 0, else of -0
    b.add(want);
    CHECK(a.difference(b) == "");
    CHECK(products == (which == each ? 2 : which == some ? 27 : 41));
    CHECK(written_out == (which == some ? 52 : 80));
  }
}

TEST_CASE("a stack larger than what a loop carries is not made for a product") {
  const auto loss = [](const auto& w, const auto& xs) {
    const auto body = [&](const auto& sum_of, const auto& x) {
      return std::pair(sum_of + sum(tanh(xla::linear(x, w))), std::tuple<>());
    };
    return xla::scan(body, sum(w), xs).first;
  };
  const auto w = numbers<float>({7, 5});
  const auto xs = numbers<float>({4, 3, 5});
  CHECK(products_in(xla::compile(loss).graph(xla::Stage::lowered, w, xs)) == std::pair(1, 0));
  test::check_modes(loss, w, xs);
}

TEST_CASE("another number of steps is no other program of gradients; none gives zeros") {
  auto f = xla::compile([](auto& w, auto& xs) {
    w.zero_grad();
    const auto last =
        xla::scan([&](const auto& c, const auto& x) { return std::pair(c + x * w, c); }, w, xs)
            .first;
    sum(last).backward();
    return last;
  });
  auto w = test::parameter(xla::ones<float>({2}));
  for (std::int64_t steps = 0; steps < 12; ++steps) {
    auto xs = xla::ones<float>({steps, 2});
    f(w, xs);
    CHECK(w.grad().to_vector() == std::vector<float>(2, static_cast<float>(1 + steps)));
  }
}

TEST_CASE("gradients of gradients go through loops") {
  const auto train = [](auto& w, auto& xs) {
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = tanh(c * w + x);
      return std::pair(next, next * w);
    };
    const auto [last, ys] = xla::scan(body, xla::ones_like(w), xs);
    const auto g = xla::grad(sum(last) + sum(ys), w, {.create_graph = true});
    sum(g * g).backward();
    return g;
  };
  const auto all = [&](auto&& f, std::int64_t steps) {
    auto w = test::parameter(numbers<double>({5}));
    auto xs = test::parameter(numbers<double>({steps, 5}));
    f(w, xs);
    return std::tuple(w.grad(), xs.grad());
  };
  auto compiled = xla::compile(train);
  for (std::int64_t steps : {1, 2, 5}) {
    const xla::eager_mode_guard eager;
    const auto [w, xs] = all(train, steps);
    const auto [same_w, same_xs] = all(compiled, steps);
    test::check_equal(same_w, w, 1e-12);
    test::check_equal(same_xs, xs, 1e-12);
  }
  test::check_gradient(
      [](const auto& w, const auto& xs) {
        const auto last = xla::scan(
            [&](const auto& c, const auto& x) { return std::pair(tanh(c * w + x), c); }, w, xs);
        return xla::grad(sum(last.first), w, {.create_graph = true});
      },
      numbers<double>({3}), numbers<double>({3, 3}));
}

TEST_CASE("gradients of gradients go through loops in loops") {
  const auto train = [](auto& w, auto& h, auto& xs) {
    const auto outer = [&](const auto& c, const auto& x) {
      const auto inner = [&](const auto& s, const auto& one) {
        const auto next = tanh((s + one) * w);
        return std::pair(next, next * w);
      };
      return xla::scan(inner, c, x);
    };
    const auto [last, ys] = xla::scan(outer, h, xs);
    const auto g = xla::grad(sum(last) + sum(ys * ys), w, {.create_graph = true});
    sum(g * g).backward();
    return g;
  };
  const auto all = [](auto&& f, bool eagerly) {
    const xla::eager_mode_guard mode(eagerly);
    auto w = test::parameter(numbers<double>({4})), h = test::parameter(numbers<double>({4}, 1));
    auto xs = test::parameter(numbers<double>({3, 2, 4}, 2));
    const auto g = f(w, h, xs);
    return std::array{xla::reshape(g, {-1}), w.grad(), h.grad(), xla::reshape(xs.grad(), {-1})};
  };
  const auto eager = all(train, true);
  const auto traced = all(train, false), compiled = all(xla::compile(train), true);
  for (std::size_t k = 0; k < eager.size(); ++k) {
    test::check_equal(traced[k], eager[k], 1e-10);
    test::check_equal(compiled[k], eager[k], 1e-10);
  }
}

TEST_CASE("gradients of gradients go through what is the same in all steps of a body") {
  const auto train = [](auto& w, auto& xs) {
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = c * tanh(w) + x;  // tanh(w) is before the loop
      return std::pair(next, next);
    };
    const auto last = xla::scan(body, xla::ones_like(w), xs).first;
    const auto g = xla::grad(sum(last), w, {.create_graph = true});
    sum(g * g).backward();
    return g;
  };
  const auto all = [](auto&& f, bool eagerly) {
    const xla::eager_mode_guard mode(eagerly);
    auto w = test::parameter(numbers<double>({4}));
    auto xs = test::parameter(numbers<double>({3, 4}, 2));
    const auto g = f(w, xs);
    return std::array{xla::reshape(g, {-1}), w.grad(), xla::reshape(xs.grad(), {-1})};
  };
  const auto eager = all(train, true);
  const auto traced = all(train, false), compiled = all(xla::compile(train), true);
  for (std::size_t k = 0; k < eager.size(); ++k) {
    test::check_equal(traced[k], eager[k], 1e-12);
    test::check_equal(compiled[k], eager[k], 1e-12);
  }
}

TEST_CASE("a weight that a loop in a loop, or two carries of one, begin with") {
  const auto train = [](auto& v, auto& w, auto& xs) {
    forget(v, w, xs);
    const auto outer = [&](const auto& c, const auto& x) {
      const auto grown = xla::fori_loop(
          0, 2, [&](const auto&, const auto& s) { return tanh(s * 1.5f); }, v);
      const auto sums = xla::scan(
          [&](const auto& s, const auto& one) { return std::pair(s * w + one, s); }, c, xs);
      return std::pair(tanh(grown * c + x), sum(sums.second, {0}) * grown);
    };
    const auto [last, ys] = xla::scan(outer, w, xs);
    const auto same = [](const auto& c, const auto& x) {
      return std::pair(c, std::get<0>(c) * x - std::get<1>(c));
    };
    const auto twice = xla::scan(same, std::tuple(v, v), xs);
    const auto loss = sum(last * v) + sum(ys * xs) + sum(twice.second * v) +
                      sum(std::get<0>(twice.first) - std::get<1>(twice.first) * 0.75f);
    loss.backward();
    return std::tuple(loss, v.grad(), w.grad(), xs.grad());
  };
  const auto v = test::parameter(numbers<float>({5}, 1)),
             w = test::parameter(numbers<float>({5}, 2));
  const auto xs = test::parameter(numbers<float>({4, 5}, 3));
  const auto want = test::run_mode<test::mode::eager>(train, v, w, xs);
  CHECK(test::run_mode<test::mode::traced>(train, v, w, xs).difference(want) == "");
}
