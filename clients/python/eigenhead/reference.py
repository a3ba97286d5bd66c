"""Makes a reference for `eigenhead verify`: a capture of a Hugging Face model.

    python -m eigenhead.reference MODEL TEXT OUT [--context N] [--dtype float32]
    python -m eigenhead.reference MODEL OUT --tokens ids.json

transformers runs the model twice: as it is, and with the attention that the capture
describes in place of its own. Where the logits of the two differ, the description is
wrong, and nothing is written. Nothing is downloaded, ever.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import pathlib
import sys

import torch

from .capture import Capture, CaptureError
from .record import Recorder, uses_registry

CONTEXT = 512  # tokens, where --context says nothing: as `eigenhead scan`
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}


class Refusal(Exception):
    """What was found and what is wanted, and what to do."""

    def __init__(self, text: str, hint: str = ""):
        super().__init__(text)
        self.hint = hint


def arguments(argv: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m eigenhead.reference", description=(
        "Runs a text through a Hugging Face model and writes q, k, v, the residual stream and the last logits as a capture, "
        "which `eigenhead verify MODEL OUT` compares with its own forward pass."))
    p.add_argument("model", help="folder, GGUF file, or the name of a model that is already on this machine")
    p.add_argument("text", nargs="?", help="UTF-8 text file; leave it out with --tokens")
    p.add_argument("out", help="capture to write, such as ref.safetensors")
    p.add_argument("--context", type=int, metavar="N", help=f"number of tokens (default {CONTEXT}, or all of --tokens)")
    p.add_argument("--dtype", choices=sorted(DTYPES), default="float32", help="of the weights and the forward pass; default float32")
    p.add_argument("--tokens", metavar="FILE.json", help="a JSON list of token ids in place of a text")
    p.add_argument("--no-bos", action="store_true", help="no special tokens around the text, whatever the tokenizer's settings")
    args = p.parse_intermixed_args(argv)
    if (args.text is None) == (args.tokens is None):
        p.error(f"TEXT and --tokens: {'neither' if args.text is None else 'both'} given, want one of the two")
    if args.context is not None and args.context < 1:
        p.error(f"--context: {args.context}, want at least 1")
    check_out(p, args)
    return args


def check_out(p: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Finds out before the work whether OUT can be written and is no input."""
    out = pathlib.Path(args.out)
    if out.is_dir() or not out.absolute().parent.is_dir():
        p.error(f"{out}: {'a folder' if out.is_dir() else 'in a folder that does not exist'}, want the name of a file to write")
    for given in (args.model, args.text, args.tokens):
        if given and out.exists() and os.path.exists(given) and os.path.samefile(out, given):
            p.error(f"{out}: also an input, want another name for the output")


def locate(model: str) -> tuple[str, dict]:
    """What from_pretrained takes: a folder or name, and the GGUF file in it."""
    path = pathlib.Path(model).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        return str(path.parent), {"gguf_file": path.name}
    if path.is_dir():
        ggufs = sorted(path.glob("*.gguf"))
        if not (path / "config.json").exists() and len(ggufs) == 1:
            return str(path), {"gguf_file": ggufs[0].name}
        return str(path), {}
    if path.exists():
        raise Refusal(f"{model}: a file, want a folder, a .gguf file or a name", "of a safetensors model give the folder")
    return model, {}


def check_config(transformers, where: str) -> None:
    """Refuses what the installed transformers would read wrongly without a word."""
    file = pathlib.Path(where) / "config.json"
    if not file.exists() or int(transformers.__version__.split(".")[0]) >= 5:
        return
    if '"rope_parameters"' in file.read_text(encoding="utf-8"):
        raise Refusal(f"{file}: has rope_parameters, which transformers {transformers.__version__} ignores, want transformers 5",
                              "pip install 'transformers>=5'")


