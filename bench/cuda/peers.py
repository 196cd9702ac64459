# SPDX-License-Identifier: BSL-1.0
"""peers.py ROWS: the rows of bench/cuda with PyTorch's times beside them, eager and by torch.compile, same sizes, same
GPU. A row that PyTorch has no counterpart for stays as it is."""
import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F


def milliseconds(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed(calls):
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / calls

    for _ in range(5):
        work()
    calls = max(1, min(1000, int(20 / max(timed(1), 1e-3))))
    rounds = sorted(timed(calls) for _ in range(7))
    return rounds[len(rounds) // 2]


def normals(*shape, dtype=torch.float32, grad=False):
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def both_ways(f, *inputs):
    """Forward and backward, with a cotangent of ones' shape."""
    ct = torch.randn_like(f(*inputs))
    wanted = [x for x in inputs if x.requires_grad]
    return lambda g: lambda: torch.autograd.grad(g(*inputs), wanted, ct)


def step_of(model, x, y, optimizer):
    def step(m):
        def one():
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(m(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()
        return one
    return step


def cases():
    """name -> (function, how to call it: f -> work)."""
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        a, x, b, r = (normals(100_000_000, dtype=dtype, grad=True) for _ in range(4))

        def gelu(a, x, b, r):
            return F.gelu(a * x + b) + r

        def forward(g, inputs=(a, x, b, r)):
            def work():
                with torch.no_grad():
                    g(*inputs)
            return work

        yield f"gelu(a x + b) + r, {name}", gelu, forward
        yield f"gelu(a x + b) + r with gradients, {name}", gelu, both_ways(gelu, a, x, b, r)
        del a, x, b, r
    x = normals(8192, 8192, grad=True)
    w, b = normals(8192, grad=True), normals(8192, grad=True)

    def calls(*inputs):
        def how(g):
            def work():
                with torch.no_grad():
                    g(*inputs)
            return work
        return how

    softmax = lambda x: torch.softmax(x, -1)
    norm = lambda x, w, b: F.layer_norm(x, (8192,), w, b)
    yield "softmax", softmax, calls(x)
    yield "softmax with gradient", softmax, both_ways(softmax, x)
    yield "layer norm", norm, calls(x, w, b)
    yield "layer norm with gradients", norm, both_ways(norm, x, w, b)
    logits = normals(8192, 32000, grad=True)
    labels = torch.randint(32000, (8192,), device="cuda")
    entropy = lambda z: F.cross_entropy(z, labels)
    yield "cross entropy with gradient", entropy, both_ways(entropy, logits)
    del logits
    line = normals(1 << 24)
    yield "sum of 2^24", torch.sum, calls(line)
    yield "argsort of 2^24", lambda x: torch.argsort(x, stable=True), calls(line)
    yield "cumsum of rows of 4096", lambda x: torch.cumsum(x, 1), calls(normals(4096, 4096))
    yield "2^24 normal numbers", torch.randn_like, calls(line)
    for m, n, k, name, dtype in ((4096, 4096, 4096, "4096 cubed, f32", torch.float32),
                                 (4096, 4096, 4096, "4096 cubed, bf16", torch.bfloat16),
                                 (8192, 1024, 4096, "8192 x 4096 x 1024, bf16", torch.bfloat16),
                                 (256, 256, 256, "256 cubed, f32", torch.float32)):
        p, q = normals(m, k, dtype=dtype), normals(k, n, dtype=dtype)
        for how in ("cuBLASLt", "own tiles"):
            yield f"{name}, {how}", torch.matmul, calls(p, q)
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        x, w = normals(32, 64, 56, 56, dtype=dtype, grad=True), normals(64, 64, 3, 3, dtype=dtype, grad=True)
        conv = lambda x, w: F.conv2d(x, w, padding=1)
        yield f"3x3, 64 channels of 56 x 56, 32 pictures, {name}", conv, calls(x, w)
        yield f"3x3, 64 channels of 56 x 56, 32 pictures, with gradients, {name}", conv, both_ways(conv, x, w)
    q, k, v = (normals(4, 32, 2048, 64, grad=True) for _ in range(3))
    attention = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    yield "B4 H32 T2048 D64 causal, f32", attention, calls(q, k, v)
    yield "B4 H32 T2048 D64 causal with gradients, f32", attention, both_ways(attention, q, k, v)
    del q, k, v

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(27, 10)
            self.layers = nn.Sequential(nn.Linear(30, 200, bias=False), nn.Tanh(), nn.Linear(200, 200, bias=False),
                                        nn.Tanh(), nn.Linear(200, 27))

        def forward(self, x):
            return self.layers(self.embedding(x).flatten(1))

    model = Words().cuda()
    x, y = torch.randint(27, (32, 3), device="cuda"), torch.randint(27, (32,), device="cuda")
    yield "words, 32 contexts", model, step_of(model, x, y, torch.optim.SGD(model.parameters(), lr=0.1))
    y = torch.randint(10, (128,), device="cuda")
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    adam = lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3, fused=True)
    yield "perceptron 784-512-512-10, batch 128", model, step_of(model, normals(128, 784), y, adam(model))
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.MaxPool2d(2),
                          nn.ReLU(), nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    yield "LeNet 32-64, batch 128", model, step_of(model, normals(128, 1, 28, 28), y, adam(model))


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    by_name = {row["case"]: row for row in rows}
    found = {}
    for name, f, how in cases():
        if name not in by_name:
            continue
        times = {"torch": milliseconds(how(f))}
        try:
            times["torch.compile"] = milliseconds(how(torch.compile(f, mode="max-autotune-no-cudagraphs")))
        except Exception as e:  # what it does not take
            print(f"peers.py: {name}: {e}", file=sys.stderr)
        found[name] = times
    for row in rows:
        times = found.get(row["case"])
        if not times:
            print(json.dumps(row))
            continue
        for peer, ms in times.items():
            ratio = row["ours_ms"] / ms if math.isfinite(ms) and ms > 0 else None
            print(json.dumps({**row, "peer": f"{peer} {torch.__version__}", "peer_ms": ms, "ratio": ratio}))


main()
