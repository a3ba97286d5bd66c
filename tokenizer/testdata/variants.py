"""Writes variants.jsonl: small tokenizer.json files in many variants, with the
ids that the tokenizers library gives.

    pip install tokenizers
    python variants.py variants.jsonl

A variant is a base file with some top-level keys replaced (and some keys of
"model"). Texts are random mixtures of what makes variants differ.
"""

import json
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TRAIN = [
    "the first line of the text, and the second line of it; they're not the same, it's 12345 and 2024",
    "we'll see what THE LINE'S other part is: caf\u00e9 na\u00efve, x = y + 1\n    return the(text)\n",
] * 3


def byte_level():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=330, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(TRAIN, trainer)
    return json.loads(tok.to_str())


def sentence_piece(fallback):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=110, show_progress=False))
    file = json.loads(tok.to_str())
    names = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256) if fallback]
    vocab = {t: i for i, t in enumerate(names)}
    for t in file["model"]["vocab"]:
        vocab[t] = len(vocab)
    file["model"].update(vocab=vocab, unk_token="<unk>", byte_fallback=fallback, fuse_unk=True)
    file["added_tokens"] = [added(i, t, True, False) for i, t in enumerate(names[:3])]
    return file


def added(id, content, special, normalized, **flags):
    token = dict(id=id, content=content, special=special, normalized=normalized, lstrip=False, rstrip=False, single_word=False)
    return token | flags


def byte_variants(vocab):
    """Name, top-level keys, keys of model."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = level | {"use_regex": False}
    llama3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    cl100k = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    qwen2 = llama3.replace("{1,3}", "")
    split = lambda regex, behavior="Isolated", invert=False: {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}
    sequence = lambda *parts: {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(parts)}}
    digits = lambda one: {"type": "Digits", "individual_digits": one}
    names = lambda *flags: {"added_tokens": [added(vocab.get(t, len(vocab) + i), t, s, n, **f) for i, (t, s, n, f) in enumerate(flags)]}
    yield "gpt-2", {"pre_tokenizer": level}, {}
    yield "prefix space", {"pre_tokenizer": level | {"add_prefix_space": True}}, {}
    yield "no splitting", {"pre_tokenizer": plain}, {}
    yield "digits one by one", sequence(digits(True), level), {}
    yield "digits together", sequence(digits(False), level), {}
    yield "llama3", sequence(split(llama3), plain), {}
    yield "llama3, removed inverted", sequence(split(llama3, "Removed", True), plain), {}
    yield "cl100k", sequence(split(cl100k, "Removed", True), plain), {}
    yield "qwen2, NFC", sequence(split(qwen2), plain) | {"normalizer": {"type": "NFC"}}, {}
    yield "digits by split", sequence(split(r"\p{N}"), level), {}
    yield "digits by three", sequence(split(r"\p{N}{1,3}"), level), {}
    yield "ignore merges", {"pre_tokenizer": level}, {"ignore_merges": True}
    yield "specials", names(("<|end|>", True, False, {}), ("<|end|>>", False, False, {}), ("<x>", False, True, {}), ("the", False, True, {})), {}
    yield "strip", names(("<|end|>", True, False, {"lstrip": True}), ("<x>", False, False, {"rstrip": True}), ("line", False, True, {"lstrip": True, "rstrip": True})), {}
    yield "single word", names(("line", False, False, {"single_word": True}), ("<x>", True, True, {"single_word": True})), {}
    yield "NFC names", {"normalizer": {"type": "NFC"}} | names(("caf\u00e9", False, True, {}), ("<x>", False, False, {})), {}


def sentence_variants(vocab):
    meta = "\u2581"
    prepend, replace = {"type": "Prepend", "prepend": meta}, {"type": "Replace", "pattern": {"String": " "}, "content": meta}
    space = lambda **keys: {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": meta} | keys}
    normal = lambda *parts: {"pre_tokenizer": None, "normalizer": {"type": "Sequence", "normalizers": list(parts)}}
    yield "prepend, replace", normal(prepend, replace), {}
    yield "replace", {"pre_tokenizer": None, "normalizer": replace}, {}
    yield "NFC, prepend, replace", normal({"type": "NFC"}, prepend, replace), {}
    yield "unknowns apart", normal(prepend, replace), {"fuse_unk": False}
    yield "Metaspace always", space(prepend_scheme="always", split=True), {}
    yield "Metaspace first, whole", space(prepend_scheme="first", split=False), {}
    yield "Metaspace never", space(prepend_scheme="never", split=True), {}


def random_text(rng):
    parts = [" ", "  ", "   ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "'s", "'LL", "'\u017f", "'re", "1", "23", "456", "7890", "\u00bd", "\u0663", "\u6f22\u5b57",
             "cafe\u0301", "caf\u00e9", "\U0001f999", "\ufeff", "\x00", "<s>", "</s>", "<unk>", "<|end|>", "<|end|>>", "<x>", "the", "line", "The line", "\u2581", "\u2581\u2581",
             "<0x41>", "\u0120", "!!", "...", "_", "=", "text", "naive", "second", "\u1c89", "\U00013469"]
    return "".join(rng.choice(parts) * (rng.randint(2, 9) if rng.random() < 0.05 else 1) for _ in range(rng.randint(0, 9)))


def main(target):
    rng = random.Random(20)
    texts = [random_text(rng) for _ in range(60)]
    bases = {"byte-level": byte_level(), "byte fallback": sentence_piece(True), "unknown": sentence_piece(False)}
    variants = []
    for base, table in (("byte-level", byte_variants), ("byte fallback", sentence_variants), ("unknown", sentence_variants)):
        for name, keys, model in table(bases[base]["model"]["vocab"]):
            file = json.loads(json.dumps(bases[base])) | keys
            file["model"] |= model
            tok = Tokenizer.from_str(json.dumps(file))
            ids = {}
            for key, flag in (("ids", True), ("special_ids", False)):
                tok.encode_special_tokens = flag
                ids[key] = [tok.encode(t, add_special_tokens=False).ids for t in texts]
            variants.append({"base": base, "name": name, "keys": keys, "model": model} | ids)
    with open(target, "w", encoding="utf-8") as out:
        json.dump({"texts": texts, "bases": bases}, out)
        for v in variants:
            out.write("\n")
            json.dump(v, out, separators=(",", ":"))
        out.write("\n")


main(*sys.argv[1:])
