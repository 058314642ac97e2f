// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/image.hpp"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <zlib.h>

#include "catch.hpp"
#include "ext/jpegs.inc"
#include "support/endless_files.hpp"
#include "support/pictures.hpp"

namespace {

using namespace xla::ext;
using xla::data::Picture;
using bytes = std::vector<std::uint8_t>;

/// What libpng may be asked to write.
struct png_form {
  int depth = 8, color = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;
  std::vector<png_color> palette = {};
  bytes transparency = {}, exif = {};
};

/// Rows as they are stored, as a PNG file.
bytes png(std::uint32_t height, std::uint32_t width, bytes rows, const png_form& form = {}) {
  bytes out;
  auto* p = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  auto* info = png_create_info_struct(p);
  REQUIRE(setjmp(png_jmpbuf(p)) == 0);
  png_set_write_fn(
      p, &out,
      [](png_structp png, png_bytep data, std::size_t count) {
        auto& to = *static_cast<bytes*>(png_get_io_ptr(png));
        to.insert(to.end(), data, data + count);
      },
      nullptr);
  png_set_IHDR(p, info, width, height, form.depth, form.color,
               form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  if (!form.palette.empty())
    png_set_PLTE(p, info, form.palette.data(), static_cast<int>(form.palette.size()));
  if (!form.transparency.empty())
    png_set_tRNS(p, info, form.transparency.data(), static_cast<int>(form.transparency.size()),
                 nullptr);
  if (!form.exif.empty())
    png_set_eXIf_1(p, info, static_cast<png_uint_32>(form.exif.size()),
                   const_cast<png_bytep>(form.exif.data()));
  png_write_info(p, info);
  std::vector<png_bytep> lines;
  for (std::uint32_t y = 0; y < height; ++y) lines.push_back(&rows[y * (rows.size() / height)]);
  png_write_image(p, lines.data());
  png_write_end(p, info);
  png_destroy_write_struct(&p, &info);
  return out;
}
bytes png(const Picture& picture, const png_form& form = {}) {
  return png(static_cast<std::uint32_t>(picture.height), static_cast<std::uint32_t>(picture.width),
             picture.pixels, form);
}

/// EXIF data that tells one orientation, in either order of bytes.
bytes exif(std::uint8_t orientation, bool little) {
  if (little)
    return {'I', 'I', 42, 0, 8, 0,           0, 0, 1, 0, 0x12, 1, 3,
            0,   1,   0,  0, 0, orientation, 0, 0, 0, 0, 0,    0, 0};
  return {'M', 'M', 0, 42, 0, 0, 0,           8, 0, 1, 1, 0x12, 0,
          3,   0,   0, 0,  1, 0, orientation, 0, 0, 0, 0, 0,    0};
}

ImageOptions gray() { return {.mode = ImageReadMode::gray}; }

std::string refusal(const bytes& file, const ImageOptions& options = {}) {
  try {
    decode_image(file, "some/file", options);
  } catch (const xla::io_error& e) {
    const std::string begin = "'some/file' is not a picture that can be read: ", said = e.what();
    REQUIRE(said.starts_with(begin));
    REQUIRE(said.size() > begin.size());
    return said.substr(begin.size());
  }
  return "";
}

/// Whether no byte differs by more.
bool near(const bytes& a, const bytes& b, int most) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [&](int x, int y) { return std::abs(x - y) <= most; });
}

const bytes& jpeg_named(const std::string& name) {
  static bytes file;
  for (const auto& each : reference::jpeg_cases)
    if (name == each.name) return file = test::bytes_of(each.file);
  FAIL("no JPEG file is called " << name);
  return file;
}

}  // namespace

