// SPDX-License-Identifier: BSL-1.0
// What models that draw are made of: blocks of convolutions with a way past them, attention over the points of a
// picture and to a text, steps between sizes. Names are those of the files of Hugging Face's diffusers.
#pragma once

#include <tuple>

#include <dfdx/models/config.hpp>
#include <dfdx/models/llama.hpp>  // Projection
#include <dfdx/vocabulary/channel_norm.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx::models {

/// Convolution - of pictures, with a bias.
struct Convolution {
  Array weight, bias;
  DFDX_FIELDS(weight, bias)

  Array operator()(Array const& x, ConvOptions const& o = {}) const { return conv2d(x, weight, bias, o); }
};

/// GroupNorms - what the norms over groups of channels of a model have in common.
struct GroupNorms {
  index_t groups = 32;
  double eps = 1e-5;

  Array operator()(LayerNorm const& n, Array const& x) const {
    return group_norm(x, groups, n.weight, n.bias, eps);
  }
};

/// ResidualBlock - two convolutions and what is told of the time between them, added to what they read.
///
/// Math      h = C_1 silu(norm(x)) + W silu(time), y = S x + C_2 silu(norm(h)), S none where channels stay as many
/// Shapes    x: [B, In, H, W], time: [B, T] -> [B, Out, H, W]
/// Source    Rombach et al., "High-resolution image synthesis with latent diffusion models", 2022
struct ResidualBlock {
  LayerNorm norm1;
  Convolution conv1;
  std::optional<Projection> time_emb_proj;
  LayerNorm norm2;
  Convolution conv2;
  std::optional<Convolution> conv_shortcut;
  DFDX_FIELDS(norm1, conv1, time_emb_proj, norm2, conv2, conv_shortcut)

  /// `time`, which only blocks with a projection of it read, has gone through silu already.
  Array operator()(Array const& x, GroupNorms const& norm, Array const& time = {}) const {
    Array h = conv1(silu(norm(norm1, x)), {.padding = 1});
    if (time_emb_proj) h = h + unsqueeze(unsqueeze((*time_emb_proj)(time), -1), -1);
    h = conv2(silu(norm(norm2, h)), {.padding = 1});
    return (conv_shortcut ? (*conv_shortcut)(x) : x) + h;
  }
};

/// Resampler - half as many points along both axes, or more: the nearest ones, convolved.
struct Resampler {
  Convolution conv;
  DFDX_FIELDS(conv)

  /// Every other point, of a picture with a border of zeros: around it, or behind it alone as encoders have it.
  Array half(Array const& x, bool behind = false) const {
    if (behind) return conv(pad(x, {0, 1, 0, 1}), {.stride = 2});
    return conv(x, {.stride = 2, .padding = 1});
  }
  Array to(Array const& x, index_t height, index_t width) const {
    return conv(interpolate(x, {.size = {height, width}}), {.padding = 1});
  }
};

/// CrossAttention - of positions to those of a context, which may be themselves.
///
/// Shapes    x: [B, N, C], context: [B, T, D] -> [B, N, C]
/// Source    Vaswani et al., "Attention is all you need", 2017
struct CrossAttention {
  Projection to_q, to_k, to_v;
  std::tuple<Projection> to_out;
  DFDX_FIELDS(to_q, to_k, to_v, to_out)

  Array operator()(Array const& x, Array const& context, index_t heads) const {
    index_t const size = to_q.shape()[0] / heads;
    auto const split = [&](Array const& v) { return split_heads(v, heads, size); };
    return std::get<0>(to_out)(
        join_heads(scaled_dot_product_attention(split(to_q(x)), split(to_k(context)), split(to_v(context)))));
  }
};

/// GatedLinear - half of what a matrix makes, times gelu of the other half.
struct GatedLinear {
  Projection proj;
  DFDX_FIELDS(proj)

  Array operator()(Array const& x) const {
    auto const halves = chunk(proj(x), 2, -1);
    return halves[0] * gelu(halves[1]);
  }
};
struct GatedFeedForward {
  std::tuple<GatedLinear, std::tuple<>, Projection> net;
  DFDX_FIELDS(net)
};

/// CrossTransformerLayer - attention of positions to themselves, to a text, and a gated map of each.
struct CrossTransformerLayer {
  LayerNorm norm1;
  CrossAttention attn1;
  LayerNorm norm2;
  CrossAttention attn2;
  LayerNorm norm3;
  GatedFeedForward ff;
  DFDX_FIELDS(norm1, attn1, norm2, attn2, norm3, ff)

