// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/safetensors.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/endless_files.hpp"
#include "support/sanitized.hpp"

using xla::dtype;
using xla::NamedArray;
using xla::ext::parse_safetensors;
using xla::ext::Safetensors;
using xla::ext::to_safetensors;

namespace {

using bytes = std::vector<std::uint8_t>;

template <class T>
NamedArray array(const std::string& name, dtype type, std::vector<std::int64_t> sizes,
                 const std::vector<T>& values) {
  NamedArray out{name, type, std::move(sizes), bytes(values.size() * sizeof(T), 0)};
  if (!values.empty()) std::memcpy(out.bytes.edit().data(), values.data(), out.bytes.size());
  return out;
}

Safetensors sample() {
  return {{array<double>("d", dtype::float64, {}, {0.1}),
           array<float>("w", dtype::float32, {2, 3}, {1, -0.f, 3, NAN, INFINITY, 6}),
           array<std::int32_t>("i", dtype::int32, {1, 1, 1, 1, 1, 1, 1, 2}, {-1, 7}),
           array<std::uint8_t>("flag", dtype::boolean, {3}, {1, 0, 1}),
           array<float>("none", dtype::float32, {0, 5}, {})},
          {{"step", "12"}, {"text", "a \"b\"\n\\ ü"}}};
}

const NamedArray& find(const Safetensors& file, const std::string& name) {
  for (const auto& a : file.tensors)
    if (a.name == name) return a;
  FAIL("no tensor " << name);
  throw 0;
}

void check_same(const Safetensors& a, const Safetensors& b) {
  CHECK(a.metadata == b.metadata);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (const auto& t : a.tensors) CHECK(find(b, t.name) == t);
}

/// A file with this header, and that many bytes of 1 after it.
bytes file_of(const std::string& header, std::size_t data_bytes) {
  bytes out(8 + header.size() + data_bytes, 1);
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), length);
  return out;
}

std::string refusal(const bytes& file) {
  try {
    parse_safetensors(file, "some/file");
  } catch (const xla::io_error& e) {
    const std::string start = "'some/file' is not a safetensors file that can be read: ";
    REQUIRE(std::string{e.what()}.starts_with(start));
    return std::string{e.what()}.substr(start.size());
  }
  return "accepted";
}
std::string refusal(const std::string& header, std::size_t data_bytes = 0) {
  return refusal(file_of(header, data_bytes));
}
std::string tensor(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + type + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets +
         "]}";
}
std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"x":)" + tensor(type, shape, offsets) + "}";
}

/// Why content cannot be written.
std::string objection(const Safetensors& content) {
  try {
    to_safetensors(content, "f");
  } catch (const xla::io_error& e) {
    return e.what();
  }
  return "written";
}

}  // namespace

TEST_CASE("every type and rank comes back bit for bit, aligned") {
  const auto file = to_safetensors(sample());
  const auto back = parse_safetensors(file, "f");
  check_same(sample(), back);
  CHECK(to_safetensors(back) == file);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  CHECK(length % 8 == 0);
  CHECK(back.tensors.front().name == "d");
  check_same({}, parse_safetensors(to_safetensors({}), "f"));
}

