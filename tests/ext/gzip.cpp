// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/gzip.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;

bytes compress(const bytes& content) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  bytes out(deflateBound(&stream, static_cast<uLong>(content.size())), 0);
  stream.next_in = const_cast<Bytef*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

bytes sample(std::size_t n) {
  bytes out(n, 0);
  std::uint32_t state = 1;
  for (auto& byte : out) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1) >> 24);
  return out;
}

bytes operator+(bytes a, const bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool is_refused(const bytes& file, std::uint64_t max_bytes = 1 << 30) {
  try {
    xla::ext::gunzip(file, "some/file", max_bytes);
  } catch (const xla::io_error& e) {
    return std::string{e.what()}.starts_with("cannot decompress 'some/file': ");
  }
  return false;
}

}  // namespace

TEST_CASE("decompression restores data of any length") {
  for (const std::size_t n : {0u, 1u, 1000u, (1u << 18) - 1, 1u << 18, (1u << 18) + 1, 3000000u})
    REQUIRE(xla::ext::gunzip(compress(sample(n)), "f") == sample(n));
  const bytes zeros(5'000'000, 0);
  CHECK(xla::ext::gunzip(compress(zeros), "f") == zeros);
}

TEST_CASE("several members are one file, and zeros may follow") {
  const auto two = compress(sample(10)) + compress(sample(300'000));
  CHECK(xla::ext::gunzip(two, "f") == sample(10) + sample(300'000));
  CHECK(xla::ext::gunzip(two + bytes(512, 0), "f").size() == 300'010);
  CHECK(is_refused(two + bytes{1}));
  CHECK(is_refused(two + bytes{0x1f, 0x8b}));
}

TEST_CASE("a damaged or truncated file is refused") {
  const auto good = compress(sample(2000));
  CHECK_FALSE(is_refused(good));
  for (std::size_t n = 0; n < good.size(); ++n)
    REQUIRE(is_refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}));
  for (std::size_t i = 12; i < good.size(); i += 7) {
    auto bad = good;
    bad[i] = static_cast<std::uint8_t>(bad[i] ^ 0x10);
    REQUIRE(is_refused(bad));
  }
  CHECK(is_refused(sample(100)));
}

TEST_CASE("a bomb stops at the limit") {
  const auto bomb = compress(bytes(64 << 20, 0));
  CHECK(bomb.size() < 100'000);
  CHECK(is_refused(bomb, 1 << 20));
  CHECK(is_refused(bomb + bomb, 100 << 20));
  CHECK_FALSE(is_refused(bomb, 64 << 20));
}

TEST_CASE("IDX files are read plain and compressed") {
  const bytes idx{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  const auto path = (std::filesystem::temp_directory_path() / "xla_test_gzip").string();
  for (const auto& content : {idx, compress(idx)}) {
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(content.data()),
                                                static_cast<std::streamsize>(content.size()));
    const auto array = xla::ext::read_idx(path);
    CHECK(array.sizes == std::vector<std::int64_t>{2, 3});
    CHECK(array.bytes == bytes{1, 2, 3, 4, 5, 6});
  }
  CHECK_THROWS_AS(xla::io::read_idx(path), xla::io_error);
  std::filesystem::remove(path);
}
