// SPDX-License-Identifier: BSL-1.0
// The autoencoder of Stable Diffusion, between pictures and small ones of few channels in which noise is taken away, in
// memory and on the tape. The names of its tensors are those of the files of Hugging Face's diffusers.
#pragma once

#include <vector>

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/diffusion_parts.hpp>

namespace dfdx::models {

/// AutoencoderConfig - sizes and options; channels of each size of pictures, the largest first.
struct AutoencoderConfig {
  std::vector<index_t> channels = {128, 256, 512, 512};
  index_t in_channels = 3, out_channels = 3, latent_channels = 4, blocks = 2, groups = 32;
  double scaling_factor = 0.18215;
  static constexpr double norm_eps = 1e-6;

  /// Errors    "autoencoder: channels: 0"
  void check() const {
    if (channels.empty() || channels.size() > 16)
      raise("autoencoder: ", static_cast<index_t>(channels.size()), " sizes of pictures");
    detail::check_size("autoencoder", "latent channels", latent_channels);
    detail::check_size("autoencoder", "input channels", in_channels);
    detail::check_size("autoencoder", "output channels", out_channels);
    detail::check_size("autoencoder", "blocks", blocks);
    detail::check_size("autoencoder", "groups", groups);
    for (index_t n : channels) {
      detail::check_size("autoencoder", "channels", n);
      if (n % groups != 0) raise("autoencoder: ", n, " channels are not divided by ", groups, " groups");
    }
  }
};

/// PictureAttention - of the points of a picture to one another, by one head, added to it.
struct PictureAttention {
  LayerNorm group_norm;
  Projection to_q, to_k, to_v;
  std::tuple<Projection> to_out;
  DFDX_FIELDS(group_norm, to_q, to_k, to_v, to_out)

  Array operator()(Array const& x, GroupNorms const& norm) const {
    Array const points = points_of(norm(group_norm, x));
    auto const one_head = [](Array const& v) { return unsqueeze(v, 1); };
    Array const y =
        scaled_dot_product_attention(one_head(to_q(points)), one_head(to_k(points)), one_head(to_v(points)));
    return x + picture_of(std::get<0>(to_out)(squeeze(y, 1)), x.shape()[2], x.shape()[3]);
  }
};

struct AutoencoderBlock {
  std::vector<ResidualBlock> resnets;
  std::vector<PictureAttention> attentions;
  std::vector<Resampler> downsamplers, upsamplers;
  DFDX_FIELDS(resnets, attentions, downsamplers, upsamplers)

  // What stands in the middle: attention between two blocks.
  Array between(Array const& x, GroupNorms const& norm) const {
    return resnets[1](attentions[0](resnets[0](x, norm), norm), norm);
  }
  Array resnets_of(Array h, GroupNorms const& norm) const {
    for (ResidualBlock const& r : resnets) h = r(h, norm);
    return h;
  }
};

struct AutoencoderEncoder {
  Convolution conv_in;
  std::vector<AutoencoderBlock> down_blocks;
  AutoencoderBlock mid_block;
  LayerNorm conv_norm_out;
  Convolution conv_out;
  DFDX_FIELDS(conv_in, down_blocks, mid_block, conv_norm_out, conv_out)
};
struct AutoencoderDecoder {
  Convolution conv_in;
  AutoencoderBlock mid_block;
  std::vector<AutoencoderBlock> up_blocks;
  LayerNorm conv_norm_out;
  Convolution conv_out;
  DFDX_FIELDS(conv_in, mid_block, up_blocks, conv_norm_out, conv_out)
};

/// Autoencoder - from pictures to a normal distribution of small ones and back. encode(x) gives its mean and the
/// logarithm of its variance, decode(z) a picture. Networks that take noise away work with z times scaling_factor.
///
/// Shapes    x: [B, 3, H, W] -> two of [B, latent, H/8, W/8], if there are four sizes of pictures; z: [B, latent, h, w]
///           -> [B, 3, 8 h, 8 w]
/// Dtypes    those of the weights; published ones overflow in f16
/// Errors    "autoencoder: a picture [B, 3, H, W] required, got [3, 8, 8]"
/// Source    Rombach et al., "High-resolution image synthesis with latent diffusion models", 2022
struct Autoencoder {
  AutoencoderConfig config;
  AutoencoderEncoder encoder;
  AutoencoderDecoder decoder;
  Convolution quant_conv, post_quant_conv;
  DFDX_FIELDS(encoder, decoder, quant_conv, post_quant_conv)

