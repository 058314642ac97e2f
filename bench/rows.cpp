// SPDX-License-Identifier: Apache-2.0
// Row regions and reductions against loops written by hand, one thread; see hand_rows.hpp.

#include <cmath>
#include <cstdlib>
#include <iostream>

#include <xla/xla.hpp>

#include "hand_rows.hpp"
#include "measure.hpp"

#if defined(BENCH_MVEC) && defined(__AVX512F__)
#include <immintrin.h>
extern "C" __m512 _ZGVeN16v_expf(__m512 x);  // glibc's exp of sixteen floats
#endif

namespace {

using matrix = xla::Tensor<float, 2>;
using memory = std::vector<float>;

struct Input {
  xla::Parameter<float, 2> x;
  XLA_MODULE(x)
};
struct Gates {
  xla::Parameter<float, 2> x, b;
  XLA_MODULE(x, b)
};
struct Scaled {
  xla::Parameter<float, 2> x;
  xla::Parameter<float, 1> w;
  XLA_MODULE(x, w)
};
struct Norm {
  xla::Parameter<float, 2> x;
  xla::Parameter<float, 1> w, b;
  XLA_MODULE(x, w, b)
};

/// Stops when two results are not the same arithmetic.
void agree(const char* name, const float* a, const float* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-4f + 1e-3f * std::abs(b[i]))) {
      std::cerr << "rows: " << name << " differs at element " << i << ": " << a[i] << " and "
                << b[i] << "\n";
      std::exit(1);
    }
}

/// One size: rows x columns, and what moves at least, for the bandwidth.
struct bench_case {
  std::int64_t rows, n;

  template <class Ours, class Hand>
  void operator()(const char* name, double matrices, Ours ours, Hand hand) const {
    const bench::pair_result r = bench::measure_pair(ours, hand);
    const auto size = std::to_string(rows) + " x " + std::to_string(n);
    const double bytes = 4 * matrices * static_cast<double>(rows * n);
    bench::record{"rows"}
        .add("name", name)
        .add("size", size.c_str())
        .add("ns", 1e9 * r.ours.median)
        .add("by_hand_ns", 1e9 * r.theirs.median)
        .add("gb_per_s", 1e-9 * bytes / r.ours.median)
        .add("speed", r.speed)
        .print();
  }
};

template <class T>
T with(const matrix& x) {
  T t;
  t.x = xla::Parameter<float, 2>::like(x);
  t.x.copy_(x);
  return t;
}

void softmax_cases(const bench_case& c) {
  const auto [rows, n] = c;
  const auto x = xla::randn<float>({rows, n}), g = xla::randn<float>({rows, n});
  const auto size = static_cast<std::size_t>(rows * n);
  memory out(size), dx(size), e(static_cast<std::size_t>(n + 64));
  const float *from = x.data(), *by = g.data();

  auto softmax = xla::compile([](auto& x) { return xla::softmax(x); }, {.name = "softmax"});
  const auto hand = [&, rows = rows, n = n] {
    bench::rows::softmax(rows, n, from, out.data(), e.data());
    bench::touch(out.data());
  };
  hand();
  agree("softmax", softmax(x).data(), out.data(), rows * n);
  c(
      "softmax", 2, [&] { bench::touch(softmax(x).data()); }, hand);

  auto log = xla::compile([](auto& x) { return xla::log_softmax(x); }, {.name = "log_softmax"});
  const auto log_hand = [&, rows = rows, n = n] {
    bench::rows::log_softmax(rows, n, from, out.data());
    bench::touch(out.data());
  };
  log_hand();
  agree("log_softmax", log(x).data(), out.data(), rows * n);
  c(
      "log_softmax", 2, [&] { bench::touch(log(x).data()); }, log_hand);

  auto both = xla::compile(
      [](auto& in, auto& g) {
        in.x.zero_grad();
        auto y = xla::softmax(in.x);
        xla::sum(y * g).backward();
        return y;
      },
      {.name = "softmax_gradient"});
  auto in = with<Input>(x);
  const auto both_hand = [&, rows = rows, n = n] {
    bench::rows::softmax_gradient(rows, n, from, by, out.data(), dx.data(), e.data());
    bench::touch(dx.data());
  };
  both_hand();
  both(in, g);
  agree("softmax's gradient", in.x.grad().data(), dx.data(), rows * n);
  c(
      "softmax + gradient", 4, [&] { bench::touch(both(in, g).data()); }, both_hand);

  auto log_both = xla::compile(
      [](auto& in, auto& g) {
        in.x.zero_grad();
        auto y = xla::log_softmax(in.x);
        xla::sum(y * g).backward();
        return y;
      },
      {.name = "log_softmax_gradient"});
  const auto log_both_hand = [&, rows = rows, n = n] {
    bench::rows::log_softmax_gradient(rows, n, from, by, out.data(), dx.data(), e.data());
    bench::touch(dx.data());
  };
  log_both_hand();
  log_both(in, g);
  agree("log_softmax's gradient", in.x.grad().data(), dx.data(), rows * n);
  c(
      "log_softmax + gradient", 4, [&] { bench::touch(log_both(in, g).data()); }, log_both_hand);
}

