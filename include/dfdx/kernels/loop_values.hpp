// SPDX-License-Identifier: BSL-1.0
// What the kernel of a fused loop holds and passes on: descriptions as types, the values of a row, and the choice
// of one of many lane values.
#pragma once

#include <bit>
#include <type_traits>
#include <utility>

#include <dfdx/kernels/lanes.hpp>
#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/nth.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Numbers - a description as a type: a pack of integers, which every compiler can name a kernel by.
template <index_t... C>
struct Numbers {
  static constexpr index_t value[sizeof...(C)] = {C...};
};

namespace detail {

/// Cell - a value of a row, of any dtype.
union Cell {
  float f32;
  double f64;
  std::int32_t i32;
  std::int64_t i64;
  std::uint8_t u8;
  std::int8_t i8;
  bool boolean;

  template <class T>
  DFDX_INLINE constexpr T get() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    else if constexpr (std::is_same_v<T, double>) return f64;
    else if constexpr (std::is_same_v<T, std::int32_t>) return i32;
    else if constexpr (std::is_same_v<T, std::int64_t>) return i64;
    else if constexpr (std::is_same_v<T, bool>) return boolean;
    else if constexpr (std::is_same_v<T, std::int8_t>) return i8;
    else return u8;
  }
  template <class T>
  DFDX_INLINE constexpr void set(T x) {
    if constexpr (std::is_same_v<T, float>) f32 = x;
    else if constexpr (std::is_same_v<T, double>) f64 = x;
    else if constexpr (std::is_same_v<T, std::int32_t>) i32 = x;
    else if constexpr (std::is_same_v<T, std::int64_t>) i64 = x;
    else if constexpr (std::is_same_v<T, bool>) boolean = x;
    else if constexpr (std::is_same_v<T, std::int8_t>) i8 = x;
    else u8 = x;
  }
};

/// slot - stands for number k of a list that is given with each call, in descriptions of kernels that know no extent.
constexpr index_t slot(int k) { return extent::symbol_flag | index_t{1} << 62 | k; }

/// resolved - extent::resolve, of a number known here as a rule; or what is in a slot.
DFDX_INLINE constexpr index_t resolved(index_t e, index_t const* symbols) {
  if (e >= 0) return e;
  return (e >> 62 & 1) != 0 ? symbols[e & 0xff] : extent::resolve(e, symbols);
}

/// Absent - stands for a lane value that a phase does not compute.
struct Absent {};

// Pointers, for they convert without a call.
template <class Before>
struct Picker;
template <std::size_t... Before>
struct Picker<std::index_sequence<Before...>> {
  template <std::size_t>
  using any = void const*;
  template <class X, class... After>
  static DFDX_INLINE constexpr X const& pick(any<Before>..., X const* x, After const*...) {
    return *x;
  }
};

/// pick - the I-th of some values.
template <int I, class... V>
DFDX_INLINE constexpr auto const& pick(V const&... v) {
  return Picker<std::make_index_sequence<static_cast<std::size_t>(I)>>::pick(&v...);
}

/// element_at - where that of type M is which has number `at` from p on.
template <class M>
DFDX_INLINE M* element_at(void* p, index_t at) {
  return static_cast<M*>(p) + at;
}

/// sizeless - lanes whose number only the running program knows: what is done with them is said by types of numbers.
template <class L>
concept sizeless = L::is_sizeless;

/// LaneRow - N lane values of type T.
template <class L, class T, int N>
struct LaneRow {
  typename L::template type<T> values[N];
};
template <class L, class T>
struct LaneRow<L, T, 0> {};
template <class L>
struct LaneRow<L, Absent, 1> {
  Absent values[1];
};

/// LanePlaces - which place the lane value of each of a description's instructions has among those of its type.
template <class Code>
struct LanePlaces {
  static constexpr LoopFacts facts{Code::value};
  static constexpr auto all = facts.find_places<facts.instructions>();
  template <class T>
  static constexpr int count = all.counts[static_cast<int>(dtype_v<T>)];
};
/// LaneValues - the lane values of a description's instructions, those of one type side by side.
template <class L, class Code, class Places = LanePlaces<Code>>
struct LaneValues : LaneRow<L, bool, Places::template count<bool>>,
                    LaneRow<L, std::uint8_t, Places::template count<std::uint8_t>>,
                    LaneRow<L, std::int8_t, Places::template count<std::int8_t>>,
                    LaneRow<L, std::int32_t, Places::template count<std::int32_t>>,
                    LaneRow<L, std::int64_t, Places::template count<std::int64_t>>,
                    LaneRow<L, float, Places::template count<float>>,
                    LaneRow<L, double, Places::template count<double>>,
                    LaneRow<L, Absent, 1> {
  // Where that of instruction I lies; of those without one there is a place, too.
  template <int I>
  static constexpr int place = Places::all.of[I];
  template <int I, class T>
  using row_t = std::conditional_t<Places::facts.has_lanes(I), LaneRow<L, T, Places::template count<T>>,
                                   LaneRow<L, Absent, 1>>;
};
// Nothing can hold those whose size no compiler knows.
template <sizeless L, class Code, class Places>
struct LaneValues<L, Code, Places> {
  template <int, class>
  using row_t = Absent;
};