  Array operator()(Array x, Array const& context, index_t heads) const {
    auto const norm = [](LayerNorm const& n, Array const& v) {
      return layer_norm(v, n.weight, n.bias, 1e-5);
    };
    Array const own = norm(norm1, x);
    x = x + attn1(own, own, heads);
    x = x + attn2(norm(norm2, x), context, heads);
    return x + std::get<2>(ff.net)(std::get<0>(ff.net)(norm(norm3, x)));
  }
};

/// points_of - a picture's points as rows; picture_of - the picture again.
///
/// Shapes    [B, C, H, W] -> [B, H W, C] and back
inline Array points_of(Array const& x) { return swapaxes(flatten(x, -2, -1), -2, -1); }
inline Array picture_of(Array const& points, index_t height, index_t width) {
  return unflatten(swapaxes(points, -2, -1), -1, {height, width});
}

/// SpatialTransformer - layers over the points of a picture, added to it.
///
/// Shapes    x: [B, C, H, W], context: [B, T, D] -> [B, C, H, W]
struct SpatialTransformer {
  static constexpr double norm_eps = 1e-6;  // whatever that of the blocks is

  LayerNorm norm;
  Projection proj_in;
  std::vector<CrossTransformerLayer> transformer_blocks;
  Projection proj_out;
  DFDX_FIELDS(norm, proj_in, transformer_blocks, proj_out)

  Array operator()(Array const& x, Array const& context, index_t groups, index_t heads) const {
    Array h = proj_in(points_of(GroupNorms{groups, norm_eps}(norm, x)));
    for (CrossTransformerLayer const& layer : transformer_blocks) h = layer(h, context, heads);
    return x + picture_of(proj_out(h), x.shape()[x.ndim() - 2], x.shape()[x.ndim() - 1]);
  }
};

namespace detail {

inline Convolution outline_of_conv(index_t out, index_t in, index_t size) {
  return {outline(make_shape(out, in, size, size)), outline(make_shape(out))};
}
inline Projection outline_of_linear(index_t out, index_t in, bool has_bias = true) {
  Projection p{outline(make_shape(out, in))};
  if (has_bias) p.bias = outline(make_shape(out));
  return p;
}
// A matrix that files may have as a convolution with windows of one point.
inline Projection outline_of_points(index_t out, index_t in, bool as_matrix) {
  if (as_matrix) return outline_of_linear(out, in);
  return Projection{outline(make_shape(out, in, 1, 1)), outline(make_shape(out))};
}
inline void make_matrix(Projection& p) {
  Shape const s = p.weight->shape();
  if (s.rank == 4) p.weight = reshape(*p.weight, {s[0], s[1]});
}
/// `time` 0: it reads none.
inline ResidualBlock outline_of_residual(index_t out, index_t in, index_t time) {
  ResidualBlock r{outline_of_norm(in),  outline_of_conv(out, in, 3),  {},
                  outline_of_norm(out), outline_of_conv(out, out, 3), {}};
  if (time > 0) r.time_emb_proj = outline_of_linear(out, time);
  if (in != out) r.conv_shortcut = outline_of_conv(out, in, 1);
  return r;
}
inline CrossAttention outline_of_attention(index_t width, index_t context, bool has_biases) {
  return {outline_of_linear(width, width, has_biases),
          outline_of_linear(width, context, has_biases),
          outline_of_linear(width, context, has_biases),
          {outline_of_linear(width, width)}};
}
inline SpatialTransformer outline_of_transformer(index_t width, index_t context, index_t layers,
                                                 bool as_matrix) {
  SpatialTransformer t{outline_of_norm(width),
                       outline_of_points(width, width, as_matrix),
                       {},
                       outline_of_points(width, width, as_matrix)};
  for (index_t i = 0; i < layers; ++i)
    t.transformer_blocks.push_back({outline_of_norm(width),
                                    outline_of_attention(width, width, false),
                                    outline_of_norm(width),
                                    outline_of_attention(width, context, false),
                                    outline_of_norm(width),
                                    {{GatedLinear{outline_of_linear(8 * width, width)}, std::tuple<>{},
                                      outline_of_linear(width, 4 * width)}}});
  return t;
}

}  // namespace detail

}  // namespace dfdx::models
