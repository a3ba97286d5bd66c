"""Training with the tap is training without it, bit for bit."""

import contextlib
import copy
import json
import logging
import os
import random
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import eigenhead  # noqa: E402
from eigenhead.capture import CaptureError  # noqa: E402
from eigenhead.guard import undisturbed, unwrapped  # noqa: E402
from eigenhead.probe import Probe  # noqa: E402
from eigenhead.watch import PARTS  # noqa: E402
from small import VOCABULARY, Nano, gpt2, llama, shaken  # noqa: E402
from test_capture import read  # noqa: E402
from test_probe import IDS, agrees  # noqa: E402

STEPS = 6


def loss_of(model, ids):
    """Next-token loss of a model of either kind."""
    out = model(ids)
    logits = out.logits if hasattr(out, "logits") else out[0]
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())


def train(make, tap=None, wrap=lambda m: m, around=contextlib.nullcontext, inside=False):
    """Losses, weights, buffers and random states of a short run with dropout."""
    torch.manual_seed(3)
    random.seed(3)
    model = shaken(make(), by=0.1).train()
    run = wrap(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    with contextlib.ExitStack() as undo:
        t = undo.enter_context(tap(run)) if tap else None
        for step in range(STEPS):
            ids = torch.randint(VOCABULARY, (2, 10))
            with around():
                if inside and t:
                    t.step(step)
                loss = loss_of(run, ids)
                loss = loss + loss_of(run, ids)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if t and not inside:
                t.step(step, loss=loss, lr=1e-2)
            losses.append(loss.item())
        hooks = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
    if t:
        assert t.counts.failed == 0 and t.counts.captured == t.counts.delivered == 2 * STEPS // 2
    state = [random.random(), torch.rand(3), *(p.detach() for p in model.parameters()), *model.buffers()]
    assert not hooks and all(m.training for m in model.modules())
    return losses, state


def same(a, b):
    assert a[0] == b[0]
    for x, y in zip(a[1], b[1], strict=True):
        assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y


@pytest.fixture
def tap(tmp_path):
    return lambda model: eigenhead.Tap(model, every=2, probe=IDS, sink=tmp_path / "run", parts=PARTS)


@pytest.mark.parametrize("make", [llama, gpt2, Nano, lambda: gpt2(attn_implementation="eager"), lambda: llama(attn_implementation="eager")],
                         ids=["llama", "gpt2", "nano", "gpt2-eager", "llama-eager"])
def test_losses_and_weights_are_bit_for_bit_the_same(make, tap):
    same(train(make), train(make, tap))


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_under_gradient_checkpointing(reentrant, tap, tmp_path):
    def hf():
        model = llama()
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        return model

    for make in (lambda: Nano(checkpoint=reentrant), hf):
        same(train(make), train(make, tap))
        for f in (tmp_path / "run").iterdir():
            f.unlink()


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("make", [llama, Nano])
def test_under_autocast(make, inside, tmp_path):
    """Inside the block, before the passes: casts that the probe left would have no gradient."""
    def around():
        return torch.autocast("cpu", dtype=torch.bfloat16)

    def tap(model):
        return eigenhead.Tap(model, every=2, probe=IDS, sink=tmp_path / "run", parts=PARTS, autocast=None if inside else torch.bfloat16)

    same(train(make, around=around), train(make, tap, around=around, inside=inside))
    _, tensors = read(tmp_path / "run" / "step-00000002-sample-1.safetensors")
    assert tensors["layers.0.v"].dtype == torch.bfloat16, "as training computes it"


def test_autocast_is_that_of_training():
    model = shaken(Nano(), by=0.1).eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        x = model.wte(IDS[0]) + model.wpe.weight[:12]
        want = model.h[0].attn.c_attn(model.h[0].ln_1(x))[:, :24].view(12, 3, 8).transpose(0, 1)
    (got,) = Probe(IDS[0], autocast=torch.bfloat16).captures(model)
    assert got.layers[0].q.dtype == torch.bfloat16 and torch.equal(got.layers[0].q, want)


def compiled_layers(model):
    layers = model.model.layers if hasattr(model, "model") else model.h
    for i, layer in enumerate(layers):
        layers[i] = torch.compile(layer, backend="eager")
    return model


def in_place(model):
    model.compile(backend="eager")
    return model


@pytest.mark.parametrize("wrap", [lambda m: torch.compile(m, backend="eager"), in_place, compiled_layers], ids=["whole", "in place", "layer by layer"])
@pytest.mark.parametrize("make", [lambda: llama(num_hidden_layers=2), lambda: Nano(by_name=True)], ids=["llama", "nano"])
def test_under_compile(make, wrap, tap):
    def frames():
        return torch._dynamo.utils.counters["frames"]["total"]

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain = train(make, wrap=wrap)
    first = frames()
    torch._dynamo.reset()
    tapped = train(make, tap, wrap=wrap)
    same(plain, tapped)
    assert frames() == 2 * first, "the probe makes nothing compile again"


def test_compiled_for_real():
    """With the default compiler, and against numbers by hand."""
    model = shaken(Nano(layers=1))
    compiled = torch.compile(model)
    try:
        compiled(IDS)
    except Exception as err:  # the compiler behind torch.compile is a program of its own
        pytest.skip(f"torch.compile does not run here: {str(err).splitlines()[0]}")
    agrees(next(Probe(IDS, parts=PARTS).captures(compiled)), model, IDS[0])


SCRIPT = """
import os, sys
import torch
import torch.distributed as dist
import eigenhead
from small import Nano, shaken

rank, out = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + out + "/store" + sys.argv[3], rank=rank, world_size=2)
torch.set_num_threads(1)
torch.manual_seed(rank)
model = shaken(Nano(), by=0.1).train()
ddp = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
ids = torch.arange(24).view(2, 12)
tap = eigenhead.Tap(ddp, every=2, probe=ids, sink=out + "/run", parts=("v", "x", "write_norm")) if sys.argv[3] == "tap" else None
for step in range(6):
    logits, loss = ddp(batch := torch.randint(37, (2, 10)), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if tap:
        tap.step(step, loss=loss)
if tap:
    counts = tap.close()
    assert counts.captured == counts.delivered == (6 if rank == 0 else 0) and counts.failed == 0, counts
torch.save([torch.rand(3), *model.parameters(), *model.buffers()], f"{out}/{sys.argv[3]}-{rank}")
dist.destroy_process_group()
"""


def test_under_data_parallelism(tmp_path):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for kind in ("plain", "tap"):
        ranks = [subprocess.Popen([sys.executable, "-c", SCRIPT, str(rank), str(tmp_path), kind], env=env, stderr=subprocess.PIPE, text=True) for rank in (0, 1)]
        for p in ranks:
            err = p.communicate(timeout=240)[1]
            assert p.returncode == 0, err
    for rank in (0, 1):
        plain, tapped = (torch.load(tmp_path / f"{kind}-{rank}") for kind in ("plain", "tap"))
        assert all(torch.equal(a, b) for a, b in zip(plain, tapped, strict=True))
    names = sorted(f.name for f in (tmp_path / "run").iterdir())
    assert names == ["scalars.jsonl"] + [f"step-{s:08d}-sample-{i}.safetensors" for s in (0, 2, 4) for i in (0, 1)]
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "scalars.jsonl").read_text().splitlines()]
    assert steps == [*range(6), 5], "from rank 0 alone, and the end"


