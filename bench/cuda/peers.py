# SPDX-License-Identifier: BSL-1.0
"""peers.py ROWS SECONDS: the rows of bench/cuda with PyTorch's times beside them, eager and by torch.compile, same sizes,
same GPU. A row that PyTorch has no counterpart for, or that it has not come to after so many seconds, stays as it is."""
import contextlib
import json
import math
import re
import sys
import time

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


def step_of(model, x, y, optimizer, precision=contextlib.nullcontext):
    def step(m):
        def one():
            optimizer.zero_grad(set_to_none=True)
            with precision():
                loss = F.cross_entropy(m(x).flatten(0, -2), y.flatten())
            loss.backward()
            optimizer.step()
            return loss.item()
        return one
    return step


def calls(*inputs):
    def how(g):
        def work():
            with torch.no_grad():
                g(*inputs)
        return work
    return how


def bf16():
    return torch.autocast("cuda", torch.bfloat16)


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


SMALL = "reduce-overhead"  # torch.compile with CUDA graphs


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(27, 10)
        self.layers = nn.Sequential(nn.Linear(30, 200, bias=False), nn.Tanh(), nn.Linear(200, 200, bias=False),
                                    nn.Tanh(), nn.Linear(200, 27))

    def forward(self, x):
        return self.layers(self.embedding(x).flatten(1))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x):
        h = self.ln_f(self.blocks(self.wte(x) + self.wpe.weight))
        return F.linear(h, self.wte.weight)


def training():
    x, y = torch.randint(27, (32, 3), device="cuda"), torch.randint(27, (32,), device="cuda")
    model = Words().cuda()
    yield "words, 32 contexts", model, step_of(model, x, y, torch.optim.SGD(model.parameters(), lr=0.1)), SMALL
    y = torch.randint(10, (128,), device="cuda")
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    yield "perceptron 784-512-512-10, batch 128", model, step_of(model, normals(128, 784), y, adam(model)), SMALL
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.MaxPool2d(2),
                          nn.ReLU(), nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    yield "LeNet 32-64, batch 128", model, step_of(model, normals(128, 1, 28, 28), y, adam(model)), SMALL
    model = Gpt(50304, 1024, 768, 12, 12).cuda()
    x, y = (torch.randint(50257, (8, 1024), device="cuda") for _ in range(2))
    yield "GPT-2 124M, 8 x 1024 tokens, bf16", model, step_of(model, x, y, adam(model), bf16), None


def products():
    for m, n, k, name, dtype in ((4096, 4096, 4096, "4096 cubed, f32", torch.float32),
                                 (4096, 4096, 4096, "4096 cubed, bf16", torch.bfloat16),
                                 (8192, 8192, 8192, "8192 cubed, bf16", torch.bfloat16),
                                 (8192, 1024, 4096, "8192 x 4096 x 1024, bf16", torch.bfloat16),
                                 (256, 256, 256, "256 cubed, f32", torch.float32)):
        p, q = normals(m, k, dtype=dtype), normals(k, n, dtype=dtype)
        for how in ("", ", cuBLASLt", ", cuBLASLt, tf32"):
            torch.backends.cuda.matmul.allow_tf32 = how.endswith("tf32")
            yield f"{name}{how}", torch.matmul, calls(p, q), None
        torch.backends.cuda.matmul.allow_tf32 = False
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        x, w = normals(32, 64, 56, 56, dtype=dtype, grad=True), normals(64, 64, 3, 3, dtype=dtype, grad=True)
        conv = lambda x, w: F.conv2d(x, w, padding=1)
        yield f"3x3, 64 channels of 56 x 56, 32 pictures, {name}", conv, calls(x, w), None
        yield f"3x3, 64 channels of 56 x 56, 32 pictures, with gradients, {name}", conv, both_ways(conv, x, w), None
    attention = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    for length, size, name, dtype in ((4096, 128, "B4 H32 T4096 D128 causal, bf16", torch.bfloat16),
                                      (2048, 64, "B4 H32 T2048 D64 causal, f32", torch.float32)):
        q, k, v = (normals(4, 32, length, size, dtype=dtype, grad=True) for _ in range(3))
        yield name, attention, calls(q, k, v), None
        yield f"{name}, with gradients", attention, both_ways(attention, q, k, v), None


