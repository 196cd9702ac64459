// SPDX-License-Identifier: BSL-1.0
// Convolutions. The sum of x[n, c, s p + d k - b] w[o, c, k] y[n, o, p] over all indices is linear in each of x, w
// and y: its derivative by one of them is an op on the other two. So there are three ops, and the derivatives of
// each are the others.
#pragma once

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::op {

namespace detail {

/// Defined where kernels are known; Op is one of those below.
template <class Op>
void run_conv(Attrs const& a, Operand const* in, Operand const& out);
template <class Op, class E>
void run_conv_as(Attrs const& a, Operand const* in, Operand const& out);
template <class Op>
constexpr OwnRun run_conv_for(Attrs const& a, Meta const* metas);

// attrs.i[axis] is the window of that axis. Groups follow from the numbers of channels.
constexpr ConvGeometry conv_geometry(Attrs const& a, Shape const& x, Shape const& w, Shape const& y) {
  ConvGeometry g;
  int const axes = x.rank - 2;
  g.batch = x[0];
  g.in = w[1];
  g.groups = w[1] == 0 ? 1 : x[1] / w[1];
  g.out = g.groups == 0 ? 0 : w[0] / g.groups;
  for (int i = 0; i < axes; ++i) {
    int const at = 3 - axes + i;
    g.x[at] = x[2 + i];
    g.y[at] = y[2 + i];
    g.w[at] = Window::of(a.i[i]);
  }
  return g;
}

// Elements of an operand by sample (or channel made), channel and three positions.
template <class T>
struct ConvOperand {
  T* data;
  index_t sample, channel, step[3] = {};
  ConvOperand(void* p, Strides const& t) : data(static_cast<T*>(p)), sample(t[0]), channel(t[1]) {
    for (int i = 2; i < t.rank; ++i) step[3 - t.rank + i] = t[i];
  }
  T& operator()(index_t a, index_t b, index_t const (&i)[3]) const {
    return data[a * sample + b * channel + i[0] * step[0] + i[1] * step[1] + i[2] * step[2]];
  }
};

// f(o, c, p, k, i) for the elements of one group of which the sum is made: y at p, w at k, x at i.
template <class F>
void for_conv(ConvGeometry const& g, F const& f) {
  index_t p[3], k[3], i[3];
  auto const axis = [&](auto const& self, int a, index_t o, index_t c) -> void {
    if (a == 3) return f(o, c, p, k, i);
    for (p[a] = 0; p[a] < g.y[a]; ++p[a])
      for (k[a] = 0; k[a] < g.w[a].size; ++k[a])
        if (i[a] = g.w[a].at(p[a], k[a]); i[a] >= 0 && i[a] < g.x[a]) self(self, a + 1, o, c);
  };
  for (index_t o = 0; o < g.out; ++o)
    for (index_t c = 0; c < g.in; ++c) axis(axis, 0, o, c);
}

// The plain loops of all three: the operand Result is summed from the others, all of type T.
template <int Result, class T>
void conv_loops(Attrs const& a, Operand const& x, Operand const& w, Operand const& y) {
  ConvGeometry const g = conv_geometry(a, x.meta.shape, w.meta.shape, y.meta.shape);
  Operand const& made = Result == 0 ? x : Result == 1 ? w : y;
  using Sum = std::conditional_t<is_floating(dtype_v<T>), double, std::uint64_t>;  // integers wrap
  kernels::ScratchVector<Sum> sums(static_cast<std::size_t>(made.meta.shape.numel()));
  auto const view = [&](Operand const& v) { return ConvOperand<T const>(v.data, v.strides); };
  ConvOperand<T const> const xs = view(x), ws = view(w), ys = view(y);
  ConvOperand<Sum> const to(sums.data(), contiguous(made.meta.shape));
  for (index_t n = 0; n < g.batch; ++n)
    for (index_t group = 0; group < g.groups; ++group)
      for_conv(g,
               [&](index_t out, index_t c, index_t const(&p)[3], index_t const(&k)[3], index_t const(&i)[3]) {
                 index_t const o = group * g.out + out, in = group * g.in + c;
                 auto const times = [](T u, T v) {
                   return static_cast<Sum>(static_cast<compute_t<T>>(u)) *
                          static_cast<Sum>(static_cast<compute_t<T>>(v));
                 };
                 if constexpr (Result == 0) to(n, in, i) += times(ws(o, c, k), ys(n, o, p));
                 else if constexpr (Result == 1) to(o, c, k) += times(xs(n, in, i), ys(n, o, p));
                 else to(n, o, p) += times(xs(n, in, i), ws(o, c, k));
               });
  for (std::size_t i = 0; i < sums.size(); ++i)
    static_cast<T*>(made.data)[i] = static_cast<T>(static_cast<compute_t<T>>(sums[i]));
}

struct convolution : operation {
  static constexpr bool is_product = true, keeps_dtype = true;
  static constexpr int arity = 2;
  static constexpr int cost = 1000;
  static constexpr unsigned reads(int which) { return which == 0 ? 2 : 1; }
};

}  // namespace detail

/// conv - cross-correlation; attrs.i[axis] is the window of a spatial axis. The result's shape is given with bind_as.
///
/// Math      y[n, o, p] = sum_{c, k} x[n, c, s p + d k - b] w[o, c, k], x = 0 outside; dx: conv_input, dw:
///           conv_weight
/// Shapes    x: [N, C, S...], w: [O, C / G, K...] -> y: [N, O, P...]; one to three axes S
/// Dtypes    all but bool; f16 and bf16 accumulate in f32
/// Errors    those of conv1d, conv2d, conv3d
/// Source    PyTorch's conv2d
struct conv : detail::convolution {
  static constexpr char const* name = "conv";
  static constexpr Examples examples = Examples::join;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s);
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<conv>(s.y.meta(), s.attrs, I == 0 ? t : s.x[0], I == 0 ? s.x[1] : t);
  }
  template <int = 0>
  static void reference(Attrs const& a, Operand const* in, Operand const& out) {
    dispatch(out.meta.dtype, [&](auto type) { reference_as<typename decltype(type)::type>(a, in, out); });
  }
  template <class T>
  static void reference_as(Attrs const& a, Operand const* in, Operand const& out) {
    detail::conv_loops<2, T>(a, in[0], in[1], out);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_conv<conv>(a, in, out);
  }
  template <int = 0>
  static void run_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_conv_as<conv, float>(a, in, out);
  }
  template <int = 0, class Op = conv>
  static constexpr OwnRun run_for(Attrs const& a, Meta const* metas) {
    return detail::run_conv_for<Op>(a, metas);
  }
};

