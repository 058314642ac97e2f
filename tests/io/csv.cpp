// SPDX-License-Identifier: Apache-2.0
#include "xla/io/csv.hpp"

#include <clocale>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "xla/xla.hpp"

namespace {

using xla::io::csv_options;
using xla::io::parse_csv;
using names = std::vector<std::string>;
using floats = std::vector<float>;
using sizes = std::vector<std::int64_t>;

// The message of the refusal of this text.
template <class T = float>
std::string refusal(const std::string& text, const csv_options& options = {}) {
  try {
    parse_csv<T>(text, "some.csv", options);
  } catch (const xla::io_error& e) {
    return e.what();
  }
  return "accepted";
}

floats values(const std::string& text, const csv_options& options = {.header = false}) {
  return parse_csv(text, "f", options).values.to_vector();
}

}  // namespace

TEST_CASE("a table is read with its names") {
  const auto table = parse_csv("age, height ,weight\n31,1.75,80\n42,1.6,-5e1\n", "f");
  CHECK(table.columns == names{"age", "height", "weight"});
  CHECK(table.values.sizes() == sizes{2, 3});
  CHECK(table.values.to_vector() == floats{31, 1.75f, 80, 42, 1.6f, -50});
  CHECK(table.column("height") == 1);
  CHECK_THROWS_AS(table.column("size"), xla::io_error);
}

TEST_CASE("without a header, with another delimiter, in double") {
  const auto table =
      parse_csv<double>("0.1;2\r\n 3 ;\t4\r\n", "f", {.delimiter = ';', .header = false});
  CHECK(table.columns.empty());
  CHECK(table.values.sizes() == sizes{2, 2});
  CHECK(table.values.to_vector() == std::vector<double>{0.1, 2, 3, 4});
  CHECK(values("1\t2\n3\t4", {.delimiter = '\t', .header = false}) == floats{1, 2, 3, 4});
}

TEST_CASE("fields may be quoted, also over lines") {
  const auto table = parse_csv("\"a, b\",\"say \"\"c\"\"\",\"two\nlines\"\n\"1\",\" 2 \",3\n", "f");
  CHECK(table.columns == names{"a, b", "say \"c\"", "two\nlines"});
  CHECK(table.values.to_vector() == floats{1, 2, 3});
}

TEST_CASE("a byte order mark, empty lines and a missing last line end are accepted") {
  const auto table = parse_csv("\xEF\xBB\xBFx,y\n\n1,2\r\n\r\n\n3,4", "f");
  CHECK(table.columns == names{"x", "y"});
  CHECK(table.values.to_vector() == floats{1, 2, 3, 4});
}

TEST_CASE("a table without rows keeps its columns") {
  for (const auto* text : {"a,b,c\n", "a,b,c"}) {
    const auto table = parse_csv(text, "f");
    CHECK(table.columns == names{"a", "b", "c"});
    CHECK(table.values.sizes() == sizes{0, 3});
  }
}

TEST_CASE("columns are chosen by name, so that others may hold text") {
  const std::string text = "name,x,city,y\nAda,1,London,2\nEmmy,3,Erlangen,4\n";
  const auto table = parse_csv(text, "f", {.columns = {"y", "x"}});
  CHECK(table.columns == names{"y", "x"});
  CHECK(table.values.to_vector() == floats{2, 1, 4, 3});
  CHECK(refusal(text, {.columns = {"x", "z"}}) == "'some.csv' has no column 'z'");
  CHECK(refusal(text, {.header = false, .columns = {"x"}}) ==
        "'some.csv' has no column 'x': it is read without a header");
}

TEST_CASE("an empty field is an error, or the number that stands for it") {
  CHECK(refusal("a,b\n1,\n") == "'some.csv', line 2, column 2 (b): an empty field");
  CHECK(refusal("a,b\n,1\n") == "'some.csv', line 2, column 1 (a): an empty field");
  const auto table = parse_csv("a,b\n1,\n  ,\"\"\n", "f", {.missing = -1});
  CHECK(table.values.to_vector() == floats{1, -1, -1, -1});
  const auto nan = parse_csv("a,b\n1,\n", "f", {.missing = NAN}).values.to_vector();
  CHECK(std::isnan(nan[1]));
}

