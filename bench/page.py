#!/usr/bin/env python3
"""Writes docs/performance.md from the JSON files of one run (script/bench --page): best.json and, where the processor
has more than AVX2, avx2.json and memory.json from heedful_bench, peers.json from bench/peers/run.py. Every number comes from them."""
import json
import math
import sys
from pathlib import Path

from goals import goals

INTRO = """\
# Performance

Written by `bench/page.py` from the JSON files that the parts of `script/bench --page` leave; no figure is typed by hand.

{facts}

Every row is measured in turns with what stands beside it, on operands that stay in the caches where they fit, and what
counts of each is its fastest stretch of a millisecond or one call: other load can only add to a time. On one thread
that is processor time, on two the time of day. The limits (FMA
on registers, reading memory) are measured before and after each row by the same rule. Rates count the operations of the
formula, for a causal mask those of the visible pairs. "Deviation" is the largest difference from a computation in
double, in parts of its largest result: of a product, of attention's output or gradient dq, of a step's gradients; of
generation, between its results with a cache and without. Ratios above 1 mean that heedful is faster.
"""


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            break
    return f"{seconds * scale:.3g} {unit}"


def share(value):
    return f"{100 * value:.0f} %"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Run:
    """What heedful_bench found on one instruction set: rows by name and threads."""

    def __init__(self, path):
        found = json.loads(path.read_text())
        self.context, self.rows = found["context"], {}
        for row in found["benchmarks"]:
            if "/memory/" in row["name"]:
                self.memory = row
                continue
            name, threads = row["name"].split("/iterations")[0].rsplit("/threads", 1)
            row["seconds"] = row["real_time"] * 1e-3
            self.rows[name, int(threads)] = row

    def names(self, prefix):
        return list(dict.fromkeys(name for name, _ in self.rows if name.startswith(prefix)))


def products(run, kind):
    peers = [p for p in ("OpenBLAS", "OpenBLAS_tuned", "oneDNN") if p in run.rows[run.names(f"matmul/{kind}")[0], 1]]
    head = ["M×N×K", "threads", "time", "GFLOP/s", "of peak"] + [p.replace("_", " ") for p in peers]
    lines, ratios = [], []
    for name in run.names(f"matmul/{kind}"):
        for threads in (1, 2):
            row = run.rows[name, threads]
            shape = name.removeprefix(f"matmul/{kind}/").replace("x", "×", 2).replace("/", ", ").replace("_", " ")
            lines.append([shape, str(threads), duration(row["seconds"]), f"{row['GFLOP/s']:.0f}",
                          share(row["of_peak"])] + [f"{row[p]:.0f}" for p in peers]
                         + ([f"{row['vs_best']:.2f}"] if peers else []) + [f"{row['deviation']:.1e}"])
            ratios += [row["vs_best"]] if peers else []
    text = table(head + (["ratio to the best"] if peers else []) + ["deviation"], lines)
    if ratios:
        text += f"\nGeometric mean of the ratios {geometric_mean(ratios):.2f}, the smallest {min(ratios):.2f}.\n"
    return text


def own_rows(run, prefix, rate):
    lines = []
    for name in run.names(prefix):
        for threads in (1, 2):
            row = run.rows[name, threads]
            lines.append([name.removeprefix(prefix), str(threads), duration(row["seconds"]),
                          f"{row[rate]:.3g}" if rate in row else "", share(row["of_peak"]) if "of_peak" in row else "",
                          f"{row['deviation']:.1e}" if "deviation" in row else ""])
    return table(["", "threads", "time", rate, "of peak", "deviation"], lines)


def peer_rows(peers):
    names = list(dict.fromkeys(peer for row in peers["rows"] for peer in row["times"]))
    others = [name for name in names if name != "heedful"]
    lines = []
    for row in peers["rows"]:
        times = row["times"]
        best = min((times[p]["seconds"] for p in others if p in times), default=None)
        lines.append([row["name"], str(row["threads"])]
                     + [duration(times[p]["seconds"]) if p in times else "" for p in names]
                     + [f"{best / times['heedful']['seconds']:.2f}" if best else ""]
                     + [" / ".join(f"{times[p]['deviation']:.0e}" if p in times else "–" for p in names)])
    return table(["", "threads"] + names + ["ratio to the best", "deviation of each"], lines)


def facts(runs, peers):
    context = runs[0].context
    caches = ", ".join(f"L{c['level']} {c['type'].lower()} {c['size'] // 1024} KiB" for c in context["caches"])
    load = ", ".join(f"{x:.1f}" for x in context["load_avg"])
    lines = [f"Date: {context['date']}",
             f"Machine: {context['machine']}, {context['num_cpus']} processors, {caches}",
             f"Instruction sets: {', '.join(run.context['target'] for run in runs)} (Highway's names; AVX3 is AVX-512)",
             f"Load average at the start (1, 5, 15 minutes): {load}. Above 0 others had a part of the machine; rows of 2 "
             "threads suffer most",
             f"Products: {context['peers']}"]
    if len(runs) > 1:
        lines.append(f"Products on {runs[1].context['target']}: {runs[1].context['peers']}")
    lines.append("Python: " + "; ".join(f"{name}: {version}" for name, version in peers["versions"].items())
                 + ". OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset; \"tuned\" sets OPENBLAS_CORETYPE=SkylakeX")
    return "\n".join(f"- {line}." for line in lines)


def page(folder):
    runs = [Run(folder / file) for file in ("best.json", "avx2.json") if (folder / file).exists()]
    peers = json.loads((folder / "peers.json").read_text())
    parts = [INTRO.format(facts=facts(runs, peers)), "## Goals\n",
             goals(runs, peers, Run(folder / "memory.json").memory, table)]
    parts += ["## Beside NumPy and PyTorch\n",
              "A row of one query at the end of 4096 keys is `decode`; `generate` makes 128 tokens after 32 in the "
              "article's toy (4 layers, width 256, 8 heads; NumPy and PyTorch have attention and residual alone, "
              "heedful norms and an unembedding besides).\n", peer_rows(peers)]
    for run in runs:
        parts.append(f"## {run.context['target']}\n")
        for kind in ("f32", "f64"):
            parts += [f"### Products, {kind}\n", products(run, kind)]
        parts += ["### Attention\n", own_rows(run, "attention/forward/", "GFLOP/s"), "Backward:\n",
                  own_rows(run, "attention/backward/", "GFLOP/s"), "One query on a cache, peak = reading as much memory:\n",
                  own_rows(run, "attention/decode/", "GB/s"), "### Steps and generation\n",
                  own_rows(run, "step/", "GFLOP/s"), own_rows(run, "generate/", "tokens/s")]
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(page(Path(sys.argv[1])))
