"""compare.py TOOL MODELS IDS [FAMILY …]: the table of bench/families/run."""
import json
import pathlib
import subprocess
import sys

tool, models, ids, *only = sys.argv[1:]
names = ["llama"] + sorted(d.name for d in pathlib.Path(models).iterdir() if d.name != "llama" and (not only or d.name in only))
best = dict.fromkeys(names, float("inf"))
for _ in range(5):
    for name in names:
        line = subprocess.run([tool, "forward", f"{models}/{name}", ids, "512", "3"], check=True, capture_output=True, text=True).stdout
        best[name] = min([best[name], *json.loads(line)["seconds"]])
print("| family | ms | against llama |\n| --- | --- | --- |")
for name, seconds in best.items():
    print(f"| {name} | {1e3 * seconds:.0f} | {seconds / best['llama']:.2f} |")