@pytest.mark.filterwarnings("ignore")
def test_the_callback(tmp_path, caplog):
    import transformers as tf

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, i):
            ids = torch.arange(i, i + 10) % VOCABULARY
            return {"input_ids": ids, "labels": ids}

    def run(*callbacks):
        torch.manual_seed(0)
        model = shaken(llama(), by=0.1)
        args = tf.TrainingArguments(output_dir=str(tmp_path / "out"), max_steps=6, per_device_train_batch_size=2, logging_steps=1, save_strategy="no",
                                    report_to=[], use_cpu=True, bf16=True, disable_tqdm=True, seed=0)
        tf.Trainer(model=model, args=args, train_dataset=Data(), callbacks=list(callbacks)).train()
        return [p.detach() for p in model.parameters()]

    callback = eigenhead.TapCallback(every=3, probe={"input_ids": IDS, "labels": IDS}, sink=tmp_path / "run")
    assert all(torch.equal(a, b) for a, b in zip(run(), run(callback), strict=True))
    assert callback.tap.counts.delivered == 6 and callback.tap.counts.failed == 0
    meta, tensors = read(tmp_path / "run" / "step-00000006-sample-0.safetensors")
    assert meta["run"] == "run" and meta["model"] == "LlamaForCausalLM"
    rows = [json.loads(line) for line in (tmp_path / "run" / "scalars.jsonl").read_text().splitlines()]
    for step in range(1, 7):
        merged = {k: v for r in rows if r["step"] == step for k, v in r.items()}
        assert {"loss", "grad_norm", "lr"} <= set(merged)


