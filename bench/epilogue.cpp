// SPDX-License-Identifier: Apache-2.0
// epilogue <threads>: what the maps that follow a product cost, against the product alone and
// against the same maps in the cache.

#include <cstdlib>

#include <xla/xla.hpp>

#include "measure.hpp"
#include "peak.hpp"

namespace {

using matrix = xla::Tensor<float, 2>;
using vector = xla::Tensor<float, 1>;

struct size {
  const char* where;
  std::int64_t m, n, k;
};
constexpr size sizes[] = {{"MLP", 64, 128, 784},
                          {"decoder: projection", 512, 512, 512},
                          {"decoder: up", 512, 1376, 512},
                          {"decoder: head", 512, 3200, 512},
                          {"beyond the caches", 4096, 4096, 512}};

struct arguments {
  matrix x, w, gate;
  vector bias;
};

/// Seconds of the product, of the product and its map as one compiled function, and of the map
/// where its operands stay in the cache, all threads at it: in turns, as shares within a turn.
template <class Map>
void measure(const size& s, const char* name, int threads, Map) {
  constexpr std::int64_t few = 16;
  const auto random = [](std::int64_t rows, std::int64_t columns) {
    return xla::randn<float>({rows, columns});
  };
  arguments a{random(s.m, s.k), random(s.n, s.k), random(s.m, s.n), xla::randn<float>({s.n})};
  arguments near{random(few, s.n), a.w, random(few, s.n), a.bias};
  auto product = xla::compile([](auto& x, auto& w) { return xla::linear(x, w); });
  auto both = xla::compile([](auto& x, auto& w, auto& gate, auto& bias) {
    return Map{}(xla::linear(x, w), gate, bias);
  });
  auto map = xla::compile([](auto& x, auto& gate, auto& bias) { return Map{}(x, gate, bias); });

  const auto alone = [&] { bench::touch(product(a.x, a.w).data()); };
  const auto fused = [&] { bench::touch(both(a.x, a.w, a.gate, a.bias).data()); };
  const auto in_cache = [&] { bench::touch(map(near.x, near.gate, near.bias).data()); };
  const auto times = [](auto& f) { return bench::calls_for(f, 3e-3); };
  const std::int64_t n_alone = times(alone), n_fused = times(fused);
  xla::set_num_threads(1);
  const std::int64_t n_map = times(in_cache);
  const double parts = static_cast<double>(s.m) / static_cast<double>(few * threads);
  std::vector<double> share, ms_alone, ms_fused, ms_map, beyond;
  for (int i = 0; i < 25; ++i) {
    xla::set_num_threads(1);
    const double own = parts * bench::seconds_per_call(in_cache, n_map);
    xla::set_num_threads(threads);
    const double before = bench::fma_peak(threads);
    const double bare = bench::seconds_per_call(alone, n_alone);
    const double all = bench::seconds_per_call(fused, n_fused);
    const double peak = 0.5e9 * (before + bench::fma_peak(threads));
    share.push_back(2.0 * static_cast<double>(s.m * s.n * s.k) / all / peak);
    ms_alone.push_back(1e3 * bare);
    ms_fused.push_back(1e3 * all);
    ms_map.push_back(1e3 * own);
    beyond.push_back((all - bare - own) / bare);
  }
  bench::record{"epilogue"}
      .add("where", s.where)
      .add("m", static_cast<double>(s.m))
      .add("n", static_cast<double>(s.n))
      .add("k", static_cast<double>(s.k))
      .add("map", name)
      .add("threads", threads)
      .add("product_ms", bench::spread_of(ms_alone))
      .add("ms", bench::spread_of(ms_fused))
      .add("map_ms", bench::spread_of(ms_map))
      .add("share", bench::spread_of(share))
      .add("beyond", bench::spread_of(beyond))
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  xla::set_num_threads(threads);
  xla::eager_mode(true);
  for (const size& s : sizes) {
    measure(s, "bias", threads, [](const auto& x, auto&, auto& bias) { return x + bias; });
    measure(s, "relu(bias)", threads,
            [](const auto& x, auto&, auto& bias) { return xla::relu(x + bias); });
    measure(s, "gelu(bias)", threads,
            [](const auto& x, auto&, auto& bias) { return xla::gelu(x + bias); });
    measure(s, "silu * gate", threads,
            [](const auto& x, auto& gate, auto&) { return xla::silu(x) * gate; });
  }
}
