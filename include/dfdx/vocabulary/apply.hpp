// SPDX-License-Identifier: BSL-1.0
// apply<Op>: how elementwise ops are called. It broadcasts shapes, promotes dtypes and lifts numbers, then binds;
// for Tensors the shape rule is asked when the file is compiled, and a refusal is the compiler's one error.
#pragma once

#include <dfdx/vocabulary/number.hpp>

namespace dfdx {

namespace detail {

template <class X>
concept sym = std::is_same_v<std::remove_cvref_t<X>, Sym>;

template <class... X>
inline constexpr bool all_typed = (... && (typed<X> || number<X>));

// What a rule says of static operands. Rule is a type with `static constexpr Meta infer(Text*)`.
template <class Rule>
struct Inferred {
  static constexpr Meta value = Rule::infer(nullptr);
};
template <class Rule>
struct Refusal {
  static constexpr Text value = [] {
    Text t;
    Rule::infer(&t);
    return t;
  }();
};

/// The Tensor type a rule infers. A refusal is reported here, once.
template <class Rule>
constexpr auto result_type() {
  if constexpr (Inferred<Rule>::value.valid()) {
    return std::type_identity<tensor_for<Inferred<Rule>>>{};
  } else {
    static_assert(told<Refusal<Rule>>::once);
    return std::type_identity<Refused>{};
  }
}

template <class R>
constexpr R wrap(Array a) {
  if constexpr (std::is_same_v<R, Array>) return a;
  else return R(typename R::Unchecked{}, std::move(a));
}

constexpr Sym untyped(Sym const& x) { return x; }
constexpr Array const& untyped(Array const& x) { return x; }

// What numbers follow: the dtype of the first operand that is not a condition.
template <class X, class... Rest>
constexpr DType dtype_of_first(X const& x, Rest const&... rest) {
  if constexpr (operand<X>)
    if (x.meta().dtype != DType::boolean) return x.meta().dtype;
  if constexpr (sizeof...(Rest) > 0) return dtype_of_first(rest...);
  else return DType::boolean;
}

template <class X>
constexpr Meta meta_beside(X const& x, DType beside) {
  if constexpr (operand<X>) return x.meta();
  else return Meta{number_dtype<X>(beside), Shape{}};
}

// Static counterparts of the two above.
template <class X, class... Rest>
constexpr DType static_dtype_of_first() {
  if constexpr (typed<X>)
    if (X::static_meta.dtype != DType::boolean) return X::static_meta.dtype;
  if constexpr (sizeof...(Rest) > 0) return static_dtype_of_first<Rest...>();
  else return DType::boolean;
}
template <class X>
constexpr Meta static_meta_beside(DType beside) {
  if constexpr (typed<X>) return X::static_meta;
  else return Meta{number_dtype<X>(beside), Shape{}};
}

template <class X>
constexpr double plain_value(X const& x) {
  if constexpr (plain<X>) return x.value;
  else return static_cast<double>(x);
}
template <class X>
constexpr unsigned made_of(X const& x) {
  if constexpr (plain<X>) return x.made_of;
  else return 0;
}
constexpr Graph* recorder_of(Sym const& x) { return x.graph; }
constexpr Graph* recorder_of(Array const& x) { return x.graph(); }
}  // namespace detail

/// broadcast_to - the value repeated to a shape that it broadcasts to (an untyped shape; no copy). Extents known
/// only when a program is called are checked then, with an error that names `op`.
template <class V>
constexpr V broadcast_to(V const& x, Shape const& shape, char const* op = "expand") {
  Shape const from = x.shape();
  if (from == shape) return x;
  Shape aligned = shape;
  for (int i = 0; i < shape.rank; ++i) {
    int const j = i - (shape.rank - from.rank);
    aligned[i] = j < 0 ? 1 : from[j];
  }
  V const y = detail::either(
      from.rank == shape.rank, [&] { return x; },
      [&] { return bind_as<op::reshape>(Meta{x.dtype(), aligned}, Attrs{}, x); });
  if (aligned == shape) return y;
  if (Graph* const g = detail::recorder_of(x))
    for (int i = 0; i < shape.rank; ++i)
      if (aligned[i] != 1 && aligned[i] != shape[i])
        g->requirements.push_back(SameExtent{op, shape[i], aligned[i]});
  return bind_as<op::expand>(Meta{x.dtype(), shape}, Attrs{}, y);
}

/// cast_to - the value in another dtype.
template <class V>
constexpr V cast_to(V const& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return bind<op::cast>(Attrs{{static_cast<index_t>(dtype)}}, x);
}

namespace detail {

// Which operands of Op are Tensors that need no conversion when it runs in T, a bit each: then none is compiled either,
// which for memory would be one loop for each dtype.
template <class Op, class T, class... X>
constexpr unsigned fitting() {
  unsigned r = 0;
  if constexpr (!std::is_void_v<T>) {
    int k = 0;
    auto const look = [&]<class Y>(std::type_identity<Y>) {
      if constexpr (typed<Y>) r |= (Y::static_meta.dtype == Op::operand_dtype(k, dtype_v<T>) ? 1u : 0u) << k;
      ++k;
    };
    (look(std::type_identity<X>{}), ...);
  }
  return r;
}

// An operand as what runs an op takes it, which is not compiled for every Tensor and every type of number again: of a
// number it asks no more than whether it is a truth or has a fraction.
constexpr Sym const& erased(Sym const& x) { return x; }
constexpr Array const& erased(Array const& x) { return x; }
template <number N>
constexpr auto erased(N x) {
  if constexpr (std::is_same_v<N, bool>) return x;
  else if constexpr (std::is_floating_point_v<N>) return static_cast<double>(x);
  else if constexpr (sizeof(N) < sizeof(int) || std::is_same_v<N, int>) return static_cast<int>(x);
  else if constexpr (std::is_unsigned_v<N>) return static_cast<std::uint64_t>(x);
  else return static_cast<index_t>(x);
}

template <class V, bool HasDtype, class X>
constexpr V fit(X const& x, V const& like, DType dtype, Shape const& shape, char const* op) {
  if constexpr (operand<X> && HasDtype) return broadcast_to<V>(untyped(x), shape, op);
  else if constexpr (operand<X>) return broadcast_to<V>(cast_to<V>(untyped(x), dtype), shape, op);
  else {
    // What lies on a device takes numbers from the CPU as they are; rules, that there are no others beside.
    if constexpr (std::is_same_v<V, Array>)
      if (!DFDX_IN_CONSTANT_EXPRESSION && !like.recorded() && is_elsewhere(like) && !is_grad_enabled())
        return broadcast_to(full_of(Array(), Meta{dtype, {}}, x, op), shape);
    return full_of(like, Meta{dtype, shape}, x, op);
  }
}

template <class V, class X, class... Rest>
constexpr V const& first_operand(X const& x, Rest const&... rest) {
  if constexpr (operand<X>) return x;
  else return first_operand<V>(rest...);
}

template <class X>
constexpr bool recorded_operand(X const& x) {
  if constexpr (operand<X>) return x.recorded();
  else return false;
}
template <class X>
auto widened(X const& x) {
  if constexpr (operand<X>) return is_half(x.dtype()) ? cast_to<Array>(x, DType::f32) : Array(x);
  else return x;
}
// Whether an op in T may be one of 16 bits.
template <class T>
inline constexpr bool may_be_half = is_half(dtype_v<T>);
template <>
inline constexpr bool may_be_half<void> = true;

template <class V, class Op, class T, unsigned Fitting, std::size_t... I, class... X>
constexpr V apply_untyped(std::index_sequence<I...> all, Attrs const& attrs, X const&... x) {
  DType const beside = dtype_of_first(x...);
  Meta const in[] = {meta_beside(x, beside)...};
  Meta const common = Op::common(in, nullptr);
  if (!common.valid()) checked_infer<Op>(attrs, in);
  V const& like = first_operand<V>(x...);
  // Numbers are not rounded before they are computed with, as in a program, where they are never stored: floats are
  // computed with, and the result is rounded.
  if constexpr (std::is_same_v<V, Array> && may_be_half<T> && !compares<Op> && (number<X> || ...))
    if (!DFDX_IN_CONSTANT_EXPRESSION && is_half(common.dtype) && (loses_digits(x, common.dtype) || ...) &&
        !(recorded_operand(x) || ...)) {
      V const y = apply_untyped<V, Op, void, 0>(all, attrs, widened(x)...);
      return y.dtype() == DType::f32 ? cast_to<V>(y, common.dtype) : y;
    }
  // Braces fix the order of evaluation, and with it the numbering of operands.
  V const operands[] = {
      fit < V, (Fitting >> I & 1u) != 0 > (beside_half<Op>(x, common.dtype), like,
                                           Op::operand_dtype(static_cast<int>(I), common.dtype), common.shape,
                                           Op::name)...};
  if constexpr (std::is_same_v<V, Sym>) return bind<Op>(attrs, operands[I]...);
  else return bind<Op, T>(attrs, operands[I]...);
}

template <class Op, class... X>
struct ElementwiseRule {
  static constexpr Meta metas[] = {static_meta_beside<X>(static_dtype_of_first<X...>())...};
  static constexpr DType common = Op::common(metas, nullptr).dtype;
  // Operands come to the common dtype first, as in apply_untyped.
  static constexpr Meta infer(Text* why) {
    Meta fitted[sizeof...(X)] = {};
    if (Meta const m = Op::common(metas, why); !m.valid()) return m;
    for (int k = 0; k < static_cast<int>(sizeof...(X)); ++k)
      fitted[k] = {Op::operand_dtype(k, common), metas[k].shape};
    return Op::infer(Attrs{}, fitted, why);
  }
};

// Scalars in memory are computed with as the numbers they are, without the loops, and the checks, of arrays.
inline bool is_scalar_of(DType d, Array const& x) {
  return x.ndim() == 0 && x.dtype() == d && x.bytes() != nullptr && x.device().is_cpu();
}
template <class X>
bool is_scalar_of(DType d, X const& x) {
  if constexpr (operand<X>) return is_scalar_of(d, static_cast<Array const&>(x));
  else return true;
}
template <class E, class X>
E scalar_value(X const& x) {
  if constexpr (operand<X>) return *reinterpret_cast<E const*>(x.bytes());
  else return static_cast<E>(x);
}
template <class X>
Array const* array_or_null(X const& x) {
  if constexpr (operand<X>) return &x;
  else return nullptr;
}

template <class R, class Op, class E, class... X>
R apply_to_scalars(X const&... x) {
  auto const value = static_cast<E>(Op::eval(scalar_value<E>(x)...));
  R y = [&] {  // made where the caller wants it
    if constexpr (typed<R>) return R(value);
    else return R::number(value);
  }();
  Array const* const operands[] = {array_or_null(x)...};
  if (is_grad_enabled())
    for (Array const* o : operands)
      if (o != nullptr && o->tape() != nullptr) {
        double const values[] = {static_cast<double>(scalar_value<E>(x))..., static_cast<double>(value)};
        record_numbers<static_cast<int>(sizeof...(X))>(tape_rule<Op>(), values, y, operands);
        break;
      }
  return y;
}

template <class X>
double number_or_0(X const& x) {
  if constexpr (operand<X>) return 0;
  else return static_cast<double>(x);
}

// R is Array, or the type of a scalar; X... are erased, and T, Fitting and MayBeScalar what is known of them.
template <class R, class Op, class T, unsigned Fitting, bool MayBeScalar, class... X>
constexpr R apply_in_memory(Attrs const& attrs, X const&... x) {
  if constexpr (is_numeric<Op>()) {
    if (!DFDX_IN_CONSTANT_EXPRESSION && attrs == Attrs{}) {
      if constexpr (MayBeScalar) {
        if constexpr (std::is_void_v<T> || std::is_same_v<T, double>)
          if ((is_scalar_of(DType::f64, x) && ...)) return apply_to_scalars<R, Op, double>(x...);
        if constexpr (std::is_void_v<T> || std::is_same_v<T, float>)
          if ((is_scalar_of(DType::f32, x) && ...)) return apply_to_scalars<R, Op, float>(x...);
      }
      Array const* const arrays[] = {array_or_null(x)...};
      if (Array const* const like = dense_among(arrays, sizeof...(X))) {
        double const numbers[] = {number_or_0(x)...};
        if constexpr (std::is_void_v<T> || std::is_same_v<T, double>)
          if (like->dtype() == DType::f64) return wrap<R>(apply_to_dense<Op, double>(*like, arrays, numbers));
        if constexpr (std::is_void_v<T> || std::is_same_v<T, float>)
          if (like->dtype() == DType::f32) return wrap<R>(apply_to_dense<Op, float>(*like, arrays, numbers));
      }
    }
  }
  return wrap<R>(apply_untyped<Array, Op, T, Fitting>(std::index_sequence_for<X...>{}, attrs, x...));
}

}  // namespace detail

/// applied - decltype(applied<Op, X...>())::type is the type of apply<Op> on operands X... It is spelled out, rather
/// than deduced where it is returned, for rules of ops call one another in cycles; and it has no shorter name, for each
/// is three lines more in the compiler's message about operands that do not fit.
template <class Op, class... X>
  requires(... || operand<X>)
constexpr auto applied() {
  if constexpr (refused<X...>) return std::type_identity<Refused>{};
  else if constexpr ((... || detail::sym<X>)) return std::type_identity<Sym>{};
  else if constexpr ((... || detail::plain<X>)) return std::type_identity<PlainNumber>{};
  else if constexpr (!detail::all_typed<X...>) return std::type_identity<Array>{};
  else if constexpr (detail::Inferred<detail::ElementwiseRule<Op, X...>>::value.valid())
    return std::type_identity<tensor_for<detail::Inferred<detail::ElementwiseRule<Op, X...>>>>{};
  else {
    static_assert(told<detail::Refusal<detail::ElementwiseRule<Op, X...>>>::once);
    return std::type_identity<Refused>{};
  }
}

/// apply_with - apply, for ops with attributes.
template <class Op, class... X>
constexpr decltype(applied<Op, X...>())::type apply_with(Attrs const& attrs, X const&... x) {
  using R = typename decltype(applied<Op, X...>())::type;
  if constexpr (refused<R>) return {};
  else if constexpr (std::is_same_v<R, Sym>)
    return detail::apply_untyped<Sym, Op, void, 0>(std::index_sequence_for<X...>{}, attrs,
                                                   detail::erased(x)...);
  else if constexpr (std::is_same_v<R, PlainNumber>) {
    double const numbers[] = {detail::plain_value(x)...};
    return PlainNumber{op::detail::fold<Op>(numbers), (detail::made_of(x) | ...)};
  } else if constexpr (typed<R>) {
    using T = element_t<detail::ElementwiseRule<Op, X...>::common>;
    constexpr unsigned fitting = detail::fitting<Op, T, X...>();
    if constexpr (R::static_rank == 0)
      return detail::apply_in_memory<R, Op, T, fitting, true>(attrs, detail::erased(x)...);
    else
      return detail::wrap<R>(
          detail::apply_in_memory<Array, Op, T, fitting, false>(attrs, detail::erased(x)...));
  } else {
    return detail::apply_in_memory<Array, Op, void, 0, true>(attrs, detail::erased(x)...);
  }
}

/// apply - an elementwise op on operands (Tensor, Array, Sym) and numbers, broadcast against one another.
///
/// Shapes    broadcast as in NumPy
/// Dtypes    promoted as in PyTorch; numbers follow the operand beside them. Beside 16 bits they are computed with as
///           floats, and compared as what 16 bits hold of them
/// Errors    the op's, at compile time if all operands are Tensors, else thrown
template <class Op, class... X>
constexpr decltype(applied<Op, X...>())::type apply(X const&... x) {
  return apply_with<Op>(Attrs{}, x...);
}

/// apply_once - apply<Op>(x, numbers...), for rules: of a cotangent in memory that repeats one number, as the rule of
/// sum has made it, only that number is computed, and is repeated again.
template <class Op, class V, class... N>
constexpr V apply_once(V const& x, N... numbers) {
  if constexpr (std::is_same_v<V, Array>)
    if (!x.recorded() && x.tape() == nullptr && x.bytes() != nullptr && detail::repeats_one(x)) {
      Array const one = apply<Op>(x.view(Shape{}, Strides{}), numbers...);
      return one.view(x.shape(), x.strides());
    }
  return apply<Op>(x, numbers...);
}

}  // namespace dfdx
