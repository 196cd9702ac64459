// SPDX-License-Identifier: BSL-1.0
// Convolutions over one to three axes and their transposes.
#pragma once

#include <algorithm>
#include <cmath>

#include <dfdx/kernels/conv.hpp>
#include <dfdx/ops/conv.hpp>
#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/windows.hpp>

namespace dfdx {

/// ConvOptions - of conv1d, conv2d and conv3d. One number stands for all axes; padding may be "same".
struct ConvOptions {
  Extents stride = 1;
  Padding padding = 0;
  Extents dilation = 1;
  index_t groups = 1;
};

/// ConvTransposeOptions - of conv_transpose1d, conv_transpose2d and conv_transpose3d.
struct ConvTransposeOptions {
  Extents stride = 1;
  Extents padding = 0;
  Extents output_padding = 0;
  index_t groups = 1;
  Extents dilation = 1;
};

namespace op::detail {

// Dense memory of an operand's elements as E.
template <class E>
Array dense_as(Operand const& x) {
  if (x.meta.dtype == dtype_v<E> && is_contiguous(x.meta.shape, x.strides)) return {};
  Array y(Meta{dtype_v<E>, x.meta.shape});
  kernels::convert(x, y.operand());
  return y;
}

// Of the three shapes, operands then the result, the geometry.
template <class Op>
constexpr ConvGeometry geometry_of(Attrs const& a, Shape const& first, Shape const& second,
                                   Shape const& made) {
  if constexpr (std::is_same_v<Op, conv>) return conv_geometry(a, first, second, made);
  else if constexpr (std::is_same_v<Op, conv_input>) return conv_geometry(a, made, second, first);
  else return conv_geometry(a, first, made, second);
}

// By whatever way, of which a program brings as many as it has.
template <class Op, class E>
[[gnu::noinline]] void run_conv_on(Attrs const& a, Operand const* in, Operand const& out,
                                   typename kernels::Conv<E>::Made how) {
  if (out.meta.shape.numel() == 0) return;
  Array const copies[] = {dense_as<E>(in[0]), dense_as<E>(in[1])};
  auto const data = [&](int k) {
    return copies[k].empty() ? static_cast<E const*>(in[k].data) : copies[k].template data<E>();
  };
  bool const direct = out.meta.dtype == dtype_v<E>;
  Array const made = direct ? Array() : Array(Meta{dtype_v<E>, out.meta.shape});
  E* const y = direct ? static_cast<E*>(out.data) : made.template data<E>();
  kernels::Conv<E> const c(geometry_of<Op>(a, in[0].meta.shape, in[1].meta.shape, out.meta.shape));
  if constexpr (std::is_same_v<Op, conv>) c.forward(data(0), data(1), y, how);
  else if constexpr (std::is_same_v<Op, conv_input>) c.input(y, data(1), data(0), how);
  else c.weight(data(0), y, data(1), how);
  if (!direct) kernels::convert(made.operand(), out);
}
template <class Op, class E, typename kernels::Conv<E>::Made How>
void run_conv_by(Attrs const& a, Operand const* in, Operand const& out) {
  run_conv_on<Op, E>(a, in, out, How);
}
template <class Op, class E>
void run_conv_as(Attrs const& a, Operand const* in, Operand const& out) {
  using K = kernels::Conv<E>;
  if constexpr (std::is_same_v<Op, conv>) run_conv_by<Op, E, &K::forward_any>(a, in, out);
  else if constexpr (std::is_same_v<Op, conv_input>) run_conv_by<Op, E, &K::input_any>(a, in, out);
  else run_conv_by<Op, E, &K::weight_any>(a, in, out);
}

// Where a program knows all extents, the kernels of one way, if that is the best of what every thread will do.
template <class Op, class E>
constexpr OwnRun run_conv_known(Attrs const& a, Meta const* m) {
  using K = kernels::Conv<E>;
  using enum kernels::ConvWay;
  bool const is_known = m[0].shape.is_static() && m[1].shape.is_static() && m[2].shape.is_static();
  if (is_known) {
    K const c(geometry_of<Op>(a, m[0].shape, m[1].shape, m[2].shape));
    if constexpr (std::is_same_v<Op, conv>) {
      if (c.has_one_forward_way()) switch (c.forward_way()) {
          case planes: return &run_conv_by<Op, E, &K::template forward_by<planes>>;
          case gathered: return &run_conv_by<Op, E, &K::template forward_by<gathered>>;
          case depthwise: return &run_conv_by<Op, E, &K::template forward_by<depthwise>>;
          default: return &run_conv_by<Op, E, &K::template forward_by<columns>>;
        }
    } else if constexpr (std::is_same_v<Op, conv_input>) {
      if (c.has_one_input_way()) switch (c.input_way()) {
          case planes: return &run_conv_by<Op, E, &K::template input_by<planes>>;
          case mirrored_planes: return &run_conv_by<Op, E, &K::template input_by<mirrored_planes>>;
          case mirrored_gathered: return &run_conv_by<Op, E, &K::template input_by<mirrored_gathered>>;
          case gathered: return &run_conv_by<Op, E, &K::template input_by<gathered>>;
          case phased: return &run_conv_by<Op, E, &K::template input_by<phased>>;
          case depthwise: return &run_conv_by<Op, E, &K::template input_by<depthwise>>;
          default: return &run_conv_by<Op, E, &K::template input_by<columns>>;
        }
    } else {
      switch (c.weight_way()) {
        case dots: return &run_conv_by<Op, E, &K::template weight_by<dots>>;
        case gathered: return &run_conv_by<Op, E, &K::template weight_by<gathered>>;
        case depthwise: return &run_conv_by<Op, E, &K::template weight_by<depthwise>>;
        default: return &run_conv_by<Op, E, &K::template weight_by<columns>>;
      }
    }
  }
  return &run_conv_as<Op, E>;
}

template <int = 0>
double largest_of(Operand const& x) {
  Array const all = dense_as<double>(x);
  double most = 0;
  for (index_t i = 0; i < all.size(); ++i) most = std::max(most, std::fabs(all.data<double>()[i]));
  return most;
}
// A bound of the sums of integers, and of all parts of them.
template <class Op>
double largest_sum(Operand const* in) {
  Shape const& second = in[1].meta.shape;
  index_t const terms = second.numel() / second[std::is_same_v<Op, conv> ? 0 : 1];
  return largest_of(in[0]) * largest_of(in[1]) * static_cast<double>(terms);
}

template <class Op>
void run_conv(Attrs const& a, Operand const* in, Operand const& out) {
  if (out.meta.shape.numel() == 0) return;
  DType const d = out.meta.dtype;
  double const most = is_floating(d) ? 0 : largest_sum<Op>(in);
  // Floats whose sums are all integers that they hold make them exactly.
  if (d == DType::f64 || (most > 0x1p24 && most <= 0x1p53)) run_conv_as<Op, double>(a, in, out);
  else if (most <= 0x1p24) run_conv_as<Op, float>(a, in, out);
  else {
    // Integers as those of 64 bits: modulo the range of others their sums are the same.
    Array const x[] = {dense_as<std::int64_t>(in[0]), dense_as<std::int64_t>(in[1])};
    Operand const wide[] = {x[0].empty() ? in[0] : x[0].operand(), x[1].empty() ? in[1] : x[1].operand()};
    Array const made(Meta{DType::i64, out.meta.shape});
    Op::template reference_as<std::int64_t>(a, wide, made.operand());
    kernels::convert(made.operand(), out);
  }
}
template <class Op>
constexpr OwnRun run_conv_for(Attrs const& a, Meta const* m) {
  bool const as_floats = is_floating(m[2].dtype) && m[2].dtype != DType::f64;
  return as_floats ? run_conv_known<Op, float>(a, m) : &run_conv<Op>;
}

}  // namespace op::detail

namespace detail {

// Result and operands of a convolution, without the batch axis or with it.
template <int N, bool Transposed>
struct Convolution {
  std::conditional_t<Transposed, ConvTransposeOptions, ConvOptions> o{};
  bool has_bias = false;

