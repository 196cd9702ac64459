// SPDX-License-Identifier: BSL-1.0
// The network of Stable Diffusion that says what is noise in a picture, from the published files of versions 1 and 2
// (and Turbo), in memory and on the tape. The names of its tensors are those of the files of Hugging Face's diffusers.
#pragma once

#include <string>
#include <vector>

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/diffusion_parts.hpp>

namespace dfdx::models {

/// UnetConfig - sizes and options. Of each size of pictures, the largest first: channels, heads of attention, and
/// whether there is any, on the way down and on the way up.
struct UnetConfig {
  struct Level {
    index_t channels;
    index_t heads;
    bool attends;
    index_t transformer_layers = 1;
  };
  std::vector<Level> levels = {{320, 8, true}, {640, 8, true}, {1280, 8, true}, {1280, 8, false}};
  index_t in_channels = 4, out_channels = 4, blocks = 2, context = 768, groups = 32;
  double norm_eps = 1e-5;
  bool linear_projections = false;  // of transformers: matrices, where others have convolutions
  bool cosines_first = true;        // in what a time becomes
  double frequency_shift = 0;

  /// Numbers that a time becomes.
  index_t time_width() const { return 4 * levels[0].channels; }
  /// Errors    "unet: channels: 0", "unet: 320 channels are not divided by 7 heads", "unet: 0 sizes of pictures"
  void check() const;
};

struct TimeEmbedding {
  Projection linear_1, linear_2;
  DFDX_FIELDS(linear_1, linear_2)
};

/// UnetBlock - what a network does at one size: blocks, each with attention behind it or none, and the step to the next
/// size.
struct UnetBlock {
  std::vector<ResidualBlock> resnets;
  std::vector<SpatialTransformer> attentions;
  std::vector<Resampler> downsamplers, upsamplers;
  DFDX_FIELDS(resnets, attentions, downsamplers, upsamplers)
};

/// Unet - a network that goes down to small pictures and up again, on the way up reading what it made on the way down.
/// model(x, times, context) says what is noise in x, or how x moves, as it was trained.
///
/// Shapes    x: [B, in_channels, H, W], times: [] or [B], context: [B, T, context] -> [B, out_channels, H, W]
/// Dtypes    times: any number; all else of the dtype of the weights
/// Errors    "unet: a picture [B, 4, H, W] required, got [4, 8, 8]"; "unet: 3 times for 2 pictures"; "unet: a context
///           [2, T, 768] required, got [2, 7, 24]"
/// Source    Ronneberger et al., "U-Net", 2015; Rombach et al., "High-resolution image synthesis with latent diffusion
///           models", 2022
struct Unet {
  UnetConfig config;
  Convolution conv_in;
  TimeEmbedding time_embedding;
  std::vector<UnetBlock> down_blocks;
  UnetBlock mid_block;
  std::vector<UnetBlock> up_blocks;
  LayerNorm conv_norm_out;
  Convolution conv_out;
  DFDX_FIELDS(conv_in, time_embedding, down_blocks, mid_block, up_blocks, conv_norm_out, conv_out)

  Array operator()(Array const& x, Array const& times, Array const& context) const {
    return run(x, times, context, [](char const*, std::size_t, Array const&) {});
  }
  /// The same; `watch(part, i, h)` is called with what each part has made: "conv_in", "down", "mid", "up", the i-th of
  /// them.
  template <class Watch>
  Array run(Array const& x, Array const& times, Array const& context, Watch const& watch) const {
    check_inputs(x, times, context);
    Array const time = silu(embedded(times, x.shape()[0]));
    GroupNorms const norm{config.groups, config.norm_eps};
    Array h = conv_in(x, {.padding = 1});
    watch("conv_in", 0, h);
    std::vector<Array> passed = {h};
    for (std::size_t i = 0; i < down_blocks.size(); ++i) {
      UnetBlock const& block = down_blocks[i];
      for (std::size_t j = 0; j < block.resnets.size(); ++j)
        passed.push_back(h = step(block, i, j, h, norm, time, context));
      for (Resampler const& r : block.downsamplers) passed.push_back(h = r.half(h));
      watch("down", i, h);
    }
    std::size_t const last = down_blocks.size() - 1;
    h = step(mid_block, last, 0, h, norm, time, context);
    h = mid_block.resnets[1](h, norm, time);
    watch("mid", 0, h);
    for (std::size_t i = 0; i < up_blocks.size(); ++i) {
      UnetBlock const& block = up_blocks[i];
      for (std::size_t j = 0; j < block.resnets.size(); ++j) {
        h = step(block, last - i, j, concat({h, passed.back()}, 1), norm, time, context);
        passed.pop_back();
      }
      for (Resampler const& r : block.upsamplers) {
        Shape const& next = passed.back().shape();  // an odd size was halved to more than its half
        h = r.to(h, next[2], next[3]);
      }
      watch("up", i, h);
    }
    return conv_out(silu(norm(conv_norm_out, h)), {.padding = 1});
  }

