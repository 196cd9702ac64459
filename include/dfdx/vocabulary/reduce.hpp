// SPDX-License-Identifier: BSL-1.0
// Reductions: sum(x) over everything, sum<0, 1>(x) over axes, sum<1>(x, keepdim) keeping them with extent 1; with axes
// known at run time sum(a, {1}) and sum(a, {1}, true). Composites mean, var, std are here too.
#pragma once

#include <limits>

#include <dfdx/vocabulary/in_f32.hpp>
#include <dfdx/vocabulary/shape.hpp>

namespace dfdx {

namespace detail {

/// Over - what reductions have for parameters.
struct Over {
  Axes axes;
  bool keep;
  constexpr index_t mask(int rank) const { return axes.mask_or_all(rank); }
};

/// kept(p) - the same axes, which stay.
template <class P>
constexpr auto kept(P const& p) {
  if constexpr (is_fixed<P>) return Fixed<Over{P::value.axes, true}>{};
  else return Over{p.axes, true};
}

// A reduction whose axes go: on the tape one node, where the graph of a program has the reduction and a reshape.
template <class Op>
Array vjp_of_dropped(Array const& ct, Site<Array> const& s, int which) {
  Shape const kept = op::reduced_shape(s.x[0].shape(), s.attrs.i[0]);
  auto const as_kept = [&](auto const& v) {
    return v.empty() ? Array(nullptr, -1, Meta{v.dtype(), kept})
                     : bind_as<op::reshape>(Meta{v.dtype(), kept}, Attrs{}, v);
  };
  return op::detail::vjp<Op, Array>(as_kept(ct), Site<Array>{s.x, as_kept(s.y), s.attrs}, which);
}
template <class Op>
inline constinit TapeRule const dropped_rule{Op::name, 1, &vjp_of_dropped<Op>, nullptr, &Op::reads, nullptr};

template <class Op, class T>
Array reduce_in_memory(Array const& x, index_t mask) {
  Attrs const attrs{{mask}};
  Meta const kept = checked_infer<Op>(attrs, &x.meta());
  Meta const meta{kept.dtype, dropped(x.shape(), mask)};
  Array y;
  Array const* const operands[] = {&x};
  if (is_elsewhere(x)) {
    y = run_now<Op, T>(kept, attrs, operands).view(meta.shape, contiguous(meta.shape));
  } else {
    y = Array(meta);
    run_reduction<Op::code, T>(x, Operand{y.bytes(), kept, contiguous(kept.shape)});
  }
  if (on_tape(x)) record_on_tape(dropped_rule<Op>, attrs, y, operands, 1);
  return y;
}

template <class Op, class T, class V>
constexpr V reduce_mask(V const& x, index_t mask, bool keep) {
  if constexpr (std::is_same_v<V, Array>)
    if (!keep && !x.recorded()) return reduce_in_memory<Op, T>(x, mask);
  V const y = bind_element<Op, T>(Attrs{{mask}}, x);
  if (keep) return y;
  return reshape_to(y, dropped(x.shape(), mask));
}

template <class Op>
struct ReduceAxes {
  Over over;
  constexpr Meta infer(Meta const* in, Text* why) const {
    index_t const mask = over.mask(in->shape.rank);
    if (mask < 0)
      return refuse(why, Op::name, ": axis ", over.axes.offender(mask), over.axes.fault(mask), in->shape);
    if (in->dtype == DType::boolean) return refuse(why, Op::name, ": numeric dtype required, got bool");
    Meta r = Op::infer(Attrs{{mask}}, in, why);
    if (r.valid() && !over.keep) r.shape = dropped(r.shape, mask);
    return r;
  }
  template <class T, class V>
  constexpr V run(Meta const&, V const& x) const {
    return reduce_mask<Op, T>(x, over.mask(x.shape().rank), over.keep);
  }
};

/// reduce<Op, "mean">(x, over) - Op over axes; refusals name the function given.
template <class Op, Literal Name = Literal<0>{}, class P, class X>
constexpr auto reduce(X const& x, P const& over) {
  if constexpr (Name.text[0] == 0) return call(made<ReduceAxes<Op>>(over), x);
  else return call(named<Name>(made<ReduceAxes<Op>>(over)), x);
}

// The largest or smallest along axes, of which none may be empty: one of unknown extent is looked at when a program is
// called.
template <class Op>
struct ExtremeAxes : ReduceAxes<Op> {
  constexpr explicit ExtremeAxes(Over const& o) : ReduceAxes<Op>{o} {}
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x) const {
    if (Graph* const g = recorder_of(x))
      for (int i = 0; i < x.shape().rank; ++i)
        if ((this->over.mask(x.shape().rank) >> i & 1) != 0 && x.shape()[i] < 0 &&
            x.shape()[i] != extent::unknown)
          g->requirements.push_back(SameExtent{Op::name, x.shape()[i], 1, true});
    return ReduceAxes<Op>::template run<T>(y, x);
  }
};
template <class Op, Literal Name = Literal<0>{}, class P, class X>
constexpr auto extreme(X const& x, P const& over) {
  if constexpr (Name.text[0] == 0) return call(made<ExtremeAxes<Op>>(over), x);
  else return call(named<Name>(made<ExtremeAxes<Op>>(over)), x);
}

// The operand, if it has the axes.
template <Literal Name>
struct Having {
  Over over;
  constexpr Meta infer(Meta const* in, Text* why) const {
    index_t const mask = over.mask(in->shape.rank);
    if (mask < 0)
      return refuse(why, Name.text, ": axis ", over.axes.offender(mask), over.axes.fault(mask), in->shape);
    return *in;
  }
  template <class, class V>
  static constexpr V run(Meta const&, V const& x) {
    return x;
  }
};
template <Literal Name, class P, operand X>
constexpr auto having(X const& x, P const& over) {
  return call(made<Having<Name>>(over), x);
}

// What is summed or multiplied: integers and truths as i64, as in PyTorch, so that few of u8 already fit.
template <class X>
constexpr auto summable(X const& x) {
  if constexpr (refused<X>) {
    return x;
  } else if constexpr (typed<X>) {
    using T = typename X::value_type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, std::int64_t>) return cast<std::int64_t>(x);
    else return x;
  } else {
    if (is_floating(x.dtype()) || x.dtype() == DType::i64) return x;
    return cast_to(x, DType::i64);
  }
}

