// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <xla/io/text.hpp>
#include <xla/kernel/random/philox.hpp>
#include <xla/xla.hpp>

/// The files, one after the other; of a folder every header and Markdown file below it, by name.
inline std::string read_texts(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::string out;
  for (const auto& path : paths) {
    std::vector<std::string> files{path};
    if (fs::is_directory(path)) {
      files.clear();
      for (const auto& entry : fs::recursive_directory_iterator(path))
        if (const auto kind = entry.path().extension(); kind == ".hpp" || kind == ".md")
          files.push_back(entry.path().string());
      std::sort(files.begin(), files.end());
    }
    for (const auto& file : files) out += xla::io::read_text(file);
  }
  return out;
}

/// Each byte of a text is a token, so that a model of 256 tokens reads any text.
inline std::vector<std::int64_t> to_tokens(std::string_view text) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

/// Sequences of tokens, and with each the same moved by one: what comes next.
using Batch = std::pair<xla::Tensor<std::int64_t, 2>, xla::Tensor<std::int64_t, 2>>;

/// The sequences of `length` tokens that begin at these places.
inline Batch make_batch(std::span<const std::int64_t> tokens, std::span<const std::int64_t> begins,
                        std::int64_t length) {
  std::vector<std::int64_t> now, next;
  for (const auto begin : begins) {
    const auto first = tokens.begin() + begin;
    now.insert(now.end(), first, first + length);
    next.insert(next.end(), first + 1, first + 1 + length);
  }
  const auto count = static_cast<std::int64_t>(begins.size());
  return {xla::from_blob(now.data(), {count, length}),
          xla::from_blob(next.data(), {count, length})};
}

/// Batches without end of sequences from random places: of all that a seed draws those from the
/// one `first` on, of each step's each replica its part. Training that goes on after the sequences
/// that it has read reads none again and leaves none out, in any world and with any batch.
class RandomBatches {
 public:
  RandomBatches(std::span<const std::int64_t> tokens, std::int64_t batch, std::int64_t length,
                std::uint64_t seed, std::int64_t first)
      : tokens_(tokens), batch_(batch), length_(length), seed_(seed), first_(first) {}

  class iterator {
   public:
    iterator(const RandomBatches& all, std::int64_t step) : all_(&all), step_(step) {}
    Batch operator*() const { return all_->at(step_); }
    iterator& operator++() {
      ++step_;
      return *this;
    }
    friend bool operator==(const iterator&, std::default_sentinel_t) { return false; }

   private:
    const RandomBatches* all_;
    std::int64_t step_;
  };
  iterator begin() const { return {*this, 0}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  Batch at(std::int64_t step) const {
    const auto places = static_cast<double>(tokens_.size()) - static_cast<double>(length_);
    const auto first = first_ + (step * xla::world_size() + xla::global_ordinal()) * batch_;
    std::vector<std::int64_t> begins;
    for (std::int64_t i = first; i < first + batch_; ++i) {
      const auto words = xla::philox4x32(static_cast<std::uint64_t>(i), seed_);
      begins.push_back(static_cast<std::int64_t>(xla::uniform01(words[0], words[1]) * places));
    }
    return make_batch(tokens_, begins, length_);
  }

  std::span<const std::int64_t> tokens_;
  std::int64_t batch_, length_;
  std::uint64_t seed_;
  std::int64_t first_;
};

/// `count` batches of sequences, evenly spaced and without overlap; all that there are, if fewer.
inline std::vector<Batch> spaced_batches(std::span<const std::int64_t> tokens, std::int64_t count,
                                         std::int64_t batch, std::int64_t length) {
  const auto all = (static_cast<std::int64_t>(tokens.size()) - 1) / length;
  batch = std::min(batch, all);
  count = std::min(count, all / batch);
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> begins;
    for (std::int64_t k = i * batch; k < (i + 1) * batch; ++k)
      begins.push_back(k * all / (count * batch) * length);
    batches.push_back(make_batch(tokens, begins, length));
  }
  return batches;
}