TEST_CASE("float32 is written in 16 bits on request, and read back") {
  using xla::ext::FloatFormat;
  const float inf = INFINITY, tiny = std::ldexp(1.f, -24);
  const std::vector<float> in{1,   -0.f, 1.00390625f, 1.01171875f,  65504, 65519, -65520,
                              inf, NAN,  tiny,        0.75f * tiny, 0.1f,  3e38f};
  const std::vector<float> as_bfloat16{1,      -0.f, 1,   1.015625f, 65536,        65536,
                                       -65536, inf,  NAN, tiny,      0.75f * tiny, 0.10009765625f,
                                       3.0e38f};
  const std::vector<float> as_float16{1,    -0.f, 1.00390625f, 1.01171875f, 65504, 65504,
                                      -inf, inf,  NAN,         tiny,        tiny,  0.0999755859375f,
                                      inf};
  Safetensors content{
      {array<float>("x", dtype::float32, {13}, in), array<double>("d", dtype::float64, {}, {0.1}),
       array<std::uint8_t>("b", dtype::uint8, {3}, {1, 2, 3})},
      {}};
  for (const auto format : {FloatFormat::bfloat16, FloatFormat::float16}) {
    const auto file = to_safetensors(content, "f", format);
    CHECK(file.size() == to_safetensors(content).size() - 13 * 2);
    const auto back = parse_safetensors(file, "f");
    CHECK(find(back, "d") == content.tensors[1]);
    CHECK(find(back, "b") == content.tensors[2]);
    CHECK(find(back, "x").type == dtype::float32);
    const auto* const got = reinterpret_cast<const float*>(find(back, "x").bytes.data());
    const auto& want = format == FloatFormat::float16 ? as_float16 : as_bfloat16;
    for (std::size_t i = 0; i < in.size(); ++i) {
      INFO("element " << i);
      if (std::isnan(want[i])) CHECK(std::isnan(got[i]));
      else if (i + 1 == in.size() && format == FloatFormat::bfloat16)
        CHECK(std::abs(got[i] / want[i] - 1) < 1.0 / 256);
      else CHECK(got[i] == want[i]);
    }
    CHECK(std::signbit(got[1]));
    CHECK(to_safetensors(back, "f", format) == file);
  }
  // A tensor of bfloat16 is written as it is.
  const auto small = parse_safetensors(
      to_safetensors({{array<std::uint16_t>("h", dtype::bfloat16, {2}, {0x3f80, 0xc000})}, {}}),
      "f");
  CHECK(find(small, "h") == array<float>("h", dtype::float32, {2}, {1, -2}));
}

