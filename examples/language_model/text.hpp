// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <xla/io/text.hpp>
#include <xla/xla.hpp>

/// A file, or the Markdown files below a folder, by name.
inline std::string read_pages(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) return xla::io::read_text(path);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.path().extension() == ".md") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::string out;
  for (const auto& file : files) out += xla::io::read_text(file);
  return out;
}

/// Three texts as tokens: words, with <eos> at the end of each line, or bytes. All three share a
/// vocabulary, as in PyTorch's program.
class Corpus {
 public:
  /// Of a folder with train.txt, valid.txt and test.txt these; of another path the text, of which
  /// the last two twentieths are for validation and test.
  Corpus(const std::string& path, bool bytes) : bytes_(bytes) {
    if (std::filesystem::exists(path + "/train.txt")) {
      train = tokens(xla::io::read_text(path + "/train.txt"));
      valid = tokens(xla::io::read_text(path + "/valid.txt"));
      test = tokens(xla::io::read_text(path + "/test.txt"));
      return;
    }
    train = tokens(read_pages(path));
    const auto part = static_cast<std::ptrdiff_t>(train.size() / 20);
    test.assign(train.end() - part, train.end());
    valid.assign(train.end() - 2 * part, train.end() - part);
    train.resize(train.size() - 2 * static_cast<std::size_t>(part));
  }
  /// Different tokens.
  std::int64_t size() const { return std::ssize(numbers_); }

  std::vector<std::int64_t> train, valid, test;

 private:
  std::vector<std::int64_t> tokens(const std::string& text) {
    std::vector<std::int64_t> out;
    if (bytes_) {
      for (const char c : text) out.push_back(number(std::string(1, c)));
      return out;
    }
    std::istringstream lines(text);
    for (std::string line, word; std::getline(lines, line);) {
      for (std::istringstream words(line); words >> word;) out.push_back(number(word));
      out.push_back(number("<eos>"));
    }
    return out;
  }
  /// Tokens are numbered in the order in which they first occur.
  std::int64_t number(const std::string& token) {
    return numbers_.try_emplace(token, std::ssize(numbers_)).first->second;
  }

  bool bytes_;
  std::unordered_map<std::string, std::int64_t> numbers_;
};

using Tokens = xla::Tensor<std::int64_t, 2>;  // (time, batch)

/// A text in `batch` columns, each of which goes on where the one before ends. The rest that fills
/// no row is dropped.
inline Tokens batchify(const std::vector<std::int64_t>& tokens, std::int64_t batch) {
  const auto time = std::ssize(tokens) / batch;
  if (time < 2)
    throw xla::runtime_error("a part of " + std::to_string(tokens.size()) +
                             " tokens is too short for " + std::to_string(batch) +
                             " columns of two or more");
  return xla::transpose(xla::from_blob(tokens.data(), {batch, time}), 0, 1);
}

/// The pieces of a text from top to bottom: rows, and the same moved by one, which are to be
/// predicted.
class Pieces {
 public:
  Pieces(const Tokens& text, std::int64_t bptt)
      : text_(text), predicted_(text.size(0) - 1), bptt_(bptt) {}
  std::int64_t size() const { return (predicted_ + bptt_ - 1) / bptt_; }
  /// Rows that are predicted.
  std::int64_t rows() const { return predicted_; }

  class iterator {
   public:
    iterator(const Pieces& all, std::int64_t at) : all_(&all), at_(at) {}
    std::pair<Tokens, Tokens> operator*() const {
      const auto first = at_ * all_->bptt_, n = std::min(all_->bptt_, all_->predicted_ - first);
      return {xla::narrow(all_->text_, 0, first, n), xla::narrow(all_->text_, 0, first + 1, n)};
    }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const iterator&) const = default;

   private:
    const Pieces* all_;
    std::int64_t at_;
  };
  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, size()}; }

 private:
  Tokens text_;
  std::int64_t predicted_, bptt_;
};