  std::pair<Array, Array> encode(Array const& x) const {
    require("picture", x, config.in_channels);
    GroupNorms const norm = norms();
    Array h = encoder.conv_in(x, {.padding = 1});
    for (AutoencoderBlock const& b : encoder.down_blocks) {
      h = b.resnets_of(h, norm);
      for (Resampler const& r : b.downsamplers) h = r.half(h, true);
    }
    h = encoder.mid_block.between(h, norm);
    h = encoder.conv_out(silu(norm(encoder.conv_norm_out, h)), {.padding = 1});
    auto const parts = chunk(quant_conv(h), 2, 1);
    return {parts[0], clamp(parts[1], -30.0, 20.0)};
  }
  Array decode(Array const& z) const {
    return decode(z, [](char const*, std::size_t, Array const&) {});
  }
  /// The same; `watch(part, i, h)` is called with what each part has made: "conv_in", "mid", "up", the i-th of them.
  template <class Watch>
  Array decode(Array const& z, Watch const& watch) const {
    require("latent", z, config.latent_channels);
    GroupNorms const norm = norms();
    Array h = decoder.conv_in(post_quant_conv(z), {.padding = 1});
    watch("conv_in", 0, h);
    h = decoder.mid_block.between(h, norm);
    watch("mid", 0, h);
    std::size_t i = 0;
    for (AutoencoderBlock const& b : decoder.up_blocks) {
      h = b.resnets_of(h, norm);
      for (Resampler const& r : b.upsamplers) h = r.to(h, 2 * h.shape()[2], 2 * h.shape()[3]);
      watch("up", i++, h);
    }
    return decoder.conv_out(silu(norm(decoder.conv_norm_out, h)), {.padding = 1});
  }