TEST_CASE("what big-endian processors do with elements: they swap bytes, and copy what is mapped") {
  constexpr auto other =
      std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
  const auto stored = std::make_shared<const bytes>(bytes{1, 2, 3, 4, 5, 6, 7, 8});
  xla::io::Bytes read{*stored, stored};
  xla::io::detail::convert_bytes(read, 1, other);
  xla::io::detail::convert_bytes(read, 4, std::endian::native);
  CHECK(read.data() == stored->data());
  xla::io::detail::convert_bytes(read, 4, other);
  CHECK(read == xla::io::Bytes{4, 3, 2, 1, 8, 7, 6, 5});
  CHECK(*stored == bytes{1, 2, 3, 4, 5, 6, 7, 8});

  const auto written = [&](std::size_t width, std::endian order) {
    bytes out;
    xla::io::detail::with_order(*stored, width, order,
                                [&](auto part) { out.assign(part.begin(), part.end()); });
    return out;
  };
  CHECK(written(8, other) == bytes{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(written(2, other) == bytes{2, 1, 4, 3, 6, 5, 8, 7});
  CHECK(written(1, other) == *stored);
  CHECK(written(8, std::endian::native) == *stored);
}

TEST_CASE("a file that Python wrote is read") {
  const auto file = xla::ext::read_safetensors(XLA_TEST_DATA "/data/reference.safetensors");
  const auto inf = std::numeric_limits<float>::infinity();
  check_same({{array<float>("fc1.weight", dtype::float32, {2, 3},
                            {0.5f, -1.25f, 3e38f, inf, -0.f, std::ldexp(1.f, -149)}),
               array<float>("fc1.bias", dtype::float32, {3}, {1, 2, 3}),
               array<double>("double", dtype::float64, {}, {0.1}),
               array<std::int32_t>("int", dtype::int32, {3},
                                   {std::numeric_limits<std::int32_t>::min(), 0, 7}),
               array<std::int64_t>("long", dtype::int64, {1, 2, 1},
                                   {1, std::numeric_limits<std::int64_t>::min()}),
               array<std::uint8_t>("bytes", dtype::uint8, {3}, {0, 255, 1}),
               array<std::uint8_t>("flags", dtype::boolean, {3}, {1, 0, 1}),
               array<float>("nothing", dtype::float32, {0, 4}, {}),
               array<std::uint8_t>("größe \"x\"", dtype::uint8, {1}, {8})},
              {{"made by", "safetensors 0.8.0"}, {"quote", "a \"b\" \n ü"}}},
             file);
}

TEST_CASE("lengths that cannot be are refused before anything is allocated") {
  CHECK(refusal(bytes{}) == "it ends within its first 8 bytes");
  CHECK(refusal(bytes(7, 0)) == "it ends within its first 8 bytes");
  CHECK(refusal(bytes(8, 0)) == "the header does not begin with '{'");
  CHECK(refusal(bytes(100, 255)) ==
        "the header takes 18446744073709551615 bytes, at most 100000000 are allowed");
  CHECK(refusal(bytes{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}) == "the header takes 3 bytes, found 2");
}

TEST_CASE("a malformed header is refused") {
  CHECK(refusal("{}") == "accepted");
  CHECK(refusal("{}   \n") == "accepted");
  CHECK(refusal(" {}") == "the header does not begin with '{'");
  CHECK(refusal("[]") == "the header does not begin with '{'");
  CHECK(refusal("{") == "the header is not JSON at its byte 2");
  CHECK(refusal("{}}").starts_with("the header is not JSON"));
  CHECK(refusal("{\"\xff\":1}").starts_with("the header is not JSON"));
  CHECK(refusal("{\"x\":1e999}").starts_with("the header is not JSON"));
  CHECK(refusal(std::string("{}\0junk", 7)) == "a zero byte in the header");
  CHECK(refusal(R"({"x":1})") == "'x' is not an object");
  CHECK(refusal(R"({"x":[]})") == "'x' is not an object");
  CHECK(refusal(R"({"x":null})") == "'x' is not an object");
  CHECK(refusal("{\"x\":" + std::string(1'000'000, '[')) == "'x' is not an object");
  CHECK(refusal(R"({"__metadata__":"a"})") == "'__metadata__' is not an object");
  CHECK(refusal(R"({"__metadata__":{"a":1}})") == "metadata 'a' is not text");
  CHECK(refusal(R"({"__metadata__":{"a":{}}})") == "metadata 'a' is not text");
  CHECK(refusal(R"({"__metadata__":{"a":"","a":""}})") == "metadata 'a' appears twice");
  CHECK(refusal(R"({"__metadata__":{},"__metadata__":{}})") ==
        "the name '__metadata__' appears twice");
  const auto byte = tensor("U8", "1", "0,1");
  CHECK(refusal("{\"x\":" + byte + ",\"x\":" + byte + "}", 1) == "the name 'x' appears twice");
  CHECK(refusal("{\"\\u001b[2J" + std::string(100, 'y') + "\":1}") ==
        "'?[2J" + std::string(76, 'y') + "…' is not an object");
}

TEST_CASE("a malformed tensor is refused") {
  CHECK(refusal(one("U8", "1", "0,1"), 1) == "accepted");
  CHECK(refusal(R"({"x":{}})") == "tensor 'x' lacks dtype, shape or data_offsets");
  CHECK(refusal(R"({"x":{"dtype":"F32","shape":[]}})").starts_with("tensor 'x' lacks"));
  CHECK(refusal(R"({"x":{"color":1}})") ==
        "tensor 'x' has key 'color', expected dtype, shape and data_offsets once");
  CHECK(
      refusal(R"({"x":{"dtype":"F32","dtype":"F32"}})").starts_with("tensor 'x' has key 'dtype'"));
  CHECK(refusal(one("F8_E4M3", "1", "0,1"), 1) ==
        "tensor 'x' has dtype 'F8_E4M3', expected F32, BF16, F16, F64, I32, I64, U8 or BOOL");
  const std::string kind = "tensor 'x' has a value of the wrong kind as ";
  CHECK(refusal(R"({"x":{"dtype":1}})") == kind + "dtype");
  CHECK(refusal(R"({"x":{"dtype":[]}})") == kind + "dtype");
  CHECK(refusal(R"({"x":{"dtype":{}}})") == kind + "dtype");
  CHECK(refusal(R"({"x":{"shape":"1"}})") == kind + "shape");
  CHECK(refusal(R"({"x":{"shape":7}})") == kind + "shape");
  for (const std::string size : {"-1", "1.0", "1e2", "null", "true", "[1]", "{}", "\"1\""})
    CHECK(refusal(one("U8", size, "0,1"), 1) == kind + "shape");
  CHECK(refusal(one("U8", "9223372036854775808", "0,1"), 1) ==
        "tensor 'x' has a size that is too large");
  CHECK(refusal(one("U8", "99999999999999999999", "0,1"), 1) == kind + "shape");
  CHECK(refusal(one("U8", "1", ""), 1) == "tensor 'x' has fewer than two data_offsets");
  CHECK(refusal(one("U8", "1", "0"), 1) == "tensor 'x' has fewer than two data_offsets");
  CHECK(refusal(one("U8", "1", "0,1,1"), 1) == "tensor 'x' has more than two data_offsets");
  CHECK(refusal(one("U8", "1", "-0,1"), 1) == kind + "data_offsets");
}

TEST_CASE("tensors have to cover the data exactly") {
  CHECK(refusal(one("F32", "2,3", "0,24"), 24) == "accepted");
  CHECK(refusal(one("F32", "2,3", "0,24"), 23) ==
        "tensor 'x' ends at byte 24 of the data, which has 23");
  CHECK(refusal(one("F32", "2,3", "0,24"), 25) == "1 bytes follow the last tensor");
  CHECK(refusal(one("F32", "2,3", "0,23"), 23) ==
        "tensor 'x' takes 24 bytes by its shape, data_offsets say from 0 to 23");
  CHECK(refusal(one("U8", "1", "1,0"), 1).starts_with("tensor 'x' begins at byte 1"));
  CHECK(refusal(one("U8", "0", "0,0"), 0) == "accepted");
  const auto two = [](const std::string& a, const std::string& b) {
    return "{\"b\":" + tensor("U8", "2", b) + ",\"a\":" + tensor("U8", "2", a) + "}";
  };
  CHECK(refusal(two("0,2", "2,4"), 4) == "accepted");
  CHECK(refusal(two("2,4", "0,2"), 4) == "accepted");
  CHECK(refusal(two("0,2", "1,3"), 3) ==
        "tensor 'b' begins at byte 1 of the data, inside what ends at 2");
  CHECK(refusal(two("0,2", "3,5"), 5) ==
        "tensor 'b' begins at byte 3 of the data, behind a gap after what ends at 2");
  CHECK(refusal(two("1,3", "3,5"), 5).starts_with("tensor 'a' begins at byte 1"));
  const std::string overflow = "tensor 'x': its shape overflows";
  CHECK(refusal(one("F64", "4611686018427387904,4", "0,0")) == overflow);
  CHECK(refusal(one("U8", "4294967296,4294967296", "0,0")) == overflow);
  CHECK(refusal(one("U8", "0,4294967296,4294967296", "0,0")) == overflow);
  CHECK(refusal(one("U8", "9223372036854775807", "0,9223372036854775807"), 9) ==
        "tensor 'x' ends at byte 9223372036854775807 of the data, which has 9");
  CHECK(refusal(one("U8", "5", "18446744073709551613,2"), 9)
            .starts_with("tensor 'x' begins at byte 18446744073709551613"));
}

TEST_CASE("a file is refused at every shorter length, and with one byte more") {
  const auto good = to_safetensors(sample());
  for (std::size_t n = 0; n < good.size(); ++n)
    REQUIRE(refusal(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n))) !=
            "accepted");
  auto longer = good;
  longer.push_back(0);
  CHECK(refusal(longer) == "1 bytes follow the last tensor");
}