def memory():
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        inputs = [normals(100_000_000, dtype=dtype, grad=True) for _ in range(4)]
        gelu = lambda a, x, b, r: F.gelu(a * x + b) + r
        yield f"gelu(a x + b) + r, {name}", gelu, calls(*inputs), None
        yield f"gelu(a x + b) + r with gradients, {name}", gelu, both_ways(gelu, *inputs), None
        del inputs
    x = normals(8192, 8192, grad=True)
    w, b = normals(8192, grad=True), normals(8192, grad=True)
    for name, f, inputs in (("softmax", lambda x: torch.softmax(x, -1), (x,)),
                            ("layer norm", lambda x, w, b: F.layer_norm(x, (8192,), w, b), (x, w, b)),
                            ("RMS norm", lambda x, w: F.rms_norm(x, (8192,), w), (x, w))):
        yield name, f, calls(*inputs), None
        yield f"{name} with gradient" + "s" * (len(inputs) > 1), f, both_ways(f, *inputs), None
    for classes in (32000, 50257, 128256):
        logits = normals(8192, classes, grad=True)
        labels = torch.randint(classes, (8192,), device="cuda")
        entropy = lambda z, labels=labels: F.cross_entropy(z, labels)
        yield f"cross entropy of {classes} with gradient", entropy, both_ways(entropy, logits), None
        del logits
    line = normals(1 << 24)
    yield "sum of 2^24", torch.sum, calls(line), None
    yield "argsort of 2^24", lambda x: torch.argsort(x, stable=True), calls(line), None
    yield "cumsum of rows of 4096", lambda x: torch.cumsum(x, 1), calls(normals(4096, 4096)), None
    yield "2^24 normal numbers", torch.randn_like, calls(line), None


def llama():
    try:
        from transformers import LlamaConfig, LlamaForCausalLM, StaticCache
    except ImportError:
        return
    config = LlamaConfig(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                         num_attention_heads=32, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True,
                         max_position_embeddings=4096)
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(128256, (1, 2048), device="cuda")

    def prompt(m):
        def work():
            with torch.no_grad():
                m(tokens, logits_to_keep=1)
        return work

    def next_token(m):
        cache = StaticCache(config=config, max_batch_size=1, max_cache_len=2064, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            model(tokens[:, :1024], past_key_values=cache, logits_to_keep=1)
        at = torch.tensor([1024], device="cuda")

        def work():
            with torch.no_grad():
                m(tokens[:, :1], past_key_values=cache, cache_position=at, logits_to_keep=1)
        return work

    yield "Llama 1B, bf16, the next token after 1,024", model, next_token, SMALL
    yield "Llama 1B, bf16, a prompt of 2,048", model, prompt, None


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    # A peer has one way for what we have two for.
    also = ", (own tiles|without warpgroups|(products )?by warpgroups|kernels that begin early)"
    base = lambda row: re.sub(also, "", row["case"])
    wanted = {base(row) for row in rows}
    end = time.monotonic() + float(sys.argv[2])
    found = {}
    for cases in (training, products, memory, llama):
        for name, f, how, mode in cases():
            if name not in wanted:
                continue
            if time.monotonic() > end:
                print(f"peers.py: no time left for {name}", file=sys.stderr)
                continue
            times = found[name] = {}
            for peer, made in (("torch", lambda f=f: f),
                               ("torch.compile", lambda f=f, mode=mode: torch.compile(f, mode=mode))):
                try:
                    times[peer] = milliseconds(how(made()))
                except Exception as e:  # what it does not take
                    print(f"peers.py: {name}, {peer}: {e}", file=sys.stderr)
    for row in rows:
        times = found.get(base(row))
        if not times:
            print(json.dumps(row))
            continue
        for peer, ms in times.items():
            ratio = row["ours_ms"] / ms if math.isfinite(ms) and ms > 0 else None
            print(json.dumps({**row, "peer": f"{peer} {torch.__version__}", "peer_ms": ms, "ratio": ratio}))


main()