 private:
  GroupNorms norms() const { return {config.groups, AutoencoderConfig::norm_eps}; }
  static void require(char const* what, Array const& x, index_t channels) {
    if (x.ndim() != 4 || x.shape()[1] != channels)
      raise("autoencoder: a ", what, " [B, ", channels, ", H, W] required, got ", x.shape());
  }
};

namespace detail {

inline AutoencoderBlock outline_of_middle(index_t n) {
  AutoencoderBlock b;
  for (int j = 0; j < 2; ++j) b.resnets.push_back(outline_of_residual(n, n, 0));
  b.attentions.push_back({outline_of_norm(n),
                          outline_of_linear(n, n),
                          outline_of_linear(n, n),
                          outline_of_linear(n, n),
                          {outline_of_linear(n, n)}});
  return b;
}
inline Autoencoder outline_of(AutoencoderConfig const& c) {
  Autoencoder m;
  m.config = c;
  std::size_t const n = c.channels.size();
  index_t const first = c.channels[0], last = c.channels[n - 1], latent = c.latent_channels;
  auto& [in, down, down_mid, down_norm, down_out] = m.encoder;
  in = outline_of_conv(first, c.in_channels, 3);
  for (std::size_t i = 0; i < n; ++i) {
    AutoencoderBlock b;
    for (index_t j = 0; j < c.blocks; ++j)
      b.resnets.push_back(outline_of_residual(c.channels[i], c.channels[j > 0 || i == 0 ? i : i - 1], 0));
    if (i + 1 < n) b.downsamplers.push_back({outline_of_conv(c.channels[i], c.channels[i], 3)});
    down.push_back(std::move(b));
  }
  down_mid = outline_of_middle(last), down_norm = outline_of_norm(last);
  down_out = outline_of_conv(2 * latent, last, 3);
  m.decoder.conv_in = outline_of_conv(last, latent, 3);
  m.decoder.mid_block = outline_of_middle(last);
  for (std::size_t i = n; i-- > 0;) {
    AutoencoderBlock b;
    for (index_t j = 0; j <= c.blocks; ++j)
      b.resnets.push_back(outline_of_residual(c.channels[i], c.channels[j > 0 || i + 1 == n ? i : i + 1], 0));
    if (i > 0) b.upsamplers.push_back({outline_of_conv(c.channels[i], c.channels[i], 3)});
    m.decoder.up_blocks.push_back(std::move(b));
  }
  m.decoder.conv_norm_out = outline_of_norm(first);
  m.decoder.conv_out = outline_of_conv(c.out_channels, first, 3);
  m.quant_conv = outline_of_conv(2 * latent, 2 * latent, 1);
  m.post_quant_conv = outline_of_conv(latent, latent, 1);
  return m;
}

// Older files call the parts of attention by other names.
inline Weights with_new_attention_names(Weights const& files) {
  return files.renamed([](Weight const& w) {
    std::string name = w.name;
    for (auto const& [old, now] : {std::pair(".query.", ".to_q."),
                                   {".key.", ".to_k."},
                                   {".value.", ".to_v."},
                                   {".proj_attn.", ".to_out.0."}})
      if (std::size_t const at = name.find(old); at != name.npos && name.find(".attentions.") != name.npos)
        name.replace(at, std::string_view(old).size(), now);
    return name;
  });
}

}  // namespace detail

/// autoencoder_config - what a folder's config.json says: `w` from open_weights.
///
/// Errors    "autoencoder: m: blocks of type AttnDownEncoderBlock2D are not supported"; those of
///           AutoencoderConfig::check
inline AutoencoderConfig autoencoder_config(Weights const& w) {
  Metadata const& m = w.metadata;
  auto const refuse = [&](std::string const& why) { detail::refuse_model("autoencoder", w, why); };
  if (m.find("config.block_out_channels") == nullptr)
    refuse("it does not say what model this is: a folder with a config.json of diffusers is needed");
  for (auto const& [key, known] : {std::pair("config.down_block_types", "DownEncoderBlock2D"),
                                   {"config.up_block_types", "UpDecoderBlock2D"}})
    for (std::string const& type : m.list<std::string>(key))
      if (type != known) refuse("blocks of type " + dfdx::detail::shown_name(type) + " are not supported");
  if (detail::text_or(m, "config.act_fn", "silu") != "silu")
    refuse("other activations than silu are not supported");
  AutoencoderConfig c;
  auto const channels = m.list<std::int64_t>("config.block_out_channels");
  c.channels.assign(channels.begin(), channels.end());
  c.in_channels = m.integer("config.in_channels", c.in_channels);
  c.out_channels = m.integer("config.out_channels", c.out_channels);
  c.latent_channels = m.integer("config.latent_channels", c.latent_channels);
  c.blocks = m.integer("config.layers_per_block", 1);
  c.groups = m.integer("config.norm_num_groups", c.groups);
  c.scaling_factor = m.number("config.scaling_factor", c.scaling_factor);
  c.check();
  return c;
}

/// load_autoencoder - an autoencoder from weights, its numbers in that dtype. All that is missing, of another shape or
/// too much is told at once, and no model is made.
///
/// Errors    "weights: m does not fit the model: quant_conv.bias is missing; ..."; those of autoencoder_config
inline Autoencoder load_autoencoder(Weights const& files, DType dtype = DType::f32) {
  AutoencoderConfig const config = autoencoder_config(files);
  detail::check_layers("autoencoder", files, config.blocks);
  Autoencoder m = detail::outline_of(config);
  detail::fill(m, detail::with_new_attention_names(files), dtype, {});
  return m;
}
inline Autoencoder load_autoencoder(std::filesystem::path const& path, DType dtype = DType::f32) {
  return load_autoencoder(open_weights(path), dtype);
}

}  // namespace dfdx::models
