// SPDX-License-Identifier: Apache-2.0
// Fused regions against loops written by hand: the same arithmetic on the same packets, one thread.
// `call` is the compiled function as users call it; `region` is its inner kernel alone.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <xla/xla.hpp>

#include "hand.hpp"
#include "measure.hpp"
#include "region.hpp"

namespace {

struct level {
  const char* name;
  std::int64_t elements;  // per operand
};
constexpr level levels[] = {{"L1", 1 << 10}, {"L2", 1 << 15}, {"L3", 1 << 20}, {"DRAM", 1 << 23}};

using vector = xla::Tensor<float, 1>;

/// Memory as a tensor has it, so that loops by hand work on the same alignment and pages.
class memory {
 public:
  explicit memory(std::int64_t n) : tensor_(xla::rand<float>({n})) {}
  float* data() const { return const_cast<float*>(tensor_.data()); }
  void zero() const { std::fill_n(data(), std::int64_t(tensor_.numel()), 0.f); }

 private:
  vector tensor_;
};

/// Stops when two results are not the same arithmetic.
void agree(const char* name, const float* a, const float* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-5f + 1e-4f * std::abs(b[i]))) {
      std::cerr << "fused: " << name << " differs at element " << i << ": " << a[i] << " and "
                << b[i] << "\n";
      std::exit(1);
    }
}

void print(const char* name, const char* what, const char* level, std::int64_t n,
           const bench::pair_result& r) {
  bench::record{"fused"}
      .add("name", name)
      .add("what", what)
      .add("level", level)
      .add("elements", static_cast<double>(n))
      .add("ns", 1e9 * r.ours.median)
      .add("by_hand_ns", 1e9 * r.theirs.median)
      .add("speed", r.speed)
      .print();
}

/// An elementwise function of tensors of one shape.
template <class... T, class Body, class Hand>
void map_case(const char* name, Body body, Hand hand, std::vector<float> constants) {
  for (const auto& [level, n] : levels) {
    std::tuple<T...> in{(static_cast<void>(sizeof(T)), xla::rand<float>({n}))...};
    const memory expected(n), own(n);
    const auto by_hand = [&] {
      std::apply(
          [&](auto&... t) { bench::map_by_hand(hand, n, expected.data(), t.data()...); }, in);
      bench::touch(expected.data());
    };
    auto f = xla::compile(body, {.name = name});
    const auto result = [&] { return std::apply([&](auto&... t) { return f(t...); }, in); };
    const auto call = [&] { bench::touch(result().data()); };
    by_hand();
    agree(name, result().data(), expected.data(), n);
    print(name, "call", level, n, bench::measure_pair(call, by_hand));

    auto inner = std::apply(
        [&](auto&... t) {
          return bench::region<bench::program_of<Body, T...>>{{t.data()...}, constants};
        },
        in);
    if (!inner.match(expected.data(), own.data(), n)) {
      std::cerr << "fused: the region of " << name << " has other operands than expected\n";
      std::exit(1);
    }
    const auto alone = [&] {
      inner.run(own.data(), n);
      bench::touch(own.data());
    };
    print(name, "region", level, n, bench::measure_pair(alone, by_hand));
  }
}

void map_cases() {
  using namespace bench::simd;
  using bench::packet;
  using bench::splat;
  map_case<vector, vector, vector>(
      "relu(a*b+c)", [](auto& a, auto& b, auto& c) { return xla::relu(a * b + c); },
      [](packet a, packet b, packet c) { return pmax(padd(pmul(a, b), c), splat(0)); }, {0.f});
  map_case<vector>(
      "gelu (tanh)",
      [](auto& x) {
        return 0.5f * x * (1.f + xla::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
      },
      [](packet x) {
        const packet cube = pmul(pmul(pmul(splat(0.044715f), x), x), x);
        const packet t = ptanh(pmul(splat(0.79788456f), padd(x, cube)));
        return pmul(pmul(splat(0.5f), x), padd(splat(1), t));
      },
      {0.5f, 1.f, 0.79788456f, 0.044715f});
  map_case<vector, vector, vector>(
      "p - lr*m/(sqrt(v)+eps)",
      [](auto& p, auto& m, auto& v) { return p - 0.1f * m / (xla::sqrt(v) + 1e-8f); },
      [](packet p, packet m, packet v) {
        // Eigen's own square root is an approximation, the library's is not.
        const packet root = xla::kernel::exact_sqrt<float>(v);
        return psub(p, pdiv(pmul(splat(0.1f), m), padd(root, splat(1e-8f))));
      },
      {0.1f, 1e-8f});
  map_case<vector, vector>(
      "x/(1+exp(-x)) * y", [](auto& x, auto& y) { return x / (1.f + xla::exp(-x)) * y; },
      [](packet x, packet y) {
        return pmul(pdiv(x, padd(splat(1), pexp(pnegate(x)))), y);
      },
      {1.f});
}

/// A bias over the rows: operands of different shapes in one region.
void bias_case() {
  constexpr std::int64_t columns = 512;
  auto f = xla::compile([](auto& x, auto& bias) { return xla::relu(x + bias); }, {.name = "bias"});
  for (const auto& [level, n] : levels) {
    const std::int64_t rows = n / columns;
    auto x = xla::rand<float>({rows, columns});
    auto bias = xla::rand<float>({columns});
    const memory expected(n);
    const auto by_hand = [&] {
      const auto add = [](bench::packet a, bench::packet b) {
        return bench::simd::pmax(bench::simd::padd(a, b), bench::splat(0));
      };
      const float *from = x.data(), *by = bias.data();
      float* to = expected.data();
      for (std::int64_t i = 0; i < n; i += columns)
        bench::map_by_hand(add, columns, to + i, from + i, by);
      bench::touch(to);
    };
    const auto call = [&] { bench::touch(f(x, bias).data()); };
    by_hand();
    agree("bias", f(x, bias).data(), expected.data(), n);
    print("relu(x + bias), 512 columns", "call", level, n, bench::measure_pair(call, by_hand));
  }
}

struct Cell {
  xla::Parameter<float, 1> w;
  xla::Buffer<float, 1> v;
  XLA_MODULE(w, v)
};

[[gnu::noinline]] void momentum_by_hand(std::int64_t n, float* w, float* v, const float* g) {
  using namespace bench::simd;
  using bench::packet;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < n; i += bench::lanes) {
    const packet next =
        padd(pmul(ploadu<packet>(v + i), bench::splat(0.9f)), ploadu<packet>(g + i));
    pstoreu(v + i, next);
    pstoreu(w + i, psub(ploadu<packet>(w + i), pmul(next, bench::splat(0.1f))));
  }
}

