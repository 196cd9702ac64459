#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""ops_table.py [--output FILE] [--check]: the tables of all ops, from the comments of their definitions.

First the primitive ops, a row for each struct with a `name` in include/dfdx/ops: shapes, dtypes, value and gradient,
source. Then the functions that are made of them, a row for each that include/dfdx/vocabulary has for users; their
gradients are those of what they are made of, and where `value` is empty `what it is` says it. With --check it says
what is missing, and fails if anything is: a section of a primitive op, the comment of a function or its shapes, dtypes
or source, or a name of CATALOGUE.
"""
import argparse
import pathlib
import re
import sys

OPS = pathlib.Path(__file__).resolve().parent.parent / "include" / "dfdx" / "ops"
VOCABULARY = OPS.parent / "vocabulary"
SECTIONS = ("Math", "Shapes", "Dtypes", "Source")
OF_FUNCTIONS = ("Shapes", "Dtypes", "Source")  # Math too, unless the first sentence is the formula

# Headers of what functions are written with.
MACHINERY = ("apply.hpp", "bind.hpp", "call.hpp", "dense.hpp", "number.hpp", "on_tape.hpp", "rebase.hpp",
             "run_attention.hpp")

# What the library promises to have.
CATALOGUE = """
add sub mul div neg reciprocal pow square floor_divide fmod remainder abs sign floor ceil round trunc clip clamp lerp hypot
atan2 maximum minimum exp exp2 expm1 log log2 log10 log1p logaddexp sqrt rsqrt cbrt
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma digamma
equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not where masked_fill isnan isinf
isfinite
relu relu6 leaky_relu prelu elu celu selu gelu gelu_tanh quick_gelu silu mish softplus softsign sigmoid log_sigmoid
hardsigmoid hardswish hardtanh tanhshrink softshrink hardshrink threshold glu geglu swiglu softmax softmin log_softmax
sum mean prod max min amax amin argmax argmin var std norm logsumexp cumsum cumprod cummax any all count_nonzero median
quantile
matmul dot outer mm bmm addmm baddbmm linear bilinear einsum tril triu diag trace cholesky solve_triangular solve inverse
det logdet qr eigh svd pinv lstsq matrix_rank matrix_norm
matrix_exp cdist
reshape view flatten transpose permute swapaxes squeeze unsqueeze expand tile repeat_interleave flip roll concat cat
stack split chunk slice select pad unfold fold pixel_shuffle meshgrid
gather scatter scatter_add index_select index_add take embedding embedding_bag one_hot topk sort argsort searchsorted
bucketize unique nonzero
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool2d_with_indices
avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d lp_pool1d lp_pool2d
interpolate grid_sample
batch_norm layer_norm rms_norm group_norm instance_norm local_response_norm normalize
scaled_dot_product_attention rope alibi_bias
mse_loss l1_loss smooth_l1_loss huber_loss nll_loss cross_entropy bce_loss bce_with_logits kl_div poisson_nll_loss
gaussian_nll_loss cosine_embedding_loss cosine_similarity triplet_margin_loss margin_ranking_loss hinge_embedding_loss
ctc_loss
uniform normal randn bernoulli multinomial dropout permutation gumbel
""".split()


def sections_of(comment):
    """The summary of a comment, and its sections by name."""
    summary, sections, current = [], {}, None
    for text in comment:
        section = re.match(r"(Math|Shapes|Dtypes|Errors|Source|Example|Cost)\s+(.*)", text)
        if section:
            current = section[1]
            sections[current] = section[2]
        elif current and text:
            sections[current] += " " + text
        elif text:
            summary.append(text)
    return " ".join(summary), sections


def definitions(path: pathlib.Path):
    """Yields (name, summary, {section: text}) of each op of a header."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        struct = re.match(r"struct (\w+)", line)
        if not struct or line.rstrip().endswith(";"):
            continue
        end = next((n for n in range(number, len(lines)) if lines[n].startswith("};")), number)
        named = next((m for n in range(number, end) if (m := re.search(r'\bname = "(\w+)"', lines[n]))), None)
        if not named:
            continue
        first = number
        while first > 0 and (lines[first - 1].startswith("///") or lines[first - 1].startswith("template")):
            first -= 1
        yield named[1], *sections_of(l[3:].strip() for l in lines[first:number] if l.startswith("///"))


def functions(path: pathlib.Path):
    """Yields (name, summary, {section: text}) of each function that a header has for users, once."""
    inside, fresh, comment, seen = False, True, [], set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("namespace detail") or line.startswith("namespace op"):
            inside = True
        elif line.startswith("}  // namespace detail") or line.startswith("}  // namespace op"):
            inside, comment = False, []
        elif inside:
            continue
        elif line.startswith("///"):
            comment = comment * (not fresh) + [line[3:].strip()]
            fresh = False
        else:
            fresh = True
            declared = re.match(r"(?:constexpr|inline|auto|bool|Array|Unique|SparseRows|A&|T(?= )) ?(.*)", line)
            rest = re.sub(r"decltype\(applied<.*?>\(\)\)::type|operator|requires.*", "", declared[1]) if declared else ""
            name = re.search(r"(?:^|[\s&])([a-z]\w*)\(", rest)
            if name and name[1] not in seen and not rest.startswith(("struct", "enum")) and "::" not in rest.split("(")[0]:
                seen.add(name[1])
                yield name[1], *sections_of(comment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows, missing, primitive = [], [], {}
    for path in sorted(OPS.glob("*.hpp")):
        for name, summary, sections in definitions(path):
            missing += [f"{path.name}: {name} has no {s}" for s in SECTIONS if s not in sections]
            primitive[name] = sections.get("Math", "")
            cells = [f"`{name}`", re.sub(r"^\w+ - ", "", summary)] + [sections.get(s, "") for s in SECTIONS]
            rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    made = {}
    for path in sorted(set(VOCABULARY.glob("*.hpp")) - {VOCABULARY / header for header in MACHINERY}):
        for name, summary, sections in functions(path):
            # What is no more than a primitive op has no comment of its own.
            if name in primitive and not re.search(rf"\b{name}\b", summary.split(" - ")[0]):
                continue
            # One comment may stand for several functions, but names them: conv2d also conv1d, and what gives indices too.
            stem = re.sub(r"[123]d(_with_indices)?$", "", name)
            if not re.search(rf"\b{stem}", " ".join([summary, *sections.values()])):
                missing.append(f"{path.name}: {name} has no comment")
            else:
                missing += [f"{path.name}: {name} has no {s}" for s in OF_FUNCTIONS if s not in sections]
            sections.setdefault("Math", primitive.get(name, ""))
            cells = [f"`{name}`", summary] + [sections.get(s, "") for s in SECTIONS] + [path.name]
            made[name, path.name] = "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"
    known = {*primitive, *(name for name, _ in made)}
    missing += [f"no op or function {name}" for name in CATALOGUE if name not in known]
    table = "\n".join(["| op | what it is | value, gradient | shapes | dtypes | source |", "|---|---|---|---|---|---|",
                       *sorted(rows), "", "| function | what it is | value | shapes | dtypes | source | header |",
                       "|---|---|---|---|---|---|---|", *(made[key] for key in sorted(made))]) + "\n"
    if options.output:
        options.output.write_text(table, encoding="utf-8")
    elif not options.check:
        sys.stdout.write(table)
    for text in missing:
        print(text, file=sys.stderr)
    print(f"ops_table: {len(rows)} ops, {len(made)} functions made of them, {len(missing)} sections or names missing",
          file=sys.stderr)
    return 1 if options.check and (missing or not rows) else 0


if __name__ == "__main__":
    sys.exit(main())