TEST_CASE("PNG files of every kind are read: colours, grey, depths, palettes, alpha, interlaced") {
  const auto rgb = test::picture(7, 5, 3), one = test::picture(7, 5, 1);
  for (const bool interlaced : {false, true}) {
    const auto out = decode_image(png(rgb, {.interlaced = interlaced}), "f");
    CHECK(out.height == 7);
    CHECK(out.width == 5);
    CHECK(out.channels == 3);
    CHECK(out.pixels == rgb.pixels);
    const auto grey = png(one, {.color = PNG_COLOR_TYPE_GRAY, .interlaced = interlaced});
    CHECK(decode_image(grey, "f", gray()).pixels == one.pixels);
    CHECK(decode_image(grey, "f").pixels == xla::data::as_rgb(one).pixels);
  }
  CHECK(decode_image(png(rgb), "f", gray()).pixels == xla::data::as_gray(rgb).pixels);

  // 16 bits, the more significant ones first: 0x0180 is 1.49 of 255.
  const bytes deep{0x01, 0x80, 0xff, 0xff, 0x80, 0x00, 0x00, 0x90};
  CHECK(decode_image(png(2, 2, deep, {.depth = 16, .color = PNG_COLOR_TYPE_GRAY}), "f", gray())
            .pixels == bytes{1, 255, 128, 1});
  const bytes deep_rgb{0, 0, 0x80, 0x80, 0xff, 0xff};
  CHECK(decode_image(png(1, 1, deep_rgb, {.depth = 16}), "f").pixels == bytes{0, 128, 255});
  // 1, 2 and 4 bits, the leftmost pixel in the uppermost ones.
  const auto few = [](int depth, std::uint8_t row) {
    return decode_image(png(1, 2, {row}, {.depth = depth, .color = PNG_COLOR_TYPE_GRAY}), "f",
                        gray());
  };
  CHECK(few(1, 0x40).pixels == bytes{0, 255});
  CHECK(few(2, 0x90).pixels == bytes{170, 85});
  CHECK(few(4, 0x1f).pixels == bytes{17, 255});

  const png_form palette{
      .depth = 4, .color = PNG_COLOR_TYPE_PALETTE, .palette = {{1, 2, 3}, {9, 8, 7}, {0, 255, 0}}};
  CHECK(decode_image(png(1, 3, {0x21, 0x00}, palette), "f").pixels ==
        bytes{0, 255, 0, 9, 8, 7, 1, 2, 3});
  auto clear = palette;
  clear.transparency = {0, 128};
  CHECK(decode_image(png(1, 3, {0x21, 0x00}, clear), "f").pixels ==
        bytes{0, 255, 0, 9, 8, 7, 1, 2, 3});

  // Colours stay as they are stored, however transparent.
  CHECK(decode_image(png(1, 2, {1, 2, 3, 0, 7, 8, 9, 200}, {.color = PNG_COLOR_TYPE_RGBA}), "f")
            .pixels == bytes{1, 2, 3, 7, 8, 9});
  CHECK(decode_image(png(1, 2, {50, 0, 60, 99}, {.color = PNG_COLOR_TYPE_GRAY_ALPHA}), "f", gray())
            .pixels == bytes{50, 60});
}

TEST_CASE("JPEG files have Pillow's pixels, inks and EXIF's turn included") {
  for (const auto& [name, height, width, file, pixels] : reference::jpeg_cases) {
    INFO(name);
    const auto out = decode_image(test::bytes_of(file), "f");
    CHECK(out.height == height);
    CHECK(out.width == width);
    CHECK(out.channels == 3);
    // Another version of libjpeg may round otherwise.
    CHECK(near(out.pixels, test::bytes_of(pixels), 1));
  }
  const auto grey = decode_image(jpeg_named("grey"), "f", gray());
  CHECK(grey.channels == 1);
  CHECK(xla::data::as_rgb(grey).pixels == decode_image(jpeg_named("grey"), "f").pixels);
}

