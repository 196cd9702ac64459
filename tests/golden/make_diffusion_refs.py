#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""make_diffusion_refs.py OUTPUT [--seed N]: small diffusion models with random weights, and what diffusers computes.

It writes folders as diffusers itself lays them out, each with a refs.safetensors of inputs and results beside it:

  unet_sd1/, unet_sd2/   UNet2DConditionModel with the options of Stable Diffusion 1.5 and of 2.1
  vae/                   AutoencoderKL
  schedulers/NAME/       scheduler_config.json of DDIM, Euler, Euler ancestral and DPM-Solver++ with several options

Weights and inputs (in.NAME) are float32. Results are computed by diffusers' own code in float64 throughout, and stored
as NAME.f64; NAME.f32 is the same rounded, and NAME.run_f32 what diffusers gives in float32, as users run it. Of what
modules return on the way there is only mid.MODULE.f32. A scheduler's samples and scaled inputs have a first dimension
for the steps; its network is `model_output` below.
diffusers has a few places that are float32 whatever the model is (the sinusoids of the time, the betas and sigmas of
the schedulers, the softmax of some attentions); for the float64 results `in_double` and `in_float64` lift these too.

Needs torch (1.13 or newer), diffusers (tried with 0.27.2) and safetensors. Nothing is downloaded.
"""
import argparse
import contextlib
import json
import math
import pathlib
import sys

import diffusers
import numpy as np
import torch
from diffusers.models import attention_processor
from safetensors.torch import load_file, save_file

UNET = dict(
    sample_size=16,
    in_channels=4,
    out_channels=4,
    down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    layers_per_block=2,
    norm_num_groups=2,
)
# attention_head_dim is, in spite of its name, the number of heads.
UNET_SD1 = dict(UNET, block_out_channels=(4, 8, 12, 12), attention_head_dim=2, cross_attention_dim=24)
UNET_SD2 = dict(UNET, block_out_channels=(4, 8, 8, 8), attention_head_dim=(1, 2, 2, 2), cross_attention_dim=20,
                use_linear_projection=True)
VAE = dict(
    in_channels=3,
    out_channels=3,
    down_block_types=("DownEncoderBlock2D",) * 4,
    up_block_types=("UpDecoderBlock2D",) * 4,
    block_out_channels=(4, 8, 8, 8),
    layers_per_block=2,
    latent_channels=4,
    norm_num_groups=2,
    sample_size=32,
    scaling_factor=0.18215,
)

BETAS = dict(num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")
DDIM = dict(BETAS, timestep_spacing="leading", steps_offset=1, set_alpha_to_one=False, clip_sample=False)
EULER = dict(BETAS, steps_offset=1)
DPM = dict(BETAS, timestep_spacing="leading", steps_offset=1, algorithm_type="dpmsolver++", solver_order=2,
           solver_type="midpoint")
SCHEDULERS = {
    "ddim": ("DDIMScheduler", DDIM, (1, 4, 20)),
    "ddim_v": ("DDIMScheduler", dict(DDIM, prediction_type="v_prediction"), (1, 4, 20)),
    "euler_leading": ("EulerDiscreteScheduler", dict(EULER, timestep_spacing="leading"), (1, 4, 20)),
    "euler_leading_v": ("EulerDiscreteScheduler",
                        dict(EULER, timestep_spacing="leading", prediction_type="v_prediction"), (1, 4, 20)),
    "euler_linspace": ("EulerDiscreteScheduler", dict(EULER, timestep_spacing="linspace"), (1, 4, 20)),
    "euler_linspace_v": ("EulerDiscreteScheduler",
                         dict(EULER, timestep_spacing="linspace", prediction_type="v_prediction"), (4,)),
    "euler_trailing": ("EulerDiscreteScheduler", dict(EULER, timestep_spacing="trailing"), (1, 4, 20)),
    "euler_trailing_v": ("EulerDiscreteScheduler",
                         dict(EULER, timestep_spacing="trailing", prediction_type="v_prediction"), (4,)),
    "euler_ancestral_trailing": ("EulerAncestralDiscreteScheduler", dict(EULER, timestep_spacing="trailing"), (1, 4)),
    "euler_ancestral_leading": ("EulerAncestralDiscreteScheduler", dict(EULER, timestep_spacing="leading"), (4, 20)),
    "euler_ancestral_leading_v": ("EulerAncestralDiscreteScheduler",
                                  dict(EULER, timestep_spacing="leading", prediction_type="v_prediction"), (4,)),
    "dpm": ("DPMSolverMultistepScheduler", DPM, (1, 4, 20)),
    "dpm_v": ("DPMSolverMultistepScheduler", dict(DPM, prediction_type="v_prediction"), (4, 20)),
    "dpm_karras": ("DPMSolverMultistepScheduler", dict(DPM, use_karras_sigmas=True), (1, 4, 20)),
    "dpm_sigma_min": ("DPMSolverMultistepScheduler", dict(DPM, final_sigmas_type="sigma_min"), (4, 20)),
}


class Changed:
    """The module `of`, but for the names in `changes`."""

    def __init__(self, of, **changes):
        self._of = of
        self.__dict__.update(changes)

    def __getattr__(self, name):
        return getattr(self._of, name)


@contextlib.contextmanager
def in_double(*modules):
    """Runs the code of `modules` with float64 wherever it says float32, and where it relies on torch's default."""
    kept = [(module, name, getattr(module, name)) for module in modules for name in ("torch", "np")
            if hasattr(module, name)]
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    for module, name, value in kept:
        setattr(module, name, Changed(value, float32=value.float64))
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        torch.set_default_dtype(default)


