"""Asks llama.cpp about the GGUF twins: that it reads them proves their names, order
and keys. Writes each twin once more in float32 with a vocabulary of 300 tokens, as
llama.cpp needs one, and PyTorch's log-probabilities after 24 tokens;
llamacpp.mjs compares.

    npm i -E --ignore-scripts node-llama-cpp@3.21.1
    python tools/archfixtures/llamacpp.py FOLDER
    node tools/archfixtures/llamacpp.mjs FOLDER
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM
from transformers.modeling_utils import no_init_weights

import make
import models
import twins

VOCABULARY = 300


class Twin(twins.Twin):
    def common(self, ffn, eps, rms):
        super().common(ffn, eps, rms)
        bytes_ = [f"<0x{b:02X}>".encode() for b in range(256)]
        tokens = [b"<unk>", b"<s>", b"</s>", *bytes_]
        more = [f"t{i}".encode() for i in range(len(tokens), VOCABULARY)]
        self.w.add_tokenizer_model("llama")
        self.w.add_token_list(tokens + more)
        self.w.add_token_scores([0.0] * VOCABULARY)
        self.w.add_token_types([2, 3, 3] + [6] * len(bytes_) + [1] * len(more))

    def tensor(self, name, t):
        if t.dtype == torch.uint8:
            super().tensor(name, t)
        else:
            self.w.add_tensor(name, t.detach().float().contiguous().numpy())


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    twins.Twin = Twin
    for name, config in models.MODELS.items():
        if config.model_type not in twins.TWINS or not twins.holds(config) or config.model_type in make.ENCODERS:
            continue
        config.vocab_size, config._attn_implementation, config.dtype = VOCABULARY, "eager", torch.float32
        with no_init_weights():
            model = AutoModelForCausalLM.from_config(config).eval()
        model.tie_weights()
        torch.manual_seed(5)
        make.randomize(model, config)
        packed = make.pack(model) if name.endswith("mxfp4") else {}
        ids = torch.randint(3, VOCABULARY, (1, 24))
        logprobs = torch.log_softmax(make.outputs(model, ids)[-1], -1)
        twins.write(model, config, out / f"{name}.gguf", packed)
        (out / f"{name}.json").write_text(json.dumps({"ids": ids[0].tolist(), "logprobs": logprobs.tolist()}))
