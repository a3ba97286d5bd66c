"""References of small random models, one for each way that attention is reached."""

import json
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
tf = pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from eigenhead import attention, reference  # noqa: E402
from eigenhead.probe import Probe  # noqa: E402
from test_capture import read  # noqa: E402

common = dict(vocab_size=37, hidden_size=24, intermediate_size=28, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64)
shared = dict(common, num_key_value_heads=2)
ends = dict(bos_token_id=0, eos_token_id=1, pad_token_id=0)
old = dict(vocab_size=37, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=1)

# class, config, and what its capture says beyond a causal mask
MODELS = {
    "llama": (tf.LlamaForCausalLM, tf.LlamaConfig(**shared, head_dim=10), {}),
    "mistral": (tf.MistralForCausalLM, tf.MistralConfig(**shared, sliding_window=5), {"mask": "window:5"}),
    "gpt2": (tf.GPT2LMHeadModel, tf.GPT2Config(**old, n_embd=24, scale_attn_by_inverse_layer_idx=True), {"layers": [1]}),
    "opt": (tf.OPTForCausalLM, tf.OPTConfig(**common | dict(num_attention_heads=3), ffn_dim=28), {"scale": 8**-0.5}),
    "qwen3": (tf.Qwen3ForCausalLM, tf.Qwen3Config(**shared, head_dim=10), {"qk_norm": "true"}),
    "gemma2": (tf.Gemma2ForCausalLM, tf.Gemma2Config(**shared, **ends, head_dim=10, sliding_window=5, query_pre_attn_scalar=7, attn_logit_softcapping=3.0),
               {"softcap": "3.0", "scale": 7**-0.5, "mask": "window:5", "layers": [1]}),
    "gpt-oss": (tf.GptOssForCausalLM, tf.GptOssConfig(**shared | dict(hidden_size=32, intermediate_size=32), **ends, head_dim=16, num_local_experts=2,
                                                      num_experts_per_tok=1, sliding_window=5), {"mask": "window:5", "sink": True, "layers": [1]}),
    "bloom": (tf.BloomForCausalLM, tf.BloomConfig(**old, hidden_size=24), {"alibi": True}),
    "gptj": (tf.GPTJForCausalLM, tf.GPTJConfig(**old, n_embd=24, n_positions=64, rotary_dim=4), {}),
    "falcon": (tf.FalconForCausalLM, tf.FalconConfig(vocab_size=37, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2,
                                                     new_decoder_architecture=True, bos_token_id=0, eos_token_id=1), {}),
    "stablelm": (tf.StableLmForCausalLM, tf.StableLmConfig(**shared), {}),
    "bert": (tf.BertModel, tf.BertConfig(**common), {"mask": "none"}),
}
KV = {"gpt2": 3, "opt": 3, "bloom": 3, "gptj": 3, "bert": 4}


@pytest.fixture
def saved(tmp_path):
    """Saves a random model and runs the command on ids of it."""
    def run(kind, config, *more, ids=tuple(range(2, 14))):
        torch.manual_seed(7)
        model = kind(config)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(0.3 * torch.randn_like(p))
        model.save_pretrained(tmp_path / "model")
        (tmp_path / "ids.json").write_text(json.dumps(ids))
        rc = reference.main([str(tmp_path / "model"), str(tmp_path / "ref.safetensors"), "--tokens", str(tmp_path / "ids.json"), *more])
        return model.eval(), rc, tmp_path / "ref.safetensors"

    return run


@pytest.mark.parametrize("name", MODELS)
def test_captures_say_what_attention_does(name, saved):
    kind, config, want = MODELS[name]
    model, rc, file = saved(kind, config)
    assert rc == 0
    meta, tensors = read(file)
    assert json.loads(meta["tokens"]) == list(range(2, 14)) and meta["model"] == "model"
    assert meta["mask"] == want.get("mask", "causal")
    assert meta.get("qk_norm") == want.get("qk_norm") and meta.get("softcap") == want.get("softcap")
    if "scale" in want:
        assert abs(float(meta["scale"]) - want["scale"]) < 1e-7
    assert [o["layer"] for o in json.loads(meta.get("layers", "[]"))] == want.get("layers", [])
    layers = getattr(config, "num_hidden_layers")
    assert sum(n.endswith(".q") for n in tensors) == layers
    for part in ("q", "k", "v", "x"):
        assert f"layers.{layers - 1}.{part}" in tensors
    assert tensors["layers.0.k"].shape[0] == KV.get(name, 2)
    for part in ("sink", "alibi"):
        assert (f"layers.0.{part}" in tensors) == (part in want)
    if name != "bert":
        if name in ("gemma2", "gpt-oss", "gpt2"):  # the default attention overlooks softcaps, sinks, and GPT-2's scale by layer
            model.set_attn_implementation("eager")
        with torch.no_grad():
            logits = model(torch.tensor([list(range(2, 14))])).logits[0, -1]
        assert (tensors["logits_last"] - logits).abs().max() < 1e-4