void cross_entropy_case(const bench_case& c) {
  const auto [rows, n] = c;
  auto f = xla::compile(
      [](auto& logits, auto& target) {
        logits.x.zero_grad();
        auto loss = xla::cross_entropy(logits.x, target);
        loss.backward();
        return loss;
      },
      {.name = "cross_entropy"});
  const auto x = xla::randn<float>({rows, n});
  auto logits = with<Input>(x);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i) % n;
  const auto target = xla::tensor(labels);
  memory gradient(static_cast<std::size_t>(rows * n)), e(static_cast<std::size_t>(n + 64));
  float loss = 0;
  const auto hand = [&, rows = rows, n = n] {
    loss = bench::rows::cross_entropy(rows, n, x.data(), labels.data(), gradient.data(), e.data());
    bench::touch(gradient.data());
  };
  hand();
  agree("cross-entropy", f(logits, target).data(), &loss, 1);
  agree("cross-entropy's gradient", logits.x.grad().data(), gradient.data(), rows * n);
  c(
      "cross-entropy + gradient", 2, [&] { bench::touch(f(logits, target).data()); }, hand);
}

void gelu_cases(const bench_case& c) {
  const std::int64_t n = c.rows * c.n;
  const auto x = xla::randn<float>({c.rows, c.n}), g = xla::randn<float>({c.rows, c.n});
  memory out(static_cast<std::size_t>(n)), dx(out);
  const float *from = x.data(), *by = g.data();

  auto gelu = xla::compile([](auto& x) { return xla::gelu(x); }, {.name = "gelu"});
  const auto hand = [&] {
    bench::rows::gelu(n, from, out.data());
    bench::touch(out.data());
  };
  hand();
  agree("gelu", gelu(x).data(), out.data(), n);
  c(
      "gelu", 2, [&] { bench::touch(gelu(x).data()); }, hand);

  auto both = xla::compile(
      [](auto& in, auto& g) {
        in.x.zero_grad();
        auto y = xla::gelu(in.x);
        xla::sum(y * g).backward();
        return y;
      },
      {.name = "gelu_gradient"});
  auto in = with<Input>(x);
  const auto both_hand = [&] {
    bench::rows::gelu_gradient(n, from, by, out.data(), dx.data());
    bench::touch(dx.data());
  };
  both_hand();
  both(in, g);
  agree("gelu's gradient", in.x.grad().data(), dx.data(), n);
  c(
      "gelu + gradient", 4, [&] { bench::touch(both(in, g).data()); }, both_hand);
}

void swiglu_cases(const bench_case& c) {
  const std::int64_t n = c.rows * c.n;
  const auto x = xla::randn<float>({c.rows, c.n}), gate = xla::randn<float>({c.rows, c.n});
  const auto g = xla::randn<float>({c.rows, c.n});
  memory out(static_cast<std::size_t>(n)), da(out), db(out);
  const float *from = x.data(), *b = gate.data(), *by = g.data();

  auto swiglu = xla::compile([](auto& x, auto& b) { return xla::silu(x) * b; }, {.name = "swiglu"});
  const auto hand = [&] {
    bench::rows::swiglu(n, from, b, out.data());
    bench::touch(out.data());
  };
  hand();
  agree("swiglu", swiglu(x, gate).data(), out.data(), n);
  c(
      "swiglu", 3, [&] { bench::touch(swiglu(x, gate).data()); }, hand);

  auto both = xla::compile(
      [](auto& in, auto& g) {
        in.x.zero_grad();
        in.b.zero_grad();
        auto y = xla::silu(in.x) * in.b;
        xla::sum(y * g).backward();
        return y;
      },
      {.name = "swiglu_gradient"});
  auto in = with<Gates>(x);
  in.b = xla::Parameter<float, 2>::like(gate);
  in.b.copy_(gate);
  const auto both_hand = [&] {
    bench::rows::swiglu_gradient(n, from, b, by, out.data(), da.data(), db.data());
    bench::touch(da.data());
  };
  both_hand();
  both(in, g);
  agree("swiglu's gradient", in.x.grad().data(), da.data(), n);
  c(
      "swiglu + gradients", 6, [&] { bench::touch(both(in, g).data()); }, both_hand);
}

void norm_cases(const bench_case& c) {
  const auto [rows, n] = c;
  const auto x = xla::randn<float>({rows, n}), g = xla::randn<float>({rows, n});
  const auto w = xla::randn<float>({n}), b = xla::randn<float>({n});
  const auto size = static_cast<std::size_t>(rows * n), width = static_cast<std::size_t>(n);
  memory out(size), dx(size), dw(width), db(width);
  const float *from = x.data(), *by = g.data(), *weight = w.data(), *bias = b.data();

  auto norm = xla::compile([](auto& x, auto& w, auto& b) { return xla::layer_norm(x, w, b); },
                           {.name = "layer_norm"});
  const auto hand = [&, rows = rows, n = n] {
    bench::rows::layer_norm(rows, n, from, weight, bias, out.data());
    bench::touch(out.data());
  };
  hand();
  agree("layer_norm", norm(x, w, b).data(), out.data(), rows * n);
  c(
      "layer_norm", 2, [&] { bench::touch(norm(x, w, b).data()); }, hand);

  auto rms = xla::compile([](auto& x, auto& w) { return xla::rms_norm(x, w); }, {.name = "rms"});
  const auto rms_hand = [&, rows = rows, n = n] {
    bench::rows::rms_norm(rows, n, from, weight, out.data());
    bench::touch(out.data());
  };
  rms_hand();
  agree("rms_norm", rms(x, w).data(), out.data(), rows * n);
  c(
      "rms_norm", 2, [&] { bench::touch(rms(x, w).data()); }, rms_hand);

  auto rms_both = xla::compile(
      [](auto& in, auto& g) {
        in.x.zero_grad();
        in.w.zero_grad();
        auto y = xla::rms_norm(in.x, in.w);
        xla::sum(y * g).backward();
        return y;
      },
      {.name = "rms_gradient"});
  auto scaled = with<Scaled>(x);
  scaled.w = xla::Parameter<float, 1>::like(w);
  scaled.w.copy_(w);
  const auto rms_both_hand = [&, rows = rows, n = n] {
    std::fill(dw.begin(), dw.end(), 0.f);
    bench::rows::rms_norm_gradient(rows, n, from, weight, by, out.data(), dx.data(), dw.data());
    bench::touch(dx.data());
  };
  rms_both_hand();
  rms_both(scaled, g);
  agree("rms_norm's gradient", scaled.x.grad().data(), dx.data(), rows * n);
  c(
      "rms_norm + gradients", 4, [&] { bench::touch(rms_both(scaled, g).data()); }, rms_both_hand);

  auto both = xla::compile(
      [](auto& in, auto& g) {
        in.x.zero_grad();
        in.w.zero_grad();
        in.b.zero_grad();
        auto y = xla::layer_norm(in.x, in.w, in.b);
        xla::sum(y * g).backward();
        return y;
      },
      {.name = "layer_norm_gradient"});
  auto in = with<Norm>(x);
  in.w = xla::Parameter<float, 1>::like(w);
  in.b = xla::Parameter<float, 1>::like(b);
  in.w.copy_(w);
  in.b.copy_(b);
  const auto both_hand = [&, rows = rows, n = n] {
    std::fill(dw.begin(), dw.end(), 0.f);
    std::fill(db.begin(), db.end(), 0.f);
    bench::rows::layer_norm_gradient(rows, n, from, weight, bias, by, out.data(), dx.data(),
                                     dw.data(), db.data());
    bench::touch(dx.data());
  };
  both_hand();
  both(in, g);
  agree("layer_norm's gradient", in.x.grad().data(), dx.data(), rows * n);
  c(
      "layer_norm + gradients", 4, [&] { bench::touch(both(in, g).data()); }, both_hand);
}

void sum_cases(const bench_case& c) {
  const auto [rows, n] = c;
  const auto a = xla::rand<float>({rows, n}), b = xla::rand<float>({rows, n});
  memory out(static_cast<std::size_t>(std::max(rows, n)));
  const float *x = a.data(), *y = b.data();

  auto dots = xla::compile([](auto& a, auto& b) { return xla::sum(a * b, {1}); }, {.name = "dots"});
  const auto hand = [&, rows = rows, n = n] {
    bench::rows::dots(rows, n, x, y, out.data());
    bench::touch(out.data());
  };
  hand();
  agree("sum(a*b, {1})", dots(a, b).data(), out.data(), rows);
  c(
      "sum(a*b, {1})", 2, [&] { bench::touch(dots(a, b).data()); }, hand);

  auto columns = xla::compile([](auto& a) { return xla::sum(a, {0}); }, {.name = "columns"});
  const auto columns_hand = [&, rows = rows, n = n] {
    bench::rows::column_sums(rows, n, x, out.data());
    bench::touch(out.data());
  };
  columns_hand();
  agree("sum(a, {0})", columns(a).data(), out.data(), n);
  c(
      "sum(a, {0})", 1, [&] { bench::touch(columns(a).data()); }, columns_hand);

  auto all = xla::compile([](auto& a) { return xla::sum(a); }, {.name = "all"});
  const auto all_hand = [&, rows = rows, n = n] {
    bench::rows::dots(1, rows * n, x, x, out.data());
    bench::touch(out.data());
  };
  c(
      "sum(a)", 1, [&] { bench::touch(all(a).data()); }, all_hand);
}

/// The library's exp itself against glibc's, in the first cache.
void exp_case() {
#if defined(BENCH_MVEC) && defined(__AVX512F__)
  constexpr std::int64_t n = 4096;
  memory x(n), out(n), theirs(n);
  for (std::int64_t i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = -20 + 40 * static_cast<float>(i * 7919 % n) / n;
  const auto ours = [&] {
    bench::rows::exp(n, x.data(), out.data());
    bench::touch(out.data());
  };
  const auto mvec = [&] {
    for (std::int64_t i = 0; i < n; i += 16)
      _mm512_storeu_ps(theirs.data() + i, _ZGVeN16v_expf(_mm512_loadu_ps(x.data() + i)));
    bench::touch(theirs.data());
  };
  ours();
  mvec();
  agree("exp", out.data(), theirs.data(), n);
  bench_case{1, n}("exp, against libmvec", 2, ours, mvec);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  xla::set_num_threads(1);
  xla::eager_mode(true);
  const std::int64_t elements = argc > 1 ? std::atoll(argv[1]) : 1 << 16;
  for (std::int64_t n : {10, 64, 128, 512, 3200}) {
    const bench_case c{std::max<std::int64_t>(elements / n, 1), n};
    softmax_cases(c);
    cross_entropy_case(c);
    norm_cases(c);
    sum_cases(c);
  }
  const bench_case square{std::max<std::int64_t>(elements / 512, 1), 512};
  gelu_cases(square);
  swiglu_cases(square);
  exp_case();
}
