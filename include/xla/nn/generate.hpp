// SPDX-License-Identifier: Apache-2.0
#pragma once

// Generates tokens with a decoder, greedily or by sampling, as one compiled loop or step by step.
// It works on tokens; texts become tokens in data/ and ext/tokenizer.hpp.

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xla/base/option.hpp"
#include "xla/compile.hpp"
#include "xla/loop/cond.hpp"
#include "xla/loop/while_loop.hpp"
#include "xla/nn/decoder.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/sort.hpp"

namespace xla::nn {

namespace detail {

/// Logits in a type to which Gumbel noise can be added: bfloat16 is too coarse for it.
template <class T>
constexpr auto drawn_from(const Tensor<T, 2>& logits) {
  if constexpr (std::is_same_v<T, bfloat16>) return cast<float>(logits);
  else return logits;
}

/// logits / temperature with Gumbel noise, times temperature: the largest element is distributed
/// like softmax(logits / temperature). Maddison et al. (2014).
template <class T>
constexpr Tensor<T, 2> with_noise(const Tensor<T, 2>& logits, const Scalar& temperature) {
  // Uniform numbers are multiples of 2^-24; this replacement for 0 keeps the noise finite.
  const auto wait = maximum(-log(1 - rand_like(logits)), 0x1p-25);
  return logits - temperature.as<T>() * log(wait);
}

/// The same, among the logits that are at least `least`, (batch, 1).
template <class T>
constexpr Tensor<std::int64_t, 2> sample_from(const Tensor<T, 2>& logits, const Tensor<T, 2>& least,
                                              const Scalar& temperature) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  return argmax(where(logits >= least, with_noise(logits, temperature), hidden), -1, keepdim);
}

/// The smallest logit of a row that top_k and then top_p allow: (batch, 1).
template <class T>
constexpr Tensor<T, 2> least_drawn(const Tensor<T, 2>& logits, const Scalar& temperature,
                                   const Scalar& top_k, const Scalar& top_p) {
  constexpr T least_step = std::numeric_limits<T>::min();
  constexpr T infinite = std::numeric_limits<T>::infinity();
  const auto k = top_k.as<T>(), p = top_p.as<T>();
  const auto sorted = sort(logits, -1, true).first;
  const auto position = unsqueeze(arange<T>(logits.size(1)), 0);
  const auto offered = (position < k) || (k == 0);
  const auto below = (sorted - narrow(sorted, 1, 0, 1)) / maximum(temperature.as<T>(), least_step);
  const auto share = softmax(where(offered, below, -infinite), -1);
  // Always allows the first one; if p is 1, a sum that rounds to more than 1 excludes nothing.
  const auto most = where(p >= 1, T{2}, maximum(p, least_step));
  const auto kept = offered && (cumsum(share, 1) - share < most);
  return min(where(kept, sorted, infinite), {1}, keepdim);
}

/// Checks the arguments of sample().
template <class T>
constexpr void check_sampling(const Tensor<T, 2>& logits, const Scalar& temperature,
                              const Scalar& top_k, const Scalar& top_p) {
  const auto at_least_0 = [](const Scalar& s) { return !s.known() || s.value() >= 0; };
  if (!at_least_0(temperature) || !at_least_0(top_k))
    refuse_now(logits, "nn::sample: temperature and top_k are at least 0");
  if (top_p.known() && !(top_p.value() >= 0 && top_p.value() <= 1))
    refuse_now(logits, "nn::sample: top_p is from 0 to 1");
}

}  // namespace detail

/// A token for each row of logits (batch, vocabulary), drawn with the probabilities softmax(logits
/// / temperature): (batch, 1). Temperature 0 takes the most probable one. Only logits that are not
/// below the top_k-th largest can be drawn; 0: all.
template <class T>
constexpr Tensor<std::int64_t, 2> sample(const Tensor<T, 2>& logits, const Scalar& temperature = 1,
                                         std::int64_t top_k = 0) {
  if (top_k < 0 || (temperature.known() && !(temperature.value() >= 0)))
    refuse_now(logits, "nn::sample: temperature and top_k are at least 0");
  const auto in = detail::drawn_from(logits);
  if (top_k == 0) return argmax(detail::with_noise(in, temperature), -1, keepdim);
  const auto least = narrow(topk(in, top_k).first, 1, top_k - 1, 1);
  return detail::sample_from(in, least, temperature);
}
/// The same with a top_k that is an input of a compiled function: at least 1.
template <class T>
constexpr Tensor<std::int64_t, 2> sample(const Tensor<T, 2>& logits, const Scalar& temperature,
                                         const Scalar& top_k) {
  const auto& at = as_dependent<T>(top_k);
  const auto last = unsqueeze(cast<std::int64_t>(at.template as<double>()) - 1, 0);
  const auto in = detail::drawn_from(logits);
  const auto least = index_select(sort(in, -1, true).first, 1, last);
  return detail::sample_from(in, least, temperature);
}

/// The same with only the most probable of the top_k tokens (0: all tokens): as many as are needed
/// for their probabilities, at that temperature, to add up to at least top_p; 1 allows all of them.
/// Top_k and top_p may be inputs of a compiled function. Holtzman et al. (2020).
template <class T>
constexpr Tensor<std::int64_t, 2> sample(const Tensor<T, 2>& logits, const Scalar& temperature,
                                         const Scalar& top_k, const Scalar& top_p) {
  detail::check_sampling(logits, temperature, top_k, top_p);
  const auto in = detail::drawn_from(logits);
  return detail::sample_from(in, detail::least_drawn(in, temperature, top_k, top_p), temperature);
}

/// The token after the last of tokens (batch, n), the next ones of a cache: (batch, 1). Compile it,
/// xla::compile(nn::next_token<>), to a step that evaluates even if the model is in training mode,
/// and does not change the mode.
template <std::int64_t TopK = 0>
inline constexpr auto next_token = [](auto& model, auto& cache, auto& tokens, auto& temperature) {
  model.eval();
  return sample(model.next_logits(tokens, cache), temperature, TopK);
};

/// The logits after the last of tokens (batch, n), the next ones of a cache: (batch, vocabulary).
/// To be compiled, like next_token.
inline constexpr auto next_logits = [](auto& model, auto& cache, auto& tokens) {
  model.eval();
  return model.next_logits(tokens, cache);
};

/// How tokens are drawn, see sample, and where texts end.
struct Sampling {
  double temperature = 1;
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1;
  std::int64_t eos_token = -1;  ///< a text ends after this token; -1: none ends
  std::int64_t pad_token = 0;   ///< fills a text after its end
};

/// A token for each row of logits (batch, vocabulary): (batch, 1). Compiled, in every mode.
template <class T>
Tensor<std::int64_t, 2> sample(const Tensor<T, 2>& logits, const Sampling& how) {
  check_options("nn::sample", {{"temperature", how.temperature},
                               {"top_k", static_cast<double>(how.top_k)},
                               {"top_p", how.top_p, 0, 1}});
  static auto any =
      compile([](auto& from, auto& t) { return sample(from, t); }, {.name = "sample"});
  static auto some =
      compile([](auto& from, auto& t, auto& k, auto& p) { return sample(from, t, k, p); },
              {.name = "sample_some"});
  Scalar temperature = how.temperature, top_k = how.top_k, top_p = how.top_p;
  if (how.top_k == 0 && how.top_p == 1) return any(logits, temperature);
  return some(logits, temperature, top_k, top_p);
}

/// Writes texts in one loop, inside a compiled function: the tokens (batch, count) that follow
/// tokens (batch, n). next(tokens) computes the next token of each text, (batch, 1), from (batch,
/// n) ones. filler (batch, count) has the number of tokens, and the fill value after a text's end.
/// A text ends after the token eos, the loop with the last text. It consumes the random numbers of
/// all tokens, however many it has written.
template <class Next>
constexpr Tensor<std::int64_t, 2> write_texts(const Tensor<std::int64_t, 2>& tokens,
                                              const Tensor<std::int64_t, 2>& filler,
                                              const Tensor<std::int64_t, 0>& eos,
                                              const Next& next) {
  using Tokens = Tensor<std::int64_t, 2>;
  // The number of tokens, the last ones, which texts have ended, and all tokens.
  using Carry = std::tuple<Tensor<std::int64_t, 0>, Tokens, Tensor<bool, 2>, Tokens>;
  const auto put = [&](const Tensor<std::int64_t, 0>& at, const Tokens& made,
                       const Tensor<bool, 2>& ended, const Tokens& all) {
    const auto written = where(ended, narrow(filler, 1, 0, 1), made);
    return Carry(at + 1, made, ended || made == eos, index_copy(all, 1, unsqueeze(at, 0), written));
  };
  const auto first = next(tokens);
  const auto begun = put(zeros_like(eos), first, first != first, filler);
  const auto body = [&](const Carry& now) {
    const auto& [at, last, ended, all] = now;
    return put(at, next(last), ended, all);
  };
  const auto go_on = [](const Carry& now) { return any(!std::get<2>(now)); };
  const auto done = while_loop(go_on, body, begun, {.max_steps = filler.size(1) - 1});
  return std::get<3>(done);
}

