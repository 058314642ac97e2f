// SPDX-License-Identifier: Apache-2.0
// gemm <threads>: products against the peak of the multiply-adds, or against the bandwidth of the
// memory, measured before and after each; rounded to bfloat16, and of bfloat16 in memory, against
// those of floats, in turn.

#include <cstdlib>
#include <vector>

#include <xla/kernel/gemm/bfloat16.hpp>
#include <xla/kernel/gemm/long_k.hpp>

#include "aligned.hpp"
#include "measure.hpp"
#include "peak.hpp"

namespace {

struct product {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;
  const char* where;
};

constexpr product products[] = {
    {64, 128, 784, false, true, "MLP: x W1t"},
    {128, 784, 64, true, false, "MLP: dh1t x"},
    {64, 10, 128, false, true, "MLP: h W2t"},
    {10, 128, 64, true, false, "MLP: dlogits-t h"},
    {64, 128, 10, false, false, "MLP: dlogits W2"},
    {256, 256, 256, false, false, "square"},
    {1024, 1024, 1024, false, false, "square"},
    {2048, 2048, 2048, false, false, "square"},
    {512, 64, 64, false, true, "residual"},
    {512, 512, 512, false, true, "decoder: projection"},
    {512, 1376, 512, false, true, "decoder: up"},
    {512, 512, 1376, false, true, "decoder: down"},
    {1376, 512, 512, true, false, "decoder: gradient of up"},
    {512, 3200, 512, false, true, "decoder: head"},
    {512, 512, 3200, false, false, "decoder: gradient into head"},
    {3200, 512, 512, true, false, "decoder: gradient of head"},
    {128, 1024, 1024, false, true, "inference"},
    {1, 1024, 1024, false, true, "one row"},
    {1, 1024, 1024, false, false, "one row"},
    {4, 1024, 1024, false, true, "four rows"},
    {16, 1024, 1024, false, true, "sixteen rows"},
};

// Larger than any cache: how fast the matrix is read is what counts.
constexpr product streams[] = {
    {1, 8192, 8192, false, true, "one row, from memory"},
    {1, 8192, 8192, false, false, "one row, from memory"},
    {4, 8192, 8192, false, true, "four rows, from memory"},
};

// In addition to all of the above: where rounding could cost more than it gains.
constexpr product narrow[] = {
    {2, 1024, 1024, false, true, "two rows"},
    {4, 1024, 1024, false, false, "four rows"},
    {8, 1024, 1024, false, true, "eight rows"},
    {1, 1000, 512, false, true, "classifier"},
    {1, 256, 64, false, true, "one query's scores"},
    {1, 64, 256, false, false, "one query's values"},
    {128, 128, 64, false, true, "attention: scores"},
    {128, 64, 128, false, false, "attention: values"},
    {128, 64, 128, true, false, "attention: gradient of values"},
    {1024, 16, 256, false, true, "sixteen columns"},
};

using values = std::vector<float, bench::aligned<float>>;

values numbers(std::int64_t n) {
  values v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 7919 % 1000) * 1e-3f;
  return v;
}

/// A product's matrices.
struct operands {
  using view = xla::kernel::matrix_view<float>;
  explicit operands(const product& p)
      : of(p), a(numbers(p.m * p.k)), b(numbers(p.k * p.n)), c(numbers(p.m * p.n)) {}
  view left() const { return of.a_transposed ? view{a.data(), 1, of.m} : view{a.data(), of.k, 1}; }
  view right() const { return of.b_transposed ? view{b.data(), 1, of.k} : view{b.data(), of.n, 1}; }
  double flops() const { return 2.0 * static_cast<double>(of.m * of.n * of.k); }

  product of;
  values a, b, c;
};

