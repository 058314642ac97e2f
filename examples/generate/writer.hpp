// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a text with a decoder: reads the prompt, chooses tokens, prints them as they come, and
// reports times.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <xla/data/decode_stream.hpp>
#include <xla/ext/pretrained.hpp>
#include <xla/nn/generate.hpp>
#include <xla/xla.hpp>

#include "configurations.hpp"

namespace nn = xla::nn;

/// Seconds since it was made, or since the last time that it was asked.
class Clock {
 public:
  double seconds() {
    const auto before = std::exchange(at_, std::chrono::steady_clock::now());
    return std::chrono::duration<double>(at_ - before).count();
  }

 private:
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

/// Megabytes of this process that have lain in memory at once, those of a mapped file among them.
inline double most_resident() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

/// A text that a decoder writes on, one compiled step for a token.
template <nn::DecoderConfig C>
class Writer {
 public:
  Writer(nn::Decoder<C>& model, const Options& options, const xla::ext::Tokenizer& tokenizer)
      : model_(model), o_(options), tokenizer_(tokenizer), tokens_(tokenizer.encode(o_.prompt)) {
    if (tokens_.empty()) throw xla::runtime_error("the prompt has no tokens");
  }

  void write() {
    const auto prompt = tokens_.size();
    show(tokens_);
    Clock clock;
    double first = 0;
    unread_ = prompt;
    for (std::int64_t i = 0; i < o_.length; ++i) {
      const auto token = next();
      if (i == 0) first = clock.seconds();
      if (std::find(o_.ends.begin(), o_.ends.end(), token) != o_.ends.end()) break;
      tokens_.push_back(token);
      unread_ = 1;
      show({&token, 1});
    }
    std::puts(text_.finish().c_str());
    report(prompt, first, clock.seconds());
  }

 private:
  static constexpr std::size_t places = C.max_positions > 0 ? std::min(C.max_positions, 1024)
                                                            : 2048;

  /// The token after those that are there. When the cache is full, the later half of its places is
  /// filled again.
  std::int64_t next() {
    if (read_ + unread_ > places) {
      cache_.reset();
      read_ = 0;
      unread_ = std::min(tokens_.size(), places / 2);
    }
    const auto* const last = tokens_.data() + (tokens_.size() - unread_);
    const auto tokens = xla::from_blob(last, {1, unread_});
    const auto logits = step_(model_, cache_, tokens);
    read_ += unread_;
    return nn::sample(logits, {o_.temperature, o_.top_k, o_.top_p}).item();
  }

  /// Prints what is new; of a character that several tokens make nothing before the last of them.
  void show(std::span<const std::int64_t> fresh) {
    std::string text;
    for (const auto token : fresh) {
      if (o_.numbers) text += std::to_string(token) + " ";
      // A model may know more tokens than the tokenizer has, to fill its rows up.
      else if (token < tokenizer_.size()) text += text_.step(token);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  void report(std::size_t prompt, double first, double rest) const {
    const auto written = tokens_.size() - prompt;
    std::fprintf(stderr, "\nprompt: %zu tokens, %.3f s to the first token; written: %zu", prompt,
                 first, written);
    if (written > 1)
      std::fprintf(stderr, ", %.1f tokens/s", static_cast<double>(written - 1) / rest);
    std::fprintf(stderr, "\nmemory: %.0f MB of tensors, %.0f MB resident at most\n",
                 static_cast<double>(xla::max_memory_allocated()) / 1e6, most_resident());
  }

  nn::Decoder<C>& model_;
  const Options& o_;
  const xla::ext::Tokenizer& tokenizer_;
  nn::KeyValueCache<C, static_cast<int>(places)> cache_;
  decltype(xla::compile(nn::next_logits)) step_ =
      xla::compile(nn::next_logits, {.name = "next_logits"});
  std::vector<std::int64_t> tokens_;
  std::size_t read_ = 0, unread_ = 0;  ///< tokens in the cache, and those that come next
  xla::data::DecodeStream<xla::ext::Tokenizer> text_{tokenizer_, true};  // without special tokens
};

template <nn::DecoderConfig C>
void run(const Options& options, const xla::ext::Tokenizer& tokenizer) {
  xla::eager_mode(true);
  xla::manual_seed(options.seed);
  if (options.threads > 0) xla::set_num_threads(options.threads);
  if (tokenizer.size() > C.vocabulary)
    throw xla::runtime_error("the tokenizer has " + std::to_string(tokenizer.size()) +
                             " tokens, and the model knows " + std::to_string(C.vocabulary));
  Clock clock;
  nn::Decoder<C> model;
  xla::models::load(model, options.folder);
  std::fprintf(stderr, "%lld parameters, read in %.2f s; %d threads\n\n",
               static_cast<long long>(xla::parameter_count(model)), clock.seconds(),
               xla::num_threads());
  Writer<C>(model, options, tokenizer).write();
}
