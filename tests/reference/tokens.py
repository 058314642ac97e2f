#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/vocab.txt and tests/data/tokens.inc: what transformers.BertTokenizer makes of texts and of every character.

    pip install transformers==5.23.0 tokenizers==0.23.3 && python tests/reference/tokens.py"""
import hashlib
import pathlib
import string

import tokenizers
import transformers
from tokenizers import normalizers, pre_tokenizers
from transformers import BertTokenizer

DATA = pathlib.Path(__file__).parents[1] / "data"
MASK = 2**64 - 1
POOL = ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789      .,;:!?'\"-()[]{}#@$%&*+/<=>|~^_`\\\t\n\r"
        "àâäçéèêëîïôöùûüÿñßæœÀÂÄÇÉÈÊËÎÏÔÖÙÛÜŸÑÆŒİıŁłĐđŞşğĞΑΒΓΔαβγδΆΈάέςσΣЁёЙйАБВабвẬậỆệẞǅ"
        "中国日本語漢字仮名かなカナがガぱパ豈更車한국어각ᄀאבגدعไทยनमस्ते€£¥©®™№½²ªº«»“”‘’…–—・。、「」！？"
        "\u0000\u00ad\u200b\u200d\u00a0\u2003\u3000\ufeff\ufffd\u0301\u0308\u0345\U0001f600\U0001d400\U00020000\U0002f800")


def escaped(text):
    """A C string: bytes that are no letters of ASCII in octal, always of three digits."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def vocabulary():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += string.ascii_lowercase + string.digits + string.punctuation
    tokens += ["##" + c for c in string.ascii_lowercase + string.digits]
    tokens += "the capital of france is paris Paris hello Hello world want un ##aff ##able ##ed runn ##ing ##ning don ' strasse stra ##ße É ##é".split()
    tokens += "中 国 日 ᄒ ##ᅡ ##ᆫ ##ᄒ 车 車 σ ##ς ##σ i ##i н ##о ##й ##и . , 。 「 € 😀 n't 's".split()
    return list(dict.fromkeys(tokens))


TEXTS = [
    "", " ", "The capital of France is Paris.", "Hello, world! Unwanted running", "unaffable", "don't  stop\tnow\r\nplease", "PARIS é É ÉÉ éé",
    "Straße STRASSE", "中国 is 中x国", "日本語", "하한 하", "Ёй Ой ой", "σς ΣΑΣ", "İi", "[MASK] is [mask] [UNK][SEP] [CLS", "a[MASK]b", "naïve café",
    "a" * 100, "a" * 101, "é" * 100, "x\u0000y\u200bz\u00adw\ufffd", "\ufeffhello\u3000world\u2028the", "of。the「paris」", "1+1=2 $5 ^_^ `~|<>",
    "😀 😀x €5", "車車", "\U0002f800", "e\u0301 E\u0301", "a.b.c...d", "un##aff ##able", "want!!ed?", "\U0001d400", "of'the's n't",
]
BROKEN = [b"\xff\xfeab", b"caf\xc3", b"\xc3(", b"\xe2\x82", b"\xed\xa0\x80x", b"\xf4\x90\x80\x80y", b"\xc0\xaf z", b"the\x80\xbfof", b"\xe0\x80\xafa"]
PAIRS = [("hello world", "the capital of france is paris", 12), ("the capital of france is paris", "hello world", 8), ("a b c d e f", "g h i j k l", 10),
         ("a b c d e f", "g h i j k l", 3), ("", "paris", 20), ("a b c", "d", 6)]


class Words:
    def __init__(self, lower):
        self.normalizer = normalizers.BertNormalizer(lowercase=lower)
        self.split = pre_tokenizers.BertPreTokenizer()

    def __call__(self, text):
        return [word for word, _ in self.split.pre_tokenize_str(self.normalizer.normalize_str(text))]


