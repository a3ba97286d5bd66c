"""The population dynamics of lab specialize in vectorized NumPy: the peer of its speed.

The same flow dK/dt = -dE/dK, integrator (Dormand-Prince 5(4), same error control),
number of samples and end time as BenchmarkRun of lab/specialize. Arrays are laid out
for NumPy (samples last, operations in place, one BLAS product for all scores).
Prints one line of JSON.
"""
import argparse
import json
import time

import numpy as np

A = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
     [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
     [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
     [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]
E = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


class Flow:
    def __init__(self, activation, L, H, F, variances, N, seed):
        rng = np.random.default_rng(seed)
        self.activation, self.L, self.H, self.P, self.N = activation, L, H, F + H, N
        x = rng.standard_normal((F + H, L, N))
        x[:F, 0] += rng.standard_normal((F, N)) * np.sqrt(variances)[:, None]
        self.x = np.ascontiguousarray(x).reshape(F + H, L * N)
        self.chi = np.empty((H, L * N))
        self.tmp = np.empty((H, L, N))
        self.evals = 0

    def derivative(self, state):
        """Returns -dE/dK, -dE/db as one vector."""
        self.evals += 1
        L, H, P, N, tmp = self.L, self.H, self.P, self.N, self.tmp
        K, b = state[:H * P].reshape(H, P), state[H * P:]
        np.matmul(K, self.x, out=self.chi)
        p = self.chi.reshape(H, L, N)
        if self.activation != "softmax":
            p += b[:, None, None]
        a, extra = 1.0, 0.0
        if self.activation == "bayes":
            p -= p.max(axis=(0, 1))
        elif self.activation == "softmax1":
            top = np.maximum(p.max(axis=1), 0)
            p -= top[:, None]
            extra = np.exp(-top)
        else:
            a = 1 / H
            p -= p.max(axis=1)[:, None]
        np.exp(p, out=p)
        if self.activation == "bayes":
            p /= p.sum(axis=(0, 1))
        else:
            p /= (p.sum(axis=1) + extra)[:, None]
        w = p.sum(axis=0)
        w *= a
        w[0] -= 1
        self.loss = np.vdot(w, w) / N
        w *= 2 * a / N
        np.multiply(p, w, out=tmp)
        inner = tmp.sum(axis=(0, 1)) if self.activation == "bayes" else tmp.sum(axis=1)[:, None]
        np.subtract(w, inner, out=tmp)
        p *= tmp
        out = np.empty_like(state)
        out[:H * P] = -(self.chi @ self.x.T).ravel()
        out[H * P:] = 0 if self.activation == "softmax" else -p.sum(axis=(1, 2))
        return out

    def run(self, state, end, tol, atol=0.01):
        k = [self.derivative(state)]
        size = np.abs(state) + atol
        h = min(end, 0.01 * np.sqrt(max(np.sum((state / size) ** 2), 1e-4) / np.sum((k[0] / size) ** 2)))
        t, steps = 0.0, 0
        while t < end:
            last = t + h * (1 + 1e-12) >= end
            if last:
                h = end - t
            k = k[:1]
            for row in A[1:]:
                trial = state + h * sum(c * v for c, v in zip(row, k))
                k.append(self.derivative(trial))
            error = h * sum(c * v for c, v in zip(E, k)) / (tol * (np.maximum(np.abs(state), np.abs(trial)) + atol))
            worst = np.sqrt(np.mean(error ** 2))
            if worst <= 1:
                t, state, steps = (end if last else t + h), trial, steps + 1
                k = [k[6]]
            h *= min(max(0.9 * max(worst, 1e-10) ** -0.2, 0.2), 5)
        return state, steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--activation", default="softmax")
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--time", type=float, default=600)
    args = parser.parse_args()
    L, H, F = 5, 4, 2
    flow = Flow(args.activation, L, H, F, np.array([8.0, 3.0]), args.samples, 1)
    rng = np.random.default_rng(2)
    K = np.hstack([0.3 / np.sqrt(1000) * rng.standard_normal((H, F)), 0.3 * np.eye(H)])
    start = time.perf_counter()
    state, steps = flow.run(np.concatenate([K.ravel(), np.zeros(H)]), args.time, 1e-5)
    seconds = time.perf_counter() - start
    flow.derivative(state)
    print(json.dumps({"seconds": seconds, "loss": flow.loss, "steps": steps, "evaluations": flow.evals - 1}))


if __name__ == "__main__":
    main()