def choose(transformers, config) -> tuple[type, str]:
    """The class to load and the attention that is the family's own reference."""
    from transformers.models.auto import modeling_auto as auto

    kind = config.model_type
    encoder = kind in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False)
    chosen, mapping = transformers.AutoModel, auto.MODEL_MAPPING
    if not encoder and type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
        chosen, mapping = transformers.AutoModelForCausalLM, auto.MODEL_FOR_CAUSAL_LM_MAPPING
    if type(config) not in mapping:
        raise Refusal(f"model_type {kind!r}: not a text model that transformers {transformers.__version__} knows, want one")
    architecture = mapping[type(config)]
    if isinstance(architecture, tuple):
        architecture = architecture[0]
    if uses_registry(architecture) or not getattr(architecture, "_supports_sdpa", False):
        return chosen, "eager"
    return chosen, "sdpa"


def load(name: str, dtype: torch.dtype):
    """Loads a model with every weight that it needs, and a function for its tokenizer."""
    import transformers

    transformers.logging.set_verbosity_error()
    if not sys.stderr.isatty():
        transformers.logging.disable_progress_bar()
    where, extra = locate(name)
    check_config(transformers, where)
    extra["local_files_only"] = True
    try:
        config = transformers.AutoConfig.from_pretrained(where, **extra)
        chosen, attention = choose(transformers, config)
        options = {"dtype": dtype, "attn_implementation": attention}
        if hasattr(transformers.PreTrainedModel, "set_experts_implementation"):
            options["experts_implementation"] = "eager"  # others want shapes that divide by 16 bytes
        if (getattr(config, "quantization_config", None) or {}).get("quant_method") == "mxfp4":
            options["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
        model, info = chosen.from_pretrained(where, output_loading_info=True, **options, **extra)
    except (OSError, ValueError, KeyError, RuntimeError) as err:
        raise Refusal(f"{name}: transformers {transformers.__version__} cannot load it: {str(err).strip().splitlines()[0]}",
                              "MODEL is a folder, a .gguf file, or the name of a model in the Hugging Face cache of this machine") from err
    missing = [key for key in info["missing_keys"] if "pooler" not in key]
    if missing:
        raise Refusal(f"{name}: weights missing: {', '.join(sorted(missing)[:3])} and {len(missing)} in all, want every weight of a {config.model_type}")
    return model.to(dtype).eval(), lambda: encoder(transformers, where, extra)


def encoder(transformers, where: str, extra: dict):
    """A function from a text, and whether special tokens go around it, to ids."""
    own = transformers.AutoTokenizer.from_pretrained(where, **extra)
    settings = gguf_settings(pathlib.Path(where) / extra["gguf_file"]) if "gguf_file" in extra else {}

    def encode(text: str, special: bool) -> list[int]:
        if not special or not settings:
            return own(text, add_special_tokens=special, verbose=False)["input_ids"]
        ids = own(text, add_special_tokens=False, verbose=False)["input_ids"]
        return settings["front"] + ids + settings["behind"]

    return encode


def gguf_settings(file: pathlib.Path) -> dict[str, list[int]]:
    """The ids that a GGUF file wants around a text; empty where it does not say.

    transformers overlooks these settings, and puts a BOS where the file wants none.
    """
    import gguf

    fields = gguf.GGUFReader(file).fields
    if "tokenizer.ggml.add_bos_token" not in fields:
        return {}

    def around(end: str) -> list[int]:
        wanted, token = (fields.get(f"tokenizer.ggml.{key}") for key in (f"add_{end}_token", f"{end}_token_id"))
        return [int(token.contents())] if wanted is not None and wanted.contents() and token is not None else []

    return {"front": around("bos"), "behind": around("eos")}


def read_ids(args: argparse.Namespace, tokenizer) -> list[int]:
    """The ids of the text or of --tokens, all of them."""
    if args.tokens:
        try:
            ids = json.loads(pathlib.Path(args.tokens).read_text(encoding="utf-8"))
        except ValueError as err:
            raise Refusal(f"{args.tokens}: {err}, want a JSON list of token ids such as [1, 403, 407]") from err
        if isinstance(ids, dict):  # as `eigenhead tokenize` writes it
            ids = ids.get("ids")
        if not isinstance(ids, list) or not ids or not all(type(i) is int for i in ids):
            raise Refusal(f"{args.tokens}: not a list of whole numbers, want a JSON list of token ids such as [1, 403, 407]",
                                  "eigenhead tokenize MODEL --text FILE --json ids.json makes such a file")
        return ids
    try:
        text = pathlib.Path(args.text).read_bytes().decode("utf-8")
    except UnicodeDecodeError as err:
        raise Refusal(f"{args.text}: byte {err.start} is no UTF-8, want a UTF-8 text") from err
    try:
        own = tokenizer()
    except Exception as err:  # whatever a tokenizer that is not there raises
        raise Refusal(f"{args.model}: transformers finds no tokenizer: {str(err).strip().splitlines()[0]}",
                              "eigenhead tokenize MODEL --text FILE --json ids.json, then --tokens ids.json") from err
    return own(text, not args.no_bos)


def cut(ids: list[int], args: argparse.Namespace, config) -> list[int]:
    """The ids that run, checked against the model."""
    limit = getattr(config, "max_position_embeddings", None) or len(ids)
    n = args.context or (len(ids) if args.tokens else min(CONTEXT, limit, len(ids)))
    if n > len(ids):
        raise Refusal(f"--context: {n}, want at most {len(ids)}, the tokens that there are")
    vocabulary = config.vocab_size
    for at, i in enumerate(ids[:n]):
        if not 0 <= i < vocabulary:
            raise Refusal(f"token {at}: id {i}, want 0 to {vocabulary - 1}", "the ids may come from another tokenizer")
    return ids[:n]


def run(model, ids: list[int]) -> tuple[torch.Tensor, bool]:
    """The last token's logits, or its hidden state and False for a model without."""
    accepted = inspect.signature(model.forward).parameters
    options = {"use_cache": False} if "use_cache" in accepted else {}
    if "logits_to_keep" in accepted:
        options["logits_to_keep"] = 1
    with torch.no_grad():
        out = model(torch.tensor([ids]), **options)
    return (out.logits if "logits" in out else out.last_hidden_state)[0, -1], "logits" in out


def reference(model, ids: list[int], name: str) -> tuple[Capture, float]:
    """The capture of one sequence, and how far the described attention moved the logits.

    Raises CaptureError where that is beyond rounding: 1000 ε of the largest logit, ε of
    the type computed in, and a tenth of it at most (chosen, not derived: ten times what
    float32 shows in deep models).
    """
    plain, logits = run(model, ids)
    with Recorder(model) as recorder:
        ours, _ = run(model, ids)
    if not recorder.layers:
        raise CaptureError(f"{type(model).__name__}: its attention goes neither through transformers' registry nor through "
                           "scaled_dot_product_attention, want one of the two")
    if absent := sorted(set(recorder.modules) - set(recorder.layers)):
        raise CaptureError(f"layers {absent}: no attention was seen, want one in every layer")
    moved = (ours.double() - plain.double()).abs().max().item() if plain.isfinite().all() else 0.0
    allowed = min(1000 * torch.finfo(plain.dtype).eps, 0.1) * max(plain.abs().max().item(), 1)
    if not moved <= allowed:
        raise CaptureError(f"attention as described moves the logits by {moved:.3g}, want at most {allowed:.2g}: "
                           "this model does something in attention that a capture cannot say")
    layers = [recorder.layers[i] for i in sorted(recorder.layers)]
    capture = Capture(layers, qk_norm=recorder.qk_norm, tokens=ids, model=name, logits_last=plain.float() if logits else None)
    return capture, moved


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    try:
        model, tokenizer = load(args.model, DTYPES[args.dtype])
        ids = cut(read_ids(args, tokenizer), args, model.config.get_text_config())
        capture, moved = reference(model, ids, pathlib.Path(args.model).expanduser().absolute().name)
        capture.write(args.out)
    except (Refusal, CaptureError, OSError) as err:
        print(f"eigenhead.reference: error: {err}", file=sys.stderr)
        if hint := getattr(err, "hint", ""):
            print(f"eigenhead.reference: hint: {hint}", file=sys.stderr)
        return 2
    except ImportError as err:
        print(f"eigenhead.reference: error: {err}\neigenhead.reference: hint: pip install 'eigenhead[reference]', and gguf for GGUF files", file=sys.stderr)
        return 2
    print(f"{args.out}: {len(capture.layers)} layers, {len(ids)} tokens from id {ids[0]}; "
          f"attention as described moved the last logits by {moved:.2g}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
