"""What the probe takes out of models is what their weights give by hand."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from eigenhead.capture import CaptureError  # noqa: E402
from eigenhead.probe import Probe  # noqa: E402
from eigenhead.subsample import Subsample  # noqa: E402
from eigenhead.watch import PARTS  # noqa: E402
from small import Nano, by_hand, gpt2, llama, shaken  # noqa: E402

IDS = torch.tensor([[2, 9, 30, 4, 4, 17, 8, 1, 36, 5, 11, 2], [7, 7, 3, 20, 31, 6, 0, 13, 14, 2, 9, 10]])

MODELS = {
    "llama": llama,
    "llama, eager": lambda: llama(attn_implementation="eager"),
    "llama, flex": lambda: llama(attn_implementation="flex_attention", head_dim=16),
    "llama, all heads their own": lambda: llama(num_key_value_heads=4),
    "llama, one KV head": lambda: llama(num_key_value_heads=1),
    "gpt2": gpt2,
    "gpt2, eager": lambda: gpt2(attn_implementation="eager"),
    "nano": Nano,
    "nano, function imported": lambda: Nano(by_name=True),
}


def agrees(capture, model, ids, tolerance=2e-5, parts=("q", "k", *PARTS)):
    """Holds every part of a whole capture to the same by hand."""
    want, _ = by_hand(model, ids)
    assert [layer.index for layer in capture.layers] == list(range(len(want)))
    for layer, hand in zip(capture.layers, want):
        for part in parts:
            got = getattr(layer, part)
            assert got.shape == hand[part].shape, part
            off = (got.double() - hand[part]).abs().max() / hand[part].abs().max()
            assert off < tolerance, f"layer {layer.index}: {part} is off by {off:.2g}"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_the_parts_are_those_of_the_weights(name):
    model = shaken(MODELS[name]()).train()
    captures = list(Probe(IDS, parts=PARTS).captures(model))
    assert [c.sample for c in captures] == ["0", "1"]
    for capture, ids in zip(captures, IDS):
        agrees(capture, model, ids)
        meta = capture.metadata()
        assert meta["mask"] == "causal" and json.loads(meta["tokens"]) == ids.tolist()
        assert float(meta["scale"]) == pytest.approx(capture.layers[0].q.shape[-1] ** -0.5)
        assert capture.model == type(model).__name__


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_a_class_of_ones_own_over_theirs(kind):
    """Its forward looks names up in their file, not in ours."""
    from transformers.models.llama.modeling_llama import LlamaAttention

    class Mine(LlamaAttention):
        pass

    model = shaken(llama(attn_implementation=kind))
    model.model.layers[1].self_attn.__class__ = Mine
    agrees(next(Probe(IDS, parts=PARTS).captures(model)), model, IDS[0])


def test_the_hand_is_the_model():
    """The oracle itself: its logits are the model's."""
    for make in (llama, gpt2, Nano):
        model = shaken(make()).eval()
        with torch.no_grad():
            out = model(IDS[:1])
        logits = (out.logits if hasattr(out, "logits") else out[0])[0]
        assert (by_hand(model, IDS[0])[1] - logits.double()).abs().max() < 1e-3 * logits.abs().max()


def test_only_what_is_asked_for_is_taken():
    model = shaken(llama())
    (capture, _) = Probe(IDS).captures(model)
    assert set(capture.tensors()) == {f"layers.{i}.{p}" for i in range(3) for p in "qk"}
    with pytest.raises(CaptureError, match="parts: 'w'"):
        Probe(IDS, parts=("w",))


def test_a_capture_shares_no_memory_with_the_model():
    model = shaken(Nano())
    (capture,) = Probe(IDS[0], parts=PARTS).captures(model)
    before = {n: t.clone() for n, t in capture.tensors().items()}
    (other,) = Probe(IDS[1], parts=PARTS).captures(shaken(model, seed=8))
    assert all(torch.equal(t, before[n]) for n, t in capture.tensors().items())
    assert not torch.equal(other.layers[0].q, capture.layers[0].q)


