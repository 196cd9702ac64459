// SPDX-License-Identifier: BSL-1.0
// Linear maps along one axis whose coefficients follow from the extents: sums and means over windows, and the
// interpolations of images. Functions of several axes apply it to one after another.
#pragma once

#include <algorithm>

#include <dfdx/core/sampling.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::op {

/// resample - a linear map along one axis: attrs.i = {axis + 16 transposed, Sampling, window}, attrs.f[0] the
/// factor by which it grows or 0. The result's shape is given with bind_as.
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
  static constexpr bool keeps_dtype = true;
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
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    if (out.meta.shape.numel() == 0) return;
    Operand x = in[0];
    Array dense;
    if (!is_contiguous(x.meta.shape, x.strides)) {
      dense = Array(x.meta);
      copy_elements(x, dense.operand());
      x = dense.operand();
    }
    along<T>(a, static_cast<T const*>(x.data), x.meta.shape, static_cast<T*>(out.data), out.meta.shape);
  }

 private:
  // The map itself: the terms of position p of the result are those from starts[p] to starts[p + 1].
  template <class C>
  struct Rows {
    kernels::ScratchVector<index_t> starts, from;
    kernels::ScratchVector<C> coefficient;
    index_t fewest = 0, most = 0;  // terms of a position

    Rows(Attrs const& a, index_t n, index_t m) : starts(static_cast<std::size_t>(m + 1)) {
      bool const transposed = (a.i[0] & 16) != 0;
      detail::SamplingRule const rule{static_cast<Sampling>(a.i[1]), a.i[2], transposed ? m : n,
                                      transposed ? n : m, a.f[0]};
      // f(position of the result, of the operand, coefficient), in the order of the rule's positions.
      auto const each = [&](auto const& f) {
        for (index_t p = 0; p < rule.m; ++p)
          rule.for_terms(p, [&](index_t i, double c) {
            f(static_cast<std::size_t>(transposed ? i : p), transposed ? p : i, static_cast<C>(c));
          });
      };
      each([&](std::size_t to, index_t, C) { ++starts[to + 1]; });
      fewest = n + m;
      for (std::size_t p = 0; p + 1 < starts.size(); ++p) {
        fewest = std::min(fewest, starts[p + 1]), most = std::max(most, starts[p + 1]);
        starts[p + 1] += starts[p];
      }
      from.resize(static_cast<std::size_t>(starts.back()));
      coefficient.resize(from.size());
      kernels::ScratchVector<index_t> next(starts.begin(), starts.end() - 1);
      each([&](std::size_t to, index_t i, C c) {
        auto const at = static_cast<std::size_t>(next[to]++);
        from[at] = i, coefficient[at] = c;
      });
    }
  };

  // Of one line its map.
  template <class C, class T>
  static void of_line(Rows<C> const& rows, T const* DFDX_RESTRICT x, T* DFDX_RESTRICT y, index_t m) {
    index_t const *const from = rows.from.data(), *const starts = rows.starts.data();
    C const* const c = rows.coefficient.data();
    auto const term = [&](index_t t) { return static_cast<C>(c[t] * static_cast<C>(x[from[t]])); };
    if (rows.fewest == 1 && rows.most == 1) {
      for (index_t p = 0; p < m; ++p) y[p] = static_cast<T>(term(p));
    } else if (rows.fewest == 2 && rows.most == 2) {
      for (index_t p = 0; p < m; ++p) y[p] = static_cast<T>(term(2 * p) + term(2 * p + 1));
    } else {
      for (index_t p = 0; p < m; ++p) {
        C sum = starts[p] < starts[p + 1] ? term(starts[p]) : C(0);
        for (index_t t = starts[p] + 1; t < starts[p + 1]; ++t) sum = static_cast<C>(sum + term(t));
        y[p] = static_cast<T>(sum);
      }
    }
  }
  // Of `wide` lines side by side position p of the result.
  template <class C, class T>
  static void of_lines(Rows<C> const& rows, index_t p, T const* x, index_t wide, T* DFDX_RESTRICT y) {
    constexpr index_t some = 256;
    index_t const begin = rows.starts[static_cast<std::size_t>(p)],
                  end = rows.starts[static_cast<std::size_t>(p) + 1];
    index_t const* const from = rows.from.data();
    C const* const c = rows.coefficient.data();
    if (begin == end) std::fill_n(y, wide, T(0));
    else if (end - begin == 1 && c[begin] == C(1)) std::copy_n(x + from[begin] * wide, wide, y);
    else if (end - begin == 2) {
      T const *const DFDX_RESTRICT u = x + from[begin] * wide, *const DFDX_RESTRICT v =
                                                                   x + from[begin + 1] * wide;
      C const c0 = c[begin], c1 = c[begin + 1];
      for (index_t i = 0; i < wide; ++i)
        y[i] = static_cast<T>(c0 * static_cast<C>(u[i]) + c1 * static_cast<C>(v[i]));
    } else {
      C sum[some];
      for (index_t i = 0, count; i < wide; i += count) {
        count = std::min(some, wide - i);
        for (index_t t = begin; t < end; ++t) {
          T const* const DFDX_RESTRICT v = x + from[t] * wide + i;
          if (t == begin)
            for (index_t j = 0; j < count; ++j) sum[j] = static_cast<C>(c[t] * static_cast<C>(v[j]));
          else
            for (index_t j = 0; j < count; ++j) sum[j] = static_cast<C>(sum[j] + c[t] * static_cast<C>(v[j]));
        }
        for (index_t j = 0; j < count; ++j) y[i + j] = static_cast<T>(sum[j]);
      }
    }
  }

  template <class T>
  static void along(Attrs const& a, T const* x, Shape const& from, T* y, Shape const& to) {
    auto const axis = static_cast<int>(a.i[0] & 15);
    index_t const n = from[axis], m = to[axis];
    index_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= from[i];
    for (int i = axis + 1; i < from.rank; ++i) inner *= from[i];
    using C = std::conditional_t<std::is_integral_v<T>, std::int64_t, compute_t<T>>;
    Rows<C> const rows(a, n, m);
    int const parts = kernels::parts_of(outer * inner * static_cast<index_t>(2 * rows.from.size()), outer);
    kernels::in_parallel(parts, [&](int part) {
      kernels::Part const mine = kernels::part_of(outer, part, parts);
      for (index_t o = mine.begin; o < mine.end; ++o) {
        T const* const source = x + o * n * inner;
        T* const result = y + o * m * inner;
        if (inner == 1) of_line(rows, source, result, m);
        else
          for (index_t p = 0; p < m; ++p) of_lines(rows, p, source, inner, result + p * inner);
      }
    });
  }
};

}  // namespace dfdx::op
