"""The rows in PyTorch, eager: fused attention and fused Adam where it has them. make(name) as in numpy_peer.py."""
import copy

import torch
from torch import nn
from torch.nn import functional

import rows

DTYPES = {"f32": torch.float32, "f64": torch.float64}


def attention(problem):
    q, k, v, dout = (torch.from_numpy(x) for x in (problem.q, problem.k, problem.v, problem.dout))
    causal = problem.causal and q.shape[2] > 1

    def forward():
        with torch.no_grad():
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def forward_backward():
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        functional.scaled_dot_product_attention(*inputs, is_causal=causal).backward(dout)

    work = forward_backward if problem.what == "forward_backward" else forward
    return work, lambda: problem.deviation(forward().double().numpy())


class Block(nn.Module):
    def __init__(self, width, heads, hidden, activation):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, hidden), activation, nn.Linear(hidden, width))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.norm2(x))


class TorchDecoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        vocabulary, width, heads, layers, hidden, _, length, self.first = rows.SHAPES[model]
        activation = nn.ReLU() if model == "article" else nn.GELU(approximate="tanh")
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(rows.CONTEXT[model], width)
        self.blocks = nn.Sequential(*(Block(width, heads, hidden, activation) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        self.register_buffer("positions", torch.arange(length))

    def loss(self, tokens, targets):
        x = self.blocks(self.token(tokens) + self.position(self.positions))
        logits = self.out(self.norm(x[:, self.first:]))  # positions without loss go no further
        return functional.cross_entropy(logits.flatten(0, 1), targets[:, self.first:].flatten())


def adam(parameters):
    try:
        return torch.optim.Adam(parameters, lr=1e-3, fused=True)
    except (RuntimeError, TypeError):  # older ones fuse on other devices alone
        return torch.optim.Adam(parameters, lr=1e-3)


def step(model, kind):
    torch.manual_seed(1)
    tokens, targets = (torch.from_numpy(x) for x in rows.batch(model))
    decoder = TorchDecoder(model).to(DTYPES[kind])
    optimizer = adam(decoder.parameters())

    def work():
        optimizer.zero_grad(set_to_none=True)
        decoder.loss(tokens, targets).backward()
        optimizer.step()

    def gradients(module):
        module.zero_grad(set_to_none=True)
        module.loss(tokens, targets).backward()
        return [p.grad.double() for p in module.parameters()]

    def deviation():
        exact = gradients(copy.deepcopy(decoder).double())
        got = gradients(decoder)
        return float(max((a - b).abs().max() for a, b in zip(got, exact)) / max(b.abs().max() for b in exact))

    return work, deviation


def generation(cached, kind):
    weights, prompt = (torch.from_numpy(x).to(DTYPES[kind]) for x in rows.toy_weights())
    layers, width, heads = rows.TOY
    total = rows.PROMPT + rows.TOKENS
    fused = [torch.cat(list(weights[layer, :3]), 1) for layer in range(layers)]

    def run(x, keys, values, at):
        n = len(x)
        for layer in range(layers):
            q, k, v = (part.unflatten(-1, (heads, -1)).transpose(0, 1) for part in (x @ fused[layer]).chunk(3, -1))
            keys[layer, :, at:at + n], values[layer, :, at:at + n] = k, v
            seen = None
            if n > 1 and at > 0:
                seen = torch.ones(n, at + n, dtype=torch.bool).tril(at)
            mixed = functional.scaled_dot_product_attention(
                q[None], keys[None, layer, :, :at + n], values[None, layer, :, :at + n], attn_mask=seen,
                is_causal=n > 1 and at == 0)[0]
            x = x + mixed.transpose(0, 1).reshape(n, width) @ weights[layer, 3]
        return x

    @torch.inference_mode()
    def generate(cached):
        keys, values = torch.empty(2, layers, heads, total, width // heads, dtype=DTYPES[kind])
        sequence, at = prompt, 0
        for _ in range(rows.TOKENS):
            new = run(sequence[at:], keys, values, at)[-1:]
            at = len(sequence) if cached else 0
            sequence = torch.cat([sequence, new / new.square().mean().sqrt()])
        return sequence

    return lambda: generate(cached), lambda: float((generate(True) - generate(False)).abs().max())


def make(name):
    what, which, kind = name.split("/")[:3]
    if what == "attention":
        problem = rows.Attention(name)
        return None if problem.grouped else attention(problem)
    if what == "step":
        return step(which, kind)
    return generation(which == "cache", kind)


def describe(threads):
    torch.set_num_threads(threads)
    return f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})" if hasattr(
        torch.backends, "cpu") else f"PyTorch {torch.__version__}"