class TestSubsampling:
    def test_heads_keep_their_numbers_and_kv_map(self):
        model = shaken(llama())
        whole = next(Probe(IDS, parts=PARTS).captures(model))
        cut = next(Probe(IDS, parts=PARTS, keep=Subsample.of([2], [3, 2], None)).captures(model))
        meta = cut.metadata()
        assert json.loads(meta["heads"]) == [2, 3] and json.loads(meta["kv_of"]) == [1, 1]
        (layer,), full = cut.layers, whole.layers[2]
        assert layer.index == 2 and torch.equal(layer.q, full.q[2:]) and torch.equal(layer.k, full.k[1:]) and torch.equal(layer.v, full.v[1:])
        assert torch.equal(layer.write_norm, full.write_norm[2:]) and torch.equal(layer.x, full.x)
        cut.tensors()

    def test_heads_of_two_kv_heads(self):
        model = shaken(llama())
        whole, cut = (next(Probe(IDS, keep=keep).captures(model)) for keep in (Subsample(), Subsample.of(None, [1, 2], None)))
        assert json.loads(cut.metadata()["kv_of"]) == [0, 1]
        assert torch.equal(cut.layers[0].k, whole.layers[0].k) and torch.equal(cut.layers[0].q, whole.layers[0].q[1:3])

    def test_tokens_keep_their_positions(self):
        model = shaken(gpt2())
        whole, cut = (next(Probe(IDS, parts=PARTS, keep=keep).captures(model)) for keep in (Subsample(), Subsample.of(None, None, 5)))
        at = [0, 2, 5, 8, 11]
        assert json.loads(cut.metadata()["positions"]) == at and json.loads(cut.metadata()["tokens"]) == IDS[0, at].tolist()
        for a, b in zip(cut.layers, whole.layers):
            assert torch.equal(a.q, b.q[:, at]) and torch.equal(a.k, b.k[:, at]) and torch.equal(a.x, b.x[at])
            assert torch.equal(a.write_norm, b.write_norm), "of all tokens"
        assert next(Probe(IDS, keep=Subsample.of(None, None, [3, 40, 1])).captures(model)).positions == [1, 3]
        assert next(Probe(IDS, keep=Subsample.of(None, None, 12)).captures(model)).positions is None

    @pytest.mark.parametrize("keep, want", [
        (([9], None, None), "layers: 9 not found, want numbers of 0 to 2"),
        ((None, [4], None), "heads: 4 not found, want 0 to 3"),
        ((None, None, [12]), "positions: 12 and up, want one below 12"),
    ])
    def test_numbers_that_are_not_there_are_refused(self, keep, want):
        with pytest.raises(CaptureError, match=want):
            list(Probe(IDS, keep=Subsample.of(*keep)).captures(llama()))

    def test_wrong_numbers_are_refused(self):
        for given, want in ((([], None, None), "layers: none"), ((None, [-1], None), r"heads: \[-1\]"), ((None, None, 0), "positions: 0")):
            with pytest.raises(CaptureError, match=want):
                Subsample.of(*given)


class TestSequences:
    def test_padding_is_cut_on_either_side(self):
        model = shaken(llama())
        mask = torch.tensor([[1] * 9 + [0] * 3, [0] * 4 + [1] * 8])
        batch = {"input_ids": IDS, "attention_mask": mask, "labels": IDS}
        for capture, ids in zip(Probe(batch, parts=PARTS).captures(model), (IDS[0, :9], IDS[1, 4:])):
            agrees(capture, model, ids)
            assert capture.tokens == ids.tolist()

    def test_forms_of_a_probe(self):
        model = shaken(Nano())
        want = [c.layers[1].q for c in Probe(IDS).captures(model)]
        for probe in ((IDS, IDS.roll(1)), [IDS[0], IDS[1]], IDS.tolist(), {"idx": IDS}):
            got = [c.layers[1].q for c in Probe(probe).captures(model)]
            assert len(got) == 2 and all(torch.equal(a, b) for a, b in zip(got, want))
        assert len(list(Probe([IDS[0], IDS[1, :5]]).captures(model))) == 2
        own = Probe(IDS[:1], forward=lambda m, s: m(idx=s.args[0], targets=s.args[0]))
        assert torch.equal(next(own.captures(model)).layers[1].q, want[0])

    @pytest.mark.parametrize("probe, want", [
        ({"input_ids": IDS, "attention_mask": torch.tensor([[1, 0] * 6, [1] * 12])}, "sequence 0 has holes"),
        ({"input_ids": IDS, "attention_mask": torch.zeros(2, 12)}, "is all zero"),
        ({"input_ids": IDS, "attention_mask": torch.ones(2, 11)}, r"attention_mask of shape \[2, 11\]"),
        ({"labels": IDS}, "want input_ids"),
        (torch.zeros(2, 0, dtype=torch.long), "at least one token"),
        (None, "NoneType"),
    ])
    def test_other_probes_are_refused(self, probe, want):
        with pytest.raises(CaptureError, match=want):
            Probe(probe)

    def test_the_probe_is_a_copy(self):
        ids = IDS.clone()
        probe = Probe(ids)
        ids.zero_()
        assert next(probe.captures(Nano())).tokens == IDS[0].tolist()


