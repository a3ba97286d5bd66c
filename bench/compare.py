"""Runs every comparison of bench/run in one sitting, ours and theirs in turn, and
writes RESULTS.md. Only the standard library: the peers run in processes of their own.
"""

import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

CACHE = os.environ["EIGENHEAD_BENCH_CACHE"]
PYTHON = os.environ["EIGENHEAD_BENCH_PYTHON"]
TEXT = os.environ["EIGENHEAD_BENCH_TEXT"]
MODEL = os.environ["EIGENHEAD_BENCH_MODEL"]
HERE = os.path.dirname(os.path.abspath(__file__))
QUICK = "--quick" in sys.argv  # one round, short contexts: does it run at all
ROUNDS = 1 if QUICK else 3
THREADS = os.cpu_count() if QUICK else min(2, os.cpu_count())
LENGTHS = [256] if QUICK else [512, 1024, 2048]


def run(args, threads=THREADS, cwd=None):
    """Runs a command; returns its JSON lines, wall seconds and peak megabytes."""
    env = dict(os.environ, GOMAXPROCS=str(threads), OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
               MKL_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    start = time.perf_counter()
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd, text=True)
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise RuntimeError(f"{' '.join(args)}: exit status {status}")
    lines = [json.loads(l) for l in out.splitlines() if l.startswith("{")]
    return lines, wall, usage.ru_maxrss / 1024


def ours(part, *args, threads=THREADS):
    return run([f"{CACHE}/ours", part, *map(str, args)], threads)[0]


def peers(part, *args, threads=THREADS):
    return run([PYTHON, f"{HERE}/peers.py", part, *map(str, args), str(threads)], threads)[0]


def llama(T, repeats):
    return run(["node", "llama.mjs", MODEL, f"{CACHE}/ids.json", str(T), str(repeats), str(THREADS)], cwd=f"{CACHE}/node")[0]


def scan(T, *more):
    args = [f"{CACHE}/eigenhead", "scan", MODEL, "--text", TEXT, "--context", str(T), *more]
    _, wall, megabytes = run(args)
    return wall, megabytes


class Row:
    """One comparison: seconds of both sides, as many as were taken."""

    def __init__(self, what, against, target):
        self.what, self.against, self.target = what, against, target
        self.ours, self.theirs = [], []

    def text(self):
        if not self.ours or not self.theirs:
            return f"| {self.what} | {self.against} | - | - | - | {self.target} | not measured |"
        a, b = min(self.ours), min(self.theirs)
        ratio = a / b
        verdict = "met" if ratio <= self.target else "missed"
        return (f"| {self.what} | {self.against} | {show(self.ours)} | {show(self.theirs)} | {ratio:.3g} | "
                f"{self.target:.3g} | {verdict} |")


def show(x):
    best = min(x)
    return f"{best:.3g} s" + (f" (median {statistics.median(x):.3g}, worst {max(x):.3g})" if len(x) > 1 else "")


def seconds(lines, what=None):
    return [s for l in lines if what in (None, l["what"]) for s in l["seconds"]]


def step(what):
    print(f"{datetime.datetime.now():%H:%M:%S} {what}", file=sys.stderr, flush=True)


