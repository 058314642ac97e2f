// SPDX-License-Identifier: Apache-2.0
#pragma once

// The errors that the readers of pictures share: a damaged file, a picture that is too large.

#include <cstdint>
#include <string>

#include "xla/base/error.hpp"

namespace xla::ext::detail {

[[noreturn]] inline void refuse_image(const std::string& name, const std::string& reason) {
  throw io_error("'" + name + "' is not a picture that can be read: " + reason);
}

/// Before memory is asked for.
inline void check_image_size(const std::string& name, std::int64_t height, std::int64_t width,
                             std::int64_t max_pixels) {
  if (height < 1 || width < 1) refuse_image(name, "it has no pixels");
  if (height > max_pixels / width)
    refuse_image(name, "it has " + std::to_string(height) + " x " + std::to_string(width) +
                           " pixels, more than the limit of " + std::to_string(max_pixels));
}

}  // namespace xla::ext::detail