 private:
  // Block j of a level, and the attention behind it.
  Array step(UnetBlock const& block, std::size_t level, std::size_t j, Array const& x, GroupNorms const& norm,
             Array const& time, Array const& context) const {
    Array const h = block.resnets[j](x, norm, time);
    if (j >= block.attentions.size()) return h;
    return block.attentions[j](h, context, config.groups, config.levels[level].heads);
  }
  // Waves of the time, of falling frequencies, through two matrices.
  Array embedded(Array const& times, index_t batch) const {
    index_t const half = config.levels[0].channels / 2;
    Array const at = broadcast_to(times.to(DType::f64), make_shape(batch));
    double const per = -std::log(10000.0) / (static_cast<double>(half) - config.frequency_shift);
    Array const angles = unsqueeze(at, -1) * exp(arange(half).to(DType::f64) * per);
    Array const waves = config.cosines_first ? concat({cos(angles), sin(angles)}, -1)
                                             : concat({sin(angles), cos(angles)}, -1);
    return time_embedding.linear_2(silu(time_embedding.linear_1(waves.to(conv_in.weight.dtype()))));
  }
  void check_inputs(Array const& x, Array const& times, Array const& context) const {
    Shape const &s = x.shape(), &c = context.shape();
    if (s.rank != 4 || s[1] != config.in_channels)
      raise("unet: a picture [B, ", config.in_channels, ", H, W] required, got ", s);
    if (times.ndim() > 1 || (times.ndim() == 1 && times.shape()[0] != s[0] && times.shape()[0] != 1))
      raise("unet: times ", times.shape(), " for ", s[0], " pictures");
    if (c.rank != 3 || c[0] != s[0] || c[2] != config.context)
      raise("unet: a context [", s[0], ", T, ", config.context, "] required, got ", c);
  }
};

inline void UnetConfig::check() const {
  if (levels.empty() || levels.size() > 16)
    raise("unet: ", static_cast<index_t>(levels.size()), " sizes of pictures");
  detail::check_size("unet", "groups", groups);
  detail::check_size("unet", "blocks", blocks);
  detail::check_size("unet", "input channels", in_channels);
  detail::check_size("unet", "output channels", out_channels);
  detail::check_size("unet", "context", context);
  for (Level const& l : levels) {
    detail::check_size("unet", "channels", l.channels);
    detail::check_size("unet", "heads", l.heads);
    if (l.transformer_layers < 1 || l.transformer_layers > 1000)
      raise("unet: ", l.transformer_layers, " layers of a transformer");
    if (l.channels % l.heads != 0)
      raise("unet: ", l.channels, " channels are not divided by ", l.heads, " heads");
    if (l.channels % groups != 0)
      raise("unet: ", l.channels, " channels are not divided by ", groups, " groups");
  }
}

namespace detail {

inline Unet outline_of(UnetConfig const& c) {
  Unet m;
  m.config = c;
  std::size_t const n = c.levels.size();
  index_t const first = c.levels[0].channels, time = c.time_width();
  auto const attention = [&](UnetConfig::Level const& l) {
    return outline_of_transformer(l.channels, c.context, l.transformer_layers, c.linear_projections);
  };
  m.conv_in = outline_of_conv(first, c.in_channels, 3);
  m.time_embedding = {outline_of_linear(time, first), outline_of_linear(time, time)};
  for (std::size_t i = 0; i < n; ++i) {
    UnetConfig::Level const& l = c.levels[i];
    UnetBlock b;
    for (index_t j = 0; j < c.blocks; ++j) {
      b.resnets.push_back(
          outline_of_residual(l.channels, j > 0 || i == 0 ? l.channels : c.levels[i - 1].channels, time));
      if (l.attends) b.attentions.push_back(attention(l));
    }
    if (i + 1 < n) b.downsamplers.push_back({outline_of_conv(l.channels, l.channels, 3)});
    m.down_blocks.push_back(std::move(b));
  }
  UnetConfig::Level const& deepest = c.levels[n - 1];
  for (int j = 0; j < 2; ++j)
    m.mid_block.resnets.push_back(outline_of_residual(deepest.channels, deepest.channels, time));
  m.mid_block.attentions.push_back(attention(deepest));
  for (std::size_t i = n; i-- > 0;) {
    UnetConfig::Level const& l = c.levels[i];
    UnetBlock b;
    for (index_t j = 0; j <= c.blocks; ++j) {
      index_t const below = j > 0 ? l.channels : c.levels[i + 1 < n ? i + 1 : i].channels;
      index_t const passed = j < c.blocks ? l.channels : c.levels[i > 0 ? i - 1 : 0].channels;
      b.resnets.push_back(outline_of_residual(l.channels, below + passed, time));
      if (l.attends) b.attentions.push_back(attention(l));
    }
    if (i > 0) b.upsamplers.push_back({outline_of_conv(l.channels, l.channels, 3)});
    m.up_blocks.push_back(std::move(b));
  }
  m.conv_norm_out = outline_of_norm(first);
  m.conv_out = outline_of_conv(c.out_channels, first, 3);
  return m;
}

}  // namespace detail

/// unet_config - what a folder's config.json says: `w` from open_weights.
///
/// Errors    "unet: m: blocks of type AttnDownBlock2D are not supported", and so for whatever else other networks have;
///           those of UnetConfig::check
inline UnetConfig unet_config(Weights const& w) {
  Metadata const& m = w.metadata;
  auto const refuse = [&](std::string const& why) { detail::refuse_model("unet", w, why); };
  auto const key = [](char const* name) { return std::string("config.") + name; };
  if (m.find(key("block_out_channels")) == nullptr)
    refuse("it does not say what model this is: a folder with a config.json of diffusers is needed");
  // One number for all sizes, or a list.
  auto const at_level = [&](std::string const& name, std::size_t i, index_t otherwise) -> index_t {
    MetaValue const* const v = m.find(name);
    if (v == nullptr) return otherwise;
    if (v->list() == nullptr) return m.integer(name);
    auto const all = m.list<std::int64_t>(name);
    if (i >= all.size()) refuse(name + " has " + std::to_string(all.size()) + " numbers");
    return all[i];
  };
  auto const attends = [&](std::string const& type, char const* plain, char const* with) {
    if (type != plain && type != with)
      refuse("blocks of type " + dfdx::detail::shown_name(type) + " are not supported");
    return type == with;
  };
  for (char const* name : {"class_embed_type", "addition_embed_type", "encoder_hid_dim_type",
                           "time_embedding_act_fn", "timestep_post_act", "time_cond_proj_dim"})
    if (m.find(key(name)) != nullptr) refuse(std::string(name) + " is not supported");
  for (char const* name : {"dual_cross_attention", "only_cross_attention", "class_embeddings_concat"})
    if (m.flag(key(name), false)) refuse(std::string(name) + " is not supported");
  if (detail::text_or(m, key("act_fn"), "silu") != "silu")
    refuse("other activations than silu are not supported");
  if (detail::text_or(m, key("mid_block_type"), "UNetMidBlock2DCrossAttn") != "UNetMidBlock2DCrossAttn")
    refuse("a middle of type " + dfdx::detail::shown_name(m.text(key("mid_block_type"))) +
           " is not supported");
  if (detail::text_or(m, key("resnet_time_scale_shift"), "default") != "default")
    refuse("resnet_time_scale_shift is not supported");
  UnetConfig c;
  auto const channels = m.list<std::int64_t>(key("block_out_channels"));
  auto const down = m.list<std::string>(key("down_block_types")),
             up = m.list<std::string>(key("up_block_types"));
  if (down.size() != channels.size() || up.size() != channels.size())
    refuse("block_out_channels, down_block_types and up_block_types of different lengths");
  // What configs call the size of heads is how many there are.
  std::string const heads =
      m.find(key("num_attention_heads")) != nullptr ? key("num_attention_heads") : key("attention_head_dim");
  c.levels.clear();
  for (std::size_t i = 0; i < channels.size(); ++i) {
    bool const here = attends(down[i], "DownBlock2D", "CrossAttnDownBlock2D");
    if (attends(up[channels.size() - 1 - i], "UpBlock2D", "CrossAttnUpBlock2D") != here)
      refuse("attention on the way up is not where it is on the way down");
    c.levels.push_back(
        {channels[i], at_level(heads, i, 8), here, at_level(key("transformer_layers_per_block"), i, 1)});
  }
  c.in_channels = m.integer(key("in_channels"), c.in_channels);
  c.out_channels = m.integer(key("out_channels"), c.out_channels);
  c.blocks = m.integer(key("layers_per_block"), c.blocks);
  c.context = m.integer(key("cross_attention_dim"), 1280);
  c.groups = m.integer(key("norm_num_groups"), c.groups);
  c.norm_eps = m.number(key("norm_eps"), c.norm_eps);
  c.linear_projections = m.flag(key("use_linear_projection"), false);
  c.cosines_first = m.flag(key("flip_sin_to_cos"), true);
  c.frequency_shift = m.number(key("freq_shift"), 0);
  c.check();
  return c;
}

/// load_unet - a network from weights, its numbers in that dtype. All that is missing, of another shape or too much is
/// told at once, and no model is made.
///
/// Errors    "weights: m does not fit the model: conv_in.bias is missing; ..."; those of unet_config
inline Unet load_unet(Weights const& files, DType dtype = DType::f32) {
  UnetConfig const config = unet_config(files);
  detail::check_layers("unet", files, config.blocks);
  Unet m = detail::outline_of(config);
  detail::fill(m, files, dtype, {});
  auto const make_matrices = [](UnetBlock& b) {
    for (SpatialTransformer& t : b.attentions)
      detail::make_matrix(t.proj_in), detail::make_matrix(t.proj_out);
  };
  for (UnetBlock& b : m.down_blocks) make_matrices(b);
  make_matrices(m.mid_block);
  for (UnetBlock& b : m.up_blocks) make_matrices(b);
  return m;
}
inline Unet load_unet(std::filesystem::path const& path, DType dtype = DType::f32) {
  return load_unet(open_weights(path), dtype);
}

}  // namespace dfdx::models
