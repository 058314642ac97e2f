// SPDX-License-Identifier: Apache-2.0
#include "xla/io/idx.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "catch.hpp"
#include "support/endless_files.hpp"
#include "xla/io/text.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;
using xla::io::idx_type;
using xla::io::parse_idx;

// A file with this header and `count` zero bytes of elements.
bytes idx_file(std::uint8_t type, const std::vector<std::uint32_t>& sizes, std::size_t count) {
  bytes out{0, 0, type, static_cast<std::uint8_t>(sizes.size())};
  for (const auto size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8)
      out.push_back(static_cast<std::uint8_t>(size >> shift));
  out.resize(out.size() + count);
  return out;
}

// The message of the refusal of these bytes.
std::string refusal(const bytes& file) {
  try {
    parse_idx(file, "some/file");
  } catch (const xla::io_error& e) {
    const std::string what = e.what();
    CHECK(what.starts_with("'some/file' is not a valid IDX file: "));
    return what.substr(what.find(": ") + 2);
  }
  return "accepted";
}

// What the call that has to fail says.
template <class F>
std::string message(const F& call) {
  try {
    call();
  } catch (const xla::io_error& e) {
    return e.what();
  }
  return "nothing thrown";
}

std::string temporary(const std::string& name, const bytes& content) {
  const auto path = (std::filesystem::temp_directory_path() / name).string();
  std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(content.data()),
                                              static_cast<std::streamsize>(content.size()));
  return path;
}

}  // namespace

TEST_CASE("an IDX file of bytes is read with its sizes") {
  auto file = idx_file(0x08, {2, 3, 1}, 6);
  for (std::uint8_t i = 0; i < 6; ++i) file[16 + i] = i;
  const auto array = parse_idx(file, "f");
  CHECK(array.sizes == std::vector<std::int64_t>{2, 3, 1});
  CHECK(array.type == idx_type::uint8);
  CHECK(array.bytes == bytes{0, 1, 2, 3, 4, 5});
}

