"""The rows that peers are measured on, by the names that heedful_bench gives them, and the inputs both start from."""
import re

import numpy as np

CONTEXT = {"article": 13, "gpt": 256}
SHAPES = {  # V, C, H, L, F, B, T, first position with loss
    "article": (21, 32, 4, 2, 128, 32, 12, 6),
    "gpt": (256, 384, 6, 6, 1536, 8, 256, 0),
}
TOY = (4, 256, 8)  # L, C, H of the article's toy for the key-value cache: attention and residual alone
PROMPT, TOKENS = 32, 128

ATTENTION = [
    f"B1/H8/G8/Tq{t}/Tk{t}/D{d}/causal" for d in (32, 64, 128) for t in (1024, 2048)
] + [
    "B1/H8/G8/Tq2048/Tk2048/D64",
    "B8/H6/G6/Tq256/Tk256/D64/causal",
    "B32/H4/G4/Tq12/Tk12/D8/causal",
]
NAMES = (
    [f"attention/{what}/f32/{shape}" for what in ("forward", "forward_backward") for shape in ATTENTION]
    + [f"attention/{what}/f64/B1/H8/G8/Tq2048/Tk2048/D64/causal" for what in ("forward", "forward_backward")]
    + ["attention/decode/f32/B1/H8/G8/Tq1/Tk4096/D64/causal"]
    + ["step/article/f32", "step/article/f64", "step/gpt/f32"]
    + [f"generate/{cache}/{kind}" for cache in ("cache", "no_cache") for kind in ("f32", "f64")]
)


class Attention:
    """What heedful_bench's attention rows draw, number for number: q, k, v, dout by default_rng(1) in this order."""

    def __init__(self, name):
        found = re.fullmatch(r"attention/(\w+)/(f32|f64)/B(\d+)/H(\d+)/G(\d+)/Tq(\d+)/Tk(\d+)/D(\d+)(/causal)?", name)
        self.what, kind = found.group(1, 2)
        batch, heads, groups, queries, keys, width = map(int, found.group(3, 4, 5, 6, 7, 8))
        self.causal, self.grouped = found.group(9) is not None, heads != groups
        random, dtype = np.random.default_rng(1), {"f32": np.float32, "f64": np.float64}[kind]

        def draw(*shape):
            return random.standard_normal(shape).astype(dtype)

        self.q, self.k = draw(batch, heads, queries, width), draw(batch, groups, keys, width)
        self.v, self.dout = draw(batch, groups, keys, width), draw(batch, heads, queries, width)

    def deviation(self, out):
        """Of the last four queries of `out` from softmax(q·kᵀ/√D)·v in double, in parts of the largest."""
        last = min(4, self.q.shape[2])
        q, k, v = (x.astype(np.float64) for x in (self.q[:, :, -last:], self.k, self.v))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        if self.causal:
            seen = np.arange(k.shape[2]) <= np.arange(k.shape[2] - last, k.shape[2])[:, None]
            scores = np.where(seen, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact = weights / weights.sum(-1, keepdims=True) @ v
        return float(np.abs(out[:, :, -last:] - exact).max() / np.abs(exact).max())


def batch(model):
    """Tokens and targets [B, T] to step on; their values change no time."""
    vocabulary, sequences, length = SHAPES[model][0], SHAPES[model][5], SHAPES[model][6]
    random = np.random.default_rng(1)
    return random.integers(vocabulary, size=(2, sequences, length))


def toy_weights():
    """Wq, Wk, Wv, Wo of every layer, and a prompt [32, C]."""
    layers, width, _ = TOY
    random = np.random.default_rng(5)
    return (random.standard_normal((layers, 4, width, width)) / np.sqrt(width),
            random.standard_normal((PROMPT, width)))
