"""Writes trained.json.gz: small trained tokenizers of every kind, generated texts
and checksums of the ids that the original libraries give them.

    pip install tokenizers==0.22.2 sentencepiece==0.2.3
    python trained.py trained.json.gz

"files" are tokenizer.json files, "@charsmap" in them being the compiled map of
"charsmap"; "sums" has four bytes for each text (see reference.py in
bench/tokenizer). "sentencepiece" is what a GGUF says of a Unigram vocabulary,
with sums of SentencePiece's own ids.
"""

import base64
import gzip
import io
import json
import os
import struct
import sys

import sentencepiece
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "tokenizer"))
import reference  # noqa: E402

COUNT, SEED = 2000, 11
TRAIN = list(reference.texts(3000, 5)) + ["the first line of the text, and the second line of it; it's 12345 and 2024"] * 20


def field(data, at):
    """One field of a protocol buffer: number, wire type, value, place behind."""
    key, at = varint(data, at)
    kind = key & 7
    if kind == 0:
        value, at = varint(data, at)
    elif kind == 2:
        n, at = varint(data, at)
        value, at = data[at : at + n], at + n
    else:
        n = 4 if kind == 5 else 8
        value, at = data[at : at + n], at + n
    return key >> 3, kind, value, at


def varint(data, at):
    n = shift = 0
    while True:
        b = data[at]
        at += 1
        n |= (b & 127) << shift
        shift += 7
        if b < 128:
            return n, at


def fields(data):
    at = 0
    while at < len(data):
        number, kind, value, at = field(data, at)
        yield number, value


def train_unigram(vocab_size, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(t.replace("\n", " ") for t in TRAIN[:500] + TRAIN[-20:]), model_writer=out, vocab_size=vocab_size, hard_vocab_limit=False,
        character_coverage=0.98, minloglevel=2, **options)  # fmt: skip
    pieces, charsmap = [], b""
    for number, value in fields(out.getvalue()):
        if number == 1:
            piece = {n: v for n, v in fields(value)}
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0], piece.get(3, 1)))
        if number == 3:
            charsmap = dict(fields(value)).get(2, b"")
    return out.getvalue(), pieces, charsmap


def unigram(pieces, parts, pre, **keys):
    file = {"added_tokens": [added(i, p) for i, (p, _, kind) in enumerate(pieces) if kind == 3], "normalizer": parts, "pre_tokenizer": pre}
    return file | {"model": {"type": "Unigram", "unk_id": [k for _, _, k in pieces].index(2), "vocab": [[p, s] for p, s, _ in pieces], "byte_fallback": False} | keys}


def added(id, content, **flags):
    return dict(id=id, content=content, special=True, normalized=False, lstrip=False, rstrip=False, single_word=False) | flags


def sequence(kind, key, *parts):
    return {"type": "Sequence", key: list(parts)}


def unigrams(pieces, byte_pieces):
    meta = "\u2581"
    metaspace = lambda scheme, split=True: {"type": "Metaspace", "replacement": meta, "prepend_scheme": scheme, "split": split}
    charsmap = {"type": "Precompiled", "precompiled_charsmap": "@charsmap"}
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    blanks = lambda to: {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": to}
    text = lambda old, new: {"type": "Replace", "pattern": {"String": old}, "content": new}
    norms = lambda *parts: sequence("Sequence", "normalizers", *parts)
    pres = lambda *parts: sequence("Sequence", "pretokenizers", *parts)
    yield "t5", unigram(pieces, norms(charsmap, strip, blanks(meta)), metaspace("always"))
    yield "xlm-roberta", unigram(pieces, charsmap, pres({"type": "WhitespaceSplit"}, metaspace("always")))
    yield "albert", unigram(pieces, norms(text("``", '"'), text("''", '"'), {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, charsmap, blanks(" ")), metaspace("always"))
    yield "unigram, whole", unigram(pieces, norms({"type": "Nmt"}, {"type": "NFKC"}, blanks(" ")), metaspace("first", False))
    yield "unigram, bytes", unigram(byte_pieces, norms({"type": "Prepend", "prepend": meta}, text(" ", meta)), None, byte_fallback=True)


def train(model, pre, trainer, norm=None):
    tok = Tokenizer(model)
    tok.pre_tokenizer = pre
    if norm:
        tok.normalizer = norm
    tok.train_from_iterator(TRAIN, trainer)
    return json.loads(tok.to_str())


def word_pieces():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=1200, special_tokens=special, show_progress=False)
    file = train(models.WordPiece(unk_token="[UNK]"), pre_tokenizers.BertPreTokenizer(), trainer, normalizers.BertNormalizer(lowercase=True))
    bert = lambda **on: {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True} | on}
    yield "bert", file
    yield "bert, cased", file | bert(lowercase=False)
    yield "bert, accents", file | bert(strip_accents=False, clean_text=False, handle_chinese_chars=False)
    yield "wordpiece, other parts", file | {
        "normalizer": sequence("Sequence", "normalizers", {"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": True}),
        "pre_tokenizer": {"type": "Whitespace"},
    }
    pres = lambda *parts: {"pre_tokenizer": sequence("Sequence", "pretokenizers", *parts)}
    yield "wordpiece, punctuation", file | pres({"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "Digits", "individual_digits": True})
    yield "wordpiece, delimiters", file | pres({"type": "CharDelimiterSplit", "delimiter": " "}, {"type": "Digits", "individual_digits": False}, {"type": "Punctuation", "behavior": "MergedWithNext"})


def old_bpe():
    trainer = trainers.BpeTrainer(vocab_size=1000, end_of_word_suffix="</w>", special_tokens=["<unk>"], show_progress=False)
    file = train(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), pre_tokenizers.BertPreTokenizer(), trainer)
    yield "end of word", file | {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}}
    trainer = trainers.BpeTrainer(vocab_size=1000, continuing_subword_prefix="##", special_tokens=["<unk>"], show_progress=False)
    file = train(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True), pre_tokenizers.Whitespace(), trainer)
    yield "continuing prefix", file


