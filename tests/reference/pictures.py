#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/resize.inc, what torchvision makes of pictures, and tests/ext/jpegs.inc, JPEG files of Pillow and what it reads there.

    pip install torchvision==0.29.2 pillow==13.0.0 && python tests/reference/pictures.py"""
import io
import pathlib

import numpy as np
from PIL import Image, ImageOps
from torchvision import transforms as T
from torchvision.transforms import functional as F

TESTS = pathlib.Path(__file__).parents[1]
HEAD = """// SPDX-License-Identifier: Apache-2.0
// Written by tests/reference/pictures.py.
#pragma once

#include <cstdint>

%s
// clang-format off
namespace reference {
%s
}  // namespace reference
"""
MODES = {"bilinear": T.InterpolationMode.BILINEAR, "bicubic": T.InterpolationMode.BICUBIC}


def picture(height, width, channels):
    """As picture() of tests/support/pictures.hpp: stripes, steps and corners of all steepness."""
    y, x, c = np.ogrid[:height, :width, :channels]
    pixels = ((y * y * 7 + x * 13 + x * y * 3 + x // 5 * 37 + c * 101) & 255).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def smooth(height, width, channels):
    """Something that a JPEG file keeps."""
    y, x, c = np.ogrid[:height, :width, :channels]
    pixels = (40 + 9 * y + 5 * x + 30 * c + y * x // 4).clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels, {1: "L", 3: "RGB", 4: "CMYK"}[channels])


def hexed(data):
    """Of bytes a C string of hexadecimal digits, in lines."""
    digits = bytes(data).hex()
    return "\n    ".join(f'"{digits[i:i + 110]}"' for i in range(0, len(digits), 110)) or '""'


def resized(lines, of, size, mode="bilinear"):
    image = F.resize(picture(*of), size, MODES[mode])
    height, width = (0, size) if isinstance(size, int) else size
    lines.append("  {{%d, %d, %d}, {%d, %d}, InterpolationMode::%s, %d, %d,\n    %s}," %
                 (*of, height, width, mode, image.height, image.width, hexed(np.asarray(image))))


def cropped(lines, of, size):
    image = F.center_crop(picture(*of), size)
    lines.append("  {{%d, %d, %d}, {%d, %d},\n    %s}," % (*of, *size, hexed(np.asarray(image))))


def jpeg(lines, name, image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    read = ImageOps.exif_transpose(Image.open(io.BytesIO(file.getvalue()))).convert("RGB")
    lines.append('  {"%s", %d, %d,\n    %s,\n    %s},' %
                 (name, read.height, read.width, hexed(file.getvalue()), hexed(np.asarray(read))))


def main():
    lines = ["struct resize_case {", "  std::int64_t from[3], size[2];  // a height of 0: the width is the shorter side",
             "  xla::data::InterpolationMode mode;", "  std::int64_t height, width;", "  const char* pixels;", "};",
             "using xla::data::InterpolationMode;", "inline constexpr resize_case resize_cases[] = {"]
    for of, size in [((23, 31, 3), (7, 9)), ((23, 31, 1), (7, 9)), ((5, 4, 3), (13, 11)), ((40, 9, 1), (6, 20)), ((9, 40, 3), (12, 5)),
                     ((8, 8, 3), (8, 3)), ((8, 8, 3), (3, 8)), ((7, 5, 1), (7, 5)), ((200, 300, 1), (3, 2)), ((1, 1, 3), (2, 3)),
                     ((3, 17, 1), (1, 1)), ((40, 20, 3), (5, 12)), ((31, 23, 3), 6), ((23, 31, 3), 6), ((10, 33, 1), 4), ((9, 9, 1), 12), ((6, 7, 1), 6)]:
        for mode in MODES:
            resized(lines, of, size, mode)
    lines += ["};", "struct crop_case {", "  std::int64_t from[3], size[2];", "  const char* pixels;", "};",
              "inline constexpr crop_case crop_cases[] = {"]
    for of, size in [((9, 12, 1), (4, 5)), ((8, 9, 3), (5, 2)), ((7, 8, 1), (6, 5)), ((11, 13, 1), (6, 4)), ((4, 5, 1), (7, 8)), ((3, 9, 1), (6, 4)),
                     ((9, 3, 3), (4, 6)), ((5, 5, 1), (5, 5)), ((1, 1, 1), (2, 2))]:
        cropped(lines, of, size)
    lines += ["};", "// Resize(16), CenterCrop(12), ToTensor(), Normalize(ImageNet's) of picture(45, 33, 3).", "inline constexpr float recipe[] = {"]
    recipe = T.Compose([T.Resize(16), T.CenterCrop(12), T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    values = [f"{float(v):.9g}f" for v in recipe(picture(45, 33, 3)).flatten()]
    lines += ["    " + ", ".join(values[i:i + 8]) + "," for i in range(0, len(values), 8)]
    (TESTS / "data" / "resize.inc").write_text(HEAD % ('#include "xla/data/resize.hpp"\n', "\n".join([*lines, "};"])))

    lines = ["struct jpeg_case {", "  const char* name;", "  std::int64_t height, width;", "  const char *file, *pixels;", "};",
             "inline constexpr jpeg_case jpeg_cases[] = {"]
    exif = Image.Exif()
    exif[0x0112] = 6
    jpeg(lines, "whole", smooth(11, 13, 3), quality=90, subsampling=0)
    jpeg(lines, "halved colours", smooth(11, 13, 3), quality=75)
    jpeg(lines, "progressive", smooth(11, 13, 3), quality=75, progressive=True)
    jpeg(lines, "grey", smooth(11, 13, 1), quality=75)
    jpeg(lines, "inks", smooth(11, 13, 4), quality=90)
    jpeg(lines, "turned", smooth(11, 13, 3), quality=90, exif=exif)
    (TESTS / "ext" / "jpegs.inc").write_text(HEAD % ("", "\n".join([*lines, "};"])))


main()
