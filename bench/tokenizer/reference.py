"""Generated texts, and what the tokenizers library makes of them.

    pip install tokenizers==0.22.2
    python reference.py generate COUNT SEED FILE...   # a JSON line for each text
    python reference.py sums COUNT SEED FILE...       # a checksum for each text
    python reference.py texts COUNT SEED              # the texts alone, a JSON list
    python reference.py speed TEXT FILE               # seconds of one pass, and line by line

FILE is a tokenizer.json. A line of "generate" has the text and, for each file,
the ids without and with special tokens found. The texts are a mixture of what
makes tokenizers differ: scripts, emoji with joiners, combining marks, runs of
white space, digits, contractions, controls, names of special tokens, and U+FFFD
where the bytes were not UTF-8.
"""

import base64
import json
import os
import random
import struct
import sys
import time

SCRIPTS = [
    (0x61, 0x7A), (0x41, 0x5A), (0xC0, 0x17F), (0x180, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x587), (0x5D0, 0x5EA),
    (0x620, 0x6D3), (0x904, 0x94D), (0x985, 0x9CD), (0xE01, 0xE3A), (0xE81, 0xEBD), (0x10A0, 0x10FF), (0x1100, 0x11FF),
    (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2C00, 0x2C5F), (0x3041, 0x30FF), (0x3105, 0x312F), (0x3400, 0x3420), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3), (0xFB00, 0xFB4F), (0xFF01, 0xFFEE), (0x10400, 0x1044F), (0x1D400, 0x1D7FF), (0x20000, 0x2003F), (0x2F800, 0x2F8FF),
]  # fmt: skip
MARKS = [0x300, 0x301, 0x308, 0x323, 0x327, 0x345, 0x483, 0x5B0, 0x64B, 0x93C, 0x94D, 0x9CD, 0xE34, 0x1AB0, 0x20D0, 0x20DD, 0x3099, 0xFE0E, 0xFE0F, 0xFE20]
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\xa0", "\u1680", "\u2003", "\u200a", "\u2028", "\u2029", "\u202f", "\u3000"]
EMOJI = ["\U0001f600", "\U0001f999", "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "1\ufe0f\u20e3", "\U0001f3f4\U000e0067\U000e007f", "\u263a", "\U0001fae0"]
SIGNS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "\u2026", "\u2014", "\u201cx\u201d", "\u2018", "\u3002", "\uff0c", "\u060c", "\u06d4", "\u0964", "//", "::", "\u20ac", "\u00b0", "\u2211", "\u00ac"]
ENDINGS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'\u017f", "'x", "\u2019s", "n't", "'"]
DIGITS = ["0", "7", "12", "345", "6789", "1234567", "3.14", "1,000", "\u00bd", "\u00b2", "\u0663\u0664", "\u0966", "\u2167", "\u3007", "\uff11\uff12", "\U0001d7d8"]
ODD = ["\x00", "\x01", "\x1b", "\x7f", "\u00ad", "\u200b", "\u200c", "\u200d", "\u200e", "\u2060", "\ufeff", "\ufffd", "\ufffd\ufffd", "\u0149", "\u01c5", "\u0130", "\u03a3\u03c2", "\u1e9e", "\u212b", "\u2126", "\ufb01", "\u3392", "\u32ff", "\U0001f100", "\ue000", "\U000f0000", "\u0378", "\u180e", "\u1c89", "\U00010d40"]
NAMES = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|endoftext|>", "<|im_start|>", "<bos>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[INST]", "<0x41>", "<|begin_of_text|>", "<tool_call>", "\u2581", "\u2581\u2581", "\u0120", "##", "\u010a"]
WORDS = "the The THE of and to in is it that was for hello world HelloWorld camelCase XMLHttpRequest iPhone naive return def __init__ don't I'll we're O'Neill state-of-the-art e.g. tokenization antidisestablishmentarianism".split()
CODE = ["    ", "\t\t", "if x == 1:\n        return", "{\n  \"a\": [1, 2]\n}", "</div>\n", "\\n", "a_b", "0x1F", "http://example.com/a?b=c&d=%20", "x+=1;//y"]


def word(rng):
    low, high = rng.choice(SCRIPTS)
    chars = [chr(rng.randint(low, high)) for _ in range(rng.randint(1, 7))]
    if rng.random() < 0.2:
        chars.insert(rng.randint(1, len(chars)), chr(rng.choice(MARKS)))
    return "".join(chars)


def anything(rng):
    while True:
        c = rng.randint(0, 0x3FFFF) if rng.random() < 0.5 else rng.randint(0, 0xFFFF)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def invalid(rng):
    return bytes(rng.randint(0, 255) for _ in range(rng.randint(1, 6))).decode("utf-8", errors="replace")


def part(rng):
    p = rng.random()
    if p < 0.22:
        return rng.choice(WORDS)
    if p < 0.40:
        return word(rng)
    if p < 0.62:
        s = rng.choice(SPACES)
        return s * rng.randint(2, 12) if rng.random() < 0.1 else s
    for limit, pool in ((0.70, SIGNS), (0.76, DIGITS), (0.81, ENDINGS), (0.85, EMOJI), (0.89, ODD), (0.92, NAMES), (0.95, CODE)):
        if p < limit:
            return rng.choice(pool)
    if p < 0.97:
        return chr(rng.choice(MARKS))
    return anything(rng) if p < 0.99 else invalid(rng)


def texts(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        s = "".join(part(rng) for _ in range(rng.randint(0, 14)))
        yield s * rng.randint(2, 5) if rng.random() < 0.03 else s


def open_all(files):
    from tokenizers import Tokenizer

    list_ = []
    for file in files:
        tok = Tokenizer.from_file(file)
        tok.no_padding()
        tok.no_truncation()
        list_.append(tok)
    return list_


def both(tok, text):
    out = []
    for flag in (True, False):
        tok.encode_special_tokens = flag
        out.append(tok.encode(text, add_special_tokens=False).ids)
    return out


def checksum(lists):
    """FNV-1a over the numbers of both lists, each with its length before it."""
    h = 0xCBF29CE484222325
    for ids in lists:
        for n in [len(ids)] + ids:
            h = ((h ^ n) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h & 0xFFFFFFFF


def main(mode, *args):
    if mode == "speed":
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        text, tok = open(args[0], encoding="utf-8", newline="").read(), open_all(args[1:])[0]
        seconds, ids = [], []
        for parts in ([text], text.splitlines(keepends=True)):
            best = float("inf")
            for _ in range(5):
                start = time.perf_counter()
                out = [tok.encode(part, add_special_tokens=False).ids for part in parts]
                best = min(best, time.perf_counter() - start)
            seconds.append(best)
            ids.append(sum(len(x) for x in out))
        print(json.dumps({"seconds": seconds, "ids": ids}))
        return
    count, seed, files = int(args[0]), int(args[1]), args[2:]
    if mode == "texts":
        json.dump(list(texts(count, seed)), sys.stdout)
        return
    toks = open_all(files)
    if mode == "sums":
        all_ = list(texts(count, seed))
        sums = {}
        for file, tok in zip(files, toks):
            name = os.path.basename(file).split(".tokenizer.json")[0]
            sums[name] = base64.b64encode(b"".join(struct.pack("<I", checksum(both(tok, t))) for t in all_)).decode()
        json.dump({"texts": all_, "sums": sums}, sys.stdout, ensure_ascii=False)
        return
    for text in texts(count, seed):
        print(json.dumps({"text": text, "ids": [both(tok, text) for tok in toks]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