TEST_CASE("EXIF data turns a picture, unless that is switched off, or it is damaged") {
  // Three rows of two, as a camera stores what is meant to be seen as 1 2 / 3 4 / 5 6.
  const bytes seen{1, 2, 3, 4, 5, 6};
  struct stored_picture {
    std::uint32_t height, width;
    bytes pixels;
  };
  const std::vector<stored_picture> all{{3, 2, seen},
                                        {3, 2, {2, 1, 4, 3, 6, 5}},
                                        {3, 2, {6, 5, 4, 3, 2, 1}},
                                        {3, 2, {5, 6, 3, 4, 1, 2}},
                                        {2, 3, {1, 3, 5, 2, 4, 6}},
                                        {2, 3, {2, 4, 6, 1, 3, 5}},
                                        {2, 3, {6, 4, 2, 5, 3, 1}},
                                        {2, 3, {5, 3, 1, 6, 4, 2}}};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const bool little : {false, true}) {
      INFO("orientation " << i + 1);
      const auto& [height, width, pixels] = all[i];
      const auto file = png(
          height, width, pixels,
          {.color = PNG_COLOR_TYPE_GRAY, .exif = exif(static_cast<std::uint8_t>(i + 1), little)});
      const auto out = decode_image(file, "f", gray());
      CHECK(out.height == 3);
      CHECK(out.width == 2);
      CHECK(out.pixels == seen);
      auto options = gray();
      options.apply_exif_orientation = false;
      CHECK(decode_image(file, "f", options).pixels == pixels);
    }
  const auto turned = jpeg_named("turned");
  CHECK(decode_image(turned, "f", {.apply_exif_orientation = false}).height == 11);
  CHECK(decode_image(turned, "f").height == 13);
  // Whatever the data says, the picture is read.
  const auto whole = exif(6, true);
  for (std::size_t n = 1; n < whole.size(); ++n) {
    const bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK(xla::ext::detail::exif_orientation(part) == (n < 20 ? 1 : 6));
  }
  for (const std::uint8_t wrong : {0, 9, 255})
    CHECK(xla::ext::detail::exif_orientation(exif(wrong, false)) == 1);
  bytes far = exif(6, true);
  std::fill_n(far.begin() + 4, 4, 0xff);
  CHECK(xla::ext::detail::exif_orientation(far) == 1);
}

TEST_CASE("the error for what is no PNG or JPEG file has its name where there is one") {
  CHECK(refusal({}) == "it is empty");
  const auto begins = [](std::string begin) { return bytes(begin.begin(), begin.end()); };
  CHECK(refusal(begins("RIFF1234WEBPVP8 ")) ==
        "it is a WebP file, and PNG and JPEG are read: convert it");
  CHECK(refusal(begins("GIF89a")).starts_with("it is a GIF file"));
  CHECK(refusal(begins(std::string("II*\0abc", 7))).starts_with("it is a TIFF file"));
  CHECK(refusal(begins("1234ftypheic")).starts_with("it is a HEIC file"));
  CHECK(refusal(begins("hello")) == "it is neither a PNG nor a JPEG file");
  CHECK(refusal({0xff, 0xd8}) == "it is neither a PNG nor a JPEG file");
  CHECK_THROWS_WITH(read_image("no/such/file.png"),
                    "cannot open 'no/such/file.png': No such file or directory");
}

TEST_CASE("damaged and truncated pictures are refused") {
  const auto good = png(test::picture(9, 11, 3));
  CHECK(refusal(good).empty());
  for (std::size_t n = 0; n < good.size(); ++n)
    REQUIRE_FALSE(refusal({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}).empty());
  CHECK(refusal({good.begin(), good.end() - 30}) == "it ends in the middle");
  for (std::size_t i = 8; i < good.size(); i += 3) {  // checksums tell of all but the chunks' names
    auto bad = good;
    bad[i] = static_cast<std::uint8_t>(bad[i] ^ 0x10);
    REQUIRE_FALSE(refusal(bad).empty());
  }
  for (const char* const name : {"whole", "progressive", "inks"}) {
    const auto file = jpeg_named(name);
    CHECK(refusal(file).empty());
    for (std::size_t n = 0; n + 2 < file.size(); ++n) {
      INFO(name << ", " << n << " bytes");
      REQUIRE_FALSE(refusal({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n)}).empty());
    }
    // No checksum detects a changed byte. What matters is that nothing worse happens.
    int told = 0;
    for (std::size_t i = 2; i < file.size(); ++i)
      for (const int change : {0x01, 0x80, 0xff}) {
        auto bad = file;
        bad[i] = static_cast<std::uint8_t>(bad[i] ^ change);
        told += refusal(bad, {.max_pixels = 1 << 20}).empty() ? 0 : 1;
      }
    CHECK(told > 100);
  }
}