TEST_CASE("wider elements come in the byte order of the machine") {
  auto file = idx_file(0x0D, {2}, 8);
  const bytes one_and_minus_two{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
  std::copy(one_and_minus_two.begin(), one_and_minus_two.end(), file.begin() + 8);
  const auto array = parse_idx(file, "f");
  float values[2];
  REQUIRE(array.bytes.size() == sizeof values);
  std::memcpy(values, array.bytes.data(), sizeof values);
  CHECK(values[0] == 1.0f);
  CHECK(values[1] == -2.0f);

  auto shorts = idx_file(0x0B, {1}, 2);
  shorts[8] = 1;
  std::int16_t value;
  std::memcpy(&value, parse_idx(shorts, "f").bytes.data(), 2);
  CHECK(value == 256);
}

TEST_CASE("every type and one to four axes are accepted, also without elements") {
  for (const auto& [code, size] : std::vector<std::pair<std::uint8_t, std::size_t>>{
           {0x08, 1}, {0x09, 1}, {0x0B, 2}, {0x0C, 4}, {0x0D, 4}, {0x0E, 8}}) {
    CHECK(parse_idx(idx_file(code, {2, 1, 3, 1}, 6 * size), "f").bytes.size() == 6 * size);
    CHECK(parse_idx(idx_file(code, {5}, 5 * size), "f").sizes.size() == 1);
    CHECK(parse_idx(idx_file(code, {0, 28, 28}, 0), "f").bytes.empty());
  }
}

TEST_CASE("a malformed IDX file is refused with what was found and what was expected") {
  const auto good = idx_file(0x08, {2, 3}, 6);
  CHECK(refusal(good) == "accepted");
  CHECK(refusal({}) == "it has 0 bytes, the header takes 4");
  CHECK(refusal({0, 0, 8}) == "it has 3 bytes, the header takes 4");
  CHECK(refusal({0, 1, 8, 1}) == "it starts with 0x00 0x01, expected 0x00 0x00");
  CHECK(refusal({0, 0, 0x0A, 1}) == "element type 0x0a, expected 0x08, 0x09 or 0x0b to 0x0e");
  CHECK(refusal({0, 0, 0, 1}).starts_with("element type 0x00"));
  CHECK(refusal({0, 0, 8, 0}) == "it has 0 axes, expected 1 to 4");
  CHECK(refusal({0, 0, 8, 5}) == "it has 5 axes, expected 1 to 4");
  CHECK(refusal({0, 0, 8, 255}) == "it has 255 axes, expected 1 to 4");
  CHECK(refusal({0x1f, 0x8b, 8, 0}).starts_with("it is compressed with gzip"));
}

TEST_CASE("a truncated or overlong IDX file is refused at every length") {
  const auto good = idx_file(0x0C, {2, 3}, 24);
  for (std::size_t n = 4; n < 12; ++n)
    CHECK(refusal({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}) ==
          "it has " + std::to_string(n) + " bytes, the header of 2 axes takes 12");
  for (std::size_t n = 12; n < good.size(); ++n)
    CHECK(refusal({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}) ==
          "sizes 2 x 3 take 24 bytes after the header, found " + std::to_string(n - 12));
  auto longer = good;
  longer.push_back(0);
  CHECK(refusal(longer) == "sizes 2 x 3 take 24 bytes after the header, found 25");
}

TEST_CASE("huge sizes of IDX files neither overflow nor allocate") {
  const std::uint32_t most = 0xffffffff;
  CHECK(refusal(idx_file(0x0E, {most, most, most, most}, 16)) ==
        "sizes 4294967295 x 4294967295 x 4294967295 x 4294967295 overflow");
  CHECK(refusal(idx_file(0x08, {most}, 16)) ==
        "sizes 4294967295 take 4294967295 bytes after the header, found 16");
  // 2^32 * 2^32 wraps to 0 in 64 bits, and 0 bytes are there.
  CHECK(refusal(idx_file(0x08, {0x80000000, 0x80000000, 4}, 0)).ends_with("overflow"));
}

TEST_CASE("read_idx names the path") {
  const auto path = temporary("xla_test_idx", idx_file(0x08, {2, 3}, 6));
  CHECK(xla::io::read_idx(path).bytes.size() == 6);
  std::filesystem::resize_file(path, 17);
  const auto truncated = message([&] { xla::io::read_idx(path); });
  CHECK(truncated.find(path) != std::string::npos);
  CHECK(truncated.ends_with("found 5"));
  std::filesystem::remove(path);
  CHECK(message([&] { xla::io::read_idx(path); }).starts_with("cannot open '" + path + "': "));
}

TEST_CASE("read_file refuses directories and files over the limit") {
  const auto directory = std::filesystem::temp_directory_path().string();
  CHECK_THROWS_AS(xla::io::read_file(directory), xla::io_error);
  const auto path = temporary("xla_test_limit", bytes(1000, 7));
  CHECK(xla::io::read_file(path, 1000) == bytes(1000, 7));
  CHECK(message([&] { xla::io::read_file(path, 999); }).ends_with("limit of 999 bytes"));
  std::filesystem::remove(path);
}

TEST_CASE("endless files are refused before they are read") {
  using namespace xla::io;
  test::check_endless_files([](auto& path) { read_file(path, 999); }, 999);
  test::check_endless_files([](auto& path) { read_file(path); }, default_max_bytes);
  test::check_endless_files([](auto& path) { read_text(path); }, default_max_bytes);
  test::check_endless_files([](auto& path) { read_idx(path); }, default_max_bytes);
  test::check_endless_files([](auto& path) { map_file(path); }, max_mapped_bytes);
  const auto folder = std::filesystem::temp_directory_path().string();
  CHECK(message([&] { read_file(folder); }) == "cannot read '" + folder + "': it is a folder");
  if (std::filesystem::exists("/proc/self/status")) {  // of no size, and not empty
    CHECK(read_text("/proc/self/status").starts_with("Name:"));
    CHECK(map_file("/proc/self/status").size() > 100);
    CHECK(message([] { read_text("/proc/self/status", 10); }).ends_with("limit of 10 bytes"));
  }
}