TEST_CASE("inputs found by fuzzing are read or refused alike from a file and from memory") {
  int files = 0, accepted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(XLA_TEST_DATA "/fuzz/corpus")) {
    const auto path = entry.path().string();
    INFO(path);
    Safetensors content;
    std::string from_memory, from_file;
    try {
      content = parse_safetensors(xla::io::read_file(path), path);
    } catch (const xla::io_error& e) {
      from_memory = e.what();
    }
    try {
      check_same(xla::ext::read_safetensors(path), content);
    } catch (const xla::io_error& e) {
      from_file = e.what();
    }
    CHECK(from_file == from_memory);
    accepted += from_file.empty();
    ++files;
  }
  CHECK(files > 100);
  CHECK(accepted > 1);
  CHECK_THROWS_AS(xla::ext::read_safetensors(XLA_TEST_DATA), xla::io_error);
  CHECK_THROWS_AS(xla::ext::read_safetensors(XLA_TEST_DATA "/none"), xla::io_error);
  test::check_endless_files([](auto& path) { xla::ext::read_safetensors(path); },
                            xla::io::max_mapped_bytes);
}

TEST_CASE(
    "arrays read from a file are mapped until they are changed, even if the file is renamed") {
  const auto path = (std::filesystem::temp_directory_path() / "xla_test_mapped").string();
  xla::ext::write_safetensors(path, sample());
  const auto file = xla::io::map_file(path);
  auto content = xla::ext::read_safetensors(path);
  const auto again = content;
  const auto& w = find(content, "w");
  CHECK(w.bytes.data() == find(again, "w").bytes.data());
  CHECK(std::memcmp(file.data() + file.size() - 3, find(content, "flag").bytes.data(), 3) == 0);
  xla::ext::write_safetensors(path, {});
  check_same(content, sample());
  content.tensors[0].bytes.edit()[0] ^= 1;
  CHECK(content.tensors[0] != again.tensors[0]);
  std::filesystem::remove(path);
  check_same(again, sample());
  CHECK(std::vector<std::uint8_t>(file.begin(), file.end()) == to_safetensors(sample()));
  xla::io::write_file(path, {});
  CHECK(xla::io::map_file(path).size() == 0);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(xla::io::map_file(path), xla::io_error);
}

