// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes PNG files by libpng. image.hpp calls it for files that begin as PNG files do.

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/data/picture.hpp"
#include "xla/ext/image_common.hpp"
#include "xla/io/atomic_file.hpp"

namespace xla::ext::detail {

/// One reading by libpng, which reports errors by longjmp. Code between setjmp and such a call has
/// no objects to destroy.
class png_reader {
 public:
  png_reader(std::span<const std::uint8_t> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &fail, &ignore);
    if (png_) info_ = png_create_info_struct(png_);
  }
  png_reader(const png_reader&) = delete;
  png_reader& operator=(const png_reader&) = delete;
  ~png_reader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  data::Picture read(std::int64_t max_pixels) {
    if (!info_) refuse_image(name_, "libpng cannot start");
    find_exif();
    if (!head()) refuse_image(name_, reason_);
    check_image_size(name_, height_, width_, max_pixels);
    if (!expand()) refuse_image(name_, reason_);
    auto out = data::black_picture(height_, width_, channels_);
    std::vector<png_bytep> rows;
    for (std::int64_t y = 0; y < height_; ++y) rows.push_back(out.row(y).data());
    if (!pixels(rows.data())) refuse_image(name_, reason_);
    return out;
  }

  /// Called after the picture is read.
  int orientation() const { return exif_orientation(exif_); }

 private:
  /// Walks over the chunks, because libpng allocates memory for a chunk before it notices that the
  /// file ends within it.
  void find_exif() {
    constexpr std::size_t around =
        12;  // length and name before a chunk's data, a checksum after it
    auto rest = bytes_.subspan(8);
    while (rest.size() >= around) {
      const auto length = std::size_t{png_get_uint_32(rest.data())};
      const std::string_view name{reinterpret_cast<const char*>(rest.data()) + 4, 4};
      if (length > rest.size() - around) break;
      if (name == "eXIf") exif_ = rest.subspan(8, length);
      if (name == "IEND") return;
      rest = rest.subspan(around + length);
    }
    refuse_image(name_, "it ends in the middle");
  }

  bool head() {
    if (setjmp(failed_) != 0) return false;
    // This limit is checked here, for a sentence of our own.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    // Skips texts: gigabytes of compressed text fit in a small file.
    png_set_chunk_cache_max(png_, 1);
    png_set_read_fn(png_, this, &give);
    png_read_info(png_, info_);
    height_ = png_get_image_height(png_, info_);
    width_ = png_get_image_width(png_, info_);
    return true;
  }

  /// Requests bytes of grey or of red, green and blue, whatever the file has.
  bool expand() {
    if (setjmp(failed_) != 0) return false;
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    channels_ = png_get_channels(png_, info_);
    return true;
  }

  bool pixels(png_bytepp rows) {
    if (setjmp(failed_) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  static void give(png_structp png, png_bytep to, std::size_t count) {
    auto& bytes = static_cast<png_reader*>(png_get_io_ptr(png))->bytes_;
    if (count > bytes.size()) png_error(png, "it ends in the middle");
    std::copy_n(bytes.data(), count, to);
    bytes = bytes.subspan(count);
  }
  [[noreturn]] static void fail(png_structp png, png_const_charp reason) {
    auto* const self = static_cast<png_reader*>(png_get_error_ptr(png));
    std::snprintf(self->reason_, sizeof self->reason_, "%s", reason);
    std::longjmp(self->failed_, 1);
  }
  static void ignore(png_structp, png_const_charp) {}

  std::span<const std::uint8_t> bytes_, exif_;
  const std::string& name_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::int64_t height_ = 0, width_ = 0, channels_ = 0;
  std::jmp_buf failed_{};
  char reason_[200] = {};
};

}  // namespace xla::ext::detail

namespace xla::ext {

/// A picture of one or three channels as the bytes of a PNG file. Throws `xla::shape_error` for
/// others.
inline std::vector<std::uint8_t> to_png(const data::Picture& picture) {
  if (picture.height < 1 || picture.width < 1 || (picture.channels != 1 && picture.channels != 3))
    throw shape_error("to_png: a picture of " + std::to_string(picture.height) + " x " +
                      std::to_string(picture.width) + " with " + std::to_string(picture.channels) +
                      " channels");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(picture.height);
  image.width = static_cast<png_uint_32>(picture.width);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::uint8_t> bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0,
                                nullptr) == 0)
    throw runtime_error(std::string("to_png: ") + image.message);
  bytes.resize(size);
  return bytes;
}

/// Writes a picture as a PNG file, which replaces an existing file only when all of it is on disk.
/// Throws `xla::io_error` if that fails, and like `to_png`. `io::write_file`, which does not wait
/// for the disk, writes many files faster.
inline void write_png(const std::string& path, const data::Picture& picture) {
  const auto bytes = to_png(picture);
  io::atomic_file file{path};
  file.write(bytes);
  file.commit();
}

}  // namespace xla::ext