TEST_CASE("numbers are written as C writes them, in any locale") {
  const char* const before = std::setlocale(LC_NUMERIC, nullptr);
  const std::string kept = before;
  std::setlocale(LC_NUMERIC, "de_DE.UTF-8");  // a comma, where that locale is there
  CHECK(values("+1.5,-.5,5.,1e3,0E-2") == floats{1.5f, -0.5f, 5, 1000, 0});
  std::setlocale(LC_NUMERIC, kept.c_str());
  const auto special = values("inf,-Infinity,nan,-0.0");
  CHECK(special[0] == std::numeric_limits<float>::infinity());
  CHECK(special[1] == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(special[2]));
  CHECK(std::signbit(special[3]));
  CHECK(values("16777217")[0] == 16777216.0f);
  CHECK(values("1e-400,1e-60,-1e-46,1e-45") == floats{0, 0, 0, 1.4e-45f});
}

TEST_CASE("a field that is no number is refused with file, line and column") {
  CHECK(refusal("x,y\n1,2\n3,four\n") ==
        "'some.csv', line 3, column 2 (y): 'four' is not a number");
  for (const std::string wrong : {"1,5x", "1,1.2.3", "1,0x10", "1,--1", "1,+-1", "1,1 2", "1,e5",
                                  "1,5\r\r", "1,1e", "1,a\"b\""}) {
    INFO(wrong);
    const auto message = refusal(wrong + "\n", {.header = false});
    CHECK(message.starts_with("'some.csv', line 1, column 2: "));
    CHECK(message.ends_with(" is not a number"));
  }
  CHECK(refusal("1,1e39\n", {.header = false}) ==
        "'some.csv', line 1, column 2: '1e39' is too large for float32");
  CHECK(refusal<double>("-1e999\n", {.header = false}) ==
        "'some.csv', line 1, column 1: '-1e999' is too large for float64");
  CHECK(refusal("a\n\"1\n2\"\n\nx\n") ==
        "'some.csv', line 2, column 1 (a): '1\?2' is not a number");
  CHECK(refusal("a,b\n1,2\n\n\"\n3\",x\n", {.columns = {"b"}}) ==
        "'some.csv', line 5, column 2 (b): 'x' is not a number");
  CHECK(refusal(std::string("1\n\x01\0\x7f", 5), {.header = false}) ==
        "'some.csv', line 2, column 1: '\?\?\?' is not a number");
  CHECK(refusal(std::string(100, 'z') + "\n", {.header = false}) ==
        "'some.csv', line 1, column 1: '" + std::string(24, 'z') + "…' is not a number");
}

TEST_CASE("ragged records and quotes that do not close are refused") {
  CHECK(refusal("a,b\n1,2\n\n3\n") == "'some.csv', line 4: 1 fields, line 1 has 2");
  CHECK(refusal("\na,b\n1,2,3\n") == "'some.csv', line 3: 3 fields, line 2 has 2");
  CHECK(refusal("a,b\n1,2,\n") == "'some.csv', line 2: 3 fields, line 1 has 2");
  CHECK(refusal("a,b\n1,\"2\n3,4\n") ==
        "'some.csv', line 2, column 2: the quote that opens here is not closed");
  CHECK(refusal("\"") == "'some.csv', line 1, column 1: the quote that opens here is not closed");
  CHECK(refusal("a\n\"1\"2\n") == "'some.csv', line 2, column 1: text after the closing quote");
  CHECK(refusal("") == "'some.csv' is empty");
  CHECK(refusal("\n\r\n") == "'some.csv' is empty");
  CHECK(refusal("1\n", {.delimiter = '"'})
            .ends_with("the delimiter cannot be a quote or the end "
                       "of a line"));
}

TEST_CASE("any cut of a table is read or refused, never more") {
  const std::string text = "a,\"b\"\"c\"\r\n1,\"2\"\r\n\"3\",4\r\n";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const auto message = refusal(text.substr(0, n));
    INFO(n << ": " << message);
    CHECK((message == "accepted" || message.starts_with("'some.csv'")));
  }
}

TEST_CASE("read_csv names the path") {
  const auto path = (std::filesystem::temp_directory_path() / "xla_test.csv").string();
  std::ofstream{path} << "x,y\n1,2\n";
  CHECK(xla::io::read_csv(path).values.to_vector() == floats{1, 2});
  std::ofstream{path} << "x,y\n1,?\n";
  CHECK_THROWS_WITH(xla::io::read_csv(path), test::contains(path + "', line 2, column 2 (y)"));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(xla::io::read_csv(path), xla::io_error);
}
