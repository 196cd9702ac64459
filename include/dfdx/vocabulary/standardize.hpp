// SPDX-License-Identifier: BSL-1.0
// Norms in one step (ops/standardize.hpp): how they run on the CPU, when functions have them so, and derivatives. First
// gradients are one step as well; forward mode and gradients of gradients are products and means.
#pragma once

#include <dfdx/kernels/standardize.hpp>
#include <dfdx/ops/standardize.hpp>
#include <dfdx/vocabulary/moments.hpp>
#include <dfdx/vocabulary/shape.hpp>

namespace dfdx {

namespace op::detail {

// Operands of a norm, dense and as numbers T.
template <class T>
class NormOperand {
 public:
  explicit NormOperand(Operand const& x) {
    if (x.meta.shape.numel() == 0) return;
    data_ = static_cast<T*>(x.data);
    if (x.meta.dtype == dtype_v<T> && is_contiguous(x.meta.shape, x.strides)) return;
    copy_ = Array(Meta{dtype_v<T>, x.meta.shape});
    if (x.meta.dtype != dtype_v<T>) kernels::convert(x, copy_.operand());
    else if (!kernels::copy_transposed(x, copy_.operand())) copy_elements(x, copy_.operand());
    data_ = copy_.template data<T>();
  }
  T const* get() const { return data_; }

 private:
  T const* data_ = nullptr;
  Array copy_;
};

template <class Op, class T>
void run_norm_as(Attrs const& a, Operand const* in, Operand const& out, [[maybe_unused]] void* means,
                 [[maybe_unused]] void* variances) {
  NormOptions const o = NormOptions::of(a);
  NormRows const rows = o.rows(in[0].meta.shape);
  NormOperand<T> const x(in[0]), weight(in[1]), third(in[2]);
  bool const direct = out.meta.dtype == dtype_v<T>;
  Array const made = direct ? Array() : Array(Meta{dtype_v<T>, out.meta.shape});
  T* const y = direct ? static_cast<T*>(out.data) : made.template data<T>();
  if constexpr (std::is_same_v<Op, standardize>) {
    kernels::standardize<T>(rows, x.get(), weight.get(), third.get(), y,
                            {static_cast<T*>(means), static_cast<T*>(variances)});
  } else {
    index_t const n = in[0].meta.shape.numel();
    T* const d_weight = weight.get() == nullptr ? nullptr : y + n;
    kernels::standardize_back<T>(rows, x.get(), weight.get(), third.get(), y, d_weight,
                                 d_weight != nullptr && o.biased ? d_weight + rows.parameters() : nullptr);
  }
  if (!direct) kernels::convert(made.operand(), out);
}
template <class Op>
void run_norm(Attrs const& a, Operand const* in, Operand const& out, void* means, void* variances) {
  if (out.meta.shape.numel() == 0) return;
  if (out.meta.dtype == DType::f64) run_norm_as<Op, double>(a, in, out, means, variances);
  else run_norm_as<Op, float>(a, in, out, means, variances);
}

}  // namespace op::detail

namespace detail {

// Vectors without a size run the ops that norms are made of.
#if defined(DFDX_RVV)
inline constexpr bool has_norms_in_one_step = false;
#else
inline constexpr bool has_norms_in_one_step = true;
#endif

/// NormRules - what both ops compute, of arrays with the axes samples, groups, channels, inner.
template <class V>
struct NormRules {
  Site<V> const& s;
  op::NormOptions o;
  op::NormRows rows;
  Shape apart, parameters;
  V scale, z;

