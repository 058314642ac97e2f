// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "xla/base/later.hpp"
#include "xla/base/option.hpp"
#include "xla/compile.hpp"
#include "xla/nn/decoder.hpp"
#include "xla/op/argmax.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/sort.hpp"

namespace xla::nn {

namespace detail {

/// What tokens are drawn from: bfloat16 is too coarse to add noise to.
template <class T>
constexpr auto drawn_from(const Tensor<T, 2>& logits) {
  if constexpr (std::is_same_v<T, bfloat16>) return cast<float>(logits);
  else return logits;
}

/// logits / temperature with Gumbel noise, times temperature: which is largest is drawn with the
/// probabilities softmax(logits / temperature). Maddison et al. (2014).
template <class T>
constexpr Tensor<T, 2> with_noise(const Tensor<T, 2>& logits, const Scalar& temperature) {
  // Uniform numbers are multiples of 2^-24: what stands for 0 keeps the noise finite.
  const auto wait = maximum(-log(1 - rand_like(logits)), 0x1p-25);
  return logits - temperature.as<T>() * log(wait);
}

/// The same of the logits that are at least (batch, 1) such a number.
template <class T>
constexpr Tensor<std::int64_t, 2> sample_from(const Tensor<T, 2>& logits, const Tensor<T, 2>& least,
                                              const Scalar& temperature) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  return argmax(where(logits >= least, with_noise(logits, temperature), hidden), -1, keepdim);
}

}  // namespace detail

/// A token for each row of logits (batch, vocabulary), drawn with the probabilities
/// softmax(logits / temperature): (batch, 1). Temperature 0 takes the most probable one. Only
/// what is not below the top_k-th largest logit can be drawn; 0: everything.
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
  const auto& at = dependent<T>(top_k);
  const auto last = unsqueeze(cast<std::int64_t>(at.template as<double>()) - 1, 0);
  const auto in = detail::drawn_from(logits);
  const auto least = index_select(sort(in, -1, true).first, 1, last);
  return detail::sample_from(in, least, temperature);
}

/// The same where of what top_k leaves (0: everything) only the most probable can be drawn, as many
/// as it takes for their probabilities, at that temperature, to add up to at least top_p: 1 leaves
/// all of them. Top_k and top_p may be inputs of a compiled function. Holtzman et al. (2020).
template <class T>
constexpr Tensor<std::int64_t, 2> sample(const Tensor<T, 2>& logits, const Scalar& temperature,
                                         const Scalar& top_k, const Scalar& top_p) {
  const auto at_least_0 = [](const Scalar& s) { return !s.known() || s.value() >= 0; };
  if (!at_least_0(temperature) || !at_least_0(top_k))
    refuse_now(logits, "nn::sample: temperature and top_k are at least 0");
  if (top_p.known() && !(top_p.value() >= 0 && top_p.value() <= 1))
    refuse_now(logits, "nn::sample: top_p is from 0 to 1");
  const auto in = detail::drawn_from(logits);
  using N = typename decltype(in)::value_type;
  constexpr N least_step = std::numeric_limits<N>::min();
  const auto k = top_k.as<N>(), p = top_p.as<N>();
  const auto sorted = sort(in, -1, true).first;
  const auto place = unsqueeze(arange<N>(in.size(1)), 0);
  const auto offered = (place < k) || (k == 0);
  const auto below = (sorted - narrow(sorted, 1, 0, 1)) / maximum(temperature.as<N>(), least_step);
  const auto share = softmax(where(offered, below, -std::numeric_limits<N>::infinity()), -1);
  // The first one always; sums that round to more than 1 leave nothing out where p is 1.
  const auto most = where(p >= 1, N{2}, maximum(p, least_step));
  const auto kept = offered && (cumsum(share, 1) - share < most);
  const auto least = min(where(kept, sorted, std::numeric_limits<N>::infinity()), {1}, keepdim);
  return detail::sample_from(in, least, temperature);
}

/// The token after the last of tokens (batch, n), as (batch, 1), which come next in a cache. To be
/// compiled: xla::compile(nn::next_token<>), a step that evaluates whether the model trains or not,
/// and leaves it so.
template <std::int64_t TopK = 0>
inline constexpr auto next_token = [](auto& model, auto& cache, auto& tokens, auto& temperature) {
  model.eval();
  return sample(model.next_logits(tokens, cache), temperature, TopK);
};

/// The logits after the last of tokens (batch, n), which come next in a cache: (batch,
/// vocabulary). To be compiled, as next_token.
inline constexpr auto next_logits = [](auto& model, auto& cache, auto& tokens) {
  model.eval();
  return model.next_logits(tokens, cache);
};

/// How tokens are drawn; see sample.
struct Sampling {
  double temperature = 1;
  std::int64_t top_k = 0;  ///< 0: everything
  double top_p = 1;
};

/// A token for each row of logits (batch, vocabulary): (batch, 1). Compiled, whatever the mode.
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

namespace detail {

/// `next` makes (batch, 1) tokens of (batch, n) ones, `count` times.
template <int Batch, class Next>
Tensor<std::int64_t, 2> one_by_one(const Tensor<std::int64_t, 2>& tokens, std::int64_t count,
                                   Next next) {
  Tensor<std::int64_t, 2> last = tokens;
  std::vector<std::int64_t> all(static_cast<std::size_t>(Batch * count));
  for (std::int64_t i = 0; i < count; ++i) {
    last = next(last);
    for (std::int64_t b = 0; b < Batch; ++b)
      all[static_cast<std::size_t>(b * count + i)] = last.data()[b];
  }
  return from_blob(dependent<Next>(all).data(), {Batch, count});
}

}  // namespace detail

/// As many tokens as asked for, (batch, count), that go on from tokens (batch, n), which come next
/// in a cache. Compiled, whatever the mode; the last token is not yet in the cache. The model
/// trains afterwards if it did before.
template <std::int64_t TopK = 0, DecoderConfig C, int Length, int Batch>
Tensor<std::int64_t, 2> generate(Decoder<C>& model, const KeyValueCache<C, Length, Batch>& cache,
                                 const Tensor<std::int64_t, 2>& tokens, std::int64_t count,
                                 Scalar temperature = 1) {
  check_options("nn::generate",
                {{"temperature", temperature.value()}, {"count", static_cast<double>(count)}});
  static_assert(TopK >= 0, "xla::nn::generate: top_k is at least 1, or 0 for all tokens");
  static auto step = compile(next_token<TopK>, {.name = "next_token"});
  const training_flags_guard flags(model);
  return detail::one_by_one<Batch>(
      tokens, count, [&](auto& last) { return step(model, cache, last, temperature); });
}
/// The same, drawn by temperature, top_k and top_p.
template <DecoderConfig C, int Length, int Batch>
Tensor<std::int64_t, 2> generate(Decoder<C>& model, const KeyValueCache<C, Length, Batch>& cache,
                                 const Tensor<std::int64_t, 2>& tokens, std::int64_t count,
                                 const Sampling& how) {
  check_options("nn::generate", {{"count", static_cast<double>(count)}});
  static auto step = compile(dependent<Decoder<C>>(next_logits), {.name = "next_logits"});
  const training_flags_guard flags(model);
  return detail::one_by_one<Batch>(
      tokens, count, [&](auto& last) { return sample(step(model, cache, last), how); });
}

}  // namespace xla::nn
