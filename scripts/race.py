"""What the comparisons of speed share: our side as a process, taking turns, the verdict.

To be imported before numpy or torch, which read the number of their threads when they load.
"""

import json
import os
import statistics
import subprocess
import time
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON", "BLIS"):
    os.environ[f"{name}_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Settings that may force OpenBLAS to other kernels than the best for this processor.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

RUNS = 7
ROOT = Path(__file__).resolve().parent.parent


class Ours:
    """An example program, driven line by line: `COMMAND K` in, a line of JSON out."""

    def __init__(self, example, *arguments):
        build = ["cargo", "build", "--quiet", "--release", "--example", example]
        subprocess.run(build, cwd=ROOT, check=True)
        program = ROOT / "target/release/examples" / example
        self.process = subprocess.Popen(
            [program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{example} did not start")

    def run(self, command, k):
        self.process.stdin.write(f"{command} {k}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def clock(self):
        # Linux's name for the CPU time of all threads of another process.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def race(contenders):
    """Median CPU seconds of each of {name: (run, clock)}, taking turns."""
    for run, _ in contenders.values():
        run()  # warm up
    seconds = {name: [] for name in contenders}
    for _ in range(RUNS):
        for name, (run, clock) in contenders.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def verdict(seconds, bound):
    """Our speed over the best peer's, and whether that is enough."""
    peers = {name: value for name, value in seconds.items() if name != "ours"}
    best = min(peers, key=peers.get)
    ratio = peers[best] / seconds["ours"]
    ok = ratio >= bound
    print(f"    {ratio:.2f} x {best}, bound {bound}: {'OK' if ok else 'FAIL'}", flush=True)
    return ok