  constexpr explicit NormRules(Site<V> const& site)
      : s(site), o(op::NormOptions::of(s.attrs)), rows(o.rows(s.x[0].shape())) {
    apart = make_shape(rows.samples, rows.groups, rows.channels, rows.inner);
    parameters = make_shape(1, rows.groups, rows.channels, 1);
    V const x = split(s.x[0]);
    if (o.centred) {
      auto const row = standard_over(x, over(), o.eps);
      scale = row.scale;
      z = row.z;
    } else {
      scale = rsqrt(over_row(square(x)) + o.eps);
      z = x * scale;
    }
  }
  constexpr Over over() const { return Over{o.across ? Axes{0, 2, 3} : Axes{2, 3}, true}; }
  constexpr bool weighted() const { return s.x[1].shape().numel() != 0; }
  constexpr index_t size() const { return s.x[0].shape().numel(); }
  constexpr V split(V const& x) const { return reshape_to(in_f32(x), apart); }
  constexpr V lifted(V const& p) const { return reshape_to(in_f32(p), parameters); }
  /// The mean over each row.
  constexpr V over_row(V const& x) const { return mean_of(x, over()); }
  /// The sum for each parameter.
  constexpr V over_rest(V const& x) const { return reduce<op::sum>(x, Over{Axes{0, 3}, true}); }
  /// scale times what of x is neither constant in a row nor along z.
  constexpr V across(V const& x) const { return flat_part(x) * scale; }
  constexpr V weigh(V const& x) const { return weighted() ? x * lifted(s.x[1]) : x; }
  constexpr V spread(V const& x) const { return broadcast_to(x, apart); }
  constexpr V like(V const& y, V const& x) const { return rounded_as(reshape_to(y, x.shape()), x); }
  /// The parts of what standardize_back makes.
  constexpr V part(V const& all, int which) const {
    index_t const n = which == 0 ? size() : rows.parameters();
    V const p = slice_axis(all, 0, which == 0 ? 0 : size() + (which - 1) * n, n);
    return which == 0 ? split(p) : lifted(p);
  }
  constexpr V list(V const& x, V const& weight, V const& bias) const {
    auto const flat = [&](V const& v) {
      return rounded_as(reshape_to(v, make_shape(v.shape().numel())), s.x[0]);
    };
    V r = flat(x);
    if (weighted()) r = bind<op::concat>(Attrs{{0}}, r, flat(weight));
    if (weighted() && o.biased) r = bind<op::concat>(Attrs{{0}}, r, flat(bias));
    return r;
  }
  constexpr V zeros() const { return full_as(z, Meta{z.dtype(), parameters}, 0); }

