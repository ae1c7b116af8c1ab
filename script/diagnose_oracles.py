#!/usr/bin/env python3
"""Holds `heedful diagnose` against implementations that share nothing with it.

    script/diagnose_oracles.py build/release/heedful           NumPy, and PyTorch from 2.1 on where it can be imported
    script/diagnose_oracles.py build/release/heedful --cases 10000

Correct ones (NumPy in two precisions, torch.nn.functional.scaled_dot_product_attention and its gradients) must raise no
alarm; faulty ones, written here in NumPy the way people write them, must be called by their name.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    import torch
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        torch = None
except ImportError:
    torch = None


def positions(case, tq, tk):
    i = np.arange(tq)
    return {1: i, 2: i + tk - tq, 4: i}[int(case["causal"])]


def visible(case, batch, tq, tk):
    """[B, 1, Tq, Tk], true = may look."""
    mask = np.ones((batch, 1, tq, tk), bool)
    if int(case.get("causal", 0)):
        mask &= np.arange(tk)[None, :] <= positions(case, tq, tk)[:, None]
        if int(case.get("window", 0)):
            mask &= np.abs(np.arange(tk)[None, :] - positions(case, tq, tk)[:, None]) < int(case["window"])
    if "key_lengths" in case:
        mask &= (np.arange(tk)[None, :] < case["key_lengths"][:, None])[:, None, None, :]
    return mask


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def parts(case, kind=np.float32):
    q, k, v = (case[name].astype(kind) for name in "qkv")
    group = q.shape[1] // k.shape[1]
    return q, np.repeat(k, group, 1), np.repeat(v, group, 1), visible(case, q.shape[0], q.shape[2], k.shape[2])


def numpy_attention(case, kind=np.float32):
    q, k, v, mask = parts(case, kind)
    scores = q @ k.transpose(0, 1, 3, 2) * kind(case.get("scale", 1 / np.sqrt(q.shape[-1])))
    return softmax(np.where(mask, scores, -np.inf)) @ v


def torch_attention(case, kind):
    q, k, v, mask = (torch.from_numpy(np.ascontiguousarray(x)) for x in parts(case, np.float32))
    q, k, v = (x.to(kind).requires_grad_() for x in (q, k, v))
    scale = float(case["scale"]) if "scale" in case else None
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    answer = {"out": out}
    if "dout" in case:
        out.backward(torch.from_numpy(case["dout"]).to(kind))
        groups = case["k"].shape[1]
        heads = q.shape[1] // groups
        summed = lambda g: g.reshape(g.shape[0], groups, heads, *g.shape[2:]).sum(2)
        answer |= {"dq": q.grad, "dk": summed(k.grad.float()), "dv": summed(v.grad.float())}
    return {name: x.detach().float().numpy() for name, x in answer.items()}


# Faults, each as a change of the few lines above. ------------------------------------------------------------------

def with_scores(change):
    def attention(case):
        q, k, v, mask = parts(case)
        return change(q @ k.transpose(0, 1, 3, 2), q, k, v, mask, case)
    return attention


def finish(scores, v, mask):
    return softmax(np.where(mask, scores, -np.inf)) @ v


def root(x):
    return np.float32(np.sqrt(x.shape[-1]))


def scale_missing(s, q, k, v, mask, case):
    return finish(s, v, mask)


def scale_twice(s, q, k, v, mask, case):
    return finish(s / np.float32(q.shape[-1]), v, mask)


def scale_by_value_width(s, q, k, v, mask, case):
    return finish(s / root(v), v, mask)


def mask_after_softmax(s, q, k, v, mask, case):
    return softmax(s / root(q)) * mask @ v


def mask_multiplied(s, q, k, v, mask, case):
    return softmax(s / root(q) * mask) @ v


def mask_adds_10(s, q, k, v, mask, case):
    return softmax(s / root(q) + np.where(mask, 0, -10).astype(np.float32)) @ v


def mask_adds_1e4(s, q, k, v, mask, case):
    return softmax(s / root(q) + np.where(mask, 0, -1e4).astype(np.float32)) @ v


def mask_puts_1e5(s, q, k, v, mask, case):
    return softmax(np.where(mask, s / root(q), np.float32(-1e5))) @ v


def mask_boolean_added(s, q, k, v, mask, case):
    return softmax(s / root(q) + mask.astype(np.float32)) @ v


def mask_inverted(s, q, k, v, mask, case):
    hidden = np.where(mask, -np.inf, s / root(q))
    with np.errstate(invalid="ignore"):
        return softmax(hidden) @ v


def causal_missing(s, q, k, v, mask, case):
    return finish(s / root(q), v, visible(case | {"causal": 0}, q.shape[0], *s.shape[2:]))


def causal_leaks_one(s, q, k, v, mask, case):
    if int(case["causal"]):
        wider = np.arange(s.shape[3])[None, :] <= positions(case, *s.shape[2:])[:, None] + 1
        mask = visible(case | {"causal": 0}, q.shape[0], *s.shape[2:]) & wider
    return finish(s / root(q), v, mask)


def causal_top_left(s, q, k, v, mask, case):
    if int(case["causal"]):
        mask = visible(case | {"causal": 1}, q.shape[0], *s.shape[2:])
    return finish(s / root(q), v, mask)


def padding_missing(s, q, k, v, mask, case):
    bare = {name: case[name] for name in case if name != "key_lengths"}
    return finish(s / root(q), v, visible(bare, q.shape[0], *s.shape[2:]))


def padding_of_first_sequence(s, q, k, v, mask, case):
    if "key_lengths" in case:
        mask = visible(case | {"key_lengths": np.full_like(case["key_lengths"], case["key_lengths"][0])}, q.shape[0],
                       *s.shape[2:])
    return finish(s / root(q), v, mask)


def softmax_over_queries(s, q, k, v, mask, case):
    scores = np.where(mask, s / root(q), -np.inf)
    top = scores.max(-2, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(-2, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v


def softmax_unnormalized(s, q, k, v, mask, case):
    scores = np.where(mask, s / root(q), -np.inf)
    return np.exp(scores - scores.max(-1, keepdims=True)) @ v


def softmax_base_two(s, q, k, v, mask, case):
    scores = np.where(mask, s / root(q), -np.inf)
    e = np.exp2(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def softmax_extra_one(s, q, k, v, mask, case):
    scores = np.where(mask, s / root(q), -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    with np.errstate(over="ignore"):
        return e / (e.sum(-1, keepdims=True) + np.exp(-top)) @ v


def softmax_no_maximum(s, q, k, v, mask, case):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(np.where(mask, s / root(q), -np.inf))
        return e / e.sum(-1, keepdims=True) @ v


def heads_merged_untransposed(s, q, k, v, mask, case):
    out = finish(s / root(q), v, mask)
    b, h, t, e = out.shape
    return out.reshape(b, t, h, e).transpose(0, 2, 1, 3)


def heads_reversed(s, q, k, v, mask, case):
    return finish(s / root(q), v, mask)[:, ::-1]


def groups_tiled(case):
    q, _, _, mask = parts(case)
    k, v = (np.tile(case[name], (1, q.shape[1] // case[name].shape[1], 1, 1)) for name in "kv")
    return finish(q @ k.transpose(0, 1, 3, 2) / root(q), v, mask)


def groups_all_first(case):
    q, _, _, mask = parts(case)
    k, v = (np.repeat(case[name][:, :1], q.shape[1], 1) for name in "kv")
    return finish(q @ k.transpose(0, 1, 3, 2) / root(q), v, mask)


def cache_values_behind(s, q, k, v, mask, case):
    return finish(s / root(q), np.concatenate([v[:, :, :1], v[:, :, :-1]], 2), mask)


def cache_other_sequence(s, q, k, v, mask, case):
    k, v = np.roll(k, -1, 0), np.roll(v, -1, 0)
    return finish(q @ k.transpose(0, 1, 3, 2) / root(q), v, mask)


def online(case, block, rescale_output=True, rescale_sum=True, tail=True, pad=False):
    q, k, v, mask = parts(case)
    s = np.where(mask, q @ k.transpose(0, 1, 3, 2) / root(q), -np.inf)
    top = np.full(s.shape[:3] + (1,), -np.inf, np.float32)
    total, out = np.zeros_like(top), np.zeros(s.shape[:3] + (v.shape[3],), np.float32)
    length = s.shape[3] if tail else s.shape[3] // block * block
    for start in range(0, length, block):
        part, values = s[..., start:start + block], v[:, :, start:start + block]
        if pad and part.shape[3] < block:
            extra = block - part.shape[3]
            part = np.concatenate([part, np.zeros(part.shape[:3] + (extra,), np.float32)], 3)
            values = np.concatenate([values, np.zeros(values.shape[:2] + (extra, values.shape[3]), np.float32)], 2)
        new = np.maximum(top, part.max(-1, keepdims=True))
        seen = np.isfinite(new)
        old = np.where(np.isfinite(top), np.exp(np.where(seen, top - np.where(seen, new, 0), 0)), 0)
        e = np.where(np.isfinite(part), np.exp(part - np.where(seen, new, 0)), 0)
        total = total * (old if rescale_sum else 1) + e.sum(-1, keepdims=True)
        out = out * (old if rescale_output else 1) + e @ values
        top = new
    return np.divide(out, total, out=np.zeros_like(out), where=total > 0)


FAULTS = {name: with_scores(change) for name, change in {
    f.__name__: f for f in (
        scale_missing, scale_twice, scale_by_value_width, mask_after_softmax, mask_multiplied, mask_adds_10,
        mask_adds_1e4, mask_puts_1e5, mask_boolean_added, mask_inverted, causal_missing, causal_leaks_one,
        causal_top_left, padding_missing, padding_of_first_sequence, softmax_over_queries, softmax_unnormalized,
        softmax_base_two, softmax_extra_one, softmax_no_maximum, heads_merged_untransposed, heads_reversed,
        cache_values_behind, cache_other_sequence)}.items()}
FAULTS |= {
    "groups_tiled": groups_tiled,
    "groups_all_first": groups_all_first,
    "online_output_not_rescaled": lambda case: online(case, 32, rescale_output=False),
    "online_sum_not_rescaled": lambda case: online(case, 64, rescale_sum=False),
    "online_tail_dropped": lambda case: online(case, 4, tail=False),
    "online_tail_counted": lambda case: online(case, 16, pad=True),
}


def random_case(random, kind):
    """Small, without empty rows; queries of several magnitudes."""
    groups, per_group, batch = random.integers(1, 4), random.integers(1, 4), random.integers(1, 4)
    tk = random.integers(1, 70 if random.random() < 0.1 else 13)
    tq = random.integers(1, tk + 1)
    d, e = random.integers(1, 17), random.integers(1, 17)
    size = np.float32(2.0 ** random.integers(-6, 6))
    normal = lambda *shape: random.normal(size=shape).astype(np.float32)
    case = {"q": size * normal(batch, groups * per_group, tq, d), "k": normal(batch, groups, tk, d),
            "v": normal(batch, groups, tk, e), "causal": np.int64(2 * random.integers(0, 2))}
    if random.random() < 0.5:
        case["key_lengths"] = random.integers(1, tk + 1, batch)
    if random.random() < 0.3:
        case["scale"] = np.float64(2.0 ** random.integers(-3, 1))
    if random.random() < 0.5:
        case["dout"] = normal(batch, groups * per_group, tq, e)
    if kind is not None:
        case = {n: torch.from_numpy(x).to(kind).float().numpy() if x.dtype == np.float32 else x
                for n, x in case.items()}
    return case


def verdict(program, folder, dtype):
    done = subprocess.run([program, "diagnose", folder, "--dtype", dtype, "--json"], capture_output=True, text=True)
    if done.returncode == 2:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def correct_ones(program, total):
    """Folders of cases, one implementation each."""
    kinds = [("NumPy f32", "f32", lambda c: {"out": numpy_attention(c)}, None),
             ("NumPy f64", "f64", lambda c: {"out": numpy_attention(c, np.float64)}, None)]
    if torch is not None:
        kinds += [("PyTorch f32", "f32", lambda c: torch_attention(c, torch.float32), torch.float32),
                  ("PyTorch bf16", "bf16", lambda c: torch_attention(c, torch.bfloat16), torch.bfloat16),
                  ("PyTorch f16", "f16", lambda c: torch_attention(c, torch.float16), torch.float16)]
    else:
        print("no PyTorch with scaled_dot_product_attention here: only NumPy is asked")
    chunk, failures = 250, 0
    for label, dtype, answer, kind in kinds:
        worst, cases, alarms = 0.0, 0, 0
        random = np.random.default_rng(7)
        while cases < total // len(kinds):
            with tempfile.TemporaryDirectory() as folder:
                for number in range(chunk):
                    case = random_case(random, kind)
                    np.savez(f"{folder}/{number}.npz", **case)
                    np.savez(f"{folder}/{number}.out.npz", **answer(case))
                said = verdict(program, folder, dtype)
            cases += chunk
            worst = max(worst, said["residuals"]["correct"] or float("inf"))
            alarms += said["verdict"] != "correct"
            if said["verdict"] != "correct":
                print(json.dumps(said["location"][:2]))
        failures += alarms
        print(f"{label:14} {cases} cases, worst residual {worst:.3g}, {alarms} folders with a false alarm")
    return failures


def faulty_ones(program):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "diagnose", "--emit-probes", folder], check=True, stdout=subprocess.DEVNULL)
        probes = {p: dict(np.load(p)) for p in pathlib.Path(folder).glob("*.npz")}
        for name, attention in FAULTS.items():
            for path, case in probes.items():
                np.savez(path.with_suffix(".out.npz"), out=attention(case))
            said = verdict(program, folder, "f32")
            found = said["findings"][0] if said["findings"] else {"faults": ["unknown"], "forms": [""]}
            # Without positions, seeing the whole future and an offset that runs ahead are the same computation.
            twins = {"causal_missing": {"causal_missing", "cache_offset_advanced"}}.get(name, {name})
            right = {fault for finding in said["findings"] for fault in finding["faults"]} == twins
            failures += not right
            print(f"{'named' if right else 'WRONG':6} {name:28} {said['fault'] or found['faults']} {found['forms'][0]}"
                  f" residual {said['confidence']['residual']:.3g}, margin {said['confidence']['margin'] or 0:.2g}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=2500)
    options = parser.parse_args()
    failures = faulty_ones(options.program) + correct_ones(options.program, options.cases)
    print(f"{failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
