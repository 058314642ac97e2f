// SPDX-License-Identifier: Apache-2.0
#include "xla/io/text.hpp"

#include <filesystem>
#include <fstream>

#include "catch.hpp"

using xla::io::CharVocab;
using ids = std::vector<std::int64_t>;

TEST_CASE("a vocabulary numbers the characters of a text in order") {
  const CharVocab vocab{"hello world"};
  CHECK(vocab.size() == 8);
  CHECK(vocab.characters() == " dehlorw");
  CHECK(vocab.encode("held") == ids{3, 2, 4, 1});
  CHECK(vocab.decode(ids{3, 2, 4, 1}) == "held");
  CHECK(vocab.decode(7) == 'w');
  CHECK(vocab.encode("").empty());
  CHECK(CharVocab{vocab.characters()}.characters() == vocab.characters());
  CHECK(CharVocab{""}.size() == 0);
}

TEST_CASE("every byte has its place, whatever the sign of char") {
  std::string all;
  for (int c = 255; c >= 0; --c) all.push_back(static_cast<char>(c));
  const CharVocab vocab{all};
  CHECK(vocab.size() == 256);
  CHECK(vocab.encode(std::string(1, '\0')) == ids{0});
  CHECK(vocab.encode("\xff") == ids{255});
  CHECK(vocab.decode(vocab.encode(all)) == all);
}

TEST_CASE("unknown characters and numbers are refused") {
  const CharVocab vocab{"abc"};
  CHECK_THROWS_AS(vocab.encode("abd"), xla::index_error);
  CHECK_THROWS_WITH(vocab.encode("abd"),
                    "CharVocab: character 100 at position 2 is not in the vocabulary of 3");
  CHECK_THROWS_AS(vocab.decode(3), xla::index_error);
  CHECK_THROWS_AS(vocab.decode(ids{0, -1}), xla::index_error);
}

TEST_CASE("a text file is read byte for byte") {
  const auto path = (std::filesystem::temp_directory_path() / "xla_test_text").string();
  std::string content = "a\r\nb\n\xc3\xa9";
  content.push_back('\0');
  content.append(600'000, 'x');
  std::ofstream{path, std::ios::binary} << content;
  CHECK(xla::io::read_text(path) == content);
  CHECK_THROWS_AS(xla::io::read_text(path, 10), xla::io_error);
  std::ofstream{path, std::ios::binary | std::ios::trunc};
  CHECK(xla::io::read_text(path).empty());
  std::filesystem::remove(path);
  CHECK_THROWS_AS(xla::io::read_text(path), xla::io_error);
}
