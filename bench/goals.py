"""The goals that heedful's kernels are held to, each with what a run measured and whether that reaches it."""
import math


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def product_goals(run):
    found = {key: row["vs_best"] for key, row in run.rows.items() if key[0].startswith("matmul/") and "vs_best" in row}
    if not found:
        return
    small = [ratio for (name, _), ratio in found.items() if name.split("/")[2].startswith(("384x", "32x32x"))]
    target, ratios = run.context["target"], list(found.values())
    yield f"products, {target}: geometric mean to the best BLAS", 0.95, geometric_mean(ratios), "×"
    yield f"products, {target}: the smallest ratio", 0.85, min(ratios), "×"
    yield f"products of the article's step, {target}: geometric mean", 1.0, geometric_mean(small), "×"


def share_goals(run):
    target = run.context["target"]

    def share(what, name, goal, threads=1):
        return f"{what}, {target}, threads {threads}: share of the limit", goal, run.rows[name, threads]["of_peak"], "%"

    for threads in (1, 2):
        for width, goal in ((32, 0.60), (64, 0.70), (128, 0.75)):
            yield share(f"causal forward f32 T=2048 D={width}", f"attention/forward/f32/B1/H8/G8/Tq2048/Tk2048/D{width}"
                        "/causal", goal, threads)
        yield share("full forward f32 T=2048 D=64", "attention/forward/f32/B1/H8/G8/Tq2048/Tk2048/D64", 0.70, threads)
        yield share("causal backward f32 T=2048 D=64", "attention/backward/f32/B1/H8/G8/Tq2048/Tk2048/D64/causal", 0.60,
                    threads)
        yield share("decode f32 1×4096, 8 heads", "attention/decode/f32/B1/H8/G8/Tq1/Tk4096/D64/causal", 0.85, threads)
    yield share("GPT-like step f32", "step/gpt/f32", 0.60, 2)


def peer_goals(peers):
    def ratio(what, name, goal, against, threads=1):
        for row in peers["rows"]:
            others = [p["seconds"] for peer, p in row["times"].items() if peer.startswith(against)]
            if row["name"] == name and row["threads"] == threads and others:
                yield f"{what}, threads {threads}: times as fast", goal, min(others) / row["times"]["heedful"]["seconds"], "×"

    square = "f32/B1/H8/G8/Tq2048/Tk2048/D64/causal"
    for threads in (1, 2):
        yield from ratio("causal forward T=2048 D=64 beside PyTorch", f"attention/forward/{square}", 3, "PyTorch", threads)
        yield from ratio("its forward and backward beside PyTorch", f"attention/forward_backward/{square}", 2, "PyTorch",
                         threads)
    for kind, goal in (("f32", 8), ("f64", 4)):
        yield from ratio(f"article's step {kind} beside NumPy", f"step/article/{kind}", goal, "NumPy")
    yield from ratio("article's step f32 beside PyTorch", "step/article/f32", 5, "PyTorch")
    yield from ratio("GPT-like step f32 beside PyTorch", "step/gpt/f32", 2, "PyTorch", 2)
    for cache in ("cache", "no_cache"):
        yield from ratio(f"generation f64, {cache.replace('_', ' ')}, beside NumPy", f"generate/{cache}/f64", 10, "NumPy")


def time_goals(run):
    for name, threads, goal in (("step/article/f32", 1, 0.8e-3), ("step/article/f64", 1, 1.6e-3),
                                ("step/18_trainings/f32", 2, 20)):
        yield f"{name}, threads {threads}: time", goal, run.rows[name, threads]["seconds"], "s"


def room(run, peers):
    """What the machine itself allows of the goals beside peers: the time that the work takes at its limits."""

    def limit(name, rate, threads=1):  # of this core, as measured beside the row
        row = run.rows[name, threads]
        return row[rate] / row["of_peak"] * 1e9

    def bound(what, name, least, against):
        for row in peers["rows"]:
            others = [p["seconds"] for peer, p in row["times"].items() if peer.startswith(against)]
            if row["name"] == name and row["threads"] == 1 and others:
                yield (f"- {what}: {least * 1e3:.3g} ms, {min(others) / least:.1f} times as fast as this {against}. "
                       f"heedful is {min(others) / row['times']['heedful']['seconds']:.1f} times as fast.\n")

    square = "attention/forward/f32/B1/H8/G8/Tq2048/Tk2048/D64/causal"
    flop = {name: run.rows[name, 1]["GFLOP/s"] * run.rows[name, 1]["seconds"] * 1e9
            for name in (square, "step/article/f32", "step/article/f64")}
    for name, against in ((square, "PyTorch"), ("step/article/f32", "PyTorch"), ("step/article/f32", "NumPy"),
                          ("step/article/f64", "NumPy")):
        yield from bound(f"`{name}` is {flop[name] * 1e-9:.3g} GFLOP by the formulas, at this core's peak", name,
                         flop[name] / limit(name, "GFLOP/s"), against)
    prompt, tokens, layers, width = 32, 128, 4, 256
    weights = layers * 4 * width * width  # of queries, keys, values and output: most of what there is
    rows = sum(range(prompt, prompt + tokens))  # every one of them anew for every token
    square = "matmul/f64/2048x2048x2048"
    yield from bound(f"`generate/no_cache/f64` is {2 * rows * weights * 1e-9:.3g} GFLOP of products, at this core's peak",
                     "generate/no_cache/f64", 2 * rows * weights / limit(square, "GFLOP/s"), "NumPy")
    decode = "attention/decode/f32/B1/H8/G8/Tq1/Tk4096/D64/causal"  # twice as much memory as the weights
    yield from bound(f"`generate/cache/f64` reads {8 * tokens * weights * 1e-9:.3g} GB of weights, as fast as "
                     "this core reads memory", "generate/cache/f64", 8 * tokens * weights / limit(decode, "GB/s"), "NumPy")


def goals(runs, peers, memory, table):
    def text(value, unit):
        if unit == "MiB":
            return f"{value:.1f} MiB"
        if unit == "s":
            return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
        return {"×": f"{value:.2f}", "%": f"{100 * value:.0f} %"}[unit]

    lines = []
    found = [goal for run in runs for goal in (*product_goals(run), *share_goals(run))]
    found.append((f"attention forward and backward f32 T=16384 D=64, 8 heads: memory beside {memory['tensors_MiB']:.0f} MiB "
                  "of tensors", 64, memory["beyond_MiB"], "MiB"))
    for what, goal, measured, unit in found + [*time_goals(runs[0]), *peer_goals(peers)]:
        at_most = unit in ("s", "MiB")
        reached = measured <= goal if at_most else measured >= goal
        lines.append([what, ("≤ " if at_most else "≥ ") + text(goal, unit), text(measured, unit),
                      "yes" if reached else "**no**"])
    return table(["work", "goal", "measured", "reached"], lines) + "\nWhat the machine leaves room for:\n\n" + "".join(
        room(runs[0], peers))
