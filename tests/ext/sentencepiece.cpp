// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/sentencepiece.hpp"

#include <cstdio>
#include <fstream>

#include "data/bpe_tokens.inc"
#include "support/decode_stream.hpp"
#include "support/endless_files.hpp"
#include "support/reference.hpp"
#include "xla/ext/tokenizer.hpp"

using ids_t = std::vector<std::int64_t>;
using test::contains;

namespace {
const std::string model = XLA_TEST_DATA "/data/bpe/sentencepiece.model";
}

TEST_CASE("texts have the tokens of sentencepiece, and are read back") {
  const xla::ext::SentencePieceTokenizer t(model);
  for (const auto& text : reference::bpe_texts) {
    INFO(text.text);
    CHECK(t.encode(text.text) == text.sentencepiece);
    CHECK(t.decode(text.sentencepiece) == text.text);
  }
  const auto plain = t.encode("Hello", false);
  CHECK(t.encode("Hello")[0] == t.bos_token_id());
  CHECK(std::ssize(t.encode("Hello")) == std::ssize(plain) + 1);
  CHECK(xla::ext::SentencePieceTokenizer(model, false).encode("Hello") == plain);
}

TEST_CASE("tokens are read back while they come, spaces and bytes as in the whole text") {
  const xla::ext::SentencePieceTokenizer t(model);
  for (const auto& text : reference::bpe_texts) test::check_stream(t, text.sentencepiece);
  for (std::uint64_t n = 0; n < 300; ++n) test::check_stream(t, test::random_tokens(t.size(), n));
  // Where bytes are many: those of a character, and such as make none.
  const auto first = t.token_to_id("<0x00>");
  for (std::uint64_t n = 0; n < 300; ++n) {
    auto ids = test::random_tokens(256, n);
    for (auto& id : ids) id += first;
    test::check_stream(t, ids);
  }
  xla::data::DecodeStream stream{t};
  std::vector<std::string> parts;
  for (const int byte : {0xf0, 0x9f, 0x98, 0x80}) parts.push_back(stream.step(first + byte));
  CHECK(parts == std::vector<std::string>{"", "", "", "😀"});
  CHECK(stream.step(t.encode("word", false)) == " word");  // it is not the first of a text
}

TEST_CASE("tokens by name and by number") {
  const xla::ext::SentencePieceTokenizer t(model);
  CHECK(t.size() == 420);
  CHECK(ids_t{t.unk_token_id(), t.bos_token_id(), t.eos_token_id(), t.pad_token_id()} ==
        ids_t{0, 1, 2, -1});
  CHECK(t.id_to_token(1) == "<s>");
  CHECK(t.token_to_id("</s>") == 2);
  CHECK(t.token_to_id("nothing like this") == 0);
  CHECK(t.decode(ids_t{1, 2}).empty());
  CHECK_THROWS_WITH(t.id_to_token(420), contains("no token has number 420"));
  CHECK_THROWS_AS(t.decode(ids_t{-1}), xla::index_error);
}

TEST_CASE("a file that is no model is refused") {
  CHECK_THROWS_AS(xla::ext::SentencePieceTokenizer("/nowhere/tokenizer.model"), xla::io_error);
  const char* const path = "sentencepiece_test.model";
  std::ofstream(path) << "no model";
  CHECK_THROWS_WITH(xla::ext::SentencePieceTokenizer(path), contains(path));
  std::ofstream(path, std::ios::trunc) << "";
  CHECK_THROWS_AS(xla::ext::SentencePieceTokenizer(path), xla::io_error);
  std::remove(path);
  test::check_endless_files([](auto& file) { xla::ext::SentencePieceTokenizer{file}; },
                            xla::io::max_vocabulary_bytes);
}

TEST_CASE("Tokenizer::from_folder reads a folder with a model of sentencepiece") {
  const auto t = xla::ext::Tokenizer::from_folder(XLA_TEST_DATA "/data/generate/llama");
  REQUIRE(t.get_if<xla::ext::SentencePieceTokenizer>());
  CHECK(t.size() == 420);
  for (const auto& text : reference::bpe_texts) {
    CHECK(t.encode(std::string{text.text}) == text.sentencepiece);
    CHECK(t.decode(text.sentencepiece) == text.text);
  }
}