def captures():
    """Captures of q and k, one for each length, and the ids of the longest."""
    for T in LENGTHS:
        path = f"{CACHE}/capture-{T}.safetensors"
        if not os.path.exists(path):
            step(f"capture of {T} tokens")
            scan(T, "--measures", "key.incoherence", "--capture", path)
    with open(f"{CACHE}/capture-{LENGTHS[-1]}.safetensors", "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        meta = json.loads(f.read(size))["__metadata__"]
    with open(f"{CACHE}/ids.json", "w") as f:
        f.write(meta["tokens"])


def parts():
    out = []
    specs = [("forward", "forward pass, loaded; ours with the logits of every position", "llama.cpp, logits of the last position", 1.0),
             ("energy", "all energy spectra, values", "torch, batched QR of the factors", 0.5),
             ("rows", "all row statistics", "torch, from a materialised softmax", 0.2),
             ("sigma", "σ₁, σ₂ of every A, with certificates, A given", "torch svd_lowrank(q=6, niter=4), A given, no certificate", 0.5)]
    for part, what, against, target in specs:
        for T in LENGTHS:
            if part != "forward" and T == 512:
                continue
            step(f"{part}, T = {T}")
            row = Row(f"{what}, T = {T}", against, target)
            making = Row(f"the same, the making of A on our side alone, T = {T}", against, target)
            for _ in range(ROUNDS):
                if part == "forward":
                    row.ours += seconds(ours(part, MODEL, f"{CACHE}/ids.json", T, 1))
                    row.theirs += seconds(llama(T, 1))
                    continue
                file = f"{CACHE}/capture-{T}.safetensors"
                mine, theirs = ours(part, file, 1), seconds(peers(part, file, 1))
                row.theirs += theirs
                row.ours += seconds(mine, "sigma with A made" if part == "sigma" else None)
                if part == "sigma":
                    making.theirs += theirs
                    making.ours += seconds(mine, "sigma")
            out += [row, making] if part == "sigma" else [row]
    return out


def whole():
    """The whole job, and the memory it takes."""
    T = LENGTHS[min(1, len(LENGTHS) - 1)]
    best = Row(f"whole scan, T = {T}: load, forward, all measures with nulls, JSON", "best Python route, its imports not counted", 1 / 6)
    process = Row(f"the same, T = {T}", "best Python route as a process, as ours is: start and imports too", 1 / 6)
    plain = Row(f"the same, T = {T}", "plain Python route", 1 / 20)
    memory, phases = [], {}
    out = f"{CACHE}/scan.json"
    for _ in range(ROUNDS):
        step("whole scan, ours")
        wall, megabytes = scan(T, "--json", out)
        best.ours.append(wall)
        memory.append((T, megabytes))
        if len(best.theirs) < (1 if QUICK else 2):
            step("whole scan, best Python route")
            lines, wall, _ = run([PYTHON, f"{HERE}/peers.py", "best", MODEL, f"{CACHE}/ids.json", str(T), str(THREADS)])
            process.theirs.append(wall)
            for l in lines:
                phases.setdefault(l["what"], []).extend(l["seconds"])
            best.theirs.append(lines[-1]["seconds"][0])
            peak = lines[-1]["megabytes"]
    theirs = {T: peak}
    process.ours = plain.ours = best.ours
    if not QUICK:
        step("whole scan, plain Python route")
        lines = peers("plain", MODEL, f"{CACHE}/ids.json", T)
        for l in lines:
            phases.setdefault(l["what"], []).extend(l["seconds"])
        plain.theirs.append(lines[-1]["seconds"][0])
        last = LENGTHS[-1]
        step(f"memory at T = {last}")
        memory.append((last, scan(last, "--json", out)[1]))
        theirs[last] = peers("best", MODEL, f"{CACHE}/ids.json", last)[-1]["megabytes"]
    return [best, process, plain], memory, theirs, phases


def products():
    """Rates of products, GFLOP/s: ours and NumPy's OpenBLAS."""
    table = []
    for threads in (1, THREADS):
        step(f"products, {threads} thread(s)")
        rates = {}
        for _ in range(ROUNDS):
            for side, lines in (("ours", ours("gemm", 2, threads=threads)), ("theirs", peers("gemm", 2, threads=threads))):
                for l in lines:
                    best = l["work"] / min(l["seconds"]) / 1e9
                    key = (l["what"], side)
                    rates[key] = max(best, rates.get(key, 0))
        for what in dict.fromkeys(k[0] for k in rates):
            table.append((what, threads, rates[what, "ours"], rates[what, "theirs"]))
    return table


def machine():
    cpu = platform.processor() or "unknown"
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            cpu = next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), cpu)
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 1024 / 1024
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB"


