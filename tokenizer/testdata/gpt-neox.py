"""Writes gpt-neox.json: texts and the ids that GPT-NeoX-20B's tokenizer gives.

    pip install tokenizers gguf
    python gpt-neox.py ../../../shared/tokenizers/ggml-vocab-gpt-neox.gguf gpt-neox.json

The vocabulary comes from the GGUF; the rules are those of the original
tokenizer.json: NFC, ByteLevel without a space in front, added tokens found in
the text (special ones only on request). Texts are llama.cpp's own cases and
some for added tokens, NFC and white space.
"""

import json
import sys

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

source, target = sys.argv[1:]
fields = GGUFReader(source).fields
tokens = fields["tokenizer.ggml.tokens"].contents()
types = fields["tokenizer.ggml.token_type"].contents()
merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]

tok = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
tok.normalizer = normalizers.NFC()
tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
tok.decoder = decoders.ByteLevel()
for text, kind in zip(tokens, types):
    if kind == 3:
        tok.add_special_tokens([AddedToken(text, special=True, normalized=False)])
    if kind == 4:
        tok.add_tokens([AddedToken(text, special=False, normalized=False)])

inputs = open(source.replace("gpt-neox", "gpt-2") + ".inp", encoding="utf-8", newline="").read()
texts = inputs.split("\n__ggml_vocab_test__\n")
if texts[-1] == "":
    texts.pop()
texts += [
    "<|endoftext|>",
    "a <|endoftext|> b<|padding|>",
    "e\u0301 cafe\u0301 \u1112\u1161\u11ab",
    "if x:\n    return y\n        # eight\n" + " " * 23 + "z" + " " * 24 + "z" + " " * 61,
    " a  b   c    d",
    "\u00a0\u00a0 x \u3000 y\r\n\r\n\t\tz",
    "[PAD50277] [PAD5027]",
    "'LL 'll It's WE'RE",
]

cases = []
for text in texts:
    tok.encode_special_tokens = True
    plain = tok.encode(text, add_special_tokens=False).ids
    tok.encode_special_tokens = False
    special = tok.encode(text, add_special_tokens=False).ids
    cases.append({"text": text, "ids": plain, "special_ids": special})
with open(target, "w", encoding="utf-8") as out:
    out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