/// conv_input - the transpose of conv in its input: what a transposed convolution is. Attributes are those of conv.
///
/// Math      x[n, c, i] = sum of y[n, o, p] w[o, c, k] over o and all p, k with s p + d k - b = i
/// Shapes    y: [N, O, P...], w: [O, C / G, K...] -> x: [N, C, S...]
/// Dtypes    all but bool; f16 and bf16 accumulate in f32
/// Errors    those of conv_transpose1d, conv_transpose2d, conv_transpose3d
/// Source    PyTorch's conv_transpose2d
struct conv_input : detail::convolution {
  static constexpr char const* name = "conv_input";
  static constexpr Examples examples = Examples::join;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s);
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<conv_input>(s.y.meta(), s.attrs, I == 0 ? t : s.x[0], I == 0 ? s.x[1] : t);
  }
  template <int = 0>
  static void reference(Attrs const& a, Operand const* in, Operand const& out) {
    dispatch(out.meta.dtype, [&](auto type) { reference_as<typename decltype(type)::type>(a, in, out); });
  }
  template <class T>
  static void reference_as(Attrs const& a, Operand const* in, Operand const& out) {
    detail::conv_loops<0, T>(a, out, in[1], in[0]);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_conv<conv_input>(a, in, out);
  }
  template <int = 0>
  static void run_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_conv_as<conv_input, float>(a, in, out);
  }
  template <int = 0, class Op = conv_input>
  static constexpr OwnRun run_for(Attrs const& a, Meta const* metas) {
    return detail::run_conv_for<Op>(a, metas);
  }
};

/// conv_weight - the transpose of conv in its weight. Attributes are those of conv.
///
/// Math      w[o, c, k] = sum_{n, p} x[n, c, s p + d k - b] y[n, o, p]
/// Shapes    x: [N, C, S...], y: [N, O, P...] -> w: [O, C / G, K...]
/// Dtypes    all but bool; f16 and bf16 accumulate in f32
/// Errors    none of its own: it is the derivative of the others
/// Source    elementary
struct conv_weight : detail::convolution {
  static constexpr char const* name = "conv_weight";
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s);
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind_as<conv_weight>(s.y.meta(), s.attrs, I == 0 ? t : s.x[0], I == 0 ? s.x[1] : t);
  }
  template <int = 0>
  static void reference(Attrs const& a, Operand const* in, Operand const& out) {
    dispatch(out.meta.dtype, [&](auto type) { reference_as<typename decltype(type)::type>(a, in, out); });
  }
  template <class T>
  static void reference_as(Attrs const& a, Operand const* in, Operand const& out) {
    detail::conv_loops<1, T>(a, in[0], out, in[1]);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_conv<conv_weight>(a, in, out);
  }
  template <int = 0>
  static void run_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_conv_as<conv_weight, float>(a, in, out);
  }
  template <int = 0, class Op = conv_weight>
  static constexpr OwnRun run_for(Attrs const& a, Meta const* metas) {
    return detail::run_conv_for<Op>(a, metas);
  }
};

template <int I, class V>
constexpr V conv::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind_as<conv_input>(s.x[0].meta(), s.attrs, ct, s.x[1]);
  else return bind_as<conv_weight>(s.x[1].meta(), s.attrs, s.x[0], ct);
}
template <int I, class V>
constexpr V conv_input::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind_as<conv>(s.x[0].meta(), s.attrs, ct, s.x[1]);
  else return bind_as<conv_weight>(s.x[1].meta(), s.attrs, ct, s.x[0]);
}
template <int I, class V>
constexpr V conv_weight::vjp(V const& ct, Site<V> const& s) {
  if constexpr (I == 0) return bind_as<conv_input>(s.x[0].meta(), s.attrs, s.x[1], ct);
  else return bind_as<conv>(s.x[1].meta(), s.attrs, s.x[0], ct);
}

}  // namespace dfdx::op