@pytest.mark.parametrize("rates", [AssertionError("no steps yet"), AttributeError("get_last_lr"), []])
def test_a_scheduler_without_a_rate_stops_nothing(tmp_path, rates):
    """DeepSpeed's raises until its first step."""
    pytest.importorskip("transformers")

    class Scheduler:
        def get_last_lr(self):
            if isinstance(rates, Exception):
                raise rates
            return rates

    callback = eigenhead.TapCallback(every=3, probe=IDS, sink=tmp_path)
    callback.on_train_begin(None, types.SimpleNamespace(is_world_process_zero=True, global_step=0), None, model=Nano())
    for step in (1, 2):
        callback.on_step_end(None, types.SimpleNamespace(global_step=step), None, lr_scheduler=Scheduler())
    callback.on_train_end(None, None, None)
    assert callback.tap.counts.failed == 0
    assert (tmp_path / "scalars.jsonl").read_text() == '{"step": 2, "end": 1.0}\n'


class TestUndisturbed:
    def test_everything_comes_back_after_an_error(self):
        model = Nano()
        model.h[0].eval()
        for p in model.h[1].parameters():
            p.requires_grad = False
        modes, grads = [m.training for m in model.modules()], [p.requires_grad for p in model.parameters()]
        states = torch.get_rng_state(), random.getstate(), model.passes.clone(), torch.nn.functional.scaled_dot_product_attention
        with pytest.raises(RuntimeError, match="x"), undisturbed(model):
            assert not any(m.training for m in model.modules()) and not torch.is_grad_enabled()
            torch.rand(3), random.random(), model(IDS)
            model.passes = torch.ones(())
            raise RuntimeError("x")
        assert modes == [m.training for m in model.modules()] and grads == [p.requires_grad for p in model.parameters()]
        assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1] and torch.equal(model.passes, states[2])
        assert torch.is_grad_enabled() and torch.nn.functional.scaled_dot_product_attention is states[3]

    def test_a_pass_that_breaks_leaves_no_hook_and_no_function(self):
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as functions

        for model in (llama(), llama(attn_implementation="eager"), Nano()):
            file = sys.modules[type(model).__module__]
            before = (dict(functions), dict(functions._local_mapping), getattr(file, "eager_attention_forward", None),
                      torch.nn.functional.scaled_dot_product_attention)
            layers = model.model.layers if hasattr(model, "model") else model.h
            layers[1].mlp.forward = lambda *_: 1 / 0
            with pytest.raises(ZeroDivisionError):
                list(Probe(IDS, parts=PARTS).captures(model))
            assert before == (dict(functions), dict(functions._local_mapping), getattr(file, "eager_attention_forward", None),
                              torch.nn.functional.scaled_dot_product_attention)
            assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()) and all(m.training for m in model.modules() if m is not model)

    def test_sharded_models_are_refused(self):
        model = Nano()
        model.wte.weight.ds_id = 1
        with pytest.raises(CaptureError, match="parameter wte.weight is sharded"):
            unwrapped(model)
        FullyShardedDataParallel = type("FullyShardedDataParallel", (torch.nn.Sequential,), {})
        with pytest.raises(CaptureError, match="sharded by FullyShardedDataParallel"):
            unwrapped(FullyShardedDataParallel(Nano()))


def test_a_probe_that_fails_is_said_once_and_counted(tmp_path, caplog):
    model = Nano()
    model.h[1].forward = lambda x: 1 / 0
    with caplog.at_level(logging.WARNING), eigenhead.Tap(model, every=1, probe=IDS, sink=tmp_path) as tap:
        for step in range(4):
            tap.step(step, loss=1.0)
        with pytest.raises(ZeroDivisionError):
            tap.check()
    assert tap.counts.failed == 4 and tap.counts.captured == 0
    said = [r for r in caplog.records if "tap failed" in r.message]
    assert len(said) == 1 and said[0].exc_info
    rows = [json.loads(line) for line in (tmp_path / "scalars.jsonl").read_text().splitlines()]
    assert [r["tap_failed"] for r in rows if "end" not in r] == [1.0, 2.0, 3.0, 4.0]


def test_wrong_scalars_and_steps_do_not_stop_training(tmp_path, caplog):
    with eigenhead.Tap(Nano(), every=1, probe=IDS, sink=tmp_path) as tap:
        tap.step(0, loss=torch.ones(3))
        tap.step(-1, loss=1.0)
        tap.step(1, loss="much", lr=None)
        tap.step(2, loss=torch.tensor([1.5], requires_grad=True), lr=None, **{"a b": 1.0, "step": 3.0})
        tap.scalars(3, **{f"n{i}": 1.0 for i in range(70)})
    assert tap.counts.failed == 6 and tap.counts.captured == 2 * 3, "a probe does not wait for better scalars"
    for said in ("loss: shape [3], want one number", "step: -1", "loss: str, want one number", "'a b': want a name", "'step': want a name", "70 scalars in one step"):
        assert said in caplog.text
    rows = [json.loads(line) for line in (tmp_path / "scalars.jsonl").read_text().splitlines()]
    assert [r.get("loss") for r in rows if r["step"] == 2] == [1.5] and len(rows[-1]) <= 64


