"""A decoder's training step in NumPy as one writes it by hand: whole arrays, one product a layer, the scores of all
heads at once, exact backward, Adam on every array."""
import numpy as np

from rows import CONTEXT, SHAPES


def norm(x, gain, bias):
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    normalized = centred * inverse
    return normalized * gain + bias, (normalized, inverse)


def norm_backward(dy, gain, saved):
    normalized, inverse = saved
    dn = dy * gain
    dx = inverse * (dn - dn.mean(-1, keepdims=True) - normalized * (dn * normalized).mean(-1, keepdims=True))
    return dx, (dy * normalized).sum((0, 1)), dy.sum((0, 1))


def linear_backward(dy, x, weight):
    flat = dy.reshape(-1, dy.shape[-1])
    return dy @ weight.T, x.reshape(-1, x.shape[-1]).T @ flat, flat.sum(0)


class NumpyDecoder:
    def __init__(self, model, dtype):
        self.V, self.C, self.H, self.L, self.F, _, self.T, self.first = SHAPES[model]
        random = np.random.default_rng(0)

        def matrix(inputs, outputs):
            return (random.standard_normal((inputs, outputs)) / np.sqrt(inputs)).astype(dtype)

        C, F, V = self.C, self.F, self.V
        p = {"token": matrix(V, C), "position": matrix(CONTEXT[model], C), "out": matrix(C, V),
             "out.bias": np.zeros(V, dtype), "norm.gain": np.ones(C, dtype), "norm.bias": np.zeros(C, dtype)}
        for layer in range(self.L):
            for name, (inputs, outputs) in {"qkv": (C, 3 * C), "o": (C, C), "up": (C, F), "down": (F, C)}.items():
                p[f"{layer}.{name}"], p[f"{layer}.{name}.bias"] = matrix(inputs, outputs), np.zeros(outputs, dtype)
            for name in ("n1", "n2"):
                p[f"{layer}.{name}.gain"], p[f"{layer}.{name}.bias"] = np.ones(C, dtype), np.zeros(C, dtype)
        self.p = p
        self.moments = {name: (np.zeros_like(x), np.zeros_like(x)) for name, x in p.items()}
        self.hidden = np.triu(np.ones((self.T, self.T), bool), 1)
        self.steps = 0

    def heads(self, x):
        return x.reshape(*x.shape[:2], self.H, -1).swapaxes(1, 2)

    def merged(self, x):
        return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)

    def block(self, x, i):
        p, C = self.p, self.C
        n1, saved1 = norm(x, p[f"{i}.n1.gain"], p[f"{i}.n1.bias"])
        qkv = n1 @ p[f"{i}.qkv"] + p[f"{i}.qkv.bias"]
        q, k, v = (self.heads(qkv[..., part * C:(part + 1) * C]) for part in range(3))
        scores = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
        scores[..., self.hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        attended = self.merged(weights @ v)
        middle = x + attended @ p[f"{i}.o"] + p[f"{i}.o.bias"]
        n2, saved2 = norm(middle, p[f"{i}.n2.gain"], p[f"{i}.n2.bias"])
        hidden = np.maximum(n2 @ p[f"{i}.up"] + p[f"{i}.up.bias"], 0)
        out = middle + hidden @ p[f"{i}.down"] + p[f"{i}.down.bias"]
        return out, (n1, saved1, q, k, v, weights, attended, n2, saved2, hidden)

    def block_backward(self, dout, i, saved, grads):
        p = self.p
        n1, saved1, q, k, v, weights, attended, n2, saved2, hidden = saved

        def linear(name, dy, x):
            dx, grads[f"{i}.{name}"], grads[f"{i}.{name}.bias"] = linear_backward(dy, x, p[f"{i}.{name}"])
            return dx

        def normed(name, dy, saved_norm):
            dx, grads[f"{i}.{name}.gain"], grads[f"{i}.{name}.bias"] = norm_backward(dy, p[f"{i}.{name}.gain"],
                                                                                    saved_norm)
            return dx

        dmiddle = dout + normed("n2", linear("up", linear("down", dout, hidden) * (hidden > 0), n2), saved2)
        dheads = self.heads(linear("o", dmiddle, attended))
        dweights = dheads @ v.swapaxes(-1, -2)
        dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True))
        dscores *= q.dtype.type(q.shape[-1] ** -0.5)
        dqkv = np.concatenate([self.merged(dscores @ k), self.merged(dscores.swapaxes(-1, -2) @ q),
                               self.merged(weights.swapaxes(-1, -2) @ dheads)], -1)
        return dmiddle + normed("n1", linear("qkv", dqkv, n1), saved1)

    def gradients(self, tokens, targets):
        p, grads, saved = self.p, {}, []
        x = p["token"][tokens] + p["position"][:self.T]
        for i in range(self.L):
            x, kept = self.block(x, i)
            saved.append(kept)
        n, saved_norm = norm(x[:, self.first:], p["norm.gain"], p["norm.bias"])  # positions without loss go no further
        logits = n @ p["out"] + p["out.bias"]
        dlogits = np.exp(logits - logits.max(-1, keepdims=True))
        dlogits /= dlogits.sum(-1, keepdims=True)
        rows = tuple(np.indices(n.shape[:2]))
        dlogits[(*rows, targets[:, self.first:])] -= 1
        dlogits /= n.shape[0] * n.shape[1]
        dn, grads["out"], grads["out.bias"] = linear_backward(dlogits, n, p["out"])
        dx = np.zeros_like(x)
        dx[:, self.first:], grads["norm.gain"], grads["norm.bias"] = norm_backward(dn, p["norm.gain"], saved_norm)
        for i in reversed(range(self.L)):
            dx = self.block_backward(dx, i, saved[i], grads)
        grads["token"], grads["position"] = np.zeros_like(p["token"]), np.zeros_like(p["position"])
        np.add.at(grads["token"], tokens, dx)
        grads["position"][:self.T] = dx.sum(0)
        return grads

    def step(self, tokens, targets):
        self.steps += 1
        for name, g in self.gradients(tokens, targets).items():
            m, v = self.moments[name]
            m *= 0.9
            m += 0.1 * g
            v *= 0.999
            v += 0.001 * g * g
            self.p[name] -= 1e-3 * (m / (1 - 0.9**self.steps)) / (np.sqrt(v / (1 - 0.999**self.steps)) + 1e-8)