void print(const product& p, const char* against, int threads, const std::vector<double>& rate,
           const std::vector<double>& share) {
  bench::record{"gemm"}
      .add("against", against)
      .add("where", p.where)
      .add("m", static_cast<double>(p.m))
      .add("n", static_cast<double>(p.n))
      .add("k", static_cast<double>(p.k))
      .add("a", p.a_transposed ? "transposed" : "as is")
      .add("b", p.b_transposed ? "transposed" : "as is")
      .add("threads", threads)
      .add("gflops", bench::spread_of(rate))
      .add("share", bench::spread_of(share))
      .print();
}

/// Against the multiply-adds' peak, or, where the matrix streams, the memory's bandwidth.
void measure(const product& p, int threads, bool streaming) {
  operands x(p);
  const auto call = [&] {
    xla::kernel::gemm<float>(p.m, p.n, p.k, x.left(), x.right(), x.c.data(), p.n);
    bench::touch(x.c.data());
  };
  const std::int64_t n = bench::calls_for(call, 5e-3);
  std::vector<double> rate, share;
  for (int i = 0; i < 15; ++i) {
    const auto peak = [&] {
      return streaming ? bench::read_bandwidth(x.b.data(), x.b.size(), threads)
                       : bench::fma_peak(threads);
    };
    const double before = peak(), seconds = bench::seconds_per_call(call, n);
    rate.push_back(x.flops() / seconds * 1e-9);
    const double bytes = static_cast<double>(x.b.size() * sizeof(float));
    share.push_back((streaming ? bytes / seconds * 1e-9 : rate.back()) / (0.5 * (before + peak())));
  }
  print(p, streaming ? "bandwidth" : "peak", threads, rate, share);
}

/// Elements of T laid out as a matrix of floats is.
template <class T>
struct converted {
  explicit converted(const values& from) : data(from.begin(), from.end()) {}
  xla::kernel::matrix_view<T> as(const operands::view& v) const {
    return {data.data(), v.row_stride, v.col_stride};
  }
  std::vector<T, bench::aligned<T>> data;
};

/// Rounded to bfloat16 from elements of T, its share is how many times as fast as with floats it
/// is.
template <class T>
void measure_rounded(const product& p, int threads) {
  operands x(p);
  const converted<T> a(x.a), b(x.b);
  const auto rounded = [&] {
    xla::kernel::gemm_bfloat16(p.m, p.n, p.k, a.as(x.left()), b.as(x.right()), x.c.data(), p.n);
    bench::touch(x.c.data());
  };
  const auto plain = [&] {
    xla::kernel::gemm<float>(p.m, p.n, p.k, x.left(), x.right(), x.c.data(), p.n);
    bench::touch(x.c.data());
  };
  const std::int64_t n = bench::calls_for(rounded, 1e-3), m = bench::calls_for(plain, 1e-3);
  const auto seconds = [&](const auto& call, std::int64_t times) {
    const double start = bench::time_of(threads);
    for (std::int64_t i = 0; i < times; ++i) call();
    return (bench::time_of(threads) - start) / static_cast<double>(times);
  };
  std::vector<double> rate, share;
  for (int i = 0; i < 51; ++i) {
    const double took = seconds(rounded, n);
    rate.push_back(x.flops() / took * 1e-9);
    share.push_back(seconds(plain, m) / took);
  }
  constexpr const char* names[][2] = {{"float32, by fma", "float32, of bfloat16 by fma"},
                                      {"float32, by dot", "float32, of bfloat16 by dot"},
                                      {"float32, by amx", "float32, of bfloat16 by amx"}};
  print(p, names[static_cast<int>(xla::kernel::bfloat16_products())][sizeof(T) == 2], threads, rate,
        share);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  xla::set_num_threads(threads);
  for (const product& p : products) measure(p, threads, false);
  for (const product& p : streams) measure(p, threads, true);
  for (const product& p : products) measure_rounded<float>(p, threads);
  for (const product& p : streams) measure_rounded<float>(p, threads);
  for (const product& p : narrow) measure_rounded<float>(p, threads);
  for (const product& p : products) measure_rounded<xla::bfloat16>(p, threads);
  for (const product& p : streams) measure_rounded<xla::bfloat16>(p, threads);
}
