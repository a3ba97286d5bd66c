"""Writes checkpoint/testdata/blocks.gguf: random blocks of every quantised type
that package checkpoint reads, with the numbers that gguf-py makes of them.

    pip install gguf==0.19.0 numpy==2.4.6
    python tools/ggufblocks/make.py checkpoint/testdata/blocks.gguf

Tensor NAME holds the blocks, tensor NAME.want the same dequantised, as F32. The
blocks are random bytes, so that every bit pattern of the integers occurs; scales
are random F16 over the whole finite range with zero, minus zero, subnormals and
the largest among them. The writer is gguf-py's, so the reader is checked too.
"""

import sys

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

SEED = 20260131
# type: (offsets of F16 scales in the block, blocks)
TYPES = {
    T.Q4_0: ([0], 16),
    T.Q4_1: ([0, 2], 16),
    T.Q5_0: ([0], 16),
    T.Q5_1: ([0, 2], 16),
    T.Q8_0: ([0], 16),
    T.Q2_K: ([80, 82], 4),
    T.Q3_K: ([108], 4),
    T.Q4_K: ([0, 2], 4),
    T.Q5_K: ([0, 2], 4),
    T.Q6_K: ([208], 4),
    T.IQ4_NL: ([0], 8),
    T.IQ4_XS: ([0], 4),
    T.MXFP4: ([], 16),
    T.NVFP4: ([], 16),
    T.IQ2_XXS: ([0], 4),
    T.IQ2_XS: ([0], 4),
    T.IQ2_S: ([0], 4),
    T.IQ3_XXS: ([0], 4),
    T.IQ3_S: ([0], 4),
    T.IQ1_S: ([0], 4),
    T.IQ1_M: ([], 4),
    T.TQ1_0: ([52], 4),
    T.TQ2_0: ([64], 4),
}
SPECIAL = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x3C00, 0x0400]


def scales(rng, n):
    """n finite F16 numbers; the first few are the special ones, shuffled."""
    bits = rng.integers(0, 1 << 16, n).astype(np.uint16)
    bits = np.where((bits & 0x7C00) == 0x7C00, bits & 0x83FF, bits)
    some = rng.permutation(SPECIAL)[: n // 2].astype(np.uint16)
    bits[: len(some)] = some
    return bits


def blocks(rng, kind, at, n):
    size = GGML_QUANT_SIZES[kind][1]
    raw = rng.integers(0, 256, (n, size)).astype(np.uint8)
    for offset in at:
        raw[:, offset : offset + 2] = scales(rng, n).reshape(-1, 1).view(np.uint8)
    if kind == T.IQ1_M:  # the scale lies in the top nibbles of four words
        for i, nibble in enumerate(np.stack([scales(rng, n) >> s & 15 for s in (0, 4, 8, 12)])):
            raw[:, 49 + 2 * i] = raw[:, 49 + 2 * i] & 15 | (nibble << 4).astype(np.uint8)
    return raw.reshape(2, -1)  # two rows of half the blocks


def main(path):
    rng = np.random.default_rng(SEED)
    w = gguf.GGUFWriter(path, "blocks")
    w.add_string("generator", f"gguf-py {SEED}")
    w.add_array("strings", ["", "a", "ünï"])
    w.add_array("ints", [1, -2, 3])
    w.add_array("floats", [0.5, -1.25])
    w.add_array("bools", [True, False])
    w.add_bool("yes", True)
    w.add_float32("third", 1 / 3)
    w.add_float64("third64", 1 / 3)
    w.add_uint64("big", 2**64 - 1)
    w.add_int8("minus", -128)
    for kind, (at, n) in TYPES.items():
        raw = blocks(rng, kind, at, n)
        with np.errstate(over="ignore"):
            want = gguf.quants.dequantize(raw, kind)
        w.add_tensor(kind.name, raw, raw_dtype=kind)
        w.add_tensor(kind.name + ".want", want.astype(np.float32))
    h = np.arange(1 << 16, dtype=np.uint16)[:: 37].copy()
    w.add_tensor("F16", h.view(np.float16))
    w.add_tensor("F16.want", h.view(np.float16).astype(np.float32))
    d = rng.standard_normal(40) * 10.0 ** rng.integers(-46, 41, 40)
    with np.errstate(over="ignore"):
        w.add_tensor("F64", d)
        w.add_tensor("F64.want", d.astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main(sys.argv[1])
