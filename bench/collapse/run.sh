#!/bin/sh
# Times a part of the published sweep, ours beside the PyTorch twin, in one run. On
# two shared cores with torch 2.9, T = 150: 22.4 s of processor time for the twin, 2.6 for
# ours at gamma = 1 with two seeds; 20.9 and 1.9 at gamma = 0.2 with one.
#   bench/collapse/run.sh [T [gamma [seeds]]]
# PYTHON names an interpreter with torch.
set -eu
cd "$(dirname "$0")/../.."
T=${1:-150} gamma=${2:-1} seeds=${3:-2} PYTHON=${PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/eigenhead" ./cmd/eigenhead
echo "twin: T=$T gamma=$gamma seeds=$seeds, 25 configurations, 10 layers"
"$PYTHON" bench/collapse/twin.py "$T" "$gamma" "$seeds" | tee "$dir/twin.txt" | tail -1
echo "ours: the same"
"$PYTHON" - "$dir" "$T" "$gamma" "$seeds" <<'PY'
import resource, subprocess, sys, time
d, T, gamma, seeds = sys.argv[1:]
start = time.perf_counter()
subprocess.run([d + "/eigenhead", "lab", "collapse", "--paper", "--T", T, "--gamma", gamma, "--seeds", seeds, "--json", d + "/ours.json"], check=True, stdout=subprocess.DEVNULL)
wall = time.perf_counter() - start
use = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = use.ru_utime + use.ru_stime
print(f"seconds: wall {wall:.2f} cpu {cpu:.2f}")
words = open(d + "/twin.txt").read().split()
print(f"ratio: wall {float(words[-3]) / wall:.1f}, cpu {float(words[-1]) / cpu:.1f}")
PY
