// SPDX-License-Identifier: Apache-2.0
#pragma once

// What ext::Tokenizer requires of a tokenizer, as virtual functions, and the hook by which
// sentencepiece.hpp adds a kind.

#include <any>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace xla::ext::detail {

/// The functions that ext::Tokenizer needs of a tokenizer of any kind.
struct tokenizer_interface {
  virtual ~tokenizer_interface() = default;
  virtual std::int64_t size() const = 0;
  virtual std::vector<std::int64_t> encode(const std::string& text) const = 0;
  virtual std::string decode(std::span<const std::int64_t> ids, bool skip_special) const = 0;
  virtual const std::string& id_to_token(std::int64_t id) const = 0;
  /// A pointer to the constant tokenizer, of its own type. Unlike a dynamic_cast it needs no RTTI.
  virtual std::any kind_itself() const = 0;
};

template <class Kind>
struct tokenizer_of final : tokenizer_interface {
  Kind kind;
  template <class... Made>
  explicit tokenizer_of(Made&&... from) : kind(std::forward<Made>(from)...) {}
  std::int64_t size() const override { return kind.size(); }
  std::vector<std::int64_t> encode(const std::string& text) const override {
    return kind.encode(text);
  }
  std::string decode(std::span<const std::int64_t> ids, bool skip_special) const override {
    if constexpr (requires { kind.decode(ids, skip_special); })
      return kind.decode(ids, skip_special);
    else return kind.decode(ids);  // sentencepiece never shows special tokens
  }
  const std::string& id_to_token(std::int64_t id) const override { return kind.id_to_token(id); }
  std::any kind_itself() const override { return &kind; }
};

/// Reads a sentencepiece model; null in a program that does not include sentencepiece.hpp.
inline std::shared_ptr<const tokenizer_interface> (*sentencepiece_reader)(const std::string&) =
    nullptr;

}  // namespace xla::ext::detail