/// known_size - the number of lanes, 0 if only the running program knows; lane_size_of - the number as it runs.
template <class L>
inline constexpr index_t known_size = [] {
  if constexpr (sizeless<L>) return index_t{0};
  else return index_t{L::size};
}();
template <class L>
DFDX_INLINE constexpr index_t lane_size_of() {
  if constexpr (sizeless<L>) return L::count();
  else return L::size;
}

// Comparisons of integers give truths of integers; all truths of a loop have one type.
template <class L, class T, class X>
DFDX_INLINE auto uniform(X const& x) {
  if constexpr (std::is_same_v<X, typename L::template type<T>> || std::is_arithmetic_v<X>)
    return static_cast<typename L::template type<T>>(x);
#if !defined(__CUDACC__)
  else if constexpr (std::is_same_v<T, bool>)
    return xsimd::batch_bool_cast<typename L::Floats::value_type>(x);
#endif
  else return static_cast<typename L::template type<T>>(x);
}
template <class L, class T, class C, class X>
DFDX_INLINE auto choose(C const& c, X const& x, X const& y) {
#if !defined(__CUDACC__)
  if constexpr (std::is_arithmetic_v<C>) return math::select(c, x, y);
  else if constexpr (L::size > 1 && std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return math::select(xsimd::batch_bool_cast<T>(c), x, y);
  else if constexpr (L::size > 1 && std::is_same_v<T, bool>) return (c && x) || (!c && y);
  else
#endif
    return math::select(c, x, y);
}

/// self_applying - lanes that apply ops to their elements themselves.
template <class L>
concept self_applying = sizeless<L> || L::applies_itself;

/// blockwise - lanes that are threads: what all have in common is written by one of them.
template <class L>
concept blockwise = L::is_block;

/// fill_with_identity - n numbers at p.
template <index_t Do, class M>
DFDX_INLINE void fill_with_identity(void* p, index_t n) {
  auto* const x = static_cast<M*>(p);
  for (index_t i = 0; i < n; ++i) x[i] = static_cast<M>(Combination<Do>::template identity<compute_t<M>>());
}

/// applied - an op on lane values of types Of; a value of type T.
template <class L, class Op, class T, class... Of, class... X>
DFDX_INLINE auto applied(X const&... x) {
  if constexpr (self_applying<L>) return L::template apply<Op, T, Of...>(x...);
  else if constexpr (sizeof...(X) == 3) return choose<L, T>(x...);
  else return uniform<L, T>(Op::eval(x...));
}
/// applied_once - an op on numbers; a number of type T. In loops over long rows functions that take long are computed
/// by lanes as well: a call of the C library's may change all vector registers, so that none could keep a constant of
/// those loops.
template <class L, class Op, class T, bool LongRows, class... X>
DFDX_INLINE T applied_once(X const&... x) {
#if !defined(__CUDACC__)
  if constexpr (LongRows && !self_applying<L> && std::is_floating_point_v<T> &&
                (std::is_same_v<X, T> && ...) && Op::cost >= costly) {
    using V = typename L::template type<T>;
    if constexpr (known_size<L> > 1 && sizeof(T) * static_cast<std::size_t>(known_size<L>) == sizeof(V)) {
      alignas(64) T all[known_size<L>];
      V(Op::eval(V(x)...)).store_aligned(all);
      return all[0];
    }
  }
#endif
  return static_cast<T>(Op::eval(x...));
}
/// Held - a float as an element of 16 bits would hold it.
template <class M>
struct Held {
  template <class X>
  static DFDX_INLINE constexpr X eval(X const& x) {
    if constexpr (!math::is_number<X>) return math::lane_functions<X>::template rounded_to<M>(x);
    else return static_cast<X>(static_cast<M>(x));
  }
};

/// joined - two lane values of type T combined.
template <class L, index_t Do, class T, class X>
DFDX_INLINE X joined(X const& x, X const& y) {
  if constexpr (self_applying<L>) return L::template combine<Do, T>(x, y);
  else return Combination<Do>::apply(x, y);
}

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET
