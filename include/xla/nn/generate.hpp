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
  if (top_k == 0) return argmax(detail::with_noise(logits, temperature), -1, keepdim);
  const auto least = narrow(topk(logits, top_k).first, 1, top_k - 1, 1);
  return detail::sample_from(logits, least, temperature);
}
/// The same with a top_k that is an input of a compiled function: at least 1.
template <class T>
constexpr Tensor<std::int64_t, 2> sample(const Tensor<T, 2>& logits, const Scalar& temperature,
                                         const Scalar& top_k) {
  const auto& at = dependent<T>(top_k);
  const auto last = unsqueeze(cast<std::int64_t>(at.template as<double>()) - 1, 0);
  const auto least = index_select(sort(logits, -1, true).first, 1, last);
  return detail::sample_from(logits, least, temperature);
}

/// The token after the last of tokens (batch, n), as (batch, 1), which come next in a cache. To be
/// compiled: xla::compile(nn::next_token<>), a step that evaluates whether the model trains or not,
/// and leaves it so.
template <std::int64_t TopK = 0>
inline constexpr auto next_token = [](auto& model, auto& cache, auto& tokens, auto& temperature) {
  model.eval();
  return sample(model.next_logits(tokens, cache), temperature, TopK);
};

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
  Tensor<std::int64_t, 2> last = tokens;
  std::vector<std::int64_t> all(static_cast<std::size_t>(Batch * count));
  for (std::int64_t i = 0; i < count; ++i) {
    last = step(model, cache, last, temperature);
    for (std::int64_t b = 0; b < Batch; ++b)
      all[static_cast<std::size_t>(b * count + i)] = last.data()[b];
  }
  return from_blob(all.data(), {Batch, count});
}

}  // namespace xla::nn
