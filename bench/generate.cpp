// SPDX-License-Identifier: Apache-2.0
// generate <compiled|traced|eager> <threads>: answers `run N` with the time of N tokens, one after
// another with a cache of keys and values, and the sum of all tokens.

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "decoder_task.hpp"
#include "measure.hpp"
#include "serve.hpp"

namespace {

// As in peers/decoder_task.py and peers/generate_torch.py.
constexpr int prompt = 16, places = 256, warm = 2;
constexpr xla::nn::DecoderConfig config = [] {
  xla::nn::DecoderConfig c = xla::nn::small_decoder;
  c.causal = true;
  c.rotary_theta = 10000;
  return c;
}();

/// The most probable token after tokens (1, n), which come next in the cache.
constexpr auto next_token = [](auto& model, auto& cache, auto& tokens) {
  return xla::argmax(xla::select(model(tokens, cache), 1, -1), -1, xla::keepdim);
};

class writer {
 public:
  writer() : prompt_(bench::make_text(1, 1, prompt, config.vocabulary)[0].first) {
    bench::set_decoder_weights(model_);
  }

  /// After the prompt: `warm` tokens, then n timed ones.
  template <class Step>
  bench::turn run(Step&& step, int n) {
    cache_.reset();
    auto token = step(model_, cache_, prompt_);
    std::int64_t sum = 0;
    const auto write = [&](int count) {
      for (int i = 0; i < count; ++i) {
        token = step(model_, cache_, token);
        sum += token.data()[0];
      }
    };
    write(warm);
    const double start = bench::now();
    write(n);
    return {(bench::now() - start) * 1e9, static_cast<double>(sum)};
  }

 private:
  xla::nn::Decoder<config> model_;
  xla::nn::KeyValueCache<config, places> cache_;
  xla::Tensor<std::int64_t, 2> prompt_;
};

template <class Step>
int contend(std::string_view mode, Step&& step) {
  writer w;
  w.run(step, 3);
  return bench::serve(mode, [&](int n) { return w.run(step, n); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "compiled";
  xla::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  xla::eager_mode(mode != "traced");
  if (mode == "compiled") return contend(mode, xla::compile(next_token, {.name = "next_token"}));
  if (mode == "eager") return contend(mode, next_token);
  if (mode == "traced")
    return contend(mode, [](auto& model, auto& cache, auto& tokens) {
      auto token = next_token(model, cache, tokens);
      xla::sync();
      return token;
    });
  std::cerr << "generate: the mode is compiled, traced or eager\n";
  return 2;
}