def baddbmm(start, a, b, beta, alpha):
    """torch.baddbmm. That of torch 1.13 multiplies uninitialized memory by beta = 0, which is NaN if NaN was there."""
    product = alpha * torch.bmm(a, b)
    return product + beta * start if beta else product


def module_of(thing):
    return sys.modules[thing.__module__]


def save(path, tensors):
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, str(path))


def make_every_parameter_matter(model):
    """Biases and norms away from 0 and 1, no weight 0, and attentions that are far from uniform."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
            elif not parameter.any():
                parameter += 0.1 * torch.randn_like(parameter)
            if name.endswith(("to_q.weight", "to_k.weight")):
                parameter *= 2.5


def check_every_parameter_matters(model, outputs):
    """Fails if some parameter has no influence on `outputs`, which were computed with gradients."""
    parameters = dict(model.named_parameters())
    total = sum((output * torch.randn_like(output)).sum() for output in outputs)
    gradients = torch.autograd.grad(total, list(parameters.values()))
    for (name, parameter), gradient in zip(parameters.items(), gradients):
        largest = gradient.abs().max().item()
        # A key's bias adds the same to all scores of a query: the softmax does not see it.
        if largest < 1e-6 and not name.endswith("to_k.bias"):
            raise SystemExit(f"{name}: no influence (largest gradient {largest})")


def in_float64(model):
    """A copy of `model` in float64 whose attentions stay in float64."""
    double = type(model).from_config(model.config).double().eval()
    double.load_state_dict({name: tensor.double() for name, tensor in model.state_dict().items()})
    for module in double.modules():
        if isinstance(module, attention_processor.Attention):
            module.upcast_attention = module.upcast_softmax = False
    return double


def watch(stages):
    """Keeps what each module in `stages` (name -> module) returns, in the dict that it gives back with the hooks."""
    seen = {}

    def keeper(name):
        def keep(_module, _inputs, output):
            seen[name] = output[0] if isinstance(output, tuple) else output
        return keep

    return seen, [module.register_forward_hook(keeper(name)) for name, module in stages.items()]


def write_unet(folder, options):
    model = diffusers.UNet2DConditionModel(**options).eval()
    make_every_parameter_matter(model)
    model.save_pretrained(folder, safe_serialization=True)
    double = in_float64(model)

    context = torch.randn(2, 7, options["cross_attention_dim"])
    sample = torch.randn(2, 4, 16, 16)
    cases = {  # the timestep as diffusers is called with it
        "int": (sample, 981, context),
        "float": (sample, 500.25, context),
        "per_batch": (sample, torch.tensor([1, 741]), context),
        "odd": (torch.randn(1, 4, 10, 12), 261, context[:1]),  # not a multiple of 8: the upsamplers are told their size
    }
    refs = {}
    for case, (x, t, text) in cases.items():
        stages = {}
        if case == "int":
            stages = {"time_proj": double.time_proj, "time_embedding": double.time_embedding,
                      "conv_in": double.conv_in, "mid_block": double.mid_block,
                      "conv_norm_out": double.conv_norm_out}
            stages |= {f"down_blocks.{i}": block for i, block in enumerate(double.down_blocks)}
            stages |= {f"up_blocks.{i}": block for i, block in enumerate(double.up_blocks)}
        seen, hooks = watch(stages)
        with in_double(module_of(diffusers.models.embeddings.get_timestep_embedding)):
            y = double(x.double(), t, text.double()).sample
        for hook in hooks:
            hook.remove()
        if case == "int":
            check_every_parameter_matters(double, [y])
        with torch.no_grad():
            y_f32 = model(x, t, text).sample
        assert (y - y_f32).abs().max() < 1e-5 * y.abs().max()
        refs[f"{case}.in.sample"] = x
        refs[f"{case}.in.timestep"] = torch.as_tensor(t, dtype=torch.float32).reshape(-1)
        refs[f"{case}.in.encoder_hidden_states"] = text
        refs[f"{case}.out.sample.f64"] = y
        refs[f"{case}.out.sample.f32"] = y.float()
        refs[f"{case}.out.sample.run_f32"] = y_f32
        refs |= {f"{case}.mid.{name}.f32": value.float() for name, value in seen.items()}
    save(folder / "refs.safetensors", refs)


def write_vae(folder, options):
    model = diffusers.AutoencoderKL(**options).eval()
    make_every_parameter_matter(model)
    model.save_pretrained(folder, safe_serialization=True)
    check_old_names(folder, model)
    double = in_float64(model)

    image = torch.randn(1, 3, 32, 32).clamp(-1, 1)
    latents = torch.randn(1, 4, 4, 4)  # what decode() takes: already divided by the scaling factor
    noise = torch.randn(1, 4, 4, 4)
    wide = torch.randn(2, 3, 16, 24).clamp(-1, 1)
    wide_latents = torch.randn(2, 4, 2, 3)

    stages = {}
    for name, half, blocks in (("encoder", double.encoder, double.encoder.down_blocks),
                               ("decoder", double.decoder, double.decoder.up_blocks)):
        kind = "down_blocks" if name == "encoder" else "up_blocks"
        stages |= {f"{name}.conv_in": half.conv_in, f"{name}.mid_block": half.mid_block,
                   f"{name}.mid_block.attentions.0": half.mid_block.attentions[0], f"{name}.conv_out": half.conv_out}
        stages |= {f"{name}.{kind}.{i}": block for i, block in enumerate(blocks)}
    stages |= {"post_quant_conv": double.post_quant_conv}
    seen, hooks = watch(stages)
    posterior = double.encode(image.double()).latent_dist
    decoded = double.decode(latents.double()).sample
    for hook in hooks:
        hook.remove()
    check_every_parameter_matters(double, [posterior.parameters, decoded])
    with torch.no_grad():
        wide_posterior = double.encode(wide.double()).latent_dist
        wide_decoded = double.decode(wide_latents.double()).sample
        posterior_f32 = model.encode(image).latent_dist
        decoded_f32 = model.decode(latents).sample
    assert (decoded - decoded_f32).abs().max() < 1e-5 * decoded.abs().max()

    refs = {"in.image": image, "in.latents": latents, "in.noise": noise, "wide.in.image": wide,
            "wide.in.latents": wide_latents, "out.mean.run_f32": posterior_f32.mean,
            "out.logvar.run_f32": posterior_f32.logvar, "out.image.run_f32": decoded_f32}
    outs = {"out.moments": posterior.parameters, "out.mean": posterior.mean, "out.logvar": posterior.logvar,
            # What Stable Diffusion calls the latents of an image.
            "out.latents": (posterior.mean + posterior.std * noise.double()) * options["scaling_factor"],
            "out.image": decoded, "wide.out.mean": wide_posterior.mean, "wide.out.logvar": wide_posterior.logvar,
            "wide.out.image": wide_decoded}
    for name, value in outs.items():
        refs |= {f"{name}.f64": value, f"{name}.f32": value.float()}
    refs |= {f"mid.{name}.f32": value.float() for name, value in seen.items()}
    save(folder / "refs.safetensors", refs)


OLD_NAMES = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}


def check_old_names(folder, model):
    """Published VAEs have other names for the attentions of the middle: diffusers must load these as the same model."""
    weights = folder / "diffusion_pytorch_model.safetensors"
    tensors = load_file(str(weights))
    old = {}
    for name, tensor in tensors.items():
        if ".attentions.0." in name:
            for new, before in OLD_NAMES.items():
                name = name.replace(f".{new}.", f".{before}.")
        old[name] = tensor
    try:
        save_file(old, str(weights), metadata={"format": "pt"})
        loaded = type(model).from_pretrained(folder, low_cpu_mem_usage=False).state_dict()
    finally:
        save_file(tensors, str(weights), metadata={"format": "pt"})
    assert old.keys() != tensors.keys() and loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def model_output(x, t):
    """Stands for a network: `x` is the scaled input, `t` the timestep."""
    return 0.3 * x + 0.01 * math.sin(float(t) / 100)


def run_scheduler(kind, options, steps, noise, draws, dtype):
    """diffusers' loop from `noise`; `draws` holds the noise that an ancestral step adds, one for each step."""
    scheduler = kind(**options)
    module = module_of(kind)
    drawn = iter(draws)
    original = module.randn_tensor
    # Everything that a step draws comes from `draws`. (Euler draws too, but multiplies what it drew with 0.)
    module.randn_tensor = lambda shape, **_: next(drawn).to(dtype)
    try:
        scheduler.set_timesteps(steps)
        x = noise.to(dtype) * scheduler.init_noise_sigma
        inputs, samples = [], []
        for t in scheduler.timesteps:
            inputs.append(scheduler.scale_model_input(x, t))
            x = scheduler.step(model_output(inputs[-1], t), t, x).prev_sample
            samples.append(x)
    finally:
        module.randn_tensor = original
    return scheduler, torch.stack(inputs), torch.stack(samples)


