"""The rows in NumPy. make(name) gives what to time and what to call for the deviation from double; None where NumPy
takes no part."""
import numpy as np

import rows
from numpy_decoder import NumpyDecoder

DTYPES = {"f32": np.float32, "f64": np.float64}


def attention(problem):
    scale = problem.q.dtype.type(problem.q.shape[-1] ** -0.5)
    queries, keys = problem.q.shape[2], problem.k.shape[2]
    hidden = np.triu(np.ones((queries, keys), bool), keys - queries + 1)

    def forward():
        scores = problem.q @ problem.k.swapaxes(-1, -2) * scale
        if problem.causal:
            scores[..., hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return weights @ problem.v, weights

    def forward_backward():
        _, weights = forward()
        dv = weights.swapaxes(-1, -2) @ problem.dout
        dweights = problem.dout @ problem.v.swapaxes(-1, -2)
        dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) * scale
        return dscores @ problem.k, dscores.swapaxes(-1, -2) @ problem.q, dv

    work = forward_backward if problem.what == "forward_backward" else forward
    return work, lambda: problem.deviation(forward()[0])


def step(model, kind):
    tokens, targets = rows.batch(model)
    decoder = NumpyDecoder(model, DTYPES[kind])

    def deviation():
        exact = NumpyDecoder(model, np.float64)
        exact.p = {name: x.astype(np.float64) for name, x in decoder.p.items()}
        pairs = [(decoder.gradients(tokens, targets)[name], g) for name, g in exact.gradients(tokens, targets).items()]
        return float(max(np.abs(a - b).max() for a, b in pairs) / max(np.abs(b).max() for _, b in pairs))

    return lambda: decoder.step(tokens, targets), deviation


def generation(cached, kind):
    weights, prompt = (x.astype(DTYPES[kind]) for x in rows.toy_weights())
    layers, width, heads = rows.TOY
    total, scale = rows.PROMPT + rows.TOKENS, DTYPES[kind]((width // heads) ** -0.5)

    def attend(q, k, v, hidden=None):  # [H, n, D] each
        scores = q @ k.swapaxes(-1, -2) * scale
        if hidden is not None:
            scores[..., hidden] = -np.inf
        w = np.exp(scores - scores.max(-1, keepdims=True))
        return w / w.sum(-1, keepdims=True) @ v

    def split(x):
        return x.reshape(len(x), heads, -1).swapaxes(0, 1)

    def run(x, keys, values, at):
        """New rows x [n, C] behind the first `at`, which stand in keys and values [L][H, total, D]."""
        n = len(x)
        hidden = np.triu(np.ones((n, at + n), bool), at + 1) if n > 1 else None
        for layer in range(layers):
            q, k, v = (split(x @ weights[layer, part]) for part in range(3))
            keys[layer][:, at:at + n], values[layer][:, at:at + n] = k, v
            mixed = attend(q, keys[layer][:, :at + n], values[layer][:, :at + n], hidden)
            x = x + mixed.swapaxes(0, 1).reshape(n, width) @ weights[layer, 3]
        return x

    def generate(cached):
        keys, values = np.empty((2, layers, heads, total, width // heads), DTYPES[kind])
        sequence, at = prompt, 0
        for _ in range(rows.TOKENS):
            new = run(sequence[at:], keys, values, at)[-1:]
            at = len(sequence) if cached else 0
            sequence = np.concatenate([sequence, new / np.sqrt((new * new).mean())])
        return sequence

    return lambda: generate(cached), lambda: float(np.abs(generate(True) - generate(False)).max())


def make(name):
    what, which, kind = name.split("/")[:3]
    if what == "attention":
        problem = rows.Attention(name)
        return None if problem.grouped else attention(problem)
    if what == "step":
        return step(which, kind) if which == "article" else None  # minutes otherwise
    return generation(which == "cache", kind)


def describe(threads):
    return f"NumPy {np.__version__}"