  static constexpr char const* name() {
    return (Transposed ? NameByAxes{"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
                       : NameByAxes{"conv1d", "conv2d", "conv3d"})[N];
  }

  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const &x = in[0].shape, &w = in[1].shape;
    if ((x.rank != N + 1 && x.rank != N + 2) || w.rank != N + 2)
      return refuse(why, name(), ": input of ", N + 2, " axes and weight of ", N + 2, " required, got ", x,
                    " x ", w);
    if (in[0].dtype != in[1].dtype || in[0].dtype == DType::boolean ||
        (has_bias && in[2].dtype != in[0].dtype))
      return refuse(why, name(), ": one numeric dtype required, got ", in[0].dtype, " x ",
                    in[has_bias && in[0].dtype == in[1].dtype ? 2 : 1].dtype);
    bool plain = o.groups >= 1 && for_axes(o.stride, N, 1) && for_axes(o.dilation, N, 1);
    if constexpr (Transposed) plain = plain && for_axes(o.padding, N, 0) && for_axes(o.output_padding, N, 0);
    else plain = plain && (o.padding.same || for_axes(o.padding.widths, N, 0));
    if (!plain)
      return refuse(why, name(), ": stride, padding, dilation or groups out of range or not for ", N,
                    " axes");
    int const channel = x.rank - N - 1;
    for (int i = 0; i < w.rank; ++i)
      if (w[i] < 0) return refuse(why, name(), ": weight ", w, " has no fixed extents");
    index_t const in_channels = extent::mul(w[Transposed ? 0 : 1], Transposed ? 1 : o.groups),
                  out_channels = extent::mul(w[Transposed ? 1 : 0], Transposed ? o.groups : 1);
    if (x[channel] != in_channels || out_channels < 0 || w[0] % o.groups != 0)
      return refuse(why, name(), ": input ", x, " does not fit weight ", w,
                    ", groups = ", Position{o.groups});
    if (has_bias && !(in[2].shape == make_shape(out_channels)))
      return refuse(why, name(), ": bias ", in[2].shape, " does not fit weight ", w);
    Meta y = in[0];
    y.shape[channel] = out_channels;
    for (int i = 0; i < N; ++i) {
      y.shape[channel + 1 + i] = extent_of(i, x[channel + 1 + i], w[2 + i]);
      if (y.shape[channel + 1 + i] < 0 && !keeps_extent(i, w[2 + i]))
        return refuse_axis(channel + 1 + i, x, w, why);
    }
    return y;
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x, V const& w) const {
    bool const batched = x.shape().rank == N + 2;
    auto const with_batch = [&](Shape const& s) {
      if (batched) return s;
      Shape r = make_shape(1);
      for (int i = 0; i < s.rank; ++i) r.push_back(s[i]);
      return r;
    };
    Attrs a;
    for (int i = 0; i < N; ++i) a.i[i] = window(i, w.shape()[2 + i]).packed();
    using Op = std::conditional_t<Transposed, op::conv_input, op::conv>;
    if constexpr (!Transposed)
      if (is_product(y.shape, x.shape(), w.shape(), y.dtype)) {
        index_t const places = w.shape().numel() / w.shape()[0];
        V seen = x;
        for (int i = 0; i < N; ++i) {
          int const axis = x.shape().rank - N + i;
          if (index_t const size = w.shape()[2 + i]; x.shape()[axis] != size)
            seen = slice_axis(seen, axis, 0, size, size == 1 ? 1 : for_axis(o.dilation, i));
        }
        V const rows = reshape_to(seen, make_shape(batched ? x.shape()[0] : 1, places));
        V const weights = reshape_to(w, make_shape(w.shape()[0], places));
        Meta const product{y.dtype, make_shape(rows.shape()[0], w.shape()[0])};
        return reshape_to(Matmul{}.template run<T>(product, rows, call(Transpose{-2, -1}, weights)), y.shape);
      }
    return reshape_to(bind_element_as<Op, T>(Meta{y.dtype, with_batch(y.shape)}, a,
                                             reshape_to(x, with_batch(x.shape())), w),
                      y.shape);
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x, V const& w, V const& bias) const {
    Shape wide = make_shape(bias.shape()[0]);
    for (int i = 0; i < N; ++i) wide.push_back(1);
    return bind_element<op::add, T>(Attrs{}, run<T>(y, x, w), broadcast_to(reshape_to(bias, wide), y.shape));
  }

