// SPDX-License-Identifier: Apache-2.0
#include "xla/io/npy.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/endless_files.hpp"
#include "xla/io/csv.hpp"
#include "xla/xla.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;
using sizes = std::vector<std::int64_t>;
using xla::io::parse_npy;

// A file of this version and header, with `count` bytes of elements: 0, 1, 2 …
bytes npy_file(const std::string& header, std::size_t count, std::uint8_t version = 1) {
  bytes out{0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    out.push_back(static_cast<std::uint8_t>(header.size() >> (8 * i)));
  out.insert(out.end(), header.begin(), header.end());
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::uint8_t>(i));
  return out;
}

std::string header(const std::string& descr, const std::string& shape,
                   const char* order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

// The reason for refusing these bytes.
std::string refusal(const bytes& file) {
  try {
    parse_npy(file, "some.npy");
  } catch (const xla::io_error& e) {
    const std::string what = e.what();
    CHECK(what.starts_with("'some.npy' is not a .npy file that can be read: "));
    return what.substr(what.find(": ") + 2);
  }
  return "accepted";
}
std::string refusal(const std::string& header, std::size_t count = 0) {
  return refusal(npy_file(header, count));
}

// What numpy.save wrote for this array, byte for byte.
bytes from_numpy(const std::string& descr, const std::string& shape, const bytes& elements) {
  std::string text = header(descr, shape);
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  auto out = npy_file(text + '\n', 0);
  out.insert(out.end(), elements.begin(), elements.end());
  return out;
}

template <int Rank, class T>
void check_round_trip(const xla::Tensor<T, Rank>& tensor) {
  const auto file = xla::io::to_npy(tensor);
  CHECK(file.size() % 64 ==
        static_cast<std::size_t>(std::int64_t(tensor.numel())) * sizeof(T) % 64);
  const auto array = parse_npy(file, "f");
  CHECK(array.type == xla::dtype_of<T>);
  const auto back = xla::io::to_tensor<T, Rank>(array, "f");
  CHECK(back.sizes() == tensor.sizes());
  CHECK(back.to_vector() == tensor.to_vector());
}

}  // namespace

TEST_CASE("the bytes are those that numpy.save writes") {
  // numpy.save(f, numpy.array([[1, 2, 3]], numpy.float32)), and of others, by NumPy 2.4.
  CHECK(xla::io::to_npy(xla::tensor<float>({{1, 2, 3}})) ==
        from_numpy("<f4", "(1, 3)", {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40}));
  CHECK(xla::io::to_npy(xla::tensor<std::uint8_t>({7, 8})) == from_numpy("|u1", "(2,)", {7, 8}));
  CHECK(xla::io::to_npy(xla::tensor<bool>({true, false})) == from_numpy("|b1", "(2,)", {1, 0}));
  CHECK(xla::io::to_npy(xla::Tensor<double, 0>(1.0)) ==
        from_numpy("<f8", "()", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}));
}

TEST_CASE("every type and rank comes back") {
  check_round_trip(xla::tensor<float>({{1.5f, -2, 3}, {4, 5, 6}}));
  check_round_trip(xla::tensor<double>({0.1, -1e300}));
  check_round_trip(xla::tensor<std::int32_t>({1, -2}));
  check_round_trip(xla::tensor<std::int64_t>({{{1, -2}}, {{3, 1ll << 60}}}));
  check_round_trip(xla::tensor<std::uint8_t>({0, 255}));
  check_round_trip(xla::tensor<bool>({true, false, true}));
  check_round_trip(xla::Tensor<float, 0>(3.0f));
  check_round_trip(xla::zeros<float>({3, 0, 2}));
  check_round_trip(xla::ones<float>({1, 2, 1, 3, 1, 2}));
}

