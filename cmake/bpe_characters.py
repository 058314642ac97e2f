#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes include/xla/data/bpe_characters.hpp: which characters are letters, numbers and spaces to the expressions of byte-level BPE.

    pip install tokenizers==0.23.3 && python3 cmake/bpe_characters.py"""
import hashlib
import pathlib

import tokenizers
from tokenizers import Regex, pre_tokenizers

WIDTH = 98
characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matched(expression):
    removes = pre_tokenizers.Split(Regex(expression), "removed")
    return [ord(c) for c in characters if removes.pre_tokenize_str(c) == []]


def ranges(of):
    found = []
    for c in of:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def table(name, sentence, of):
    lines, line = [], "   "
    for a, b in ranges(of):
        item = f" {{{a:#x}, {b:#x}}},"
        if len(line) + len(item) > WIDTH:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([f"/// {sentence}", f"inline constexpr CharacterRange {name}[] = {{"] + lines + [line, "};"])


digits = pre_tokenizers.Digits(individual_digits=True)
numbers = matched(r"\p{N}")
known = set(numbers)
later = [ord(c) for c in characters if len(digits.pre_tokenize_str("a" + c + "a")) == 3 and ord(c) not in known]
tables = [
    table("bpe_letters", "Unicode's category L.", matched(r"\p{L}")),
    table("bpe_numbers", "Category N.", numbers),
    table("bpe_later_numbers", "Of a later Unicode: numbers only where each digit stands apart.", later),
    table("bpe_spaces", "White space.", matched(r"\s")),
]
made_by = f"cmake/bpe_characters.py, tokenizers {tokenizers.__version__}"
text = f"""// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/data/characters.hpp"

// Written by {made_by}:
// {hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()}
// clang-format off
namespace xla::data::detail {{

""" + "\n\n".join(tables) + "\n\n}  // namespace xla::data::detail\n"
(pathlib.Path(__file__).parents[1] / "include/xla/data/bpe_characters.hpp").write_text(text)
