// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes JPEG by libjpeg. image.hpp calls it for files that begin as JPEG files do.

#include <cstddef>
#include <cstdio>

// libjpeg's headers do not include these themselves.
#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "xla/data/picture.hpp"
#include "xla/ext/image_common.hpp"

namespace xla::ext::detail {

/// Whether a warning means that pixels are lost: the decoder then continues with grey. Other
/// warnings are about data that it can handle.
inline bool is_jpeg_damage(int warning) {
  constexpr std::array damage{JWRN_ARITH_BAD_CODE, JWRN_BOGUS_PROGRESSION, JWRN_HIT_MARKER,
                              JWRN_HUFF_BAD_CODE,  JWRN_JPEG_EOF,          JWRN_MUST_RESYNC};
  return std::ranges::find(damage, warning) != damage.end();
}

/// A pixel as Adobe's programs store it, 255 - ink; as in Pillow.
inline void rgb_of_inverted_cmyk(const std::uint8_t* cmyk, std::uint8_t* rgb) {
  const int white = cmyk[3];
  for (int c = 0; c < 3; ++c) {
    const int product = (255 - cmyk[c]) * white + 128;
    rgb[c] = static_cast<std::uint8_t>(std::max(0, white - ((product + (product >> 8)) >> 8)));
  }
}

/// One reading by libjpeg, which reports errors by longjmp. Code between setjmp and such a call has
/// no objects to destroy.
class jpeg_reader {
 public:
  jpeg_reader(std::span<const std::uint8_t> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = &fail;
    errors_.emit_message = &hear;
    errors_.output_message = &ignore;
    jpeg_.client_data = this;
  }
  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;
  ~jpeg_reader() { jpeg_destroy_decompress(&jpeg_); }

  data::Picture read(std::int64_t max_pixels) {
    if (!head()) refuse_image(name_, reason_);
    check_image_size(name_, jpeg_.image_height, jpeg_.image_width, max_pixels);
    if (!begin()) refuse_image(name_, reason_);
    auto out = data::black_picture(jpeg_.output_height, jpeg_.output_width,
                                   jpeg_.output_components == 1 ? 1 : 3);
    std::vector<std::uint8_t> cmyk;
    if (jpeg_.output_components == 4) cmyk.resize(std::size_t{4} * jpeg_.output_width);
    for (std::int64_t y = 0; y < out.height; ++y) {
      auto* const row = out.row(y).data();
      if (!line(cmyk.empty() ? row : cmyk.data())) refuse_image(name_, reason_);
      for (std::size_t x = 0; x < cmyk.size() / 4; ++x)
        rgb_of_inverted_cmyk(cmyk.data() + 4 * x, row + 3 * x);
    }
    return out;
  }

  /// Called after the picture is read.
  int orientation() const {
    constexpr char name[] = "Exif\0";  // and its terminating 0
    for (auto* marker = jpeg_.marker_list; marker; marker = marker->next)
      if (marker->marker == exif_marker && marker->data_length > sizeof name &&
          std::memcmp(marker->data, name, sizeof name) == 0)
        return exif_orientation({marker->data + sizeof name, marker->data_length - sizeof name});
    return 1;
  }

 private:
  static constexpr int exif_marker = JPEG_APP0 + 1;

  bool head() {
    if (setjmp(failed_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
    jpeg_save_markers(&jpeg_, exif_marker, 0xffff);
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }

  /// Requests grey or CMYK if the file has it, else red, green and blue.
  bool begin() {
    if (setjmp(failed_) != 0) return false;
    const auto stored = jpeg_.jpeg_color_space;
    jpeg_.out_color_space = stored == JCS_GRAYSCALE                    ? JCS_GRAYSCALE
                            : stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK
                                                                       : JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    return true;
  }

  bool line(std::uint8_t* to) {
    if (setjmp(failed_) != 0) return false;
    jpeg_read_scanlines(&jpeg_, &to, 1);
    return true;
  }

  static jpeg_reader& of(j_common_ptr jpeg) {
    return *static_cast<jpeg_reader*>(jpeg->client_data);
  }
  [[noreturn]] static void fail(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, of(jpeg).reason_);
    std::longjmp(of(jpeg).failed_, 1);
  }
  static void hear(j_common_ptr jpeg, int level) {
    if (level < 0 && is_jpeg_damage(jpeg->err->msg_code)) fail(jpeg);
  }
  static void ignore(j_common_ptr) {}

  std::span<const std::uint8_t> bytes_;
  const std::string& name_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  std::jmp_buf failed_{};
  char reason_[JMSG_LENGTH_MAX] = {};
};

}  // namespace xla::ext::detail