TEST_CASE("pictures of more pixels than the limit are refused before there is memory for them") {
  const auto file = png(test::picture(20, 30, 1), {.color = PNG_COLOR_TYPE_GRAY});
  CHECK(refusal(file, {.max_pixels = 600}).empty());
  CHECK(refusal(file, {.max_pixels = 599}) == "it has 20 x 30 pixels, more than the limit of 599");
  // A header that claims what is not there: height and width are after the SOF0 marker.
  auto huge = jpeg_named("whole");
  const bytes marker{0xff, 0xc0};
  const auto at = std::search(huge.begin(), huge.end(), marker.begin(), marker.end());
  REQUIRE(at != huge.end());
  std::copy_n(bytes{0xff, 0xdc, 0xff, 0xdc}.begin(), 4, at + 5);
  CHECK(refusal(huge) == "it has 65500 x 65500 pixels, more than the limit of 178956970");
  auto endless = file;
  const bytes sizes{0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff};
  std::copy(sizes.begin(), sizes.end(), endless.begin() + 16);
  const auto sum = crc32(0, endless.data() + 12, 17);  // of the header chunk, after it
  for (int i = 0; i < 4; ++i)
    endless[static_cast<std::size_t>(29 + i)] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
  CHECK(refusal(endless) ==
        "it has 2147483647 x 2147483647 pixels, more than the limit of 178956970");
}

TEST_CASE("a picture file that never ends is refused before it is read") {
  test::check_endless_files([](auto& path) { xla::ext::read_image(path); },
                            xla::io::max_picture_bytes);
}

TEST_CASE("packed texts of a picture take no memory") {
  const auto file = png(test::picture(2, 2, 3));
  const bytes text(7'900'000, 'a');
  uLongf size = compressBound(text.size());
  bytes chunk(size + 7);
  std::ranges::copy(std::string("zTXtk\0\0", 7), chunk.begin());
  REQUIRE(compress2(chunk.data() + 7, &size, text.data(), text.size(), 1) == Z_OK);
  chunk.resize(size + 7);
  const auto put = [](bytes& to, std::uint64_t number) {
    for (const int shift : {24, 16, 8, 0}) to.push_back(static_cast<std::uint8_t>(number >> shift));
  };
  constexpr std::ptrdiff_t header = 8 + 25;
  bytes heavy(file.begin(), file.begin() + header);
  for (int i = 0; i < 20; ++i) {
    put(heavy, size + 3);
    heavy.insert(heavy.end(), chunk.begin(), chunk.end());
    put(heavy, crc32(0, chunk.data(), static_cast<uInt>(chunk.size())));
  }
  heavy.insert(heavy.end(), file.begin() + header, file.end());
  const auto peak = [] {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss / 1024;
  };
  const auto before = peak();
  CHECK(decode_image(heavy, "f").pixels == test::picture(2, 2, 3).pixels);
  CHECK(peak() - before < 60);
}

TEST_CASE("a picture that is written as PNG is read again") {
  const auto path = (std::filesystem::temp_directory_path() / "xla_test_image.png").string();
  for (const std::int64_t channels : {1, 3}) {
    const auto picture = test::picture(33, 17, channels);
    write_png(path, picture);
    CHECK(read_image(path, {.mode = channels == 1 ? ImageReadMode::gray : ImageReadMode::rgb})
              .pixels == picture.pixels);
  }
  CHECK_THROWS_AS(write_png(path, test::picture(2, 2, 4)), xla::shape_error);
  CHECK_THROWS_AS(write_png("no/such/folder/f.png", test::picture(2, 2, 1)), xla::io_error);
  std::filesystem::remove(path);
}
