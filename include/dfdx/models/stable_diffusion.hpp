// SPDX-License-Identifier: BSL-1.0
// Stable Diffusion from published folders: pictures from texts, in memory.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dfdx/models/autoencoder_kl.hpp>
#include <dfdx/models/clip_text.hpp>
#include <dfdx/models/denoising.hpp>
#include <dfdx/models/unet.hpp>
#include <dfdx/tape/backward.hpp>
#include <dfdx/text/load.hpp>
#include <dfdx/vocabulary/random.hpp>

namespace dfdx::models {

/// DrawOptions - of StableDiffusion::draw.
struct DrawOptions {
  index_t width = 512, height = 512, steps = 20;
  double guidance = 7.5;  ///< how far the text leads away from what `avoid` says; at most 1: it is not asked
  std::string avoid{};    ///< a text of what should not be seen
  std::uint64_t seed = 0;
  std::optional<Denoise> how{};  ///< as its makers took steps where nothing is said
};

/// StableDiffusion - a text encoder, a network that says what is noise, an autoencoder of pictures, and how they are
/// used together.
struct StableDiffusion {
  text::Tokenizer tokenizer;
  std::int32_t pad;  ///< the token behind texts that are short
  ClipText text_encoder;
  Unet unet;
  Autoencoder vae;
  NoiseSchedule schedule;
  Denoise how = Denoise::ddim;

  /// What the network is told of a text: a vector for each of as many tokens as the encoder takes, more are left out.
  ///
  /// Shapes    -> [1, tokens, width]
  Array context(std::string_view prompt) const {
    auto const most = static_cast<std::size_t>(text_encoder.config.context);
    std::vector<std::int32_t> ids = tokenizer.encode(prompt);
    if (ids.size() > most) ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(most) - 1, ids.end() - 1);
    ids.resize(most, pad);
    Array tokens(Meta{DType::i32, make_shape(1, text_encoder.config.context)});
    std::copy(ids.begin(), ids.end(), tokens.data<std::int32_t>());
    return text_encoder(tokens);
  }

  /// A picture of what the text says; watch(i, steps) before each step.
  ///
  /// Math      begins with normal numbers of fold_in(Key{seed}, 0); in each step e = e_avoid + guidance (e_text -
  ///           e_avoid)
  /// Shapes    -> [3, height, width], 0 .. 1
  /// Dtypes    steps in f32, networks in the dtype of their weights
  /// Errors    "draw: 500 x 512 points: 8 must divide both"; those of Denoiser
  /// Source    Rombach et al., "High-resolution image synthesis with latent diffusion models", 2022; Ho and Salimans,
  ///           "Classifier-free diffusion guidance", 2022
  template <class Watch>
  Array draw(std::string_view prompt, DrawOptions const& o, Watch const& watch) const {
    index_t const smaller = index_t{1} << (vae.config.channels.size() - 1);
    if (o.width < smaller || o.height < smaller || o.width % smaller != 0 || o.height % smaller != 0)
      raise("draw: ", o.height, " x ", o.width, " points: ", smaller, " must divide both");
    no_grad const without;
    bool const guided = o.guidance > 1;
    DType const dtype = unet.conv_in.weight.dtype();
    Array const text = guided ? concat({context(o.avoid), context(prompt)}, 0) : context(prompt);
    Denoiser steps(schedule, o.how.value_or(how), o.steps);
    Shape const s = make_shape(1, unet.config.in_channels, o.height / smaller, o.width / smaller);
    std::uint64_t drawn = 0;
    auto const normal = [&] { return randn(s, fold_in(Key{o.seed}, drawn++)); };
    Array x = normal() * steps.initial();
    for (index_t i = 0; i < steps.steps(); ++i) {
      watch(i, steps.steps());
      Array const seen = steps.input(i, x).to(dtype);
      Array said = unet(guided ? concat({seen, seen}, 0) : seen,
                        Array::number(static_cast<float>(steps.time(i))), text.to(dtype))
                       .to(DType::f32);
      if (guided) {
        Array const avoided = slice(said, 0, 0, 1);
        said = avoided + (slice(said, 0, 1, 2) - avoided) * o.guidance;
      }
      x = steps.step(i, x, said, normal);
    }
    Array const picture =
        vae.decode((x * (1 / vae.config.scaling_factor)).to(vae.decoder.conv_in.weight.dtype()));
    return clamp(picture[0].to(DType::f32) * 0.5 + 0.5, 0.0, 1.0);
  }
  Array draw(std::string_view prompt, DrawOptions const& o = {}) const {
    return draw(prompt, o, [](index_t, index_t) {});
  }
};

namespace detail {

// The token behind short texts: what special_tokens_map.json says, as a text or with other things; else the last one.
inline std::int32_t pad_of(std::filesystem::path const& folder, text::Tokenizer const& t) {
  std::error_code ignored;
  std::filesystem::path const file = folder / "special_tokens_map.json";
  if (std::filesystem::exists(file, ignored)) {
    nlohmann::json const all = dfdx::detail::read_json_file(file, "tokenizer", 8);
    if (auto const found = all.find("pad_token"); found != all.end()) {
      nlohmann::json const& pad = found->is_object() ? found->value("content", nlohmann::json()) : *found;
      if (pad.is_string())
        if (auto const id = t.find(pad.get<std::string>())) return *id;
    }
  }
  return t.pad() >= 0 ? t.pad() : t.eos();
}

}  // namespace detail

/// load_stable_diffusion - what draws from a folder of diffusers: text_encoder, tokenizer, unet, vae and scheduler,
/// their numbers in that dtype, those of the autoencoder in f32 where they would be of f16, in which it overflows.
///
/// Errors    "draw: m: texts are vectors of 64 numbers, and the network reads 24"; those of load_clip_text, load_unet,
///           load_autoencoder, load_tokenizer and noise_schedule
inline StableDiffusion load_stable_diffusion(std::filesystem::path const& folder, DType dtype = DType::f32) {
  auto const [schedule, how] = noise_schedule(folder / "scheduler" / "scheduler_config.json");
  text::Tokenizer const tokenizer = text::load_tokenizer(folder / "tokenizer");
  StableDiffusion m{tokenizer,
                    detail::pad_of(folder / "tokenizer", tokenizer),
                    load_clip_text(folder / "text_encoder", dtype),
                    load_unet(folder / "unet", dtype),
                    load_autoencoder(folder / "vae", dtype == DType::f16 ? DType::f32 : dtype),
                    schedule,
                    how};
  auto const refuse = [&](char const* what, index_t has, char const* reads, index_t wants) {
    dfdx::detail::raise_file("draw: " + folder.string() + ": " + what + std::to_string(has) + reads +
                             std::to_string(wants));
  };
  if (m.text_encoder.config.width != m.unet.config.context)
    refuse("texts are vectors of ", m.text_encoder.config.width, " numbers, and the network reads ",
           m.unet.config.context);
  if (m.vae.config.latent_channels != m.unet.config.in_channels)
    refuse("small pictures have ", m.vae.config.latent_channels, " channels, and the network reads ",
           m.unet.config.in_channels);
  return m;
}

}  // namespace dfdx::models
