// SPDX-License-Identifier: BSL-1.0
// Reductions over a set of axes (a bit mask in attrs.i[0]). In a graph they always keep the reduced axes with
// extent 1, so that a reduction and its broadcast differ by an `expand` only; the vocabulary drops the axes
// afterwards.
#pragma once

#include <dfdx/ops/binary.hpp>
#include <dfdx/ops/cast.hpp>
#include <dfdx/ops/comparison.hpp>
#include <dfdx/ops/views.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::op {

/// reduction - what all reductions share.
template <class Self>
struct reduction : operation {
  static constexpr Examples examples = Examples::axes;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    if (!Self::has_identity)
      for (int i = 0; i < in[0].shape.rank; ++i)
        if ((a.i[0] >> i & 1) != 0 && in[0].shape[i] == 0)
          return refuse(why, Self::name, ": empty axis ", i, " of ", in[0].shape,
                        " has no largest or smallest element");
    return Meta{in[0].dtype, reduced_shape(in[0].shape, a.i[0])};
  }
};

/// sum - sum over axes.
///
/// Math      y = sum_i x_i, dy/dx_i = 1
/// Shapes    x: [S...] -> y: [S..., reduced axes 1]
/// Dtypes    all but bool; f16 and bf16 accumulate in f32
/// Errors    "sum: axis 2 out of range for [2, 3]"
/// Source    elementary calculus
struct sum : reduction<sum> {
  static constexpr char const* name = "sum";
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::reduce_sum;
  static constexpr bool has_identity = true;
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return bind_as<expand>(Meta{ct.dtype(), s.x[0].shape()}, Attrs{}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<sum>(s.attrs, t);
  }
};

/// prod - product over axes.
///
/// Math      y = prod_i x_i, dy/dx_i = prod_{j != i} x_j (also where some x are zero)
/// Shapes    x: [S...] -> y: [S..., reduced axes 1]
/// Dtypes    all but bool
/// Errors    "prod: axis 2 out of range for [2, 3]"
/// Source    elementary calculus
struct prod : reduction<prod> {
  static constexpr char const* name = "prod";
  static constexpr Code code = Code::reduce_prod;
  static constexpr bool has_identity = true;
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return repeat(ct, s) * others(s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return sum_axes(t * others(s), s.attrs.i[0]);
  }

 private:
  template <class V>
  static constexpr V repeat(V const& v, Site<V> const& s) {
    return bind_as<expand>(Meta{v.dtype(), s.x[0].shape()}, Attrs{}, v);
  }
  // In memory, and where no derivative of this one will be asked for, products show whether there are zeros at all.
  static constexpr bool known_nonzero(Sym const&) { return false; }
  template <class A>
    requires std::is_base_of_v<Array, A>
  static constexpr bool known_nonzero(A const& y) {
    if (DFDX_IN_CONSTANT_EXPRESSION || y.recorded() || y.tape() != nullptr) return false;
    bool r = true;
    Operand const o = y.operand();
    Strides const strides[1] = {y.strides()};
    walk<1>(y.shape(), strides, [&](index_t const(&at)[1]) { r = r && read_real(o, at[0]) != 0; });
    return r;
  }
  // The product of the other elements. Beside a number that is y / x. Beside a zero it is the product of the numbers,
  // `rest`, times that of the other zeros: 1 if there are none and itself if there is one, which vanishes but has a
  // derivative. So derivatives of second order are right as well; those of third order between three zeros are lost.
  // The one other zero is what the count has besides 2, less x, for each zero counts as 1 + x.
  template <class V>
  static constexpr V others(Site<V> const& s) {
    V const& x = s.x[0];
    if (known_nonzero(s.y)) return repeat(s.y, s) / x;
    V const zero = zeros_as(x);
    V const one = full_as(x, 1.0);
    V const is_zero = apply<equal>(x, zero);
    V const safe = apply<where>(is_zero, one, x);
    V const rest = repeat(bind<prod>(s.attrs, safe), s);
    V const counted = apply<where>(is_zero, one + apply<vanishing>(x), zero);
    V const count = repeat(sum_axes(counted, s.attrs.i[0]), s);
    V const of_one = apply<where>(apply<equal>(count, one), rest, zero);
    V const of_two = apply<where>(apply<equal>(count, one + one), rest, zero);
    V const beside_zero = of_one + apply<vanishing>(of_two * (count - 2.0 - x));
    return apply<where>(is_zero, beside_zero, repeat(s.y, s) / safe);
  }
};

/// extremum - max and min: the gradient is split equally among the elements that attain the result, which are those
/// that are NaN if there are any.
template <class Self>
struct extremum : reduction<Self> {
  static constexpr bool has_identity = false;
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return share(s) * bind_as<expand>(Meta{ct.dtype(), s.x[0].shape()}, Attrs{}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return sum_axes(t * share(s), s.attrs.i[0]);
  }

 private:
  template <class V>
  static constexpr V share(Site<V> const& s) {
    V const y = bind_as<expand>(Meta{s.y.dtype(), s.x[0].shape()}, Attrs{}, s.y);
    V const one = full_as(y, 1.0), nan = apply<where>(apply<not_equal>(s.x[0], s.x[0]), one, zeros_as(y));
    V const hit = apply<where>(apply<equal>(s.x[0], y), one, nan);
    V const count = sum_axes(hit, s.attrs.i[0]);
    return hit / bind_as<expand>(Meta{y.dtype(), s.x[0].shape()}, Attrs{}, count);
  }
};

/// max - largest element over axes; NaN if there is one.
///
/// Math      y = max_i x_i, dy/dx_i = [x_i = y] / number of ties, NaN taken as equal to NaN
/// Shapes    x: [S...] -> y: [S..., reduced axes 1]
/// Dtypes    all but bool
/// Errors    "max: empty axis 0 of [0, 3] has no largest or smallest element"
/// Source    elementary calculus
struct max : extremum<max> {
  static constexpr char const* name = "max";
  static constexpr Code code = Code::reduce_max;
};

/// min - smallest element over axes; NaN if there is one.
///
/// Math      y = min_i x_i, dy/dx_i = [x_i = y] / number of ties, NaN taken as equal to NaN
/// Shapes    x: [S...] -> y: [S..., reduced axes 1]
/// Dtypes    all but bool
/// Errors    "min: empty axis 0 of [0, 3] has no largest or smallest element"
/// Source    elementary calculus
struct min : extremum<min> {
  static constexpr char const* name = "min";
  static constexpr Code code = Code::reduce_min;
};

}  // namespace dfdx::op