def byte_level():
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    file = train(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), trainer)
    level = lambda regex=False: {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}
    split = lambda pattern, behavior="Isolated", invert=False: {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}
    pres = lambda *parts: file | {"pre_tokenizer": sequence("Sequence", "pretokenizers", *parts)}
    suffix, rest = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    words = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    capitals = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    yield "gpt-4o", pres(split(words + suffix + "|" + capitals + suffix + r"|\p{N}{1,3}" + rest, "Removed", True), level())
    yield "tekken", pres(split(words + "|" + capitals + r"|\p{N}" + rest), level())
    yield "qwen35", pres(split(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), level())
    last = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
    yield "deepseek-v3", pres(split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(last), level())
    latin = "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0370-\u0373\u0376\u0377\u03a3-\u03f5\u03f7-\u0481\u1f5f-\u1f7d\u1fbe\u1fd0-\u1fd3\u2126\u212a-\u212d\uff21-\uff3a\U00010400-\U0001044f"
    ideographs = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
    yield "deepseek-llm", pres(split("[\r\n]"), split(r"\s?[" + latin + "]+"), split(r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split(r"\s+$"), split(ideographs), {"type": "Digits", "individual_digits": True}, level())
    yield "deepseek-coder", pres(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(ideographs), {"type": "Digits", "individual_digits": True}, level())
    yield "bloom", pres(split(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), level())
    yield "falcon", pres({"type": "Punctuation", "behavior": "Contiguous"}, level(True), {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]"))
    text = lambda behavior, invert=False: {"type": "Split", "pattern": {"String": "e"}, "behavior": behavior, "invert": invert}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield "split, " + behavior, pres(text(behavior), level())
        yield "split inverted, " + behavior, pres(text(behavior, True), level())
    names = ["<s>", "</s>", "the", "[MASK]", " x", "\ud55c"]
    flags = [{}, {"lstrip": True}, {"special": False, "normalized": True, "single_word": True}, {"lstrip": True, "rstrip": True}, {"special": False}, {"special": False, "normalized": True}]
    ids = dict(file["model"]["vocab"])
    tokens = [added(ids.setdefault(n, len(ids)), n, **f) for n, f in zip(names, flags)]
    yield "added tokens", file | {"added_tokens": tokens, "normalizer": {"type": "NFD"}}


def main(target):
    texts = list(reference.texts(COUNT, SEED))
    model, pieces, charsmap = train_unigram(3000, normalization_rule_name="nmt_nfkc")
    _, byte_pieces, _ = train_unigram(3000, normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False)
    files, sums = {}, {}
    encoded = base64.b64encode(charsmap).decode()
    for source in (unigrams(pieces, byte_pieces), word_pieces(), old_bpe(), byte_level()):
        for name, file in source:
            tok = Tokenizer.from_str(json.dumps(file).replace("@charsmap", encoded))
            files[name] = file
            sums[name] = pack(reference.checksum(reference.both(tok, t)) for t in texts)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    own = {
        "pieces": [p for p, _, _ in pieces], "scores": [s for _, s, _ in pieces], "types": [k for _, _, k in pieces],
        "sums": pack(reference.checksum([sp.encode(t)]) for t in texts),
    }  # fmt: skip
    out = {"texts": texts, "charsmap": encoded, "files": files, "sums": sums, "sentencepiece": own}
    with open(target, "wb") as f:
        f.write(gzip.compress(json.dumps(out, separators=(",", ":")).encode(), 9, mtime=0))


def pack(numbers):
    return base64.b64encode(b"".join(struct.pack("<I", n) for n in numbers)).decode()


main(*sys.argv[1:])