TEST_CASE("column-major arrays are brought into row-major order") {
  // numpy.asfortranarray([[0, 2, 4], [1, 3, 5]]): columns one after the other.
  const auto array = parse_npy(npy_file(header("|u1", "(2, 3)", "True"), 6), "f");
  CHECK(array.sizes == sizes{2, 3});
  CHECK(array.bytes == bytes{0, 2, 4, 1, 3, 5});
  const auto cube = parse_npy(npy_file(header("<i4", "(2, 1, 3)", "True"), 24), "f");
  for (std::size_t element = 0; element < 6; ++element)
    CHECK(cube.bytes[4 * element] == 4 * (bytes{0, 2, 4, 1, 3, 5}[element]));
  CHECK(parse_npy(npy_file(header("|u1", "(3,)", "True"), 3), "f").bytes == bytes{0, 1, 2});
  CHECK(parse_npy(npy_file(header("<f8", "(0, 3)", "True"), 0), "f").bytes.empty());
}

TEST_CASE("versions 1 to 3, and every spelling of the header that Python reads the same") {
  for (const std::uint8_t version : {1, 2, 3})
    CHECK(parse_npy(npy_file(header("<f4", "(2,)"), 8, version), "f").sizes == sizes{2});
  for (const char* const text :
       {"{'shape': (2, 3), 'descr': '|u1', 'fortran_order': False}",
        "{\"descr\":\"<u1\",\"fortran_order\":False,\"shape\":(2,3,)}  \n",
        " { 'descr' : '>u1' , 'fortran_order' : False ,\n 'shape' : ( 2L , 3L ) , } "}) {
    INFO(text);
    const auto array = parse_npy(npy_file(text, 6), "f");
    CHECK(array.sizes == sizes{2, 3});
    CHECK(array.type == xla::dtype::uint8);
  }
}

TEST_CASE("bool elements are 0 or 1 whatever the file says") {
  const auto array = parse_npy(npy_file(header("|b1", "(3,)"), 3), "f");
  CHECK(array.bytes == bytes{0, 1, 1});
}

TEST_CASE("big-endian elements are read") {
  // numpy.array([[1, -2], [3, 0.5]], ">f4"), and of others, row-major and column-major.
  const bytes elements{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0, 0x40, 0x40, 0, 0, 0x3f, 0, 0, 0};
  const auto read = [&](const char* order) {
    auto file = npy_file(header(">f4", "(2, 2)", order), 0);
    file.insert(file.end(), elements.begin(), elements.end());
    return xla::io::to_tensor<float, 2>(parse_npy(file, "f"), "f").to_vector();
  };
  CHECK(read("False") == std::vector<float>{1, -2, 3, 0.5f});
  CHECK(read("True") == std::vector<float>{1, 3, -2, 0.5f});
  const auto wide = parse_npy(npy_file(header(">i8", "()"), 8), "f");
  CHECK(xla::io::to_tensor<std::int64_t, 0>(wide, "f").item() == 0x0001020304050607);
}