def versions():
    code = "import torch, transformers, numpy; print(f'torch {torch.__version__}, transformers {transformers.__version__}, NumPy {numpy.__version__} (OpenBLAS)')"
    python = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    go = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout.strip()
    with open(f"{CACHE}/node/node_modules/node-llama-cpp/package.json") as f:
        node = json.load(f)["version"]
    tool = subprocess.run([f"{CACHE}/eigenhead", "--version"], capture_output=True, text=True).stdout.splitlines()
    return f"{'; '.join(tool) or 'eigenhead'}; {go}; {python}, Python {platform.python_version()}; node-llama-cpp {node}"


def busy():
    """The share of the CPUs that others use, over five seconds; None where it cannot be told."""
    def ticks():
        with open("/proc/stat") as f:
            t = [int(x) for x in f.readline().split()[1:9]]
        return sum(t), t[3] + t[4]

    if not os.path.exists("/proc/stat"):
        return None
    all, idle = ticks()
    time.sleep(5)
    more, rest = ticks()
    return 1 - (rest - idle) / max(1, more - all)


def quiet(share):
    if share is None:
        return "Whether others were at work is not known."
    warning = ": NOT a quiet machine, the ratios mean little" if share > .05 else ""
    return f"Others used {share:.0%} of the CPUs before it began{warning}."


def main():
    started, share = time.time(), busy()
    captures()
    tables, memory, theirs, phases = whole()
    tables += parts()
    rates = products()
    step("long contexts")
    long = [] if QUICK else ours("long")
    lines = ["# Results of the last run of bench/run", "",
             f"{datetime.date.today()}, {machine()}, {THREADS} threads on either side. {quiet(share)} "
             f"The run took {(time.time() - started) / 60:.0f} minutes.", "",
             versions(), "",
             "Model: SmolLM2-135M-Instruct Q4_1, same token ids on both sides. Ours and theirs ran in turn, in processes of "
             "their own; the first call of each process is not counted; the ratio is best over best. Below 1 is faster.", "",
             "| what | against | ours | theirs | ratio | target | |", "|---|---|---|---|---|---|---|"]
    lines += [r.text() for r in tables]
    lines += ["", "Phases of the Python routes, seconds:", ""]
    lines += [f"- {what}: {', '.join(f'{s:.3g}' for s in s)}" for what, s in phases.items()]
    lines += ["", "| peak memory of the whole scan | ours | best Python route | ratio | target | |", "|---|---|---|---|---|---|"]
    for T in theirs:
        mine = max(m for t, m in memory if t == T)
        ratio = mine / theirs[T]
        lines.append(f"| T = {T} | {mine:.0f} MB | {theirs[T]:.0f} MB | {ratio:.2f} | 0.35 | {'met' if ratio <= .35 else 'missed'} |")
    lines += ["", "| product | threads | ours, GFLOP/s | OpenBLAS | ratio (target at least 0.9) | |", "|---|---|---|---|---|---|"]
    for what, threads, a, b in rates:
        lines.append(f"| {what} | {threads} | {a:.0f} | {b:.0f} | {a / b:.2f} | {'met' if a >= .9 * b else 'missed'} |")
    if long:
        lines += ["", "One head at growing length (no peer; orders of magnitude to plan by):", "", "| what | |", "|---|---|"]
        lines += [f"| {l['what']} | {l['seconds'][0]:.3g}{'' if 'exponent' in l['what'] else ' s, ' + l.get('note', '')} |" for l in long if l.get("seconds")]
    where = f"{CACHE}/RESULTS.md" if QUICK else f"{HERE}/RESULTS.md"
    with open(where + ".tmp", "w") as f:
        f.write("\n".join(lines) + "\n")
    shutil.move(where + ".tmp", where)
    step(f"wrote {where}")


main()
