// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/bpe_files.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/bpe_tokens.inc"
#include "data/tokens.inc"
#include "support/decode_stream.hpp"
#include "support/endless_files.hpp"
#include "support/folder.hpp"
#include "support/reference.hpp"
#include "xla/ext/tokenizer.hpp"

namespace data = xla::data;
using data::BpePattern;
using ids_t = std::vector<std::int64_t>;
using test::contains;

namespace {

const std::string folder = XLA_TEST_DATA "/data/bpe/";
constexpr const char* test_file = "bpe_files_test.json";

const data::BpeTokenizer& gpt2() {
  static const auto t = xla::ext::read_bpe_tokenizer(folder);
  return t;
}
const data::BpeTokenizer& digits() {
  static const auto t = xla::ext::read_bpe_tokenizer(folder + "digits.json");
  return t;
}
const data::BpeTokenizer& llama3() {
  static const auto t = xla::ext::read_bpe_tokenizer(folder + "llama3.json");
  return t;
}

void fold(std::uint64_t& hash, std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; }
/// As fold() in tokens.py.
void fold_words(std::uint64_t& hash, std::string_view text, BpePattern pattern) {
  for (const auto word : data::bpe_words(text, pattern)) {
    for (const char c : word) fold(hash, static_cast<unsigned char>(c));
    fold(hash, 0);
  }
  fold(hash, 1);
}
constexpr std::uint64_t empty_hash = 0xcbf29ce484222325u;

std::uint64_t hash_of_block(const reference::block_of_words& block, BpePattern pattern) {
  std::uint64_t hash = empty_hash;
  for (char32_t at = block.first; at < block.end; at += block.step) {
    if (at >= 0xd800 && at < 0xe000) continue;
    std::string c;
    data::detail::append_character(c, at);
    fold_words(hash, "a" + c + "b 1" + c + "2 " + c + " '" + c + "\n" + c + c + "." + c, pattern);
  }
  return hash;
}

std::string random_text(std::uint64_t n) {
  const auto pool = reference::pool;
  std::string text;
  for (std::uint64_t i = 0; i < 30; ++i) {
    const double at = (test::number<double>(n, i) + 4) / 8 * static_cast<double>(pool.size());
    data::detail::append_character(text, pool[static_cast<std::size_t>(at)]);
  }
  return text;
}

/// llama3.json with a change.
template <class Change>
std::string changed(Change change) {
  std::ifstream file(folder + "llama3.json");
  auto all = nlohmann::json::parse(file);
  change(all);
  std::ofstream(test_file) << all.dump();
  return test_file;
}

}  // namespace

TEST_CASE("texts have the tokens of Hugging Face's tokenizers, and are read back as there") {
  for (const auto& text : reference::bpe_texts) {
    INFO(text.text);
    CHECK(gpt2().encode(text.text) == text.gpt2);
    CHECK(digits().encode(text.text) == text.digits);
    CHECK(llama3().encode(text.text) == text.llama3);
    CHECK(gpt2().decode(text.gpt2) == text.text);
    CHECK(llama3().decode(text.llama3, true) == text.decoded);
    ids_t plain = text.llama3;
    plain.erase(plain.begin());
    CHECK(llama3().encode(text.text, false) == plain);
  }
  CHECK(reference::bpe_texts.size() > 30);
}