TEST_CASE("other element types are refused by name") {
  for (const std::string descr :
       {"<f2", "<c8", "<u4", "|S5", "<U3", "|O", "<M8[ns]", "f4x", "u1", "xu1", ">f2", "=f4", ""})
    CHECK(refusal(header(descr, "(1,)"), 1).starts_with("element type '" + descr + "'"));
  CHECK(refusal("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4)
            .starts_with("it holds records"));
}

TEST_CASE("a malformed header is refused") {
  CHECK(refusal(bytes{}) == "it does not start with \\x93NUMPY");
  CHECK(refusal(bytes{'P', 'K', 3, 4, 0, 0, 0, 0, 0, 0}) == "it does not start with \\x93NUMPY");
  CHECK(refusal(npy_file(header("<f4", "(1,)"), 4, 4)) == "version 4, expected 1 to 3");
  CHECK(refusal(npy_file(header("<f4", "(1,)"), 4, 0)) == "version 0, expected 1 to 3");
  CHECK(refusal("") == "'{' is missing in the header");
  CHECK(refusal("{}") == "the header lacks descr, fortran_order or shape");
  CHECK(refusal("{'descr': '<f4', 'shape': (1,)}").starts_with("the header lacks"));
  CHECK(refusal("{'descr': '<f4', 'descr': '<f4'}").starts_with("key 'descr'"));
  CHECK(refusal("{'color': 1}").starts_with("key 'color'"));
  CHECK(refusal("{'descr': '<f4").starts_with("a word of the header does not end"));
  CHECK(refusal("{'" + std::string(100, 'x') + "': 1}").starts_with("a word of the header"));
  CHECK(refusal("{descr: 1}") == "a quoted word is missing in the header");
  CHECK(refusal(header("<f4", "(1,)", "false")) == "'False' is missing in the header");
  CHECK(refusal(header("<f4", "(1)")) == "a shape of one axis lacks its comma");
  CHECK(refusal(header("<f4", "[1]")) == "'(' is missing in the header");
  CHECK(refusal(header("<f4", "(-1,)")) == "a size of the shape is not a number");
  CHECK(refusal(header("<f4", "(1.5,)")) == "')' is missing in the header");
  CHECK(refusal(header("<f4", "(99999999999999999999,)")) == "a size is too large");
  CHECK(refusal(header("<f4", "(1,)") + "x") == "text after the header");
}

TEST_CASE("huge sizes of npy files neither overflow nor allocate") {
  CHECK(refusal(header("<f8", "(4611686018427387904, 4)")) ==
        "shape (4611686018427387904, 4) overflows");
  CHECK(refusal(header("<f8", "(4611686018427387904, 4, 0)")).ends_with("overflows"));
  CHECK(refusal(header("|u1", "(4294967296, 4294967296)")).ends_with("overflows"));
  CHECK(refusal(header("|u1", "(4611686018427387904,)"), 3) ==
        "shape (4611686018427387904,) of uint8 takes 4611686018427387904 bytes after the header, "
        "found 3");
}

TEST_CASE("a truncated or overlong file is refused at every length, and no byte can crash it") {
  const auto good = xla::io::to_npy(xla::tensor<float>({{1, 2}, {3, 4}}));
  CHECK(refusal(good) == "accepted");
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK(refusal(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n))) !=
          "accepted");
  auto longer = good;
  longer.push_back(0);
  CHECK(refusal(longer) == "shape (2, 2) of float32 takes 16 bytes after the header, found 17");
  for (std::size_t at = 0; at < 70; ++at)
    for (int value = 0; value < 256; ++value) {
      auto changed = good;
      changed[at] = static_cast<std::uint8_t>(value);
      try {
        parse_npy(changed, "f");
      } catch (const xla::io_error&) {}
    }
}

TEST_CASE("files are written and read, and the type and rank asked for have to be theirs") {
  const auto path = (std::filesystem::temp_directory_path() / "xla_test.npy").string();
  xla::io::write_npy(path, xla::tensor<float>({{1, 2}, {3, 4}}));
  const auto back = xla::io::read_npy<float, 2>(path);
  CHECK(back.to_vector() == std::vector<float>{1, 2, 3, 4});
  CHECK_THROWS_WITH((xla::io::read_npy<double, 2>(path)),
                    "'" + path + "' holds float32 of shape (2, 2), wanted float64 of 2 axes");
  CHECK_THROWS_AS((xla::io::read_npy<float, 1>(path)), xla::io_error);
  std::filesystem::remove(path);
  CHECK_THROWS_AS((xla::io::read_npy<float, 2>(path)), xla::io_error);
  CHECK_THROWS_AS(xla::io::write_npy("no/such/folder/x.npy", back), xla::io_error);
}

TEST_CASE("an array or a table that never ends is refused before it is read") {
  test::check_endless_files([](auto& path) { xla::io::read_npy<float, 1>(path); },
                            xla::io::default_max_bytes);
  test::check_endless_files([](auto& path) { xla::io::read_csv(path); },
                            xla::io::default_max_bytes);
}
