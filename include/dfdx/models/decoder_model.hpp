// SPDX-License-Identifier: BSL-1.0
// DecoderModel - what models of several families are to a Decoder: matrices and norms by their addresses. Each family
// has a function decoder_model(m) beside it.
#pragma once

#include <dfdx/models/matrix_rows.hpp>
#include <dfdx/models/parts.hpp>
#include <dfdx/models/rotary.hpp>
#include <dfdx/value/device_ops.hpp>

namespace dfdx::models {

namespace detail {

/// BoundMatrix - a matrix of a layer, its bias, and factors of a change of it: y = W x + bias + scale outer inner x.
struct BoundMatrix {
  MatrixRows rows{};
  float const* bias = nullptr;
  MatrixRows inner{}, outer{};
  float scale = 0;

  bool has_factors() const { return inner.rows > 0; }
};

/// BoundNorm - of the root of the mean square; with a bias of the distance from the mean, too.
struct BoundNorm {
  float const *weight = nullptr, *bias = nullptr;
};

struct BoundLayer {
  BoundMatrix q, k, v, o, gate, up, down;
  BoundNorm input, middle;
  float const *q_norm = nullptr, *k_norm = nullptr;
  /// How far back a position sees, itself included; 0 for all of it. What scores are multiplied with.
  index_t window = 0;
  float scale = 1;
};

}  // namespace detail

/// DecoderModel - sizes, layers, and what keeps the numbers alive. Numbers of f32 and of 16 bits, and matrices as
/// stored, are the model's own; others are converted to f32 once, in memory of their own, and so are copied on devices
/// those that begin where no 16 bytes do.
///
/// Errors    "decoder: the model's numbers are recorded"; "decoder: the model's numbers lie on cuda:0 and cpu"
struct DecoderModel {
  char const* family = "llama";  // for messages
  /// Where all its numbers lie: that of the model's, set before they are bound.
  Device device{};
  index_t vocabulary = 0, width = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0;
  double norm_eps = 1e-5;
  /// Of the hidden numbers; with `gated` each is multiplied with one of `up`.
  Activation activation = Activation::silu;
  bool gated = true;
  detail::MatrixRows table{};
  detail::BoundMatrix head{};
  detail::BoundNorm norm{};
  std::vector<detail::BoundLayer> layers;
  /// Positions that are learnt, or turns of heads by these frequencies.
  detail::MatrixRows learnt{};
  RopeFrequencies rope{};
  RopeDivisors divisors{};

  bool rotary() const { return learnt.rows == 0; }

  /// matrix - an array's rows. turned - those of its transposed, in memory of their own.
  template <int = 0>
  detail::MatrixRows matrix(Array const& x) {
    return matrix(x, device);
  }
  template <int = 0>
  detail::MatrixRows matrix(Array const& x, Device where) {
    Array const a = kept(x, is_half(x.dtype()) ? x.dtype() : DType::f32, where);
    return {a.dtype(), a.bytes(), a.shape()[0], a.shape()[1]};
  }
  template <int = 0>
  detail::MatrixRows turned(Array const& x) {
    detail::MatrixRows const from = matrix(dfdx::detail::here(x), Device{});
    Array to(Meta{std::get<DType>(from.encoding), make_shape(from.columns, from.rows)});
    // By tiles, so that neither side leaves the first cache.
    std::size_t const size = size_of(to.dtype());
    for (index_t i = 0; i < from.rows; i += 32)
      for (index_t j = 0; j < from.columns; ++j)
        for (index_t k = i; k < std::min(from.rows, i + 32); ++k)
          std::memcpy(to.bytes() + static_cast<std::size_t>(j * from.rows + k) * size,
                      from.row(k) + static_cast<std::size_t>(j) * size, size);
    if (!device.is_cpu()) to = dfdx::detail::moved(device, to);
    require_here(x.device());
    arrays_.back() = to;
    return {to.dtype(), to.bytes(), from.columns, from.rows};
  }
  template <class Stored>
  detail::MatrixRows matrix(std::shared_ptr<Stored const> const& stored) {
    owners_.push_back(stored);
    detail::MatrixRows r = stored->data;
    require_here(stored->there.device());
    if (!device.is_cpu()) r.bytes = stored->there.bytes();
    return r;
  }
  template <int = 0>
  float const* floats(Array const& x) {
    return reinterpret_cast<float const*>(kept(x, DType::f32, device).bytes());
  }
  /// factors - those that a projection has besides its matrix.
  template <class Projection>
  void add_factors(detail::BoundMatrix& to, Projection const& p) {
    if (!p.has_factors()) return;
    to.inner = matrix(p.lora_A->weight);
    to.outer = matrix(p.lora_B->weight);
    to.scale = static_cast<float>(p.lora_scale);
  }

 private:
  void require_here(Device where) const {
    if (where != device) raise("decoder: the model's numbers lie on ", device, " and ", where);
  }
  template <int = 0>
  Array kept(Array const& x, DType dtype, Device where) {
    if (x.recorded()) raise("decoder: the model's numbers are recorded");
    if (x.device() != where) require_here(x.device());
    // Kernels of devices read words of 16 bytes.
    bool const has_words = where.is_cpu() || reinterpret_cast<std::uintptr_t>(x.bytes()) % 16 == 0;
    if (x.dtype() == dtype && x.contiguous_memory() && has_words) {
      arrays_.push_back(x.detach());
    } else {
      Weights one;
      one.add("number", dfdx::detail::here(x.detach()));
      Array const converted = one.array("number", dtype);
      arrays_.push_back(where.is_cpu() ? converted : dfdx::detail::moved(where, converted));
    }
    return arrays_.back();
  }

  std::vector<Array> arrays_;
  std::vector<std::shared_ptr<void const>> owners_;
};

namespace detail {

/// Calls f(matrix) with each that has factors.
template <class F>
void for_factors(DecoderModel const& m, F const& f) {
  if (m.head.has_factors()) f(m.head);
  for (BoundLayer const& l : m.layers)
    for (BoundMatrix const* w : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down})
      if (w->has_factors()) f(*w);
}

}  // namespace detail

}  // namespace dfdx::models