class Bare(torch.nn.Module):
    """Attention without PyTorch's function: nothing to catch."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.ModuleList([torch.nn.Linear(4, 4)])

    def forward(self, x):
        return self.attention[0](x)


def test_a_model_that_cannot_be_seen_is_refused():
    with pytest.raises(CaptureError, match="neither through transformers' registry nor"):
        list(Probe(torch.randn(1, 3, 4)).captures(Bare()))
    model = llama()
    model.model.layers[1].self_attn.forward = lambda hidden_states, **_: (hidden_states, None)
    with pytest.raises(CaptureError, match=r"layers \[1\]: no attention was seen"):
        list(Probe(IDS).captures(model))


def test_pytorchs_own_encoder():
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2)
    x = torch.randn(1, 5, 16)
    probe = Probe(x, parts=PARTS)
    (capture,) = probe.captures(model)
    first = model.layers[0].self_attn
    q, k, v = (x[0] @ first.in_proj_weight.T + first.in_proj_bias).view(5, 3, 2, 8).permute(1, 2, 0, 3)
    assert capture.layers[0].mask == "none" and torch.allclose(capture.layers[0].q, q, atol=1e-5)
    assert torch.allclose(capture.layers[0].k, k, atol=1e-5) and torch.allclose(capture.layers[0].v, v, atol=1e-5)
    assert [(o.part, o.layers) for o in probe.omitted] == [("write_norm", [0, 1])], "its projection is no module call"


class Grouped(torch.nn.Module):
    """Grouped queries as a model without transformers has them: keys repeated, or the function's enable_gqa."""

    def __init__(self, by_flag):
        super().__init__()
        self.by_flag, self.n_kv_head = by_flag, 2
        self.q, self.k, self.out = torch.nn.Linear(16, 16), torch.nn.Linear(16, 8), torch.nn.Linear(16, 16)

    def forward(self, x):
        q, k = self.q(x).view(1, -1, 4, 4).transpose(1, 2), self.k(x).view(1, -1, 2, 4).transpose(1, 2)
        v = k.flip(1)
        if not self.by_flag:
            k, v = (t.repeat_interleave(2, 1) for t in (k, v))
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25, **({"enable_gqa": True} if self.by_flag else {}))
        return self.out(o.transpose(1, 2).reshape(1, -1, 16))


@pytest.mark.parametrize("by_flag", [True, False])
def test_grouped_queries_without_transformers(by_flag):
    x = torch.randn(1, 7, 16)
    model = torch.nn.Sequential(Grouped(by_flag))
    (capture,) = Probe(x, parts=PARTS).captures(model)
    (layer,) = capture.layers
    k = model[0].k(x[0]).view(7, 2, 4).transpose(0, 1)
    assert layer.scale == 0.25 and torch.equal(layer.k, k) and torch.equal(layer.v, k.flip(0)) and layer.q.shape == (4, 7, 4)
    assert layer.write_norm.shape == (4,) and torch.equal(layer.x, x[0])


def test_a_window_and_a_softcap_are_what_training_computes():
    import transformers as tf

    config = dict(vocab_size=37, hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=10,
                  sliding_window=5, query_pre_attn_scalar=7, bos_token_id=0, eos_token_id=1, pad_token_id=0)
    for kind, words in (("eager", ("50.0", "window:5")), ("sdpa", (None, "window:5"))):  # sdpa overlooks a softcap
        if kind == "sdpa" and not tf.Gemma2ForCausalLM._supports_sdpa:
            continue  # transformers 5 refuses what overlooks the softcap
        model = tf.Gemma2ForCausalLM(tf.Gemma2Config(**config, attn_logit_softcapping=50.0, attn_implementation=kind))
        meta = next(Probe(IDS).captures(model)).metadata()
        assert (meta.get("softcap"), meta["mask"]) == words and float(meta["scale"]) == pytest.approx(7**-0.5)


def test_layers_without_attention_are_left_out():
    """As in hybrid models; one that was asked for by number is missed."""
    model = shaken(Nano(layers=3))
    model.h[1].forward = lambda x: x
    model.h[1].attn = torch.nn.Linear(24, 24)
    assert [layer.index for layer in next(Probe(IDS).captures(model)).layers] == [0, 2]
    with pytest.raises(CaptureError, match=r"layers \[1\]: no attention was seen"):
        list(Probe(IDS, keep=Subsample.of([1, 2], None, None)).captures(model))


class Wrapped(torch.nn.Module):
    """As LoRA does: a linear map beside another."""

    def __init__(self, base):
        super().__init__()
        self.base, self.a, self.b = base, torch.nn.Linear(24, 2, bias=False), torch.nn.Linear(2, 24, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Gated(Wrapped):
    def forward(self, x):
        return self.base(x) * torch.sigmoid(self.b(self.a(x)))


def test_write_norms_of_a_projection_with_lora():
    model = shaken(Nano(layers=1))
    proj = model.h[0].attn.c_proj = Wrapped(model.h[0].attn.c_proj)
    (got,) = Probe(IDS[0], parts=("write_norm",)).captures(model)
    merged = shaken(Nano(layers=1))
    with torch.no_grad():
        merged.h[0].attn.c_proj.weight += proj.b.weight @ proj.a.weight
    want = by_hand(merged, IDS[0])[0][0]["write_norm"]
    assert torch.allclose(got.layers[0].write_norm.double(), want, rtol=1e-5)
    model.h[0].attn.c_proj = Gated(proj.base)
    probe = Probe(IDS[0], parts=("write_norm",))
    (got,) = probe.captures(model)
    assert got.layers[0].write_norm is None
    assert [(o.part, o.layers) for o in probe.omitted] == [("write_norm", [0])] and "Gated behind attention is no linear map" in probe.omitted[0].why