def fold(hash, words):
    """FNV-1a over the words, each with a 0 behind it, then a 1."""
    for b in b"".join(w.encode() + b"\0" for w in words) + b"\1":
        hash = (hash ^ b) * 0x100000001B3 & MASK
    return hash


def fraction(seed, i):
    """As test::number, from 0 to 1."""
    x = ((seed + 1) * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return ((x ^ (x >> 31)) >> 40) / (1 << 24)


def blocks():
    starts = list(range(0, 0x10000, 0x1000)) + list(range(0x10000, 0x110000, 0x10000))
    return zip(starts, starts[1:] + [0x110000])


def main():
    tokens = vocabulary()
    (DATA / "vocab.txt").write_text("".join(t + "\n" for t in tokens))
    lower, cased = (BertTokenizer(vocab={t: i for i, t in enumerate(tokens)}, do_lower_case=low) for low in (True, False))
    lines = ["struct read_text {", "  std::string_view text;", "  std::vector<std::int64_t> lower, cased;", "  std::string_view decoded;", "};",
             "inline const std::vector<read_text> texts{"]
    for text in [t.encode() for t in TEXTS] + BROKEN:
        source = "".join(f"\\{b:03o}" for b in text)
        text = text.decode(errors="replace")
        ids = [t(text)["input_ids"] for t in (lower, cased)]
        decoded = lower.decode(ids[0])
        lists = ", ".join("{" + ", ".join(map(str, i)) + "}" for i in ids)
        lines.append(f'    {{std::string_view("{source}", {len(source) // 4}), {lists}, {escaped(decoded)}}},')
    lines += ["};", "struct read_pair {", "  std::string_view first, second;", "  std::int64_t max_length;", "  std::vector<std::int64_t> ids, types;", "};",
              "inline const std::vector<read_pair> pairs{"]
    for first, second, most in PAIRS:
        read = lower(first, second, truncation=True, max_length=most)
        ids, types = (", ".join(map(str, read[k])) for k in ("input_ids", "token_type_ids"))
        lines.append(f"    {{{escaped(first)}, {escaped(second)}, {most}, {{{ids}}}, {{{types}}}}},")
    lines += ["};", "struct block_of_characters {", "  char32_t first, end;", "  std::uint64_t lower, cased;", "};",
              "/// Of a and a character and a, for each.", "inline const std::vector<block_of_characters> blocks{"]
    ways = Words(True), Words(False)
    for first, end in blocks():
        sums = []
        for words in ways:
            hash = 0xCBF29CE484222325
            for c in range(first, end):
                if not 0xD800 <= c < 0xE000:
                    hash = fold(hash, words("a" + chr(c) + "a"))
            sums.append(f"{hash:#x}")
        lines.append(f"    {{{first:#x}, {end:#x}, {', '.join(sums)}}},")
    pool = "".join(f"\\U{ord(c):08x}" if ord(c) >= 128 else escaped(c)[1:-1] for c in POOL)
    lines += ["};", "/// What random texts are of.", f'inline constexpr std::u32string_view pool(U"{pool}", {len(POOL)});']
    sums = [0xCBF29CE484222325] * 2
    for n in range(1000):
        text = "".join(POOL[int(fraction(n, i) * len(POOL))] for i in range(30))
        sums = [fold(hash, words(text)) for hash, words in zip(sums, ways)]
    lines.append(f"inline constexpr std::uint64_t random_lower = {sums[0]:#x}, random_cased = {sums[1]:#x};")
    made_by = f"tests/reference/tokens.py, transformers {transformers.__version__}, tokenizers {tokenizers.__version__}"
    sum = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    text = f"// SPDX-License-Identifier: Apache-2.0\n// Written by {made_by}:\n// {sum}\n#pragma once\n\n"
    text += "#include <cstdint>\n#include <string_view>\n#include <vector>\n\n// clang-format off\n"
    text += "namespace reference {\n" + "\n".join(lines) + "\n}  // namespace reference\n"
    (DATA / "tokens.inc").write_text(text)


main()
