"""What the tap keeps on this machine: folders, the spool, rows of scalars."""

import os

import pytest

torch = pytest.importorskip("torch")

import eigenhead  # noqa: E402
from eigenhead import folder, scalars, spool, writer  # noqa: E402
from served import IDS, monitor, quick, tap_to  # noqa: E402, F401
from small import Nano  # noqa: E402


class TestFolder:
    def tap(self, path, model=None, **more):
        return eigenhead.Tap(model or Nano(), every=2, probe=IDS, sink=path, **more)

    def test_names_and_run(self, tmp_path):
        with self.tap(tmp_path / "runs" / "a b") as tap:
            for step in range(3):
                tap.step(step, loss=step)
        assert sorted(f.name for f in (tmp_path / "runs" / "a b").iterdir()) == ["scalars.jsonl", "step-00000000-sample-0.safetensors", "step-00000002-sample-0.safetensors"]
        assert tap.run == "a-b"

    def test_a_step_that_is_there_stays(self, tmp_path, caplog):
        torch.manual_seed(1)
        model = Nano()
        for m, counts in ((model, (1, 0)), (model, (1, 0)), (Nano(), (0, 1))):
            with self.tap(tmp_path, m) as tap:
                tap.step(0)
            assert (tap.counts.delivered, tap.counts.refused) == counts
            kept = (tmp_path / "step-00000000-sample-0.safetensors").read_bytes()
        assert "there already, with other numbers" in caplog.text
        assert kept == (tmp_path / "step-00000000-sample-0.safetensors").read_bytes()

    def test_a_line_that_was_cut_is_ended(self, tmp_path):
        (tmp_path / "scalars.jsonl").write_text('{"step": 0, "lo')
        with self.tap(tmp_path) as tap:
            tap.step(1, loss=2.0)
        assert (tmp_path / "scalars.jsonl").read_text() == '{"step": 0, "lo\n{"step": 1, "loss": 2.0}\n{"step": 1, "end": 1.0}\n'

    def test_a_full_disk_is_counted(self, tmp_path, monkeypatch, caplog):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(folder, "write_chunks", full)
        with self.tap(tmp_path) as tap:
            for step in range(0, 6, 2):
                tap.step(step)
        assert tap.counts.lost == 3 and tap.counts.delivered == 0
        assert len([r for r in caplog.records if "No space left" in r.message]) == 1, "said once"


class TestSpool:
    def test_strangers_are_left_alone(self, tmp_path):
        s = spool.Spool(tmp_path, 100)
        (tmp_path / "notes.txt").write_text("mine")
        assert s.add("r", True, lambda: [b"x" * 60], 60) and s.add("r", True, lambda: [b"y" * 60], 60)
        assert [e.size for e in s.entries()] == [60] and s.lost == 1 and (tmp_path / "notes.txt").exists()

    @pytest.mark.skipif(os.name != "posix", reason="other systems know no modes")
    def test_only_the_owner_reads_it(self, tmp_path):
        before = os.umask(0o022)
        try:
            s = spool.Spool(tmp_path / "a" / "spool", 100)
            assert s.add("r", True, lambda: [b"x"], 1) and s.add("r", False, lambda: [b"y"], 1)
            eigenhead.Folder(tmp_path / "folder").capture("r", 0, 0, lambda: [b"x"])
        finally:
            os.umask(before)
        modes = {f.name[21:] or f.name: f.stat().st_mode & 0o777 for f in [s.path, *s.path.iterdir()]}
        assert modes == {"spool": 0o700, "r.safetensors": 0o600, "r.jsonl": 0o600}
        (shown,) = (tmp_path / "folder").iterdir()
        assert shown.stat().st_mode & 0o777 == 0o644, "a folder for watch is the user's to show"

    def test_a_clock_that_goes_back_keeps_the_order(self, tmp_path, monkeypatch):
        s, times = spool.Spool(tmp_path, 100), iter([10**18, 10**17, 10**16])
        monkeypatch.setattr(spool.time, "time_ns", lambda: next(times))
        for body in (b"1", b"2", b"3"):
            s.add("r", False, lambda body=body: [body], 1)
        assert [e.path.read_bytes() for e in s.entries()] == [b"1", b"2", b"3"]


class TestScalars:
    def test_numbers_are_settled_in_one_go(self):
        first, wrong = scalars.hold({"a": 1, "b": torch.tensor([2.5]), "c": None})
        rows = [first, {"a": scalars.Held(torch.tensor(3.0), None), "d": scalars.Held(torch.tensor(4), None)}]
        assert rows[0] == {"a": 1.0, "b": 2.5} and not wrong
        assert scalars.settle(rows) == [{"a": 1.0, "b": 2.5}, {"a": 3.0, "d": 4.0}]

    def test_a_tensor_elsewhere_is_copied_and_not_read(self):
        """The meta device has no numbers: reading one would raise."""
        loss = torch.ones((), device="meta", requires_grad=True)
        held = scalars.hold({"loss": loss})[0]["loss"]
        assert isinstance(held, scalars.Held) and not held.tensor.requires_grad and held.tensor is not loss

    def test_a_post_stays_below_the_servers_limit(self, monitor, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "_FLUSH", 0.5)
        sizes, own = [], monitor.answer
        monitor.answer = lambda path, headers, body: (sizes.append(len(body)), own(path, headers, body))[1]
        with tap_to(monitor.url, tmp_path, run="r") as tap:
            tap.every = 10**9
            for step in range(1, 401):
                tap.step(step, **{f"{i:064d}".replace("0", "n", 1): -1.2345678901234567e-300 for i in range(60)})
        assert len(sizes) > 1 and max(sizes) < 1 << 20 and sum(sizes) > 1 << 21
        assert [r["step"] for r in monitor.scalars if "end" not in r] == list(range(1, 401))

    def test_rows_are_bounded(self, tmp_path, monkeypatch):
        monkeypatch.setattr(writer, "_ROWS", 5)
        monkeypatch.setattr(writer, "_FLUSH", 60.0)
        with eigenhead.Tap(Nano(), every=1000, probe=IDS, sink=tmp_path) as tap:
            for step in range(1, 9):
                tap.step(step, loss=1.0)
        assert tap.counts.scalars_lost == 4 and tap.counts.scalars == 5, "the eight steps, and the end"