def test_a_closed_tap_takes_nothing_more(tmp_path, caplog):
    with eigenhead.Tap(Nano(), every=1, probe=IDS, sink=tmp_path) as tap:
        tap.step(0, loss=1.0)
    before = sorted(f.name for f in tmp_path.iterdir())
    tap.step(1, loss=1.0)
    tap.close()
    assert sorted(f.name for f in tmp_path.iterdir()) == before and "the tap is closed" in caplog.text


def test_without_transformers(tmp_path):
    """torch is the only package that the tap needs."""
    code = """
import sys
import types
for name in ("transformers", "numpy", "safetensors", "tokenizers", "accelerate"):
    sys.modules[name] = None
import torch, eigenhead
from small import Nano
with eigenhead.Tap(Nano(), every=1, probe=torch.arange(12)[None], sink=sys.argv[1], parts=("v", "x", "write_norm")) as tap:
    tap.check()
    tap.step(0, loss=torch.tensor(float("inf")))
assert tap.counts.delivered == 1 and tap.counts.failed == 0, tap.counts
try:
    eigenhead.TapCallback
except ImportError:
    pass
else:
    raise AssertionError("the callback needs transformers")
assert "torch._dynamo" not in sys.modules, "a second of imports that an uncompiled model does not need"
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    p = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, capture_output=True, text=True, timeout=240)
    assert p.returncode == 0, p.stderr
    assert (tmp_path / "scalars.jsonl").read_text() == '{"step": 0, "loss": "Infinity"}\n{"step": 0, "end": 1.0}\n'


def test_other_processes_do_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with eigenhead.Tap(Nano(), every=1, probe=IDS, sink=tmp_path / "run") as tap:
        tap.step(0, loss=1.0)
    assert not tap.active and tap.counts.captured == 0 and not (tmp_path / "run").exists()


@pytest.mark.parametrize("rank", ["x", "-1", "1.5"])
def test_a_rank_that_is_none(tmp_path, monkeypatch, rank):
    """It is refused where the tap is made, and never in training."""
    tap = eigenhead.Tap(Nano(), every=1, probe=IDS, sink=tmp_path)
    monkeypatch.setenv("RANK", rank)
    tap.step(0, loss=1.0)
    tap.scalars(0, more=1.0)
    assert tap.close().delivered == 2 and tap.counts.failed == 0
    with pytest.raises(ValueError, match=f"RANK: '{rank}' in the environment, want a whole number"):
        eigenhead.Tap(Nano(), every=1, probe=IDS, sink=tmp_path)


def test_a_process_group_that_fails_is_no_failure_of_training(tmp_path, monkeypatch):
    tap = eigenhead.Tap(Nano(), every=1, probe=IDS, sink=tmp_path)

    def broken():
        raise RuntimeError("no group")

    monkeypatch.setattr(torch.distributed, "is_initialized", broken)
    tap.step(0, loss=1.0)
    tap.scalars(0, loss=1.0)
    assert tap.counts.failed == 2


def test_options_that_cannot_be_are_refused(tmp_path):
    model = copy.deepcopy(Nano())
    for more, want in (({"every": 0}, "every: 0"), ({"run": "../x"}, "run: '../x'"), ({"sink": "http://"}, "want http://host:port"),
                       ({"parts": ("q",)}, "parts: 'q'"), ({"heads": []}, "heads: none")):
        with pytest.raises(ValueError, match=want):
            eigenhead.Tap(model, **{"probe": IDS, "sink": tmp_path} | more)


@pytest.mark.parametrize("how, said", [("close", True), ("with", True), ("crash", False), ("exit", False)])
@pytest.mark.parametrize("numbers", [{"loss": 1.0}, {}, {"loss": None}])
def test_a_run_that_is_over_says_so_and_a_crash_does_not(tmp_path, how, said, numbers):
    torch.manual_seed(0)
    tap = eigenhead.Tap(Nano(), every=100, probe=torch.arange(8)[None], sink=tmp_path)
    tap.step(7, **numbers)
    if how == "close":
        tap.close()
    elif how == "exit":
        tap._at_exit()
    else:
        with contextlib.suppress(ZeroDivisionError), tap:
            assert how == "with" or 1 / 0
    file = tmp_path / "scalars.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    assert any(row.get("end") == 1 and row["step"] == 7 for row in rows) is said
    assert any(row.get("loss") == 1 for row in rows) is (numbers == {"loss": 1.0})