 private:
  // Whether there is one window only, of an input that is not extended: then its numbers lie in a row, but for those
  // that it leaves out, and so do those of the weight.
  constexpr bool is_product(Shape const& y, Shape const& x, Shape const& w, DType d) const {
    bool ok = o.groups == 1 && is_floating(d) && w.numel() > 0;
    for (int i = 0; i < N; ++i)
      ok =
          ok && y[y.rank - 1 - i] == 1 && x[x.rank - 1 - i] > 0 && padding(N - 1 - i, w[w.rank - 1 - i]) == 0;
    return ok;
  }
  // How far both ends of an axis are extended, together.
  constexpr index_t padding(int i, index_t size) const {
    if constexpr (Transposed) return 2 * for_axis(o.padding, i);
    else return o.padding.same ? for_axis(o.dilation, i) * (size - 1) : 2 * for_axis(o.padding.widths, i);
  }
  constexpr Window window(int i, index_t size) const {
    return {size, for_axis(o.stride, i), for_axis(o.dilation, i), padding(i, size) / 2};
  }
  // Whether the result has the extent of the input, whatever that is.
  constexpr bool keeps_extent(int i, index_t size) const {
    Window const w = window(i, size);
    if constexpr (Transposed) return false;
    else return w.valid() && w.stride == 1 && padding(i, size) == w.reach() - 1;
  }
  // The extent of the result along an axis, or negative: that of the input, or none.
  constexpr index_t extent_of(int i, index_t n, index_t size) const {
    Window const w = window(i, size);
    if (!w.valid()) return -2;
    if constexpr (Transposed) {
      index_t const beyond = for_axis(o.output_padding, i);
      if (n < 1 || (beyond >= w.stride && beyond >= w.dilation)) return -2;
      index_t const r = (n - 1) * w.stride + w.reach() + beyond - padding(i, size);
      return r < 1 ? -2 : r;
    } else {
      if (keeps_extent(i, size)) return n;
      if (n < 0 || (o.padding.same && w.stride != 1)) return -2;
      index_t const room = n + padding(i, size) - w.reach();
      return room < 0 ? -2 : room / w.stride + 1;
    }
  }
  static constexpr Meta refuse_axis(int axis, Shape const& x, Shape const& w, Text* why) {
    if (x[axis] < 0) return refuse(why, name(), ": axis ", axis, " of ", x, " has no fixed extent");
    return refuse(why, name(), ": weight ", w, " and options do not fit axis ", axis, " of input ", x);
  }
};

template <int N, bool Transposed, auto Options, class... X>
constexpr auto convolve(X const&... x) {
  return call(Fixed<Convolution<N, Transposed>{Options, sizeof...(X) == 3}>{}, summable_bytes(x)...);
}
template <int N, bool Transposed, class Options, class... X>
constexpr auto convolve_now(Options const& o, X const&... x) {
  return call(Convolution<N, Transposed>{o, sizeof...(X) == 3}, summable_bytes(x)...);
}

}  // namespace detail

/// conv2d<ConvOptions{...}>(x, w, bias), conv2d(x, w, bias, {...}) - cross-correlation of images with a weight; the
/// bias may be left out. conv1d and conv3d likewise over one axis and three.
///
/// Math      y[n, o, p] = bias[o] + sum_{c, k} x[n, c, s p + d k - padding] w[o, c, k], channels c of the group of o
/// Shapes    x: [N, C, Y, X], w: [O, C / groups, K, L], bias: [O] -> [N, O, P, Q]; N may be missing
/// Dtypes    one numeric dtype; bytes count as i32, u8 beside i8 too, and so does the result, as that of matmul
/// Errors    "conv2d: input [2, 4, 9, 9] does not fit weight [8, 3, 3, 3], groups = 1"
/// Source    PyTorch's conv2d
template <ConvOptions O = ConvOptions{}, operand X, operand... W>
  requires(sizeof...(W) == 1 || sizeof...(W) == 2)
constexpr auto conv1d(X const& x, W const&... w) {
  return detail::convolve<1, false, O>(x, w...);
}
template <operand X, operand W>
constexpr auto conv1d(X const& x, W const& w, ConvOptions const& o) {
  return detail::convolve_now<1, false>(o, x, w);
}
template <operand X, operand W, operand B>
constexpr auto conv1d(X const& x, W const& w, B const& bias, ConvOptions const& o) {
  return detail::convolve_now<1, false>(o, x, w, bias);
}
template <ConvOptions O = ConvOptions{}, operand X, operand... W>
  requires(sizeof...(W) == 1 || sizeof...(W) == 2)
constexpr auto conv2d(X const& x, W const&... w) {
  return detail::convolve<2, false, O>(x, w...);
}
template <operand X, operand W>
constexpr auto conv2d(X const& x, W const& w, ConvOptions const& o) {
  return detail::convolve_now<2, false>(o, x, w);
}
template <operand X, operand W, operand B>
constexpr auto conv2d(X const& x, W const& w, B const& bias, ConvOptions const& o) {
  return detail::convolve_now<2, false>(o, x, w, bias);
}
template <ConvOptions O = ConvOptions{}, operand X, operand... W>
  requires(sizeof...(W) == 1 || sizeof...(W) == 2)
constexpr auto conv3d(X const& x, W const&... w) {
  return detail::convolve<3, false, O>(x, w...);
}
template <operand X, operand W>
constexpr auto conv3d(X const& x, W const& w, ConvOptions const& o) {
  return detail::convolve_now<3, false>(o, x, w);
}
template <operand X, operand W, operand B>
constexpr auto conv3d(X const& x, W const& w, B const& bias, ConvOptions const& o) {
  return detail::convolve_now<3, false>(o, x, w, bias);
}

/// conv_transpose2d<ConvTransposeOptions{...}>(x, w, bias), conv_transpose2d(x, w, bias, {...}) - the transpose of
/// conv2d in its input; conv_transpose1d and conv_transpose3d likewise.
///
/// Shapes    x: [N, C, Y, X], w: [C, O / groups, K, L], bias: [O] -> [N, O, P, Q],
///           P = (Y - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1; N may be missing
/// Dtypes    one numeric dtype; bytes as in conv2d
/// Errors    "conv_transpose2d: input [2, 4, 9, 9] does not fit weight [8, 3, 3, 3], groups = 1"
/// Source    PyTorch's conv_transpose2d
template <ConvTransposeOptions O = ConvTransposeOptions{}, operand X, operand... W>
  requires(sizeof...(W) == 1 || sizeof...(W) == 2)
constexpr auto conv_transpose1d(X const& x, W const&... w) {
  return detail::convolve<1, true, O>(x, w...);
}
template <operand X, operand W>
constexpr auto conv_transpose1d(X const& x, W const& w, ConvTransposeOptions const& o) {
  return detail::convolve_now<1, true>(o, x, w);
}
template <operand X, operand W, operand B>
constexpr auto conv_transpose1d(X const& x, W const& w, B const& bias, ConvTransposeOptions const& o) {
  return detail::convolve_now<1, true>(o, x, w, bias);
}
template <ConvTransposeOptions O = ConvTransposeOptions{}, operand X, operand... W>
  requires(sizeof...(W) == 1 || sizeof...(W) == 2)
constexpr auto conv_transpose2d(X const& x, W const&... w) {
  return detail::convolve<2, true, O>(x, w...);
}
template <operand X, operand W>
constexpr auto conv_transpose2d(X const& x, W const& w, ConvTransposeOptions const& o) {
  return detail::convolve_now<2, true>(o, x, w);
}
template <operand X, operand W, operand B>
constexpr auto conv_transpose2d(X const& x, W const& w, B const& bias, ConvTransposeOptions const& o) {
  return detail::convolve_now<2, true>(o, x, w, bias);
}
template <ConvTransposeOptions O = ConvTransposeOptions{}, operand X, operand... W>
  requires(sizeof...(W) == 1 || sizeof...(W) == 2)
constexpr auto conv_transpose3d(X const& x, W const&... w) {
  return detail::convolve<3, true, O>(x, w...);
}
template <operand X, operand W>
constexpr auto conv_transpose3d(X const& x, W const& w, ConvTransposeOptions const& o) {
  return detail::convolve_now<3, true>(o, x, w);
}
template <operand X, operand W, operand B>
constexpr auto conv_transpose3d(X const& x, W const& w, B const& bias, ConvTransposeOptions const& o) {
  return detail::convolve_now<3, true>(o, x, w, bias);
}

}  // namespace dfdx
