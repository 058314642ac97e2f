// SPDX-License-Identifier: Apache-2.0
#include "xla/data/bert_tokenizer.hpp"

#include <cstdio>
#include <fstream>

#include "data/tokens.inc"
#include "support/endless_files.hpp"
#include "support/reference.hpp"
#include "support/sanitized.hpp"

namespace data = xla::data;
using ids_t = std::vector<std::int64_t>;

namespace {

const data::BertTokenizer& tokenizer(bool lower_case) {
  static const auto lower = data::BertTokenizer::from_file(XLA_TEST_DATA "/data/vocab.txt"),
                    cased = data::BertTokenizer::from_file(XLA_TEST_DATA "/data/vocab.txt", false);
  return lower_case ? lower : cased;
}

/// As fold() in tokens.py.
void fold(std::uint64_t& hash, const std::vector<std::string>& words) {
  const auto add = [&](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u; };
  for (const auto& word : words) {
    for (const char c : word) add(c);
    add('\0');
  }
  add('\1');
}
constexpr std::uint64_t empty_hash = 0xcbf29ce484222325u;

std::uint64_t hash_of_block(char32_t first, char32_t end, bool lower_case) {
  std::uint64_t hash = empty_hash;
  for (char32_t c = first; c < end; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text = "a";
    data::detail::append_character(text, c);
    fold(hash, data::bert_words(text + 'a', lower_case));
  }
  return hash;
}

std::uint64_t hash_of_random_texts(bool lower_case) {
  const auto pool = reference::pool;
  std::uint64_t hash = empty_hash;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    std::string text;
    for (std::uint64_t i = 0; i < 30; ++i) {
      const double at = (test::number<double>(n, i) + 4) / 8 * static_cast<double>(pool.size());
      data::detail::append_character(text, pool[static_cast<std::size_t>(at)]);
    }
    fold(hash, data::bert_words(text, lower_case));
  }
  return hash;
}

}  // namespace

TEST_CASE("texts have the tokens of Hugging Face's BertTokenizer, and are read back as there") {
  for (const auto& text : reference::texts) {
    INFO(text.text);
    CHECK(tokenizer(true).encode(text.text) == text.lower);
    CHECK(tokenizer(false).encode(text.text) == text.cased);
    CHECK(tokenizer(true).decode(text.lower) == text.decoded);
  }
  CHECK(reference::texts.size() > 30);
}

TEST_CASE("every character is read as Hugging Face's tokenizers read it") {
  for (std::size_t i = 0; i < reference::blocks.size(); i += test::sanitized ? 4 : 1) {
    const auto& block = reference::blocks[i];
    INFO(std::uint32_t{block.first});
    CHECK(hash_of_block(block.first, block.end, true) == block.lower);
    CHECK(hash_of_block(block.first, block.end, false) == block.cased);
  }
  CHECK(hash_of_random_texts(true) == reference::random_lower);
  CHECK(hash_of_random_texts(false) == reference::random_cased);
}

TEST_CASE("pairs of texts, cut to a length") {
  const auto& t = tokenizer(true);
  for (const auto& pair : reference::pairs) {
    INFO(pair.first << " / " << pair.second);
    CHECK(t.encode(pair.first, pair.second, pair.max_length) == pair.ids);
    const std::pair<std::string, std::string> both[] = {
        {std::string(pair.first), std::string(pair.second)}};
    const auto batch = t(both, pair.max_length);
    CHECK(batch.input_ids.to_vector() == pair.ids);
    CHECK(batch.token_type_ids.to_vector() == pair.types);
  }
  CHECK(t.encode("hello world hello", 4) == ids_t{2, 116, 118, 3});
  CHECK_THROWS_WITH(t.encode("hello", 1), test::contains("max_length is 1"));
}

TEST_CASE("a batch of texts is filled up, and says where") {
  const auto& t = tokenizer(true);
  const std::vector<std::string> texts{"Hello world!", "", "hello"};
  const auto batch = t(texts);
  test::check_equal(batch.input_ids, {3, 5},
                    ids_t{2, 116, 118, 41, 3, 2, 3, 0, 0, 0, 2, 116, 3, 0, 0});
  test::check_equal(batch.attention_mask, {3, 5},
                    ids_t{1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0});
  test::check_equal(batch.token_type_ids, {3, 5}, ids_t(15, 0));
  CHECK(t(texts, 3).input_ids.sizes() == test::sizes_t{3, 3});
  CHECK(t(std::vector<std::string>{}).input_ids.sizes() == test::sizes_t{0, 0});
}

TEST_CASE("tokens by name and by number") {
  const auto& t = tokenizer(true);
  CHECK(t.tokenize("Unaffable [MASK] x\xc3\x97") ==
        std::vector<std::string>{"un", "##aff", "##able", "[MASK]", "[UNK]"});
  CHECK(t.size() == 155);
  CHECK(ids_t{t.pad_token_id(), t.unk_token_id(), t.cls_token_id(), t.sep_token_id(),
              t.mask_token_id()} == ids_t{0, 1, 2, 3, 4});
  CHECK(t.token_to_id("paris") == 114);
  CHECK(t.token_to_id("rome") == t.unk_token_id());
  CHECK(t.id_to_token(122) == "##able");
  CHECK(t.decode(ids_t{2, 116, 41, 3, 0}, true) == "hello!");
  CHECK_THROWS_AS(t.id_to_token(155), xla::index_error);
  CHECK_THROWS_AS(t.decode(ids_t{-1}), xla::index_error);
}

TEST_CASE("a vocabulary that is none is refused") {
  CHECK_THROWS_WITH(data::BertTokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"}),
                    test::contains("of 5 tokens has no [MASK]"));
  CHECK_THROWS_AS(data::BertTokenizer::from_file("/nowhere/vocab.txt"), xla::io_error);
  const std::string path = "bert_tokenizer_test_vocab.txt";
  {
    std::ofstream file(path, std::ios::binary);
    file << "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\na";  // as Windows writes it, unfinished
  }
  CHECK(data::BertTokenizer::from_file(path).encode("A b") == ids_t{2, 5, 1, 3});
  std::remove(path.c_str());
  test::check_endless_files([](auto& file) { data::BertTokenizer::from_file(file); },
                            xla::io::max_vocabulary_bytes);
}
