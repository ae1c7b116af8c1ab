#!/usr/bin/env python3
"""heedful beside NumPy and PyTorch, in turns: every row is measured for each of them once a round, and what counts is
the fastest of all rounds. Writes JSON, one object a row, to the file named; script/bench --peers calls it.

NumPy and PyTorch are those of the Python that runs this. NumPy runs twice: as it comes (OPENBLAS_CORETYPE and
OPENBLAS_L2_SIZE unset) and with OPENBLAS_CORETYPE=SkylakeX, which helps where its OpenBLAS does not know the processor.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import rows

HERE = Path(__file__).parent


class Worker:
    def __init__(self, name, module, threads, variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")} | variables
        self.name = name
        self.process = subprocess.Popen([sys.executable, HERE / "worker.py", module, str(threads)], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = json.loads(self.process.stdout.readline()).get("version")

    def measure(self, row):
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"run.py: {self.name} broke off at {row}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure_ours(program, row, threads):
    done = subprocess.run([program, f"--benchmark_filter=^{row}/threads{threads}/", "--benchmark_format=json"],
                          capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)["benchmarks"][0]
    answer = {"seconds": result["real_time"] * 1e-3, "deviation": result["deviation"]}
    return answer | {key: result[key] for key in ("of_peak",) if key in result}


def merge(best, answer):
    if answer and (not best or answer["seconds"] < best["seconds"]):
        return answer
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="heedful_bench")
    parser.add_argument("out", help="the JSON to write")
    parser.add_argument("--filter", default="", help="only rows with this in their name")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    results, versions = [], {}
    for threads in (1, 2):
        workers = [Worker("NumPy", "numpy_peer", threads, {}),
                   Worker("NumPy tuned", "numpy_peer", threads, {"OPENBLAS_CORETYPE": "SkylakeX"}),
                   Worker("PyTorch", "torch_peer", threads, {})]
        workers = [w for w in workers if w.version]
        versions |= {w.name: w.version for w in workers}
        for row in rows.NAMES:
            if options.filter not in row:
                continue
            best = {}
            for _ in range(options.rounds):
                best["heedful"] = merge(best.get("heedful"), measure_ours(options.program, row, threads))
                for worker in workers:
                    best[worker.name] = merge(best.get(worker.name), worker.measure(row))
            results.append({"name": row, "threads": threads} | {"times": {k: v for k, v in best.items() if v}})
            Path(options.out).write_text(json.dumps({"versions": versions, "rows": results}, indent=1) + "\n")
            times = "  ".join(f"{k} {v['seconds'] * 1e3:.3f} ms" for k, v in best.items() if v)
            print(f"{row}/threads{threads}: {times}", file=sys.stderr, flush=True)
        for worker in workers:
            worker.close()


if __name__ == "__main__":
    main()