  template <int I>
  constexpr V jvp(V const& t) const {
    V const y = I == 0 ? weigh(across(split(t))) : I == 1 ? z * lifted(t) : spread(lifted(t));
    return like(y, s.x[0]);
  }
  // Of u, the cotangent of d_x, and those of the sums of parameters.
  template <int I>
  constexpr V vjp_of_back(V const& all) const {
    V const u = part(all, 0);
    if constexpr (I == 2) {
      V r = weigh(across(u));
      if (weighted()) r = r + part(all, 1) * z;
      if (weighted() && o.biased) r = r + part(all, 2);
      return like(r, s.x[2]);
    } else {
      V const ct = split(s.x[2]);
      if constexpr (I == 1) {
        return like(over_rest(ct * across(u)), s.x[1]);
      } else {
        V const h = weigh(ct), along_u = over_row(u * z), along_h = over_row(h * z);
        V to_z = -((u * along_h + h * along_u) * scale);
        if (weighted()) to_z = to_z + part(all, 1) * ct;
        return like(across(to_z) - z * square(scale) * over_row(u * flat_part(h)), s.x[0]);
      }
    }
  }
  template <int I>
  constexpr V jvp_of_back(V const& given) const {
    V const ct = split(s.x[2]);
    if constexpr (I == 1) {
      return list(across(ct * lifted(given)), zeros(), zeros());
    } else {
      V const t = split(given), z_moved = across(t), h = weigh(ct);
      V const moved = -(z_moved * over_row(h * z) + z * over_row(h * z_moved)) * scale;
      V const by_scale = flat_part(h) * (square(scale) * over_row(z * t));
      return list(moved - by_scale, over_rest(ct * z_moved), zeros());
    }
  }
  /// across, without the scale.
  constexpr V flat_part(V const& x) const {
    return o.centred ? across_row(x, z, over()) : x - z * over_row(x * z);
  }
};

}  // namespace detail

namespace op::detail {

template <class Op, int I, class V>
constexpr V norm_vjp(V const& ct, Site<V> const& s) {
  using namespace dfdx::detail;
  if constexpr (std::is_same_v<Op, standardize_back>) {
    if (s.x[I].shape().numel() == 0) return V{};
    return NormRules<V>(s).template vjp_of_back<I>(ct);
  } else {
    index_t const n = s.x[I].shape().numel(), all = s.x[0].shape().numel(), weights = s.x[1].shape().numel();
    if (n == 0) return V{};
    V const list = once(s, [&] {
      NormOptions o = NormOptions::of(s.attrs);
      o.biased = s.x[2].shape().numel() != 0;
      return bind<standardize_back>(o.attrs(), s.x[0], s.x[1], ct);
    });
    V const part = slice_axis(list, 0, I == 0 ? 0 : all + (I - 1) * weights, n);
    // Sums are short, and would keep the memory of the list.
    return reshape_to(I == 0 ? part : bind<copy>(Attrs{}, part), s.x[I].shape());
  }
}
template <class Op, int I, class V>
constexpr V norm_jvp(V const& t, Site<V> const& s) {
  using namespace dfdx::detail;
  if (s.x[I].shape().numel() == 0) return V{};
  if constexpr (std::is_same_v<Op, standardize>) return NormRules<V>(s).template jvp<I>(t);
  else if constexpr (I == 2) return bind<standardize_back>(s.attrs, s.x[0], s.x[1], t);
  else return NormRules<V>(s).template jvp_of_back<I>(t);
}

}  // namespace op::detail

namespace detail {

// Whether the norm of x is one step: values in memory, of one dtype, parameters as the axes say.
template <class X, class... W>
constexpr bool is_one_step(X const& x, int axis, W const&... w) {
  if constexpr (has_norms_in_one_step &&
                (std::is_base_of_v<Array, X> && ... && std::is_base_of_v<Array, W>)) {
    if (DFDX_IN_CONSTANT_EXPRESSION || x.recorded() || (w.recorded() || ...)) return false;
    auto const computed_in = [](Array const& a) { return is_half(a.dtype()) ? DType::f32 : a.dtype(); };
    auto const fits = [&](Array const& p) {
      bool r = p.device() == x.device() && computed_in(p) == computed_in(x);
      for (int i = 0; r && i < p.ndim(); ++i) r = p.shape()[i] == x.shape()[axis + i];
      return r;
    };
    return x.size() != 0 && (fits(w) && ...);
  } else {
    return false;
  }
}
// Mean and variance of rows, a batch's channels, without derivatives.
struct NormMoments {
  Array mean, variance;
};
template <std::size_t Lazy = 0>
NormMoments moments_there(op::NormOptions const& o, Array const& x) {
  op::NormRows const rows = o.rows(x.shape());
  Shape const s = make_shape(rows.number());
  auto const v = reshape_to(lazy<Lazy>(x.detach()), make_shape(rows.samples, rows.groups, rows.inner));
  Over const rows_of{Axes{0, 2}, true};
  auto const row = standard_over(v, rows_of, o.eps);
  return {reshape_to(row.mean, s), reshape_to(over_count<"norm">(v, row.total, rows_of, 0), s)};
}
// The norm, and what it has found of rows, if that is asked for. (A device's kernel does not say.)
template <class... W>
Array in_one_step(op::NormOptions const& o, NormMoments* moments, Array const& x0, W const&... w) {
  auto const& given = lazy<sizeof...(W)>(x0);
  auto const x = in_f32(given);
  Array const none(Meta{x.dtype(), make_shape(0)}, x.device());
  Array const parameters[] = {in_f32(untyped(w))..., none, none};
  Array const* const operands[] = {&x, &parameters[0], &parameters[1]};
  if (moments == nullptr || is_elsewhere(x)) {
    if (moments != nullptr) *moments = moments_there<sizeof...(W)>(o, x);
    return rounded_as(bind<op::standardize>(o.attrs(), x, parameters[0], parameters[1]), given);
  }
  Meta const of_rows{x.dtype(), make_shape(o.rows(x.shape()).number())};
  *moments = {Array(of_rows), Array(of_rows)};
  Operand const in[] = {x.operand(), parameters[0].operand(), parameters[1].operand()};
  Array y(x.meta());
  op::detail::run_norm<op::standardize>(o.attrs(), in, y.operand(), moments->mean.bytes(),
                                        moments->variance.bytes());
  if (on_tape(x, parameters[0], parameters[1]))
    record_on_tape(tape_rule<op::standardize>(), o.attrs(), y, operands, 3);
  return rounded_as(y, given);
}
template <class... W>
Array in_one_step(op::NormOptions const& o, Array const& given, W const&... w) {
  return in_one_step(o, nullptr, given, w...);
}

}  // namespace detail

}  // namespace dfdx
