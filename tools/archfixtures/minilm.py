"""Records what PyTorch makes of a real encoder: q, k and v of the last layer of
all-MiniLM-L6-v2 for one sentence.

    scripts/fetch-minilm
    python tools/archfixtures/minilm.py FOLDER forward/testdata/minilm.safetensors
"""

import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer

import recorders

folder, out = sys.argv[1:]
model = AutoModel.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32).eval()
ids = AutoTokenizer.from_pretrained(folder)("Every attention head is a product of two thin factors.", return_tensors="pt")["input_ids"]
with torch.no_grad():
    recorders.record_sdpa(model, lambda: model(ids))
last = max(recorders.seen)
save_file({f"{k}.{last}": v.contiguous() for k, v in recorders.seen[last].items()} | {"ids": ids[0].float()}, out)
print(ids, recorders.seen[last]["q"].abs().max())