TEST_CASE("texts are cut at every character as Hugging Face's tokenizers cut them") {
  for (const auto& block : reference::word_blocks) {
    INFO(std::uint32_t{block.first});
    CHECK(hash_of_block(block, BpePattern::gpt2) == block.gpt2);
    CHECK(hash_of_block(block, BpePattern::digits) == block.digits);
    CHECK(hash_of_block(block, BpePattern::llama3) == block.llama3);
  }
  const data::BpeTokenizer* const tokenizers[] = {&gpt2(), &digits(), &llama3()};
  const BpePattern patterns[] = {BpePattern::gpt2, BpePattern::digits, BpePattern::llama3};
  for (std::size_t i = 0; i < 3; ++i) {
    std::uint64_t words = empty_hash, numbers = empty_hash;
    for (std::uint64_t n = 0; n < 1000; ++n) {
      const auto text = random_text(n);
      fold_words(words, text, patterns[i]);
      for (const auto id : tokenizers[i]->encode(text))
        fold(numbers, static_cast<std::uint64_t>(id));
    }
    CHECK(words == reference::random_words[i]);
    CHECK(numbers == reference::random_numbers[i]);
  }
}

TEST_CASE("any bytes are tokens, and are read back") {
  std::string all;
  for (unsigned i = 0; i < 70000; ++i) all += static_cast<char>(i * i / 7 + i);
  for (const auto* t : {&gpt2(), &digits(), &llama3()})
    CHECK(t->decode(t->encode(all), true) == all);
  // In a time that grows as the text does, also of one word.
  const std::string word(300000, 'a');
  CHECK(gpt2().decode(gpt2().encode(word)) == word);
}

TEST_CASE("tokens are read back while they come, a character with its last byte") {
  const auto& t = gpt2();
  const ids_t euro = t.encode("a€");  // a byte each, where no merge makes it
  data::DecodeStream stream{t};
  std::vector<std::string> parts;
  for (const auto id : euro) parts.push_back(stream.step(id));
  CHECK(parts == std::vector<std::string>{"a", "", "", "€"});
  CHECK(stream.step(t.encode("€")[0]).empty());
  CHECK(stream.step(euro[0]) ==
        "\xe2"
        "a");  // no rest will come
  CHECK(stream.step(euro[1]).empty());
  CHECK(stream.finish() == "\xe2");
  CHECK(stream.finish().empty());
  test::check_stream(t, ids_t{});

  std::string bytes;
  for (unsigned i = 0; i < 5000; ++i) bytes += static_cast<char>(i * i / 7 + i);
  for (const auto* tokenizer : {&t, &digits(), &llama3()}) {
    for (const auto& text : reference::bpe_texts)
      test::check_stream(*tokenizer, tokenizer->encode(text.text));
    test::check_stream(*tokenizer, tokenizer->encode(bytes));
    for (std::uint64_t n = 0; n < 100; ++n)
      test::check_stream(*tokenizer, test::random_tokens(tokenizer->size(), n));
  }
}

TEST_CASE("a stream leaves special tokens out where it is asked to") {
  const xla::ext::Tokenizer t(gpt2());
  const std::int64_t end = gpt2().token_to_id("<|endoftext|>").value();
  ids_t ids = gpt2().encode("a€b");
  ids.insert(ids.begin(), end);
  ids.insert(ids.begin() + 3, {end, end});  // within the bytes of a character
  ids.push_back(end);
  test::check_stream(t, ids);
  data::DecodeStream stream(t, true);
  CHECK(stream.step(ids) + stream.finish() == "a€b");
  CHECK(data::DecodeStream(t).step(ids).starts_with("<|endoftext|>a"));
}

TEST_CASE("tokens by name and by number") {
  const auto& t = gpt2();
  CHECK(t.size() == 377);
  CHECK(t.token_to_id("<|endoftext|>") == 376);
  CHECK(!t.token_to_id("nothing like this"));
  CHECK(t.id_to_token(*t.token_to_id("Ġthe")) == "Ġthe");
  CHECK(t.encode(" the") == ids_t{*t.token_to_id("Ġthe")});
  CHECK(t.decode(ids_t{376, 376}, true).empty());
  CHECK_THROWS_WITH(t.id_to_token(377), contains("no token has number 377"));
  CHECK_THROWS_AS(t.decode(ids_t{-1}), xla::index_error);
}