def write_scheduler(folder, name, options, counts):
    kind = getattr(diffusers, name)
    kind(**options).save_pretrained(folder)
    refs = {}
    for steps in counts:
        noise = torch.randn(1, 4, 4, 4)
        draws = torch.randn(steps, 1, 4, 4, 4)
        with in_double(module_of(kind)):
            scheduler, inputs, samples = run_scheduler(kind, options, steps, noise, draws, torch.float64)
        as_is, _, as_is_samples = run_scheduler(kind, options, steps, noise, draws, torch.float32)
        assert samples.dtype == torch.float64 and as_is_samples.dtype == torch.float32
        assert (samples - as_is_samples).abs().max() < 1e-5 * max(1, samples.abs().max())
        assert np.allclose(scheduler.timesteps, as_is.timesteps, rtol=1e-6)
        at = f"steps{steps}"
        refs[f"{at}.in.noise"] = noise
        refs[f"{at}.timesteps.f64"] = scheduler.timesteps.double()
        refs[f"{at}.init_noise_sigma.f64"] = torch.as_tensor(scheduler.init_noise_sigma).double().reshape(1)
        if hasattr(scheduler, "sigmas"):
            refs[f"{at}.sigmas.f64"] = scheduler.sigmas.double()
            refs[f"{at}.sigmas.run_f32"] = as_is.sigmas
        if "Ancestral" in name:
            refs[f"{at}.in.step_noise"] = draws
        refs[f"{at}.scaled_input.f64"] = inputs
        refs[f"{at}.sample.f64"] = samples
        refs[f"{at}.sample.run_f32"] = as_is_samples[-1]
    save(folder / "refs.safetensors", refs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # so that sums are always taken in the same order
    attention_processor.torch = Changed(torch, baddbmm=baddbmm)
    parts = {"unet_sd1": lambda to: write_unet(to, UNET_SD1), "unet_sd2": lambda to: write_unet(to, UNET_SD2),
             "vae": lambda to: write_vae(to, VAE)}
    for name, (kind, options, counts) in SCHEDULERS.items():
        parts[f"schedulers/{name}"] = lambda to, a=(kind, options, counts): write_scheduler(to, *a)
    for i, (name, write) in enumerate(parts.items()):
        torch.manual_seed(arguments.seed * 1000 + i)  # so that no part depends on those before it
        folder = arguments.output / name
        folder.mkdir(parents=True, exist_ok=True)
        write(folder)
    about = {"torch": torch.__version__, "diffusers": diffusers.__version__, "seed": arguments.seed}
    (arguments.output / "made_with.json").write_text(json.dumps(about, indent=2) + "\n")


if __name__ == "__main__":
    main()