namespace detail {

/// Draws a token from logits (batch, vocabulary). The parameters are inputs of a compiled function,
/// which sorts the logits only in calls that exclude some tokens.
template <class T>
constexpr Tensor<std::int64_t, 2> draw(const Tensor<T, 2>& logits, const Scalar& temperature,
                                       const Scalar& top_k, const Scalar& top_p) {
  const auto in = drawn_from(logits);
  using N = typename decltype(in)::value_type;
  const auto least = cond(
      top_k.as<N>() > 0 || top_p.as<N>() < 1,
      [&] { return least_drawn(in, temperature, top_k, top_p); },
      [&] { return full_like(narrow(in, 1, 0, 1), -std::numeric_limits<N>::infinity()); });
  return sample_from(in, least, temperature);
}

/// generate() with Sampling. `starts` (batch), if given, is the begin of each text in the cache;
/// otherwise texts begin at its start.
template <class Model, class Cache, class... Starts>
Tensor<std::int64_t, 2> generate_by(Model& model, const Cache& cache,
                                    const Tensor<std::int64_t, 2>& tokens, std::int64_t count,
                                    const Sampling& how, const Starts&... starts) {
  check_options("nn::generate", {{"temperature", how.temperature},
                                 {"top_k", static_cast<double>(how.top_k)},
                                 {"top_p", how.top_p, 0, 1},
                                 {"count", static_cast<double>(count)}});
  static auto write = compile(
      [](auto& m, auto& c, auto& from, auto& filler, auto& eos, auto& t, auto& k, auto& p,
         auto&... at) {
        m.eval();
        const auto next = [&](const auto& x) { return draw(m.next_logits(x, c, at...), t, k, p); };
        return write_texts(from, filler, eos, next);
      },
      {.name = "generate"});
  const auto filler = full<std::int64_t>({Cache::batch, count}, how.pad_token);
  if (count == 0) return filler;
  const training_flags_guard flags(model);
  Scalar temperature = how.temperature, top_k = how.top_k, top_p = how.top_p;
  const auto eos = tensor<std::int64_t>(how.eos_token);
  return write(model, cache, tokens, filler, eos, temperature, top_k, top_p, starts...);
}

}  // namespace detail

/// This many tokens (batch, count) that continue tokens (batch, n), the next ones of a cache, in
/// one call of a compiled function, in every mode. The last token is not yet in the cache. The
/// model's training mode is restored afterwards. next_token and next_logits give the same token by
/// token.
template <std::int64_t TopK = 0, DecoderConfig C, int Length, int Batch>
Tensor<std::int64_t, 2> generate(Decoder<C>& model, const KeyValueCache<C, Length, Batch>& cache,
                                 const Tensor<std::int64_t, 2>& tokens, std::int64_t count,
                                 Scalar temperature = 1) {
  check_options("nn::generate",
                {{"temperature", temperature.value()}, {"count", static_cast<double>(count)}});
  static_assert(TopK >= 0, "xla::nn::generate: top_k is at least 1, or 0 for all tokens");
  static auto write = compile(
      [](auto& m, auto& c, auto& from, auto& filler, const auto& eos, auto& t) {
        m.eval();
        const auto next = [&](const auto& x) { return sample(m.next_logits(x, c), t, TopK); };
        return write_texts(from, filler, eos, next);
      },
      {.name = "generate"});
  const auto filler = zeros<std::int64_t>({Batch, count});
  if (count == 0) return filler;
  const training_flags_guard flags(model);
  return write(model, cache, tokens, filler, tensor<std::int64_t>(-1), temperature);
}

/// The same, drawn by temperature, top_k and top_p, each text until its end token.
template <DecoderConfig C, int Length, int Batch>
Tensor<std::int64_t, 2> generate(Decoder<C>& model, const KeyValueCache<C, Length, Batch>& cache,
                                 const Tensor<std::int64_t, 2>& tokens, std::int64_t count,
                                 const Sampling& how) {
  return detail::generate_by(model, cache, tokens, count, how);
}
/// The same from prompts of lengths (batch), each at the end of its row of tokens (batch, n), after
/// padding that is not attended to.
template <DecoderConfig C, int Length, int Batch>
Tensor<std::int64_t, 2> generate(Decoder<C>& model, const KeyValueCache<C, Length, Batch>& cache,
                                 const Tensor<std::int64_t, 2>& tokens,
                                 const Tensor<std::int64_t, 1>& lengths, std::int64_t count,
                                 const Sampling& how = {}) {
  const std::int64_t n = tokens.size(1);
  if (lengths.size(0) != Batch)
    throw shape_error("nn::generate: " + std::to_string(std::int64_t(lengths.size(0))) +
                      " lengths for " + std::to_string(Batch) + " prompts");
  for (const std::int64_t length : lengths.to_vector())
    if (length < 1 || length > n)
      throw index_error("nn::generate: a prompt of length " + std::to_string(length) +
                        " in a row of " + std::to_string(n) + " tokens");
  if (cache.position.item() != 0)
    throw runtime_error(
        "nn::generate: prompts of several lengths begin an empty cache: reset() it before");
  return detail::generate_by(model, cache, tokens, count, how, n - lengths);
}

}  // namespace xla::nn