TEST_CASE("thousands of mutated files are read or refused, and what is read can be written") {
  std::uint64_t state = 1;
  const auto draw = [&](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % below;
  };
  const std::vector<std::string> words{"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "\\",
                                       "\"x\"",
                                       "\"F32\"",
                                       "null",
                                       "-1",
                                       "1e9",
                                       "0",
                                       "9223372036854775807",
                                       "18446744073709551616",
                                       "\"__metadata__\"",
                                       "\\ud800",
                                       "\xff",
                                       std::string(1, '\0')};
  const auto whole = to_safetensors(sample());
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  const std::string header{whole.begin() + 8,
                           whole.begin() + 8 + static_cast<std::ptrdiff_t>(length)};
  const std::size_t data = whole.size() - 8 - length;
  int accepted = 0;
  constexpr int files = test::sanitized ? 2000 : 20'000;
  for (int i = 0; i < files; ++i) {
    auto text = header;
    for (auto n = 1 + draw(3); n-- > 0 && !text.empty();) {
      const auto at = draw(text.size()), size = draw(8);
      switch (draw(5)) {
        case 0: text[at] = static_cast<char>(draw(256)); break;
        case 1: text.erase(at, size); break;
        case 2: text.insert(at, words[draw(words.size())]); break;
        case 3: text.insert(at, text.substr(draw(text.size()), size)); break;
        default:
          if (text[at] >= '0' && text[at] <= '9') text[at] = static_cast<char>('0' + draw(10));
      }
    }
    auto file = file_of(text, data + (draw(8) == 0 ? draw(9) : 0));
    if (draw(8) == 0) file[draw(8)] = static_cast<std::uint8_t>(draw(256));
    if (draw(8) == 0) file.resize(draw(file.size()));
    try {
      const auto content = parse_safetensors(file, "f");
      const auto again = parse_safetensors(to_safetensors(content), "f");
      REQUIRE(again.tensors.size() == content.tensors.size());
      ++accepted;
    } catch (const xla::io_error&) {}
  }
  CHECK(accepted > files / 200);
  CHECK(accepted < files * 3 / 4);
}

TEST_CASE("contents without a legal file are not written") {
  auto twice = sample();
  twice.tensors.push_back(twice.tensors[0]);
  CHECK(objection(twice) == "cannot write 'f': the name 'd' appears twice or is reserved");
  CHECK(objection({{array<float>("__metadata__", dtype::float32, {0}, {})}, {}}) ==
        "cannot write 'f': the name '__metadata__' appears twice or is reserved");
  CHECK(objection({{array<float>("\xff", dtype::float32, {0}, {})}, {}}) ==
        "cannot write 'f': a name or a metadata text is not UTF-8");
  CHECK(objection({{}, {{"a", "\xc3"}}}) ==
        "cannot write 'f': a name or a metadata text is not UTF-8");
  CHECK(objection({{array<float>("x", dtype::float32, {3}, {1, 2})}, {}}) ==
        "cannot write 'f': tensor 'x' of sizes [3] holds 8 bytes");
  CHECK(objection({{array<float>("x", dtype::float32, {-1}, {})}, {}})
            .ends_with("of sizes [-1] holds 0 bytes"));
}
