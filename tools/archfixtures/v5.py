"""Writes the configuration of every fixture with all its keys as transformers 5
saves it, with RoPE in rope_parameters.

    pip install transformers==5.24.0
    python tools/archfixtures/v5.py forward/testdata
"""

import json
import pathlib
import sys

import transformers

root = pathlib.Path(sys.argv[1])
for folder in sorted(f.parent for f in root.glob("*/config.json")):
    config = transformers.AutoConfig.from_pretrained(folder)
    text = json.loads(config.to_json_string(use_diff=False))
    old = json.loads((folder / "config.json").read_text())
    text["architectures"] = old["architectures"]
    text.pop("_name_or_path")
    if "quantization_config" in old:
        text["quantization_config"] = old["quantization_config"]
    (folder / "config-v5.json").write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")
