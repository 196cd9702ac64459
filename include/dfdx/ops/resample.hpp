// SPDX-License-Identifier: BSL-1.0
// Linear maps along one axis whose coefficients follow from the extents: sums and means over windows, and the
// interpolations of images. Functions of several axes apply it to one after another.
#pragma once

#include <algorithm>
#include <vector>

#include <dfdx/core/sampling.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::op {

/// resample - a linear map along one axis: attrs.i = {axis + 16 transposed, Sampling, window}, attrs.f[0] the
/// distance of neighbours or 0. The result's shape is given with bind_as.
///
/// Math      y[.., p, ..] = sum_i a[p, i] x[.., i, ..]; transposed: y[.., i, ..] = sum_p a[p, i] x[.., p, ..]
/// Shapes    x: [.., N, ..] -> y: [.., M, ..]
/// Dtypes    all but bool for `nearest` and `nearest_exact`, else floating; f16 and bf16 in f32
/// Errors    those of avg_pool2d and interpolate
/// Source    PyTorch's interpolate; Keys, Cubic convolution interpolation, 1981
struct resample : operation {
  static constexpr char const* name = "resample";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    Attrs turned = s.attrs;
    turned.i[0] ^= 16;
    return bind_as<resample>(s.x[0].meta(), turned, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<resample>(s.y.meta(), s.attrs, t);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    if (out.meta.shape.numel() == 0) return;
    Operand x = in[0];
    Array dense;
    if (!is_contiguous(x.meta.shape, x.strides)) {
      dense = Array(x.meta);
      copy_elements(x, dense.operand());
      x = dense.operand();
    }
    dispatch(out.meta.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      along<T>(a, static_cast<T const*>(x.data), x.meta.shape, static_cast<T*>(out.data), out.meta.shape);
    });
  }

 private:
  template <class T>
  static void along(Attrs const& a, T const* x, Shape const& from, T* y, Shape const& to) {
    auto const axis = static_cast<int>(a.i[0] & 15);
    bool const transposed = (a.i[0] & 16) != 0;
    index_t const n = from[axis], m = to[axis];
    index_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= from[i];
    for (int i = axis + 1; i < from.rank; ++i) inner *= from[i];
    using C = std::conditional_t<std::is_integral_v<T>, std::int64_t, compute_t<T>>;
    // The terms of all positions, one after another: the map itself, as sparse rows.
    struct Term {
      index_t from, to;
      C coefficient;
    };
    std::vector<Term> terms;
    detail::SamplingRule const rule{static_cast<Sampling>(a.i[1]), a.i[2], transposed ? m : n,
                                    transposed ? n : m, a.f[0]};
    for (index_t p = 0; p < rule.m; ++p)
      rule.for_terms(p, [&](index_t i, double c) {
        terms.push_back({transposed ? p : i, transposed ? i : p, static_cast<C>(c)});
      });
    auto const each = static_cast<std::size_t>(m * inner);
    int const parts = kernels::parts_of(outer * inner * static_cast<index_t>(2 * terms.size()), outer);
    std::size_t const apart = each + 128 / sizeof(C);  // threads write to lines of their own
    std::vector<C> sums(apart * static_cast<std::size_t>(parts));
    kernels::in_parallel(parts, [&](int part) {
      C* const all = sums.data() + static_cast<std::size_t>(part) * apart;
      kernels::Part const mine = kernels::part_of(outer, part, parts);
      for (index_t o = mine.begin; o < mine.end; ++o) {
        T const* const from = x + o * n * inner;
        index_t const wide = inner;
        std::fill_n(all, each, C(0));
        for (Term const& t : terms) {
          C* const DFDX_RESTRICT s = all + t.to * wide;
          T const* const DFDX_RESTRICT v = from + t.from * wide;
          for (index_t i = 0; i < wide; ++i)
            s[i] = static_cast<C>(s[i] + t.coefficient * static_cast<C>(v[i]));
        }
        T* const to = y + o * m * inner;
        for (index_t i = 0; i < m * inner; ++i) to[i] = static_cast<T>(all[i]);
      }
    });
  }
};

}  // namespace dfdx::op
