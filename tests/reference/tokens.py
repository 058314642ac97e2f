#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what tokenizers of Hugging Face and sentencepiece make of texts and of every character, and their files: of BERT's
tests/data/vocab.txt and tokens.inc, of byte-level BPE and sentencepiece tests/data/bpe/ and bpe_tokens.inc.

    pip install transformers==5.23.0 tokenizers==0.23.3 sentencepiece==0.2.3 && python tests/reference/tokens.py"""
import hashlib
import io
import json
import pathlib
import string

import sentencepiece
import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertTokenizer, GPT2Tokenizer

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


def bert():
    tokens = vocabulary()
    (DATA / "vocab.txt").write_text("".join(t + "\n" for t in tokens))
    lower, cased = (BertTokenizer(vocab={t: i for i, t in enumerate(tokens)}, do_lower_case=low) for low in (True, False))
    lines = ["struct read_text {", "  std::string_view text;", "  std::vector<std::int64_t> lower, cased;", "  std::string_view decoded;", "};",
             "inline const std::vector<read_text> texts{"]
    for text in [t.encode() for t in TEXTS] + BROKEN:
        source = octal(text)
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
    write_table("tokens.inc", lines)


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BPE_TEXTS = [
    "", " ", "  ", "Hello world", " Hello world", "Hello, world! It's 2024 and we'll see.", "the cat sat on the mat", "The CAT'S on THE mat; they'Re I'M you'D",
    "don't can't won't we've you're he'd she'll ain't 'tis '", "a  b   c    d", "line\nline\r\n\n  indented\n\tx = 1;  \n", "\n\n\n", " \n \n a", "trailing   ", "\t\t1 2",
    "1234567890 12 3.14159 1,000,000 x1y22z333 ½²Ⅷ", "naïve café Straße ÀÉ", "中国 is 中x国。日本語", "ελληνικά русский עברית العربية हिन्दी", "😀 😀x €5 👩‍👩‍👧", "e\u0301 \u00a0nbsp\u2003em\u3000",
    "<|endoftext|>", "a<|endoftext|>b <|endoftext|> <|endoftext", "<|begin_of_text|>hi<|eot|> <tool>x</tool>", "x\u0000y\u0085z\u2028w", "'s's's'ſ'S 'LL", "...---!!!???\n\n", "if (a && b) { return c[i]++; }",
    "a" * 300, " " * 40 + "x", "the the the the" * 20, "$100 #1 @you a_b a-b", "\U00010400\U0001d400\U00020000", "\u200b\ufeff\u00adx",
]
PROSE = """It was the cat that sat on the mat, and the dog that didn't. They'll see what we've seen: 1234 cats, 567 dogs in 2024!
Hello world, hello there, the world is the place where the text is written, and the other text is read.
def f(x):\n    return x + 1\n\n\nfor (int i = 0; i < 10; ++i) { std::printf("%d\\n", i); }\n  naïve café, Straße, 中国, ελληνικά, русский.
""" * 3


def merges_of(pre_tokenizer, count):
    """A vocabulary with a token for each byte and `count` merges, learned of PROSE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(PROSE.split("  "), trainers.BpeTrainer(vocab_size=256 + count, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def byte_level(model, cut, added, processor=None):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    if processor:
        tokenizer.post_processor = processor
    for name, special in added:
        tokenizer.add_tokens([AddedToken(name, special=special, normalized=False)])
    return tokenizer


def bpe_tokenizers():
    """Of GPT-2, SmolLM and Llama 3 by kind, their files written."""
    folder = DATA / "bpe"
    folder.mkdir(exist_ok=True)
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocab, merges = merges_of(cut, 120)
    vocab["<|endoftext|>"] = len(vocab)
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    gpt2 = GPT2Tokenizer(vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"))

    cut = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), cut])
    vocab, merges = merges_of(cut, 60)
    digits = byte_level(models.BPE(vocab, merges), cut, [("<|endoftext|>", True)])
    as_file = json.loads(digits.to_str())
    as_file["model"]["merges"] = [f"{a} {b}" for a, b in merges]  # as older files have them
    (folder / "digits.json").write_text(json.dumps(as_file, ensure_ascii=False))

    cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    vocab, merges = merges_of(cut, 120)
    del merges[100:]  # the last words are tokens that only ignore_merges makes
    around = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B",
                                           special_tokens=[("<|begin_of_text|>", len(vocab))])
    llama3 = byte_level(models.BPE(vocab, merges, ignore_merges=True), cut, [("<|begin_of_text|>", True), ("<|eot|>", True), ("<tool>", False)],
                        processors.Sequence([processors.ByteLevel(trim_offsets=False), around]))
    llama3.save(str(folder / "llama3.json"))
    return gpt2._tokenizer, digits, llama3