TEST_CASE("a space before a text, and what is around it") {
  std::vector<std::string> tokens;
  for (std::int64_t i = 0; i < 256; ++i) tokens.push_back(gpt2().id_to_token(i));
  tokens.insert(tokens.end(), {"ab", "Ġab", "<s>", "<s>s", "</s>"});
  const data::BpeTokenizer::merge merges[] = {{"a", "b"}, {"Ġ", "ab"}};
  const data::BpeTokenizer t(tokens, merges,
                             {.add_prefix_space = true,
                              .special = {"<s>", "<s>s", "</s>", "<none>"},
                              .before = {"<s>"},
                              .after = {"</s>"}});
  CHECK(t.encode("ab") == ids_t{258, 257, 260});
  CHECK(t.encode(" ab", false) == ids_t{257});
  CHECK(t.encode("<s><s>s", false) == ids_t{258, 259});
  CHECK(t.encode("") == ids_t{258, 260});
  const auto refuse = [&](auto change, const char* sentence) {
    auto names = tokens;
    std::vector<data::BpeTokenizer::merge> joined(std::begin(merges), std::end(merges));
    data::BpeOptions options;
    change(names, joined, options);
    CHECK_THROWS_WITH(data::BpeTokenizer(names, joined, options), contains(sentence));
  };
  refuse([](auto& names, auto&, auto&) { names.erase(names.begin()); },
         "of 260 tokens needs a token for each byte, and has no '!'");
  refuse([](auto&, auto& joined, auto&) { joined.emplace_back("ab", "x"); },
         "needs what merges make, and has no 'abx'");
  refuse([](auto&, auto& joined, auto&) { joined.emplace_back("xy", "a"); }, "has no 'xy'");
  refuse([](auto&, auto&, auto& options) { options.after = {"<end>"}; }, "has no '<end>'");
}

