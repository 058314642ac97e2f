// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <xla/xla.hpp>

#include "numbers.hpp"

// The task that every contestant trains; the same as in peers/decoder_task.py.
namespace bench {

/// Parameter number n from stream n: a norm's scale within 1/8 of 1, a bias within 1/8 of 0, the
/// embedding with variance 1 unless it is the head, too, matrices within ±1/sqrt(in).
template <class Model>
void set_decoder_weights(Model& model) {
  std::uint32_t stream = 0;
  std::vector<float> values;
  xla::named_parameters(model, [&]<class P>(const std::string& name, P& p) {
    const std::int64_t first = p.size(0);
    std::int64_t last = first;
    if constexpr (P::rank == 2) last = p.size(1);
    const bool table = name == "embed_tokens.weight" && !Model::config.tied_head;
    const double width = P::rank == 1 ? 0.125
                         : table      ? std::sqrt(3.0)
                                      : 1 / std::sqrt(double(last));
    const bool scale = P::rank == 1 && !name.ends_with(".bias");
    const float bound = static_cast<float>(width), middle = scale ? 1.0f : 0.0f;
    values.resize(static_cast<std::size_t>(P::rank == 2 ? first * last : first));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = middle + (2 * uniform(stream, static_cast<std::int64_t>(i)) - 1) * bound;
    if constexpr (P::rank == 1) p.copy_(xla::from_blob(values.data(), {first}));
    else p.copy_(xla::from_blob(values.data(), {first, last}));
    ++stream;
  });
}

/// Tokens (batch, sequence), and those that come next, one after another.
using text_batch = std::pair<xla::Tensor<std::int64_t, 2>, xla::Tensor<std::int64_t, 1>>;

/// `count` batches: a token is five times the one before plus one of four, so that there is
/// something to learn.
inline std::vector<text_batch> make_text(std::int64_t count, std::int64_t batch,
                                         std::int64_t sequence, std::int64_t vocabulary) {
  constexpr std::uint32_t first = 1000, noise = 1001;
  std::vector<text_batch> ring;
  std::vector<std::int64_t> tokens, next;
  for (std::int64_t b = 0; b < count; ++b) {
    tokens.clear();
    next.clear();
    for (std::int64_t row = b * batch; row < (b + 1) * batch; ++row) {
      std::int64_t token = hashed(first, row) % vocabulary;
      for (std::int64_t i = 0; i < sequence; ++i) {
        tokens.push_back(token);
        token = (5 * token + hashed(noise, row * sequence + i) % 4) % vocabulary;
        next.push_back(token);
      }
    }
    ring.emplace_back(xla::from_blob(tokens.data(), {batch, sequence}),
                      xla::from_blob(next.data(), {batch * sequence}));
  }
  return ring;
}

/// One training step of a language model.
inline constexpr auto decoder_step = [](auto& model, auto& tokens, auto& next, auto& loss_fn,
                                        auto& optimizer) {
  optimizer.zero_grad();
  auto logits = model(tokens);
  auto loss = loss_fn(xla::reshape(logits, {-1, logits.size(2)}), next);
  loss.backward();
  optimizer.step();
  return loss;
};

}  // namespace bench
