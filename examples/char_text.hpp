// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <xla/io/text.hpp>
#include <xla/xla.hpp>

/// Every text has the same characters, so that every text has a model of the same type: ASCII;
/// other bytes are read as '?', and 0 stands for what is before the text.
constexpr std::int64_t vocabulary = 128;

inline std::int64_t encode(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code == 0 || code >= vocabulary ? '?' : code;
}

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

/// A text as windows of characters and the character after each. Every tenth block of the text is
/// held out: its characters are never a target of training.
class CharText {
 public:
  using Batch = std::pair<xla::Tensor<std::int64_t, 2>, xla::Tensor<std::int64_t, 1>>;

  /// Throws `xla::error` for a text of fewer than 100 characters.
  CharText(std::string_view text, std::int64_t window) : window_(static_cast<std::size_t>(window)) {
    if (text.size() < 100)
      throw xla::error("the text has " + std::to_string(text.size()) +
                       " characters, at least 100 are needed");
    codes_.assign(window_, 0);
    for (const char c : text) codes_.push_back(encode(c));
    const std::size_t block = std::clamp<std::size_t>(text.size() / 20, 1, 1024);
    const auto is_held_out = [&](std::size_t at) { return at / block % 10 == 9; };
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (is_held_out(at)) held_out_.push_back(at);
      else if (at < window_ || !is_held_out(at - window_)) training_.push_back(at);
    }
  }

  std::size_t size() const { return codes_.size() - window_; }

  /// The training part as a dataset: a batch is windows, (batch, window) characters, and the next
  /// ones, (batch). Refers to this text.
  class Training {
   public:
    explicit Training(const CharText& text) : text_(&text) {}
    std::int64_t size() const { return static_cast<std::int64_t>(text_->training_.size()); }
    Batch batch(std::span<const std::int64_t> samples) const {
      return text_->batch(samples.size(), [&](std::size_t i) {
        return text_->training_[static_cast<std::size_t>(samples[i])];
      });
    }

   private:
    const CharText* text_;
  };
  Training training() const { return Training{*this}; }

  /// At most `count` windows of the held-out part, evenly spaced.
  Batch held_out(std::size_t count) const {
    count = std::min(count, held_out_.size());
    return batch(count, [&](std::size_t i) { return held_out_[i * held_out_.size() / count]; });
  }

  /// The window at the end of `history`, which may be shorter: (1, window).
  xla::Tensor<std::int64_t, 2> last_window(std::string_view history) const {
    std::vector<std::int64_t> codes(window_, 0);
    for (std::size_t i = 0; i < std::min(window_, history.size()); ++i)
      codes[window_ - 1 - i] = encode(history[history.size() - 1 - i]);
    return xla::from_blob(codes.data(), {1, window_});
  }

 private:
  /// A window at the start of the text is filled up with 0.
  template <class Position>
  Batch batch(std::size_t count, Position position) const {
    std::vector<std::int64_t> windows, next;
    windows.reserve(count * window_);
    next.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto first = codes_.begin() + static_cast<std::ptrdiff_t>(position(i));
      const auto end = first + static_cast<std::ptrdiff_t>(window_);
      windows.insert(windows.end(), first, end);
      next.push_back(*end);
    }
    return {xla::from_blob(windows.data(), {count, window_}), xla::from_blob(next.data(), {count})};
  }

  std::size_t window_;
  std::vector<std::int64_t> codes_;  // behind `window_` zeros
  std::vector<std::size_t> training_, held_out_;
};