TEST_CASE("a file that asks for what is not done here is refused, and says for what") {
  const auto refuse = [](auto change, const char* sentence) {
    const auto path = changed(change);
    CHECK_THROWS_AS(xla::ext::read_bpe_tokenizer(path), xla::io_error);
    CHECK_THROWS_WITH(xla::ext::read_bpe_tokenizer(path), contains(sentence));
    CHECK_THROWS_WITH(xla::ext::read_bpe_tokenizer(path), contains(path));
  };
  CHECK(xla::ext::read_bpe_tokenizer(changed([](auto&) {})).size() == llama3().size());
  refuse([](auto& f) { f["normalizer"] = {{"type", "NFC"}}; }, "NFC");
  refuse([](auto& f) { f["model"]["byte_fallback"] = true; }, "tokenizer.model");
  refuse([](auto& f) { f["model"]["type"] = "Unigram"; }, "Unigram");
  refuse([](auto& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "x"; },
         "splits texts differently");
  refuse([](auto& f) { f["pre_tokenizer"] = nullptr; }, "splits texts differently");
  refuse([](auto& f) { f["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; },
         "a space before each part");
  refuse([](auto& f) { f["model"]["end_of_word_suffix"] = "</w>"; }, "affix: end_of_word_suffix");
  refuse([](auto& f) { f["added_tokens"][0]["lstrip"] = true; }, "lstrip");
  refuse([](auto& f) { f["added_tokens"][0]["id"] = 1 << 20; }, "has number 1048576");
  refuse([](auto& f) { f["added_tokens"][0]["id"] = 7; }, "have one number");
  refuse([](auto& f) { f["model"]["vocab"].erase("the"); }, "has number 378, there are 378");
  refuse([](auto& f) { f["model"]["vocab"]["the"] = 1; }, "have one number");
  refuse([](auto& f) { f["model"]["vocab"]["the"] = "x"; }, "token 'the' has no number");
  refuse([](auto& f) { f["model"].erase("vocab"); }, "its model has no vocab");
  refuse([](auto& f) { f["model"].erase("merges"); }, "its model has no merges");
  refuse([](auto& f) { f.erase("model"); }, "its model has no vocab");
  refuse([](auto& f) { f["pre_tokenizer"]["pretokenizers"][0] = 3; }, "3 is not an object");
  refuse([](auto& f) { f["added_tokens"] = 3; }, "added_tokens is 3, expected a list");
  refuse([](auto& f) { f["added_tokens"][0]["special"] = 3; }, "special is 3, expected true or");
  refuse([](auto& f) { f["model"]["merges"][0] = 3; }, "merge 0 is 3");
  refuse([](auto& f) { f["model"]["merges"] = {"a b c"}; }, "not 'a b c'");
  refuse([](auto& f) { f["post_processor"] = {{"type", "RobertaProcessing"}}; }, "Roberta");
  refuse([](auto& f) { f = nlohmann::json::array(); }, "is not a JSON object");
  std::ofstream(test_file) << "{\"model\": ";
  CHECK_THROWS_WITH(xla::ext::read_bpe_tokenizer(test_file), contains("is not a JSON object"));
  std::ofstream(test_file) << std::string(1000000, '[');
  CHECK_THROWS_WITH(xla::ext::read_bpe_tokenizer(test_file), contains("in more than 64 others"));
  std::ofstream(test_file) << "{\"model\": ";
  CHECK_THROWS_WITH(xla::ext::read_bpe_tokenizer(folder + "vocab.json", test_file),
                    contains("test.json': a merge is two tokens with a space"));
  CHECK_THROWS_AS(xla::ext::read_bpe_tokenizer("/nowhere"), xla::io_error);
  std::remove(test_file);
}

namespace {

/// tests/data/bert/tokenizer.json with a change.
template <class Change>
std::string changed_bert(Change change) {
  std::ifstream file(XLA_TEST_DATA "/data/bert/tokenizer.json");
  auto all = nlohmann::json::parse(file);
  change(all);
  std::ofstream(test_file) << all.dump();
  return test_file;
}

}  // namespace

TEST_CASE("a tokenizer.json and merges that never end are refused before they are read") {
  test::check_endless_files([](auto& path) { xla::ext::read_bpe_tokenizer(path); },
                            xla::io::max_vocabulary_bytes);
  test::check_endless_files(
      [](auto& path) { xla::ext::read_bpe_tokenizer(folder + "vocab.json", path); },
      xla::io::max_vocabulary_bytes);
}

TEST_CASE("BERT's tokenizer.json reads texts as its vocab.txt does") {
  const auto lower = xla::ext::read_bert_tokenizer(XLA_TEST_DATA "/data/bert");
  const auto cased = xla::ext::read_bert_tokenizer(
      changed_bert([](auto& all) { all["normalizer"]["lowercase"] = false; }));
  CHECK(lower.size() == xla::ext::read_bert_tokenizer(XLA_TEST_DATA "/data/vocab.txt").size());
  for (const auto& text : reference::texts) {
    INFO(text.text);
    CHECK(lower.encode(text.text) == text.lower);
    CHECK(cased.encode(text.text) == text.cased);
    CHECK(lower.decode(text.lower) == text.decoded);
  }
  std::remove(test_file);

  const test::folder at("xla_test_bert_vocabulary");
  at.write("vocab.txt", xla::io::read_text(XLA_TEST_DATA "/data/vocab.txt"));
  CHECK(xla::ext::read_bert_tokenizer(at.path).encode("Paris") == lower.encode("paris"));
  at.write("tokenizer_config.json", std::string{R"({"do_lower_case": false})"});
  CHECK(xla::ext::read_bert_tokenizer(at.path).encode("Paris") == cased.encode("Paris"));
  CHECK(cased.encode("Paris") != lower.encode("paris"));
}

TEST_CASE("a tokenizer.json of BERT that asks for something else is refused") {
  const auto refused = [](auto change) {
    try {
      (void)xla::ext::read_bert_tokenizer(changed_bert(change));
    } catch (const xla::io_error& e) {
      return std::string{e.what()};
    }
    return std::string{"taken"};
  };
  CHECK(refused([](auto&) {}) == "taken");
  CHECK_THAT(refused([](auto& all) { all["model"]["type"] = "BPE"; }),
             contains("type is 'BPE', data::BertTokenizer has 'WordPiece'"));
  CHECK_THAT(refused([](auto& all) { all["model"]["unk_token"] = "<unk>"; }),
             contains("unk_token is '<unk>'"));
  CHECK_THAT(refused([](auto& all) { all["model"]["max_input_chars_per_word"] = 50; }),
             contains("max_input_chars_per_word is not 100"));
  CHECK_THAT(refused([](auto& all) { all["normalizer"]["strip_accents"] = false; }),
             contains("strip_accents differs from lowercase"));
  CHECK_THAT(refused([](auto& all) { all["normalizer"]["clean_text"] = false; }),
             contains("clean_text is false"));
  CHECK_THAT(refused([](auto& all) { all["normalizer"] = nullptr; }),
             contains("type is '', data::BertTokenizer has 'BertNormalizer'"));
  CHECK_THAT(refused([](auto& all) { all["pre_tokenizer"]["type"] = "Whitespace"; }),
             contains("type is 'Whitespace'"));
  CHECK_THAT(refused([](auto& all) { all["model"]["vocab"]["the"] = 1; }),
             contains("has number 1, expected one of its own"));
  CHECK_THAT(refused([](auto& all) { all["model"]["vocab"]["the"] = 9999; }),
             contains("token 'the' has number 9999"));
  CHECK_THAT(refused([](auto& all) { all["added_tokens"][0]["content"] = "[E1]"; }),
             contains("it adds the token '[E1]'"));
  std::remove(test_file);
}

TEST_CASE("Tokenizer::from_folder takes the kind that a folder has") {
  using xla::ext::Tokenizer;
  const auto bert = Tokenizer::from_folder(XLA_TEST_DATA "/data/bert");
  REQUIRE(bert.get_if<data::BertTokenizer>());
  CHECK(!bert.get_if<data::BpeTokenizer>());
  for (const auto& text : reference::texts) CHECK(bert.encode(std::string{text.text}) == text.lower);
  const auto ids = bert.encode("the capital");
  CHECK(bert.decode(ids) == "[CLS] the capital [SEP]");
  CHECK(bert.decode(ids, true) == "the capital");
  CHECK(bert.id_to_token(ids[0]) == "[CLS]");
  const auto copy = bert;
  CHECK(copy.get_if<data::BertTokenizer>() == bert.get_if<data::BertTokenizer>());

  const auto files = Tokenizer::from_folder(folder);
  CHECK(files.size() == gpt2().size());
  CHECK(files.encode("Hello world") == gpt2().encode("Hello world"));
  const test::folder at("xla_test_tokenizer");
  CHECK_THROWS_WITH(Tokenizer::from_folder(at.path), contains("has no tokenizer: neither"));
  at.write("tokenizer.json", xla::io::read_text(folder + "llama3.json"));
  const auto llama = Tokenizer::from_folder(at.path);
  for (const auto& text : reference::bpe_texts) {
    CHECK(llama.encode(std::string{text.text}) == text.llama3);
    CHECK(llama.decode(text.llama3, true) == text.decoded);
  }
  at.write("tokenizer.json", std::string{R"({"model": {"type": "Unigram"}})"});
  CHECK_THROWS_WITH(Tokenizer::from_folder(at.path), contains("its model is 'Unigram'"));
  at.write("tokenizer.model", std::string{"pieces"});
  CHECK_THROWS_WITH(Tokenizer::from_folder(at.path),
                    contains("tokenizer.model' needs the library sentencepiece") &&
                        contains("include <xla/ext/sentencepiece.hpp>"));
}
