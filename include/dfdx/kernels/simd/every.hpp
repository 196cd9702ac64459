// SPDX-License-Identifier: BSL-1.0
// Lanes of elements that lie a few apart, as a component of an array of short vectors does: whole vectors are read
// and what belongs to them picked out, which takes a tenth of the time that elements one by one do.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/partial.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// Every - which places of which vectors have elements 0, Step, 2 Step and so on, for Size lanes. There are Step
/// vectors one behind the other; the last ends with the last of these elements, so that nothing beyond is read.
template <int Step, int Size>
struct Every {
  static constexpr int begin(int vector) {
    return vector + 1 < Step ? vector * Size : (Size - 1) * (Step - 1);
  }
  static constexpr int vector_of(int lane) {
    int const v = lane * Step / Size;
    return v < Step ? v : Step - 1;
  }
  /// The place of a lane in two vectors, one of all lanes that lie in those before `vector` and this one itself. (Any
  /// for lanes that lie further on: g++ 12 loses others where it may choose.)
  static constexpr int place(int vector, int lane) {
    int const v = vector_of(lane), at = lane * Step - begin(v);
    if (v == vector) return Size + at;
    return vector == 1 && v == 0 ? at : lane;
  }
  /// The lane whose element lies at a place of a vector, or before it.
  static constexpr int lane_at(int vector, int at) { return (begin(vector) + at) / Step; }
  /// The places of a vector that have elements of which the vectors before it have none, a bit each.
  static constexpr unsigned mask(int vector) {
    unsigned m = 0;
    for (int at = 0; at < Size; ++at)
      if ((begin(vector) + at) % Step == 0 && vector_of(lane_at(vector, at)) == vector) m |= 1u << at;
    return m;
  }
};

/// steps_by_vectors - the distances at which elements are read so. (Into fewer lanes single elements go as fast.)
template <class B>
constexpr bool steps_by_vectors(std::int64_t step) {
  constexpr auto size = static_cast<std::int64_t>(B::size);
  return size >= 4 && step > 1 && step <= 8 && step <= size;
}

/// NativeVector - a batch as compilers' own shuffles take it.
template <class T, std::size_t Bytes>
struct NativeVector {
  typedef T type __attribute__((vector_size(Bytes)));
};
template <class B>
using native_t = typename NativeVector<typename B::value_type, sizeof(B)>::type;
template <class B>
DFDX_INLINE native_t<B> native(B const& x) {
  return std::bit_cast<native_t<B>>(x.data);
}
template <class B>
DFDX_INLINE B batch_of(native_t<B> const& x) {
  return B(std::bit_cast<typename B::register_type>(x));
}

template <int Step, int Vector, class B, std::size_t... I>
DFDX_INLINE B load_every(typename B::value_type const* p, B const& before, std::index_sequence<I...> lanes) {
  using E = Every<Step, static_cast<int>(B::size)>;
  if constexpr (Vector == Step) {
    return before;
  } else {
    native_t<B> const all = native(before), next = native(B::load_unaligned(p + E::begin(Vector)));
    native_t<B> const both = __builtin_shufflevector(all, next, E::place(Vector, static_cast<int>(I))...);
    return load_every<Step, Vector + 1>(p, batch_of<B>(both), lanes);
  }
}
/// load_every - lanes p[0], p[Step], p[2 Step], ...; reads what lies between them too.
template <int Step, class B>
DFDX_INLINE B load_every(typename B::value_type const* p) {
  return load_every<Step, 1>(p, B::load_unaligned(p), std::make_index_sequence<B::size>{});
}

#if defined(__AVX512F__)
template <int Step, int Vector, class B, std::size_t... I>
DFDX_INLINE void store_every(typename B::value_type* p, B const& x, std::index_sequence<I...> places) {
  using E = Every<Step, static_cast<int>(B::size)>;
  if constexpr (Vector < Step) {
    auto* const to = p + E::begin(Vector);
    ask_to_write(to, stores_ahead);  // stores of parts of lines wait for these, and fill up what they wait in
    native_t<B> const all = native(x);
    native_t<B> const spread = __builtin_shufflevector(all, all, E::lane_at(Vector, static_cast<int>(I))...);
    if constexpr (sizeof(*p) == 4)
      _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(E::mask(Vector)), std::bit_cast<__m512i>(spread));
    else _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(E::mask(Vector)), std::bit_cast<__m512i>(spread));
    store_every<Step, Vector + 1>(p, x, places);
  }
}
#endif
/// has_masked_stores - whether batches B are written so: masks leave alone what lies between.
template <class B>
inline constexpr bool has_masked_stores =
#if defined(__AVX512F__)
    sizeof(B) == 64;
#else
    false;
#endif
/// store_every - p[0], p[Step], p[2 Step], ... become the lanes of x. What lies between is not touched.
template <int Step, class B>
DFDX_INLINE void store_every([[maybe_unused]] typename B::value_type* p, [[maybe_unused]] B const& x) {
  static_assert(has_masked_stores<B>);
#if defined(__AVX512F__)
  store_every<Step, 0>(p, x, std::make_index_sequence<B::size>{});
#endif
}

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif
