// SPDX-License-Identifier: Apache-2.0
// attention <threads>: attention by itself, forward and with all gradients, against the peak of the
// multiply-adds measured before and after each, and the memory it needs beside arguments and
// results.

#include <cstdlib>

#include <xla/xla.hpp>

#include "measure.hpp"
#include "peak.hpp"

namespace {

struct Heads {
  xla::Parameter<float, 4> q, k, v;
  XLA_MODULE(q, k, v)
};

constexpr void for_all(auto& x, auto f) {
  f(x.q);
  f(x.k);
  f(x.v);
}

constexpr auto forward = [](auto& x) { return xla::scaled_dot_product_attention(x.q, x.k, x.v); };
constexpr auto forward_causal = [](auto& x) {
  return xla::scaled_dot_product_attention(x.q, x.k, x.v, {.causal = true});
};
constexpr auto gradients = [](auto& x, auto& g) {
  for_all(x, [](auto& p) { p.zero_grad(); });
  xla::sum(xla::scaled_dot_product_attention(x.q, x.k, x.v) * g).backward();
};
constexpr auto gradients_causal = [](auto& x, auto& g) {
  for_all(x, [](auto& p) { p.zero_grad(); });
  xla::sum(xla::scaled_dot_product_attention(x.q, x.k, x.v, {.causal = true}) * g).backward();
};

struct size {
  const char* where;
  std::int64_t batch, heads, sequence, width;
};
constexpr size sizes[] = {{"decoder char", 12, 4, 64, 32},
                          {"decoder small", 4, 8, 128, 64},
                          {"longer", 2, 8, 512, 64},
                          {"long", 1, 8, 2048, 64}};

/// products: matrix products of queries x keys x width that the arithmetic needs, whatever is
/// hidden or computed again.
template <class Step, class... A>
void measure(const size& s, const char* pass, bool causal, int products, int threads, Step&& step,
             A&... arguments) {
  const auto call = [&] { step(arguments...); };
  const double scores = static_cast<double>(s.batch * s.heads * s.sequence * s.sequence);
  const double flops = 2.0 * products * scores * static_cast<double>(s.width);
  const std::int64_t n = bench::calls_for(call, 1e-2);
  std::vector<double> rate, share;
  for (int i = 0; i < 15; ++i) {
    const double before = bench::fma_peak(threads), seconds = bench::seconds_per_call(call, n);
    rate.push_back(flops / seconds * 1e-9);
    share.push_back(rate.back() / (0.5 * (before + bench::fma_peak(threads))));
  }
  bench::record{"attention"}
      .add("where", s.where)
      .add("batch", static_cast<double>(s.batch))
      .add("heads", static_cast<double>(s.heads))
      .add("sequence", static_cast<double>(s.sequence))
      .add("width", static_cast<double>(s.width))
      .add("pass", pass)
      .add("mask", causal ? "causal" : "none")
      .add("threads", threads)
      .add("gflops", bench::spread_of(rate))
      .add("share", bench::spread_of(share))
      .add("score_bytes", 4 * scores)
      .add("arena_bytes", static_cast<double>(step.memory_analysis(arguments...).arena))
      .print();
}

template <class F, class G>
void measure(const size& s, bool causal, int threads, F f, G g) {
  Heads x;
  const auto numbers = [&] { return xla::randn<float>({s.batch, s.heads, s.sequence, s.width}); };
  for_all(x, [&](auto& p) {
    p = xla::Parameter<float, 4>::like(numbers());
    p.copy_(numbers());
  });
  const auto gradient = numbers();
  measure(s, "forward", causal, 2, threads, xla::compile(f, {.name = "attention"}), x);
  measure(s, "with gradients", causal, 6, threads, xla::compile(g, {.name = "attention_gradients"}),
          x, gradient);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  xla::set_num_threads(threads);
  xla::eager_mode(true);
  for (const size& s : sizes) {
    measure(s, false, threads, forward, gradients);
    measure(s, true, threads, forward_causal, gradients_causal);
  }
}