/// State written in place: two results of one region.
void update_case() {
  auto f = xla::compile(
      [](auto& cell, auto& g) {
        cell.v.copy_(cell.v.detach() * 0.9f + g);
        cell.w.copy_(cell.w.detach() - cell.v.detach() * 0.1f);
      },
      {.name = "momentum"});
  for (const auto& [level, n] : levels) {
    auto g = xla::rand<float>({n});
    Cell cell;
    cell.w = xla::Parameter<float, 1>::like(g);
    cell.v = xla::Buffer<float, 1>::like(g);
    const memory w(n), v(n);
    w.zero();
    v.zero();
    const auto by_hand = [&] {
      momentum_by_hand(n, w.data(), v.data(), g.data());
      bench::touch(w.data());
    };
    const auto call = [&] { f(cell, g); };
    by_hand();
    call();
    agree("momentum", cell.w.data(), w.data(), n);
    print("v = 0.9v+g, w -= 0.1v", "call", level, n, bench::measure_pair(call, by_hand));
  }
}

struct One {
  xla::Parameter<float, 1> w;
  XLA_MODULE(w)
};

struct adam_numbers {
  float decay, beta1, beta2, eps, step_size;
};
[[gnu::noinline]] void adamw_by_hand(std::int64_t n, const adam_numbers& a, float* w, float* m,
                                     float* v, const float* g) {
  using namespace bench::simd;
  using bench::packet, bench::splat;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < n; i += bench::lanes) {
    const packet d = ploadu<packet>(g + i);
    const packet mean =
        padd(pmul(ploadu<packet>(m + i), splat(a.beta1)), pmul(d, splat(1 - a.beta1)));
    const packet square = padd(pmul(ploadu<packet>(v + i), splat(a.beta2)),
                               pmul(pmul(d, d), splat(1 - a.beta2)));
    const packet root = padd(xla::kernel::exact_sqrt<float>(square), splat(a.eps));
    pstoreu(m + i, mean);
    pstoreu(v + i, square);
    pstoreu(w + i, psub(pmul(ploadu<packet>(w + i), splat(a.decay)),
                        pmul(pdiv(mean, root), splat(a.step_size))));
  }
}

/// An optimizer's step: parameter and moments in place. Both count their steps, from one on.
void adamw_case() {
  auto f = xla::compile([](auto&, auto& optimizer) { optimizer.step(); }, {.name = "adamw"});
  for (const auto& [level, n] : levels) {
    const auto g = xla::randn<float>({n});
    One model;
    model.w = xla::Parameter<float, 1>::like(g);
    model.w.set_grad(g);
    xla::optim::AdamW optimizer{model, {.lr = 1e-3}};
    const memory w(n), m(n), v(n);
    for (const memory* x : {&w, &m, &v}) x->zero();
    std::copy_n(model.w.data(), n, w.data());
    double count = 0;
    const auto by_hand = [&] {
      ++count;
      const double left = 1 - std::pow(0.9, count), root = std::sqrt(1 - std::pow(0.999, count));
      adamw_by_hand(n,
                    {1 - 1e-3f * 1e-2f, 0.9f, 0.999f, static_cast<float>(1e-8 * root),
                     static_cast<float>(1e-3 / left * root)},
                    w.data(), m.data(), v.data(), g.data());
      bench::touch(w.data());
    };
    const auto call = [&] { f(model, optimizer); };
    for (int i = 0; i < 3; ++i) by_hand();
    for (int i = 0; i < 3; ++i) call();
    agree("adamw", model.w.data(), w.data(), n);
    print("AdamW", "call", level, n, bench::measure_pair(call, by_hand));
  }
}

}  // namespace

int main() {
  xla::set_num_threads(1);
  xla::eager_mode(true);
  map_cases();
  bias_case();
  update_case();
  adamw_case();
}