def test_q_and_k_are_those_of_the_weights(saved):
    """Layer 1 of a Llama by hand, from the residual stream that the capture has."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    model, _, file = saved(*MODELS["llama"][:2])
    _, tensors = read(file)
    block, x = model.model.layers[1], tensors["layers.1.x"][None]
    with torch.no_grad():
        h = block.input_layernorm(x)
        q, k = (p(h).view(1, 12, -1, 10).transpose(1, 2) for p in (block.self_attn.q_proj, block.self_attn.k_proj))
        q, k = apply_rotary_pos_emb(q, k, *model.model.rotary_emb(x, torch.arange(12)[None]))
    assert (tensors["layers.1.q"] - q[0]).abs().max() < 1e-5
    assert (tensors["layers.1.k"] - k[0]).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["llama", "falcon", "bloom", "gptj"])
def test_a_wrong_description_is_refused(name, saved, monkeypatch, capsys):
    own = attention.attend
    monkeypatch.setattr(attention, "attend", lambda layer: 1.01 * own(layer))
    _, rc, file = saved(*MODELS[name][:2])
    assert rc == 2 and not file.exists() and "moves the logits" in capsys.readouterr().err


def test_a_model_is_as_before(saved):
    kind, config, _ = MODELS["bloom"]
    model = kind(config).eval()
    ids, sdpa = list(range(2, 14)), torch.nn.functional.scaled_dot_product_attention
    before, implementation = reference.run(model, ids)[0], model.config._attn_implementation
    reference.reference(model, ids, "m")
    assert torch.equal(reference.run(model, ids)[0], before)
    assert torch.nn.functional.scaled_dot_product_attention is sdpa and model.config._attn_implementation == implementation
    assert not any(m._forward_hooks or m._forward_pre_hooks or "_reshape" in vars(m) for m in model.modules())


@pytest.mark.parametrize("ids, want", [([1, 37], "token 1: id 37, want 0 to 36"), ([], "not a list"), ({"ids": [1.5]}, "not a list"), ({"tokens": [1]}, "not a list"), ([True], "not a list")])
def test_wrong_ids_are_refused(ids, want, saved, capsys):
    _, rc, file = saved(*MODELS["llama"][:2], ids=ids)
    assert rc == 2 and not file.exists() and want in capsys.readouterr().err


def test_missing_weights_are_refused(saved, tmp_path, capsys):
    from safetensors.torch import load_file, save_file

    saved(*MODELS["llama"][:2])
    weights = load_file(tmp_path / "model" / "model.safetensors")
    weights.pop("model.layers.1.self_attn.k_proj.weight")
    save_file(weights, tmp_path / "model" / "model.safetensors", {"format": "pt"})
    rc = reference.main([str(tmp_path / "model"), str(tmp_path / "other"), "--tokens", str(tmp_path / "ids.json")])
    assert rc == 2 and "weights missing: model.layers.1.self_attn.k_proj.weight" in capsys.readouterr().err


def test_a_configuration_of_transformers_5_is_not_misread(tmp_path):
    (tmp_path / "config.json").write_text('{"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}')
    with pytest.raises(reference.Refusal, match="rope_parameters, which transformers 4.57.1 ignores"):
        reference.check_config(SimpleNamespace(__version__="4.57.1"), str(tmp_path))
    reference.check_config(SimpleNamespace(__version__="5.24.0"), str(tmp_path))


@pytest.mark.parametrize("argv, want", [
    (["m", "out"], "neither given"),
    (["m", "text", "out", "--tokens", "f"], "both given"),
    (["m", "text", "out", "--context", "0"], "--context: 0"),
    (["m", "text", "nowhere/out"], "does not exist"),
])
def test_usage(argv, want, capsys):
    with pytest.raises(SystemExit) as err:
        reference.main(argv)
    assert err.value.code == 2 and want in capsys.readouterr().err


def test_an_input_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "t").write_text("a text")
    with pytest.raises(SystemExit):
        reference.main(["m", str(tmp_path / "t"), str(tmp_path / "t")])
    assert "also an input" in capsys.readouterr().err and (tmp_path / "t").read_text() == "a text"


def test_a_name_that_is_not_here_is_an_error(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "t").write_text("a text")
    assert reference.main(["no-such/model", str(tmp_path / "t"), str(tmp_path / "out")]) == 2
    assert "cannot load it" in capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_the_probe_sees_what_the_reference_does(name):
    """The same model through its own attention: every part, scale, mask, sink and slope."""
    kind, config, _ = MODELS[name]
    torch.manual_seed(7)
    model = kind(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.3 * torch.randn_like(p))
    model = model.eval()
    if name not in ("falcon", "bert"):  # in the others eager is what knows softcaps, sinks and GPT-2's scale by layer
        model.set_attn_implementation("eager")
    ids = list(range(2, 14))
    want, _ = reference.reference(model, ids, "m")
    (got,) = Probe(torch.tensor([ids]), parts=("v", "x", "write_norm")).captures(model)
    assert (got.qk_norm, got.tokens) == (want.qk_norm, want.tokens)
    for a, b in zip(got.layers, want.layers, strict=True):
        assert (a.index, a.mask, a.softcap) == (b.index, b.mask, b.softcap) and a.scale == pytest.approx(b.scale)
        for part in ("q", "k", "v", "x", "sink", "alibi"):
            x, y = getattr(a, part), getattr(b, part)
            assert (x is None) == (y is None), part
            assert x is None or torch.allclose(x, y, rtol=1e-4, atol=1e-4 * y.abs().max()), part
        assert a.write_norm is not None and a.write_norm.shape == (len(a.q),) and (a.write_norm > 0).all()
