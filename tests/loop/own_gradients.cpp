// SPDX-License-Identifier: Apache-2.0
// Functions with gradients of their own, which save inputs or results, in the bodies of loops: gradients
// in every mode, and gradients of those, against differences.
#include <array>
#include <tuple>
#include <utility>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

using test::numbers;

namespace {

/// Saves its result.
struct own_tanh {
  constexpr auto operator()(const auto& x) const {
    return xla::custom_gradient(
        [](const auto& a) {
          const auto y = tanh(a);
          return xla::save_for_backward(y, y);
        },
        [](const auto& saved, const auto& g) {
          const auto& [y] = saved;
          return g * (1 - y * y);
        })(x);
  }
};
/// Saves its input.
struct own_sine {
  constexpr auto operator()(const auto& x) const {
    return xla::custom_gradient([](const auto& a) { return xla::save_for_backward(sin(a), a); },
                                [](const auto& saved, const auto& g) {
                                  return g * cos(std::get<0>(saved));
                                })(x);
  }
};
/// Saves two results, of which the second is used by its gradient alone.
struct own_sine_of_results {
  constexpr auto operator()(const auto& x) const {
    const auto both = xla::custom_gradient(
        [](const auto& a) {
          const auto s = sin(a), c = cos(a);
          return xla::save_for_backward(std::tuple(s, c), s, c);
        },
        [](const auto& saved, const auto& of_sine, const auto& of_cosine) {
          const auto& [s, c] = saved;
          return of_sine * c - of_cosine * s;
        })(x);
    return std::get<0>(both);
  }
};
/// Of two inputs and with two results: saves the first result and both inputs.
struct own_product {
  constexpr auto operator()(const auto& x) const {
    const auto [e, p] = xla::custom_gradient(
        [](const auto& a, const auto& b) {
          const auto y = exp(a * 0.25);
          return xla::save_for_backward(std::tuple(y, a * b), y, a, b);
        },
        [](const auto& saved, const auto& of_power, const auto& of_product) {
          const auto& [y, a, b] = saved;
          return std::tuple(of_power * y * 0.25 + of_product * b, of_product * a);
        })(x, x * 0.5 + 1);
    return tanh(e - p * e);
  }
};

// What is around them: numbers of v, w and xs.
template <class F>
struct in_scan {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto step = [&](const auto& c, const auto& x) {
      const auto next = F{}(c * w + x);
      return std::pair(next, next * x);
    };
    const auto [last, ys] = xla::scan(step, v * w, xs);
    return sum(last * w) + sum(ys * ys);
  }
};
template <class F>
struct in_fori_loop {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto body = [&](const auto&, const auto& c) { return F{}(c * w) + c * 0.5 + sum(xs, {0}); };
    return sum(xla::fori_loop(0, xs.size(0), body, v * 1) * w);
  }
};
template <class F>
struct in_cond {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto step = [&](const auto& c, const auto& x) {
      const auto next = xla::cond(
          sum(x) > 0, [&] { return F{}(c * w + x) * c; }, [&] { return F{}(c * x) - c * w; });
      return std::pair(next, F{}(next));
    };
    const auto [last, ys] = xla::scan(step, v * w, xs);
    return sum(last * w) + sum(ys * ys);
  }
};
template <class F>
struct nested {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto outer = [&](const auto&, const auto& c) {
      const auto step = [&](const auto& s, const auto& x) {
        const auto next = F{}(s * w + x);
        return std::pair(next * c, next);
      };
      const auto [last, ys] = xla::scan(step, F{}(c), xs, {.reverse = true});
      return last + sum(ys, {0}) * 0.25;
    };
    return sum(xla::fori_loop(0, 2, outer, v * 1) * w);
  }
};
template <class F>
struct with_checkpoint {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto step = [&](const auto& c, const auto& x) {
      const auto next = xla::checkpoint(
          [&](const auto& a) { return F{}(F{}(a * w + x) * w); }, c);
      return std::pair(next, next * x);
    };
    const auto [last, ys] = xla::scan(step, v * w, xs);
    return sum(last * w) + sum(ys * ys);
  }
};
template <class F>
struct in_blocks {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto step = [&](const auto& c, const auto& x) {
      const auto next = F{}(c * w + x);
      return std::pair(next, next * x);
    };
    const auto loop = [&](const auto& c) {
      return xla::scan(step, c, xs, {.checkpoint_every = 2});
    };
    const auto [last, ys] = xla::checkpoint(loop, v * w);
    return sum(last * w) + sum(ys * ys);
  }
};

template <class P>
struct first_order {
  constexpr auto operator()(auto& v, auto& w, auto& xs) const {
    v.zero_grad();
    w.zero_grad();
    xs.zero_grad();
    const auto loss = P{}(v, w, xs);
    loss.backward();
    return loss;
  }
};
template <class P>
struct gradients_of {
  constexpr auto operator()(const auto& v, const auto& w, const auto& xs) const {
    const auto loss = P{}(v, w, xs);
    const auto [of_v, of_w] = xla::grad(loss, std::tie(v, w), {.create_graph = true});
    return xla::cat({of_v, of_w});
  }
};
template <class P>
struct second_order {
  constexpr auto operator()(auto& v, auto& w, auto& xs) const {
    const auto g = gradients_of<P>{}(v, w, xs);
    sum(square(g)).backward();
    return g;
  }
};

template <class P>
void check_program() {
  for (std::int64_t steps : {1, 3})
    test::check_modes(
        first_order<P>{}, test::parameter(numbers<float>({4}, 1)),
        test::parameter(numbers<float>({4}, 2)), test::parameter(numbers<float>({steps, 4}, 3)));
  const auto all = [](int way, std::int64_t steps) {
    const xla::eager_mode_guard mode(way != 1);
    auto v = test::parameter(numbers<double>({4}, 1)), w = test::parameter(numbers<double>({4}, 2));
    auto xs = test::parameter(numbers<double>({steps, 4}, 3));
    const second_order<P> f;
    const auto g = way == 2 ? xla::compile(f)(v, w, xs) : f(v, w, xs);
    return std::array{g, v.grad(), w.grad(), xla::reshape(xs.grad(), {-1})};
  };
  for (std::int64_t steps : {1, 3}) {
    INFO(steps << " steps");
    const auto eager = all(0, steps), traced = all(1, steps), compiled = all(2, steps);
    for (std::size_t k = 0; k < eager.size(); ++k) {
      INFO("tensor " << k);
      test::check_equal(traced[k], eager[k], 1e-11);
      test::check_equal(compiled[k], eager[k], 1e-11);
    }
  }
  test::check_gradient(gradients_of<P>{}, numbers<double>({3}, 1) * 0.5, numbers<double>({3}, 2) * 0.5,
                       numbers<double>({3, 3}, 3) * 0.5);
}
}  // namespace

TEST_CASE("own gradients in the body of scan()") {
  check_program<in_scan<own_sine>>();
  check_program<in_scan<own_product>>();
}
TEST_CASE("own gradients in the body of fori_loop()") {
  check_program<in_fori_loop<own_product>>();
}
TEST_CASE("own gradients in branches of cond()") { check_program<in_cond<own_sine_of_results>>(); }
TEST_CASE("own gradients in a loop in a loop") {
  check_program<nested<own_tanh>>();
}
TEST_CASE("own gradients in a checkpoint in a loop") {
  check_program<with_checkpoint<own_sine_of_results>>();
}
TEST_CASE("own gradients in a loop that keeps carries alone, in a checkpoint") {
  check_program<in_blocks<own_tanh>>();
}