// PlainNumber of elements that a reduction over the mask joins.
constexpr index_t joined(Shape const& s, index_t mask) {
  index_t n = 1;
  for (int i = 0; i < s.rank; ++i)
    if ((mask >> i & 1) != 0) n = extent::mul(n, s[i]);
  return n;
}

// total / (number of elements joined - correction). A number known only at run time is a sum of ones.
template <Literal Name, class P, class X, class Y>
constexpr auto over_count(X const& x, Y const& total, P const& over, int correction) {
  Shape const s = x.shape();
  index_t const n = joined(s, value_of(over).mask(s.rank));
  if (n < 0) {
    auto const count = reduce<op::sum, Name>(summable(ones_as(x)), over) - static_cast<double>(correction);
    return total / where(count > 0, count, zeros_as(count));
  }
  // (A constant expression does not divide by 0.)
  constexpr double inf = std::numeric_limits<double>::infinity();
  return total * (n > correction ? 1.0 / static_cast<double>(n - correction) : inf);
}
// y in another dtype if x holds integers of 64 bits.
template <DType To, class Y, class X>
constexpr auto of_i64(Y const& y, [[maybe_unused]] X const& x) {
  if constexpr (refused<Y, X>) return y;
  else if constexpr (!typed<X>) return x.dtype() == DType::i64 ? cast_to(y, To) : y;
  else if constexpr (X::static_meta.dtype == DType::i64) return cast<element_t<To>>(y);
  else return y;
}

// (A sum of integers of 64 bits may overflow; of fewer, it does not.)
template <Literal Name = "mean", class P, class X>
constexpr auto mean_of(X const& x, P const& over) {
  auto const v = of_i64<DType::f64>(in_f32(x), x);
  auto const y = over_count<Name>(v, reduce<op::sum, Name>(summable(v), over), over, 0);
  return rounded_as(of_i64<DType::f32>(y, x), x);
}
template <Literal Name, class P, class X>
constexpr auto var_in_f32(X const& x, P const& over, int correction) {
  auto const v = in_f32(x);
  auto const apart = square(v - mean_of<Name>(v, kept(over)));
  return over_count<Name>(v, reduce<op::sum, Name>(apart, over), over, correction);
}
template <class P, class X>
constexpr auto var_of(X const& x, P const& over, int correction) {
  return rounded_as(var_in_f32<"var">(x, over, correction), x);
}
template <class P, class X>
constexpr auto std_of(X const& x, P const& over, int correction) {
  auto const v = var_in_f32<"std">(x, over, correction);
  if constexpr (refused<decltype(v)>) {
    return v;
  } else {
    auto const zero = v == 0.0;
    return rounded_as(where(zero, zeros_as(v), sqrt(where(zero, ones_as(v), v))), x);
  }
}

}  // namespace detail

