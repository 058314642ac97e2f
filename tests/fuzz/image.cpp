// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls: a picture is refused by an io_error, or has as many bytes as it says.
#include "xla/ext/image.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto picture = xla::ext::decode_image({data, size}, "input", {.max_pixels = 1 << 16});
    if (picture.channels != 3 ||
        picture.pixels.size() != static_cast<std::size_t>(picture.height * picture.width * 3))
      std::abort();
  } catch (const xla::io_error&) {}
  return 0;
}