def sentencepiece_model():
    """As Llama's: bytes for what is no token, nothing normalized."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PROSE.splitlines()), model_writer=model, model_type="bpe", vocab_size=420, byte_fallback=True, character_coverage=0.99,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, num_threads=1, minloglevel=2)
    (DATA / "bpe/sentencepiece.model").write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def fold_numbers(hash, numbers):
    for n in numbers:
        hash = (hash ^ n) * 0x100000001B3 & MASK
    return hash


def bpe():
    all = bpe_tokenizers()
    pieces = sentencepiece_model()
    lines = ["struct bpe_text {", "  std::string_view text;", "  std::vector<std::int64_t> gpt2, digits, llama3, sentencepiece;", "  std::string_view decoded;  ///< by llama3, without special tokens",
             "};", "inline const std::vector<bpe_text> bpe_texts{"]
    for text in BPE_TEXTS:
        raw = text.encode()
        ids = [t.encode(text).ids for t in all]
        decoded = all[2].decode(ids[2])
        lists = ", ".join("{" + ", ".join(map(str, i)) + "}" for i in ids + [pieces.encode(text, add_bos=True)])
        lines.append(f'    {{std::string_view("{octal(raw)}", {len(raw)}), {lists}, std::string_view("{octal(decoded.encode())}", {len(decoded.encode())})}},')
    lines += ["};", "struct block_of_words {", "  char32_t first, end, step;", "  std::uint64_t gpt2, digits, llama3;", "};",
              "/// Of texts with a character in several places, for each.", "inline const std::vector<block_of_words> word_blocks{"]

    def words(tokenizer, text):
        return [text[a:b] for _, (a, b) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]

    for first, end, step in [(i, i + 0x1000, 1) for i in range(0, 0x20000, 0x1000)] + [(0x20000, 0x110000, 97)]:
        sums = [0xCBF29CE484222325] * 3
        for c in map(chr, range(first, end, step)):
            if not 0xD800 <= ord(c) < 0xE000:
                sums = [fold(hash, words(t, f"a{c}b 1{c}2 {c} '{c}\n{c}{c}.{c}")) for hash, t in zip(sums, all)]
        lines.append(f"    {{{first:#x}, {end:#x}, {step}, " + ", ".join(f"{s:#x}" for s in sums) + "},")
    sums, numbers = [0xCBF29CE484222325] * 3, [0xCBF29CE484222325] * 3
    for n in range(1000):
        text = "".join(POOL[int(fraction(n, i) * len(POOL))] for i in range(30))
        sums = [fold(hash, words(t, text)) for hash, t in zip(sums, all)]
        numbers = [fold_numbers(hash, t.encode(text).ids) for hash, t in zip(numbers, all)]
    lines += ["};", "/// Of the random texts of tokens.inc, in the same order."]
    for name, values in ("random_words", sums), ("random_numbers", numbers):
        lines.append(f"inline constexpr std::uint64_t {name}[] = {{" + ", ".join(f"{s:#x}" for s in values) + "};")
    write_table("bpe_tokens.inc", lines)


def octal(raw):
    return "".join(f"\\{b:03o}" for b in raw)


def write_table(name, lines):
    made_by = f"tests/reference/tokens.py, transformers {transformers.__version__}, tokenizers {tokenizers.__version__}"
    sum = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    text = f"// SPDX-License-Identifier: Apache-2.0\n// Written by {made_by}:\n// {sum}\n#pragma once\n\n"
    text += "#include <cstdint>\n#include <string_view>\n#include <vector>\n\n// clang-format off\n"
    text += "namespace reference {\n" + "\n".join(lines) + "\n}  // namespace reference\n"
    (DATA / name).write_text(text)


bert()
bpe()
