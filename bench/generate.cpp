// SPDX-License-Identifier: Apache-2.0
// generate <compiled|traced|eager> <threads>: answers `run N` with the time of N tokens, one after
// another with a cache of keys and values, and the sum of all tokens. generate formats <threads>:
// float32 weights, as they are and in autocast, and weights of bfloat16, in turn. generate one_call
// <threads>: a text in one call and token by token, in turn.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "decoder_task.hpp"
#include "measure.hpp"
#include "serve.hpp"
#include "xla/nn/generate.hpp"

namespace {

// As in peers/decoder_task.py and peers/generate_torch.py.
constexpr int prompt = 16, places = 256, warm = 2;
constexpr xla::nn::DecoderConfig config_of(xla::dtype element) {
  xla::nn::DecoderConfig c = xla::nn::small_decoder;
  c.causal = true;
  c.rotary_theta = 10000;
  c.element = element;
  return c;
}
constexpr xla::nn::DecoderConfig config = config_of(xla::dtype::float32);

/// The most probable token after tokens (1, n), which come next in the cache.
constexpr auto next_token = [](auto& model, auto& cache, auto& tokens) {
  return xla::argmax(xla::select(model(tokens, cache), 1, -1), -1, xla::keepdim);
};

template <xla::dtype Element = xla::dtype::float32>
class writer {
 public:
  writer() : prompt_(bench::make_text(1, 1, prompt, config.vocabulary)[0].first) {
    if constexpr (Element == xla::dtype::float32) {
      bench::set_decoder_weights(model_);
    } else {
      xla::nn::Decoder<config> floats;
      bench::set_decoder_weights(floats);
      xla::load_state_dict(model_, xla::state_dict(floats));
    }
  }

  /// After the prompt: `warm` tokens, then n timed ones, by the clock unless told otherwise.
  template <class Step, class Clock = double()>
  bench::turn run(Step&& step, int n, Clock&& clock = bench::now) {
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
    const double start = clock();
    write(n);
    return {(clock() - start) * 1e9, static_cast<double>(sum)};
  }

 private:
  xla::nn::Decoder<config_of(Element)> model_;
  xla::nn::KeyValueCache<config_of(Element), places> cache_;
  xla::Tensor<std::int64_t, 2> prompt_;
};

template <class Step>
int contend(std::string_view mode, Step&& step) {
  writer<> w;
  w.run(step, 3);
  return bench::serve(mode, [&](int n) { return w.run(step, n); });
}

/// Milliseconds of a token, and how many times as fast as float32 each format is.
void compare_formats(int threads) {
  constexpr int tokens = 32, rounds = 21;
  writer<> floats;
  writer<xla::dtype::bfloat16> halves;
  auto plain = xla::compile(next_token, {.name = "next_token"});
  auto rounded = xla::compile(xla::autocast(next_token), {.name = "next_token_autocast"});
  const char* const names[] = {"float32", "float32, autocast", "bfloat16"};
  const auto clock = [&] { return bench::time_of(threads); };
  std::vector<double> ms[3], speed[3];
  for (int round = -1; round < rounds; ++round) {
    const double ns[] = {floats.run(plain, tokens, clock).ns, floats.run(rounded, tokens, clock).ns,
                         halves.run(plain, tokens, clock).ns};
    for (std::size_t i = 0; round >= 0 && i < 3; ++i) {
      ms[i].push_back(ns[i] * 1e-6 / tokens);
      speed[i].push_back(ns[0] / ns[i]);
    }
  }
  for (std::size_t i = 0; i < 3; ++i)
    bench::record{"generate_formats"}
        .add("weights", names[i])
        .add("threads", threads)
        .add("ms", bench::spread_of(ms[i]))
        .add("least_ms", *std::min_element(ms[i].begin(), ms[i].end()))
        .add("speed", bench::spread_of(speed[i]))
        .print();
}

/// Four layers of a width of 128: a million parameters.
constexpr xla::nn::DecoderConfig million{
    .hidden = 128, .layers = 4, .intermediate = 512, .vocabulary = 256, .rotary_theta = 10000};

/// Milliseconds of a token after the prompt, token by token and in one call.
template <xla::nn::DecoderConfig C>
void compare_calls(const char* name, int threads) {
  constexpr int tokens = 128, rounds = 21;
  xla::manual_seed(1);
  xla::nn::Decoder<C> model;
  xla::nn::KeyValueCache<C, places> cache;
  const auto from = bench::make_text(1, 1, prompt, C.vocabulary)[0].first;
  const auto room = xla::zeros<std::int64_t>({1, tokens});
  const auto never = xla::tensor<std::int64_t>(-1);
  auto step = xla::compile(next_token, {.name = "next_token"});
  auto write = xla::compile(
      [](auto& m, auto& c, auto& last, const auto& all, const auto& eos) {
        const auto next = [&](const auto& x) { return next_token(m, c, x); };
        return xla::nn::write_texts(last, all, eos, next);
      },
      {.name = "write_texts"});
  std::vector<std::int64_t> texts[2];
  const auto run = [&](int way) {
    cache.reset();
    auto last = step(model, cache, from);
    auto& text = texts[way];
    text.clear();
    const double start = bench::time_of(threads);
    if (way == 1) text = write(model, cache, last, room, never).to_vector();
    for (int i = 0; way == 0 && i < tokens; ++i) {
      last = step(model, cache, last);
      text.push_back(last.data()[0]);
    }
    return (bench::time_of(threads) - start) * 1e3 / tokens;
  };
  std::vector<double> ms[2], speed;
  for (int round = -1; round < rounds; ++round) {
    const double single = run(0), whole = run(1);
    if (texts[0] != texts[1]) throw std::logic_error("generate: the two texts differ");
    if (round < 0) continue;
    ms[0].push_back(single);
    ms[1].push_back(whole);
    speed.push_back(single / whole);
  }
  bench::record{"generate_one_call"}
      .add("model", name)
      .add("threads", threads)
      .add("ms_token_by_token", bench::spread_of(ms[0]))
      .add("ms", bench::spread_of(ms[1]))
      .add("speed", bench::spread_of(speed))
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "compiled";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  xla::set_num_threads(threads);
  xla::eager_mode(mode != "traced");
  if (mode == "formats") return compare_formats(threads), 0;
  if (mode == "one_call") {
    compare_calls<config>("small", threads);
    compare_calls<million>("million", threads);
    return 0;
  }
  if (mode == "compiled") return contend(mode, xla::compile(next_token, {.name = "next_token"}));
  if (mode == "eager") return contend(mode, next_token);
  if (mode == "traced")
    return contend(mode, [](auto& model, auto& cache, auto& tokens) {
      auto token = next_token(model, cache, tokens);
      xla::sync();
      return token;
    });
  std::cerr << "generate: the mode is compiled, traced, eager, formats or one_call\n";
  return 2;
}
