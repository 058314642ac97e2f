// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes PNG and JPEG files into pictures, by libpng and libjpeg. Resizing and cropping are in
// data/.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "xla/data/picture.hpp"
#include "xla/ext/image_common.hpp"
#include "xla/ext/jpeg.hpp"
#include "xla/ext/png.hpp"
#include "xla/io/file.hpp"

namespace xla::ext {

/// The channels that a picture is read with: `gray` is one, `rgb` three. They are torchvision's
/// modes of these names; those with alpha are missing.
enum class ImageReadMode { gray, rgb };

/// How pictures are read.
struct ImageOptions {
  ImageReadMode mode = ImageReadMode::rgb;
  /// Turn the picture upright by its EXIF data. (torchvision's default is not to.)
  bool apply_exif_orientation = true;
  /// Larger ones are refused before memory is allocated.
  std::int64_t max_pixels = data::max_picture_pixels;
};

namespace detail {

/// The first bytes of a file of this kind; a question mark stands for any byte.
struct image_kind {
  std::string_view name, begin;

  bool fits(std::span<const std::uint8_t> bytes) const {
    return bytes.size() >= begin.size() &&
           std::equal(begin.begin(), begin.end(), bytes.begin(), [](char c, std::uint8_t byte) {
             return c == '?' || static_cast<std::uint8_t>(c) == byte;
           });
  }
};
inline constexpr image_kind png_kind{"PNG", "\x89PNG\r\n\x1a\n"};
inline constexpr image_kind jpeg_kind{"JPEG", "\xff\xd8\xff"};
inline constexpr std::array other_image_kinds{
    image_kind{"WebP", "RIFF????WEBP"}, image_kind{"GIF", "GIF8"},
    image_kind{"HEIC", "????ftyphei"},  image_kind{"HEIC", "????ftypmif1"},
    image_kind{"AVIF", "????ftypavif"}, image_kind{"TIFF", {"II*\0", 4}},
    image_kind{"TIFF", {"MM\0*", 4}},   image_kind{"BMP", "BM"}};

template <class Reader>
data::Picture read_image_by(std::span<const std::uint8_t> bytes, const std::string& name,
                            const ImageOptions& options) {
  Reader reader{bytes, name};
  auto picture = reader.read(options.max_pixels);
  picture = options.mode == ImageReadMode::gray ? data::as_gray(std::move(picture))
                                                : data::as_rgb(std::move(picture));
  return options.apply_exif_orientation ? upright(std::move(picture), reader.orientation())
                                        : picture;
}

}  // namespace detail

/// Decodes a PNG or JPEG file given as bytes; `name` stands for it in messages. 16 bits are rounded
/// to 8, palettes are looked up, alpha is dropped, and CMYK is taken to be inverted, as in Pillow
/// and torchvision. Throws `xla::io_error` for other files, for damaged ones, even if only the last
/// pixels are missing, and for too many pixels.
inline data::Picture decode_image(std::span<const std::uint8_t> bytes, const std::string& name,
                                  const ImageOptions& options = {}) {
  if (bytes.empty()) detail::refuse_image(name, "it is empty");
  if (detail::png_kind.fits(bytes))
    return detail::read_image_by<detail::png_reader>(bytes, name, options);
  if (detail::jpeg_kind.fits(bytes))
    return detail::read_image_by<detail::jpeg_reader>(bytes, name, options);
  for (const auto& kind : detail::other_image_kinds)
    if (kind.fits(bytes))
      detail::refuse_image(name, "it is a " + std::string(kind.name) +
                                     " file, and PNG and JPEG are read: convert it");
  detail::refuse_image(name, "it is neither a PNG nor a JPEG file");
}

/// The picture of a PNG or JPEG file, whatever its suffix; otherwise like `decode_image`. Several
/// threads may call it at once.
inline data::Picture read_image(const std::string& path, const ImageOptions& options = {}) {
  return decode_image(io::read_file(path, io::max_picture_bytes), path, options);
}

}  // namespace xla::ext
