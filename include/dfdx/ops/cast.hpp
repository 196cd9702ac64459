// SPDX-License-Identifier: BSL-1.0
// Elementwise ops that leave the numbers as they are: cast, copy, stop_gradient; and its opposite, vanishing.
#pragma once

#include <dfdx/ops/elementwise.hpp>

namespace dfdx::op {

/// stop_gradient - x itself, but no derivative flows through it.
///
/// Math      y = x, dy/dx taken as 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct stop_gradient : elementwise_op<stop_gradient, 1> {
  static constexpr char const* name = "stop_gradient";
  static constexpr Code code = numbered(82);
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr auto eval(auto const& x) { return x; }
};
template <>
struct fused<82> {
  using type = stop_gradient;
};

/// vanishing - 0 with the derivative of x, for rules that know x to be 0: what only the next derivative reads is not
/// computed. It is the zero that leaves all numbers as they are, -0.0, so that programs need not add it.
///
/// Math      y = -0, dy/dx taken as 1
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    floating
/// Errors    none
/// Source    elementary
struct vanishing : elementwise_op<vanishing, 1> {
  static constexpr char const* name = "vanishing";
  static constexpr Code code = numbered(84);
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr auto eval(auto const& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    return X(static_cast<math::scalar_of<X>>(-0.0));
  }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return t;
  }
};
template <>
struct fused<84> {
  using type = vanishing;
};

/// copy - x itself, in memory of its own: what a program's output is when it would else be one of its inputs.
///
/// Math      y = x, dy/dx = 1
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct copy : elementwise_op<copy, 1> {
  static constexpr char const* name = "copy";
  static constexpr Code code = numbered(83);
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr auto eval(auto const& x) { return x; }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return t;
  }
};
template <>
struct fused<83> {
  using type = copy;
};

/// cast - the same numbers in another dtype (core/convert.hpp). An integer of b bits is x truncated towards zero,
/// modulo 2^b: 300 as u8 is 44, -1 is 255; NaN and infinities become 0. A truth is whether x is not zero, as NaN is. A
/// number of 16 bits is the nearest, of two the even one, also where a compiled program computes with it as a float.
///
/// Math      y = x, dy/dx = 1 between floating dtypes
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any to any
/// Errors    none
/// Source    elementary; PyTorch's for u8 and i8 of numbers that 64 bits hold
struct cast : operation {
  static constexpr char const* name = "cast";
  static constexpr Examples examples = Examples::same;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Code code = Code::cast;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text*) {
    return Meta{static_cast<DType>(a.i[0]), in[0].shape};
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return is_floating(s.x[0].dtype()) ? bind<cast>(Attrs{{static_cast<index_t>(s.x[0].dtype())}}, ct) : V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return is_floating(s.y.dtype()) ? bind<cast>(s.attrs, t) : V{};
  }
};

}  // namespace dfdx::op
