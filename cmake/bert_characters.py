#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes include/xla/data/bert_characters.hpp: what BERT's tokenizer makes of each character, as Hugging Face's tokenizers do.
Which of them the source shows as a number is as Python's unicodedata has it.

    pip install tokenizers==0.23.3 && python3.11 cmake/bert_characters.py"""
import hashlib
import pathlib
import platform
import unicodedata

import tokenizers
from tokenizers import normalizers, pre_tokenizers

WIDTH = 98
HANGUL = range(0xAC00, 0xD7A4)  # which decompose by a formula
COMPATIBLE = range(0xF900, 0xFB00), range(0x2F800, 0x2FA20)  # ideographs

off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
clean = normalizers.BertNormalizer(**off | dict(clean_text=True))
fold = normalizers.BertNormalizer(**off | dict(strip_accents=True, lowercase=True))
apart = normalizers.BertNormalizer(**off | dict(handle_chinese_chars=True))
words = pre_tokenizers.BertPreTokenizer()
characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def is_punctuation(c):
    return len(words.pre_tokenize_str("a" + c + "a")) == 3


def ranges(of):
    found = []
    for c in map(ord, of):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def wrap(items, indent):
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > WIDTH - indent:
            lines.append(line)
            line = ""
        line += item
    return lines + [line]


def range_table(name, sentence, of):
    body = wrap([f"{{{a:#x}, {b:#x}}}, " for a, b in ranges(of)], 4)
    return "\n".join([f"/// {sentence}", f"inline constexpr CharacterRange {name}[] = {{"] + ["    " + line.rstrip() for line in body] + ["};"])


def shown(c):
    """As the source has it: what an editor could join, turn round or hide is a number."""
    safe = unicodedata.category(c)[0] in "LNPS" and unicodedata.bidirectional(c) not in ("R", "AL", "AN", "NSM")
    if safe and unicodedata.normalize("NFC", c) == c and c not in '"\\':
        return c
    return f"\\U{ord(c):08x}"


def width(item):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in item)


def text_table(name, sentence, items):
    lines, line = [], ""
    for item in items:
        if width(line) + width(item) > WIDTH - 7:
            lines.append(line)
            line = ""
        line += item
    lines.append(line)
    body = [f'    U"{line}"' for line in lines]
    return "\n".join([f"/// {sentence}", f"inline constexpr std::u32string_view {name} ="] + body) + ";"


removed = [c for c in characters if clean.normalize_str(c) == ""]
spaces = [c for c in characters if clean.normalize_str(c) == " "]
kept = [c for c in characters if clean.normalize_str(c) == c]
folded = {c: fold.normalize_str(c) for c in kept}
accents = [c for c, to in folded.items() if to == ""]
plain = [c for c, to in folded.items() if to not in ("", c) and ord(c) not in HANGUL and not any(ord(c) in r for r in COMPATIBLE)]
one, several = [c for c in plain if len(folded[c]) == 1], [c for c in plain if len(folded[c]) > 1]

tables = [
    range_table("removed_characters", "Left out: 0, control and format characters, those for private use.", removed),
    range_table("space_characters", "Which stand between words.", spaces),
    range_table("ideographs", "Each a word: Chinese, also in other languages.", [c for c in characters if apart.normalize_str(c) != c]),
    range_table("punctuation", "Each a word.", [c for c in kept if is_punctuation(c)]),
    range_table("accents", "Left out of texts in lower case.", accents),
    text_table("folded_one", "A character, and what it is in lower case without accents; in their order.", [shown(c) + shown(folded[c]) for c in one]),
    text_table("folded_several", "The same of those that become several, a space after each.", [shown(c) + "".join(map(shown, folded[c])) + " " for c in several]),
]
for number, r in enumerate(COMPATIBLE):
    items = [shown(folded.get(chr(c), chr(c))) for c in r]
    name = ("first", "second")[number]
    tables.append(text_table(f"compatible_ideographs_{name}", f"What the characters from {r[0]:#x} on are in lower case.", items))

made_by = f"cmake/bert_characters.py, tokenizers {tokenizers.__version__}, Python {platform.python_version()}"
text = f"""// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "xla/data/characters.hpp"

// Written by {made_by}:
// {hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()}
// clang-format off
namespace xla::data::detail {{

""" + "\n\n".join(tables) + "\n\n}  // namespace xla::data::detail\n"
(pathlib.Path(__file__).parents[1] / "include/xla/data/bert_characters.hpp").write_text(text)
