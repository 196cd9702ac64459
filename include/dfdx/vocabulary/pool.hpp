// SPDX-License-Identifier: BSL-1.0
// Pooling: the largest elements, means and norms of windows over one to three axes.
#pragma once

#include <tuple>

#include <dfdx/kernels/pool.hpp>
#include <dfdx/ops/pool.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/windows.hpp>

namespace dfdx {

namespace op::detail {

template <class Op, class T>
bool run_window_argmax(Attrs const& a, Operand const& x, Operand const& out) {
  Shape const &from = x.meta.shape, &to = out.meta.shape;
  if (to.numel() == 0 || !is_contiguous(from, x.strides)) return false;
  index_t n[3] = {1, 1, 1}, m[3] = {1, 1, 1}, windows[3] = {};
  Op::extents(a, from, to, n, m, windows);
  if (sizeof(T) == 4 && n[0] * n[1] * n[2] > index_t{1} << 30) return false;
  kernels::window_argmax(static_cast<T const*>(x.data), out.data, static_cast<int>(size_of(out.meta.dtype)),
                         to[0], n, m, windows);
  return true;
}

}  // namespace op::detail

/// MaxPoolOptions, AvgPoolOptions, LpPoolOptions - windows as PyTorch describes them. One number stands for all
/// axes; without a stride windows lie side by side; with ceil_mode a last one may reach beyond the end.
struct MaxPoolOptions {
  Extents kernel;
  Extents stride{};
  Extents padding = 0;
  Extents dilation = 1;
  bool ceil_mode = false;
};
struct AvgPoolOptions {
  Extents kernel;
  Extents stride{};
  Extents padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  index_t divisor_override = 0;
};
struct LpPoolOptions {
  Extents kernel;
  Extents stride{};
  bool ceil_mode = false;
};

namespace detail {

/// Pools - what happens to the last N axes: windows, or bins of which there are `bins`.
template <int N>
struct Pools {
  Extents kernel{}, stride{}, padding = 0, dilation = 1;
  bool ceil_mode = false;
  Extents bins{};
  constexpr bool adaptive() const { return bins.shape.rank != 0; }
  constexpr bool valid() const {
    if (adaptive()) return for_axes(bins, N, -1);
    return for_axes(kernel, N, 1) && (stride.shape.rank == 0 || for_axes(stride, N, 1)) &&
           for_axes(padding, N, 0) && for_axes(dilation, N, 1);
  }
  constexpr Window window(int i) const {
    return {for_axis(kernel, i), for_axis(stride.shape.rank == 0 ? kernel : stride, i), for_axis(dilation, i),
            for_axis(padding, i)};
  }
  // The attribute that describes the windows of an axis.
  constexpr index_t packed(int i) const { return adaptive() ? 0 : window(i).packed(); }
  // How many windows n elements have, or negative.
  constexpr index_t count(int i, index_t n) const {
    if (n < 1) return -2;
    if (adaptive()) return for_axis(bins, i) == -1 ? n : for_axis(bins, i);
    Window const w = window(i);
    index_t const room = n + 2 * w.before - w.reach();
    if (2 * w.before > w.reach() || (!ceil_mode && room < 0) || room + w.stride <= 0) return -2;
    index_t r = (ceil_mode ? room + w.stride - 1 : room) / w.stride + 1;
    if (ceil_mode && (r - 1) * w.stride >= n + w.before) --r;
    for (index_t p = 0; w.dilation > 1 && p < r; ++p)
      if (Span::inside(w, p, n).count == 0) return -2;
    return r;
  }
  constexpr Shape pooled(char const* name, Shape const& x, Text* why) const {
    if (x.rank != N + 1 && x.rank != N + 2)
      return refuse(why, name, ": input of ", N + 2, " axes required, got ", x).shape;
    if (!valid())
      return refuse(why, name, ": kernel, stride, padding, dilation or sizes out of range or not for ", N,
                    " axes")
          .shape;
    Shape y = x;
    for (int i = 0, axis = x.rank - N; i < N; ++i, ++axis) {
      if (x[axis] < 0) return refuse(why, name, ": axis ", axis, " of ", x, " has no fixed extent").shape;
      y[axis] = count(i, x[axis]);
      if (y[axis] < 0) return refuse(why, name, ": windows do not fit axis ", axis, " of ", x).shape;
    }
    return y;
  }
};

// All axes but the last N as one.
template <int N>
constexpr Shape joined_shape(Shape const& s) {
  Shape r = make_shape(1);
  for (int i = 0; i < s.rank; ++i)
    if (i < s.rank - N) r[0] = extent::mul(r[0], s[i]);
    else r.push_back(s[i]);
  return r;
}

// Where the largest elements are.
template <int N>
struct MaxPlaces {
  Pools<N> pools;
  constexpr char const* name() const {
    return (pools.adaptive() ? NameByAxes{"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"}
                             : NameByAxes{"max_pool1d", "max_pool2d", "max_pool3d"})[N];
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (in->dtype == DType::boolean) return refuse(why, name(), ": numeric dtype required, got bool");
    return Meta{dtype_of(in->shape), pools.pooled(name(), in->shape, why)};
  }
  // Wide enough for a place; these numbers are kept for the backward pass.
  static constexpr DType dtype_of(Shape const& x) {
    index_t n = 1;
    for (int i = x.rank - N; i < x.rank; ++i) n = i < 0 ? n : extent::mul(n, x[i]);
    return n < 0 || n > std::numeric_limits<std::int32_t>::max() ? DType::i64
           : n > 256                                             ? DType::i32
                                                                 : DType::u8;
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x) const {
    Attrs a;
    for (int i = 0; i < N; ++i) a.i[i] = pools.packed(i);
    return reshape_to(bind_element_as<op::window_argmax, T>(Meta{y.dtype, joined_shape<N>(y.shape)}, a,
                                                            reshape_to(x, joined_shape<N>(x.shape()))),
                      y.shape);
  }
};
// The elements there.
template <int N>
struct AtPlaces {
  static constexpr Meta infer(Meta const* in, Text*) { return Meta{in[0].dtype, in[1].shape}; }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& x, V const& places) {
    auto const flat = [](V const& v) {
      Shape const s = joined_shape<N>(v.shape());
      index_t n = 1;
      for (int i = 1; i <= N; ++i) n *= s[i];
      return reshape_to(v, make_shape(s[0], n));
    };
    return reshape_to(bind<op::gather>(Attrs{{1}}, flat(x), flat(places)), y.shape);
  }
};
template <int N, class P, operand X>
constexpr auto max_pool_with(X const& x, P const& p) {
  auto const places = call(p, x);
  return std::tuple(call(Fixed<AtPlaces<N>{}>{}, x, places), cast<std::int64_t>(places));
}

template <int N>
struct Mean {
  Pools<N> pools;
  op::Sampling how = op::Sampling::mean;
  index_t divisor = 0;  // of sums; 0: none is given
  bool powers = false;
  constexpr char const* name() const {
    return (pools.adaptive() ? NameByAxes{"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}
            : powers         ? NameByAxes{"lp_pool1d", "lp_pool2d", "lp_pool3d"}
                             : NameByAxes{"avg_pool1d", "avg_pool2d", "avg_pool3d"})[N];
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (!is_floating(in->dtype)) return refuse(why, name(), ": floating dtype required, got ", in->dtype);
    if (divisor < 0) return refuse(why, name(), ": a positive divisor required");
    return Meta{in->dtype, pools.pooled(name(), in->shape, why)};
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const first = y.shape.rank - N;
    auto const stays = [&](int axis) {
      return axis < first || pools.packed(axis - first) == Window{}.packed() ||
             (pools.adaptive() && x.shape()[axis] == y.shape[axis]);
    };
    auto const of_axis = [&](int axis) { return Attrs{{axis, index_t(how), pools.packed(axis - first)}}; };
    if (divisor == 0) return resampled<T>(x, y.shape, stays, of_axis);
    V const r = resampled<T>(in_f32(x), y.shape, stays, of_axis);
    V const part = full_as(r, r.meta(), 1 / static_cast<double>(divisor));
    return rounded_as(bind_element<op::mul, compute_t<T>>(Attrs{}, r, part), x);
  }
};

template <int N>
constexpr MaxPlaces<N> max_places(MaxPoolOptions const& o) {
  return {{o.kernel, o.stride, o.padding, o.dilation, o.ceil_mode, {}}};
}
template <int N>
constexpr Mean<N> mean_of(AvgPoolOptions const& o) {
  return {{o.kernel, o.stride, o.padding, 1, o.ceil_mode, {}},
          o.divisor_override != 0 ? op::Sampling::sum
          : o.count_include_pad   ? op::Sampling::padded_mean
                                  : op::Sampling::mean,
          o.divisor_override};
}
template <int N>
constexpr Mean<N> mean_of(LpPoolOptions const& o) {
  return {{o.kernel, o.stride, 0, 1, o.ceil_mode, {}}, op::Sampling::padded_mean, 0, true};
}
template <int N>
constexpr Pools<N> bins_of(Extents const& sizes) {
  return {{}, {}, 0, 1, false, sizes};
}

template <int N, class P, operand X>
constexpr auto lp_pool_with(X const& x, double norm, Extents const& kernel, P const& p) {
  double size = 1;
  for (int i = 0; i < N; ++i) size *= static_cast<double>(for_axis(kernel, i));
  return power(call(p, pow(x, norm)) * size, 1 / norm);
}

}  // namespace detail

/// max_pool2d<MaxPoolOptions{...}>(x), max_pool2d(x, {kernel, stride, ...}) - the largest element of each window, the
/// first if several; max_pool2d_with_indices - also its place in its channel, a tuple. 1d and 3d likewise.
///
/// Shapes    x: [N, C, Y, X] -> [N, C, P, Q]; N may be missing
/// Dtypes    all but bool; places i64
/// Errors    "max_pool2d: windows do not fit axis 2 of [2, 3, 2, 9]"
/// Source    PyTorch's max_pool2d
template <MaxPoolOptions O, operand X>
constexpr auto max_pool1d_with_indices(X const& x) {
  return detail::max_pool_with<1>(x, detail::Fixed<detail::max_places<1>(O)>{});
}
template <operand X>
constexpr auto max_pool1d_with_indices(X const& x, MaxPoolOptions const& o) {
  return detail::max_pool_with<1>(x, detail::max_places<1>(o));
}
template <MaxPoolOptions O, operand X>
constexpr auto max_pool1d(X const& x) {
  return std::get<0>(max_pool1d_with_indices<O>(x));
}
template <operand X>
constexpr auto max_pool1d(X const& x, MaxPoolOptions const& o) {
  return std::get<0>(max_pool1d_with_indices(x, o));
}
template <MaxPoolOptions O, operand X>
constexpr auto max_pool2d_with_indices(X const& x) {
  return detail::max_pool_with<2>(x, detail::Fixed<detail::max_places<2>(O)>{});
}
template <operand X>
constexpr auto max_pool2d_with_indices(X const& x, MaxPoolOptions const& o) {
  return detail::max_pool_with<2>(x, detail::max_places<2>(o));
}
template <MaxPoolOptions O, operand X>
constexpr auto max_pool2d(X const& x) {
  return std::get<0>(max_pool2d_with_indices<O>(x));
}
template <operand X>
constexpr auto max_pool2d(X const& x, MaxPoolOptions const& o) {
  return std::get<0>(max_pool2d_with_indices(x, o));
}
template <MaxPoolOptions O, operand X>
constexpr auto max_pool3d_with_indices(X const& x) {
  return detail::max_pool_with<3>(x, detail::Fixed<detail::max_places<3>(O)>{});
}
template <operand X>
constexpr auto max_pool3d_with_indices(X const& x, MaxPoolOptions const& o) {
  return detail::max_pool_with<3>(x, detail::max_places<3>(o));
}
template <MaxPoolOptions O, operand X>
constexpr auto max_pool3d(X const& x) {
  return std::get<0>(max_pool3d_with_indices<O>(x));
}
template <operand X>
constexpr auto max_pool3d(X const& x, MaxPoolOptions const& o) {
  return std::get<0>(max_pool3d_with_indices(x, o));
}

/// avg_pool2d<AvgPoolOptions{...}>(x), avg_pool2d(x, {kernel, stride, padding, ceil_mode, count_include_pad,
/// divisor_override}) - the mean of each window; avg_pool1d and avg_pool3d likewise.
///
/// Shapes    x: [N, C, Y, X] -> [N, C, P, Q]; N may be missing
/// Dtypes    floating; f16 and bf16 in f32
/// Errors    "avg_pool2d: floating dtype required, got i32"
/// Source    PyTorch's avg_pool2d
template <AvgPoolOptions O, operand X>
constexpr auto avg_pool1d(X const& x) {
  return detail::call(detail::Fixed<detail::mean_of<1>(O)>{}, x);
}
template <operand X>
constexpr auto avg_pool1d(X const& x, AvgPoolOptions const& o) {
  return detail::call(detail::mean_of<1>(o), x);
}
template <AvgPoolOptions O, operand X>
constexpr auto avg_pool2d(X const& x) {
  return detail::call(detail::Fixed<detail::mean_of<2>(O)>{}, x);
}
template <operand X>
constexpr auto avg_pool2d(X const& x, AvgPoolOptions const& o) {
  return detail::call(detail::mean_of<2>(o), x);
}
template <AvgPoolOptions O, operand X>
constexpr auto avg_pool3d(X const& x) {
  return detail::call(detail::Fixed<detail::mean_of<3>(O)>{}, x);
}
template <operand X>
constexpr auto avg_pool3d(X const& x, AvgPoolOptions const& o) {
  return detail::call(detail::mean_of<3>(o), x);
}

/// lp_pool2d<LpPoolOptions{...}>(x, p), lp_pool2d(x, p, {kernel, stride, ceil_mode}) - (sum x^p)^(1/p) of each window,
/// without absolute values. The gradient of a sum of 0 is 0. lp_pool1d likewise.
///
/// Shapes    those of avg_pool2d
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    PyTorch's lp_pool2d
template <LpPoolOptions O, operand X>
constexpr auto lp_pool1d(X const& x, double norm) {
  return detail::lp_pool_with<1>(x, norm, O.kernel, detail::Fixed<detail::mean_of<1>(O)>{});
}
template <operand X>
constexpr auto lp_pool1d(X const& x, double norm, LpPoolOptions const& o) {
  return detail::lp_pool_with<1>(x, norm, o.kernel, detail::mean_of<1>(o));
}
template <LpPoolOptions O, operand X>
constexpr auto lp_pool2d(X const& x, double norm) {
  return detail::lp_pool_with<2>(x, norm, O.kernel, detail::Fixed<detail::mean_of<2>(O)>{});
}
template <operand X>
constexpr auto lp_pool2d(X const& x, double norm, LpPoolOptions const& o) {
  return detail::lp_pool_with<2>(x, norm, o.kernel, detail::mean_of<2>(o));
}

/// adaptive_avg_pool2d<P, Q>(x), adaptive_avg_pool2d(x, {P, Q}) - means of P x Q parts of nearly equal size; an extent
/// of -1 stays. adaptive_max_pool2d for the largest elements; both with 1d for one axis.
///
/// Shapes    those of avg_pool2d
/// Dtypes    floating; adaptive_max_pool1d and 2d all but bool, places i64
/// Source    PyTorch's adaptive_avg_pool2d and adaptive_max_pool2d
template <index_t... Sizes, operand X>
  requires(sizeof...(Sizes) > 0)
constexpr auto adaptive_avg_pool1d(X const& x) {
  return detail::call(detail::Fixed<detail::Mean<1>{detail::bins_of<1>({Sizes...})}>{}, x);
}
template <operand X>
constexpr auto adaptive_avg_pool1d(X const& x, Extents const& sizes) {
  return detail::call(detail::Mean<1>{detail::bins_of<1>(sizes)}, x);
}
template <index_t... Sizes, operand X>
  requires(sizeof...(Sizes) > 0)
constexpr auto adaptive_avg_pool2d(X const& x) {
  return detail::call(detail::Fixed<detail::Mean<2>{detail::bins_of<2>({Sizes...})}>{}, x);
}
template <operand X>
constexpr auto adaptive_avg_pool2d(X const& x, Extents const& sizes) {
  return detail::call(detail::Mean<2>{detail::bins_of<2>(sizes)}, x);
}
template <index_t... Sizes, operand X>
  requires(sizeof...(Sizes) > 0)
constexpr auto adaptive_max_pool1d_with_indices(X const& x) {
  return detail::max_pool_with<1>(x, detail::Fixed<detail::MaxPlaces<1>{detail::bins_of<1>({Sizes...})}>{});
}
template <operand X>
constexpr auto adaptive_max_pool1d_with_indices(X const& x, Extents const& sizes) {
  return detail::max_pool_with<1>(x, detail::MaxPlaces<1>{detail::bins_of<1>(sizes)});
}
template <index_t... Sizes, operand X>
  requires(sizeof...(Sizes) > 0)
constexpr auto adaptive_max_pool1d(X const& x) {
  return std::get<0>(adaptive_max_pool1d_with_indices<Sizes...>(x));
}
template <operand X>
constexpr auto adaptive_max_pool1d(X const& x, Extents const& sizes) {
  return std::get<0>(adaptive_max_pool1d_with_indices(x, sizes));
}
template <index_t... Sizes, operand X>
  requires(sizeof...(Sizes) > 0)
constexpr auto adaptive_max_pool2d_with_indices(X const& x) {
  return detail::max_pool_with<2>(x, detail::Fixed<detail::MaxPlaces<2>{detail::bins_of<2>({Sizes...})}>{});
}
template <operand X>
constexpr auto adaptive_max_pool2d_with_indices(X const& x, Extents const& sizes) {
  return detail::max_pool_with<2>(x, detail::MaxPlaces<2>{detail::bins_of<2>(sizes)});
}
template <index_t... Sizes, operand X>
  requires(sizeof...(Sizes) > 0)
constexpr auto adaptive_max_pool2d(X const& x) {
  return std::get<0>(adaptive_max_pool2d_with_indices<Sizes...>(x));
}
template <operand X>
constexpr auto adaptive_max_pool2d(X const& x, Extents const& sizes) {
  return std::get<0>(adaptive_max_pool2d_with_indices(x, sizes));
}

}  // namespace dfdx
