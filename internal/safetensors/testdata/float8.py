"""Writes float8.json: what torch makes of every F8 number, as float32 bits.

    pip install torch
    python float8.py float8.json
"""

import json
import sys

import torch

codes = torch.arange(256, dtype=torch.uint8)
types = {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
bits = {name: codes.view(t).to(torch.float32).view(torch.int32).tolist() for name, t in types.items()}
json.dump({name: [b & 0xFFFFFFFF for b in list_] for name, list_ in bits.items()}, open(sys.argv[1], "w"))