/// sum_axes - sum over a bit mask of axes, which stay with extent 1; nothing to do for no axes.
///
/// Shapes    x: [S...] -> [S..., reduced axes 1]
/// Dtypes    all but bool
/// Source    elementary
template <class V>
constexpr V sum_axes(V const& x, index_t mask) {
  if (mask == 0) return x;
  return bind<op::sum>(Attrs{{mask}}, x);
}

/// sum - over axes, all of them without arguments; of integers and truths in i64, as prod.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    all; integers and bool in i64; f16 and bf16 accumulate in f32
/// Errors    "sum: axis 2 out of range for [2, 3]"
/// Source    elementary
template <int... A, operand X>
constexpr auto sum(X const& x) {
  return detail::reduce<op::sum>(detail::summable(x), detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto sum(X const& x, Keepdim) {
  return detail::reduce<op::sum>(detail::summable(x), detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto sum(X const& x, Axes const& axes, bool keep = false) {
  return detail::reduce<op::sum>(detail::summable(x), detail::Over{axes, keep});
}

/// prod - product over axes.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    all; integers and bool in i64
/// Source    elementary
template <int... A, operand X>
constexpr auto prod(X const& x) {
  return detail::reduce<op::prod>(detail::summable(x), detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto prod(X const& x, Keepdim) {
  return detail::reduce<op::prod>(detail::summable(x), detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto prod(X const& x, Axes const& axes, bool keep = false) {
  return detail::reduce<op::prod>(detail::summable(x), detail::Over{axes, keep});
}

/// max, min - the largest, smallest element over axes. The gradient is split equally among those that attain it.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    all but bool
/// Errors    "max: empty axis 0 of [0, 3] has no largest or smallest element"
/// Source    elementary
template <int... A, operand X>
constexpr auto max(X const& x) {
  return detail::extreme<op::max>(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto max(X const& x, Keepdim) {
  return detail::extreme<op::max>(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto max(X const& x, Axes const& axes, bool keep = false) {
  return detail::extreme<op::max>(x, detail::Over{axes, keep});
}

template <int... A, operand X>
constexpr auto min(X const& x) {
  return detail::extreme<op::min>(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto min(X const& x, Keepdim) {
  return detail::extreme<op::min>(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto min(X const& x, Axes const& axes, bool keep = false) {
  return detail::extreme<op::min>(x, detail::Over{axes, keep});
}

/// mean - arithmetic mean: sum / count.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    elementary
template <int... A, operand X>
constexpr auto mean(X const& x) {
  return detail::mean_of(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto mean(X const& x, Keepdim) {
  return detail::mean_of(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto mean(X const& x, Axes const& axes, bool keep = false) {
  return detail::mean_of(x, detail::Over{axes, keep});
}

/// var - variance: sum((x - mean)^2) / (count - correction), 1 by default. An integer beside x is an axis, unless axes
/// are template arguments: var(a, 1), var<1>(x, 0), var(a, {}, 0).
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    PyTorch's var
template <int... A, operand X>
constexpr auto var(X const& x) {
  return detail::var_of(x, detail::Fixed<detail::Over{Axes{A...}, false}>{}, 1);
}
template <int A, int... B, operand X>
constexpr auto var(X const& x, int correction) {
  return detail::var_of(x, detail::Fixed<detail::Over{Axes{A, B...}, false}>{}, correction);
}
template <int... A, operand X>
constexpr auto var(X const& x, Keepdim, int correction = 1) {
  return detail::var_of(x, detail::Fixed<detail::Over{Axes{A...}, true}>{}, correction);
}
template <operand X>
constexpr auto var(X const& x, Axes const& axes, int correction = 1, bool keep = false) {
  return detail::var_of(x, detail::Over{axes, keep}, correction);
}

/// std - standard deviation, the square root of var. The gradient at 0 is 0.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    PyTorch's std
template <int... A, operand X>
constexpr auto std(X const& x) {
  return detail::std_of(x, detail::Fixed<detail::Over{Axes{A...}, false}>{}, 1);
}
template <int A, int... B, operand X>
constexpr auto std(X const& x, int correction) {
  return detail::std_of(x, detail::Fixed<detail::Over{Axes{A, B...}, false}>{}, correction);
}
template <int... A, operand X>
constexpr auto std(X const& x, Keepdim, int correction = 1) {
  return detail::std_of(x, detail::Fixed<detail::Over{Axes{A...}, true}>{}, correction);
}
template <operand X>
constexpr auto std(X const& x, Axes const& axes, int correction = 1, bool keep = false) {
  return detail::std_of(x, detail::Over{axes, keep}, correction);
}

}  // namespace dfdx
