// SPDX-License-Identifier: Apache-2.0
// attention <threads>: measures attention as a compiled function, forward or with all gradients. It
// answers `run <way> <batch> <heads> <kv_heads> <sequence> <width> <causal> <autocast>` with its
// nanoseconds, the peak of float32's multiply-adds in the same run, and the most memory that it
// took in addition to its arguments. See attention.py, and heap.cpp, which is loaded first.

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <tuple>

#include <xla/xla.hpp>

#include "heap.hpp"
#include "numbers.hpp"
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

template <bool Causal>
constexpr auto forward = [](auto& x) {
  return xla::scaled_dot_product_attention(x.q.detach(), x.k.detach(), x.v.detach(),
                                           {.causal = Causal});
};
template <bool Causal>
constexpr auto gradients = [](auto& x, auto& g) {
  for_all(x, [](auto& p) { p.zero_grad(); });
  auto y = xla::scaled_dot_product_attention(x.q, x.k, x.v, {.causal = Causal});
  xla::sum(y * g).backward();
  return y;
};

struct sizes {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, sequence = 0, width = 0;
};

xla::Tensor<float, 4> drawn(std::uint32_t stream, const sizes& s, std::int64_t heads) {
  std::vector<float> v(static_cast<std::size_t>(s.batch * heads * s.sequence * s.width));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = 2 * (bench::uniform(stream, static_cast<std::int64_t>(i)) - 0.5f);
  return xla::from_blob(v.data(), {s.batch, heads, s.sequence, s.width});
}

/// What all contestants must agree on.
double size_of(const xla::Tensor<float, 4>& x) {
  double sum = 0;
  for (const float f : x.to_vector()) sum += std::abs(f);
  return sum;
}

/// The same in autocast, or as it is.
template <bool Autocast>
auto compiled(auto step, const char* name) {
  if constexpr (Autocast) return xla::compile(xla::autocast(step), {.name = name});
  else return xla::compile(step, {.name = name});
}

template <class Step, class... A>
void answer(const bench::heap& heap, int threads, Step&& step, auto&& sum, A&... arguments) {
  xla::empty_cache();
  const long long before = heap.live();
  heap.forget();
  step(arguments...);
  const long long most = heap.most() - before;
  double least = 1e9;
  const double peak = bench::fma_peak(threads), until = bench::now() + 0.1;
  for (int i = 0; i < 3 || bench::now() < until; ++i) {
    const double start = bench::time_of(threads);
    const auto y = step(arguments...);
    bench::touch(y.data());
    least = std::min(least, bench::time_of(threads) - start);
  }
  std::cout.precision(9);
  std::cout << R"({"ns": )" << 1e9 * least << R"(, "sum": )" << sum(step(arguments...))
            << R"(, "bytes": )" << most << R"(, "peak": )"
            << std::max(peak, bench::fma_peak(threads)) << "}" << std::endl;
}

template <bool Causal, bool Autocast>
void run(const bench::heap& heap, int threads, bool all, const sizes& s) {
  Heads x;
  std::uint32_t stream = 1;
  for_all(x, [&](auto& p) {
    const auto numbers = drawn(stream, s, stream == 1 ? s.heads : s.kv_heads);
    ++stream;
    p = xla::Parameter<float, 4>::like(numbers);
    p.copy_(numbers);
  });
  const auto g = drawn(4, s, s.heads);
  if (!all) {
    answer(
        heap, threads, compiled<Autocast>(forward<Causal>, "attention"),
        [](const auto& y) { return size_of(y); }, x);
    return;
  }
  const auto sum = [&](const auto& y) {
    return size_of(y) + size_of(x.q.grad()) + size_of(x.k.grad()) + size_of(x.v.grad());
  };
  answer(heap, threads, compiled<Autocast>(gradients<Causal>, "attention_gradients"), sum, x, g);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  const bench::heap heap;
  xla::set_num_threads(threads);
  xla::eager_mode(true);
  std::cout << R"({"ready": "xla"})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words{line};
    std::string command;
    sizes s;
    bool all = false, causal = false, autocast = false;
    words >> command >> all >> s.batch >> s.heads >> s.kv_heads >> s.sequence >> s.width >>
        causal >> autocast;
    if (!words || command != "run") break;
    const auto way = causal     ? autocast ? &run<true, true> : &run<true, false>
                         : autocast ? &run<false, true>
                                : &run<false, false>;
    way(heap, threads, all, s);
  }
}
