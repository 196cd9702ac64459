// SPDX-License-Identifier: BSL-1.0
// Several elements for each thread, beside each other, which it loads and stores 16 bytes at a time: lanes of a block,
// or of one thread alone, whose values are packs of numbers.
#pragma once

#include <bit>
#include <cstdint>

#include <dfdx/kernels/cuda/lanes.hpp>
#include <dfdx/kernels/loop_facts.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace cuda {

/// Pack - N numbers.
template <class T, int N>
struct Pack {
  T x[N];
};

/// packed_width - the width of lanes that are `threads` (a block, or 1) with packs of N.
constexpr index_t packed_width(int threads, int n) { return n == 1 ? threads : 4096 * n + threads; }

namespace detail {

template <int Bytes>
struct Word;
template <>
struct Word<1> : std::type_identity<std::uint8_t> {};
template <>
struct Word<2> : std::type_identity<std::uint16_t> {};
template <>
struct Word<4> : std::type_identity<std::uint32_t> {};
template <>
struct Word<8> : std::type_identity<std::uint64_t> {};
template <>
struct Word<16> : std::type_identity<uint4> {};

template <class W>
DFDX_INLINE bool is_aligned(void const* p) {
  return reinterpret_cast<std::uintptr_t>(p) % sizeof(W) == 0;
}

}  // namespace detail

/// PackLanes - Threads threads with N elements each; one thread is no block, and knows of no others.
template <int Threads, int N>
struct PackLanes {
  static constexpr int size = Threads * N;
  static constexpr bool applies_itself = true, is_block = Threads > 1;
  template <class T>
  using type = Pack<T, N>;

  /// Where the elements of this thread begin.
  static DFDX_INLINE int first() { return Threads > 1 ? thread() * N : 0; }

  template <class T>
  static DFDX_INLINE type<T> splat(T x) {
    return each<T>([&](int) { return x; });
  }
  template <bool Tail, class M>
  static DFDX_INLINE type<compute_t<M>> load(M const* p, index_t stride, int count) {
    using T = compute_t<M>;
    if (stride == 0) return splat(static_cast<T>(*p));
    if constexpr (!Tail && fits<M>) {
      using W = typename detail::Word<static_cast<int>(sizeof(M)) * N>::type;
      if (stride == 1 && detail::is_aligned<W>(p + first())) {
        auto const all = std::bit_cast<Pack<M, N>>(*reinterpret_cast<W const*>(p + first()));
        return each<T>([&](int i) { return static_cast<T>(all.x[i]); });
      }
    }
    return each<T>([&](int i) {
      return Tail && first() + i >= count ? T() : static_cast<T>(p[(first() + i) * stride]);
    });
  }
  template <bool Tail, class M>
  static DFDX_INLINE void store(M* p, index_t stride, type<compute_t<M>> const& x, int count) {
    if constexpr (!Tail && fits<M>) {
      using W = typename detail::Word<static_cast<int>(sizeof(M)) * N>::type;
      if (stride == 1 && detail::is_aligned<W>(p + first())) {
        auto const all = each<M>([&](int i) { return static_cast<M>(x.x[i]); });
        *reinterpret_cast<W*>(p + first()) = std::bit_cast<W>(all);
        return;
      }
    }
    DFDX_UNROLL for (int i = 0; i < N; ++i) {
      if (!Tail || first() + i < count) p[(first() + i) * stride] = static_cast<M>(x.x[i]);
    }
  }
  template <class M>
  static DFDX_INLINE void store_row(M* p, compute_t<M> x) {
    Lanes<Threads>::store_row(p, x);
  }
  template <index_t Do, class M>
  static DFDX_INLINE void combine_row(M* p, compute_t<M> x) {
    Lanes<Threads>::template combine_row<Do>(p, x);
  }
  template <class To, class From>
  static DFDX_INLINE type<compute_t<To>> convert(type<From> const& x) {
    return each<compute_t<To>>([&](int i) { return math::computed_number<To>(x.x[i]); });
  }
  template <class T>
  static DFDX_INLINE type<T> positions(index_t from, index_t step) {
    return each<T>([&](int i) { return static_cast<T>(from + (first() + i) * step); });
  }
  template <class T>
  static DFDX_INLINE type<T> only_first(type<T> const& x, int count, T identity) {
    return each<T>([&](int i) { return first() + i < count ? x.x[i] : identity; });
  }
  template <index_t Do, class T>
  static DFDX_INLINE T horizontal(type<T> const& x) {
    T r = x.x[0];
    DFDX_UNROLL for (int i = 1; i < N; ++i) r = Combination<Do>::apply(r, x.x[i]);
    if constexpr (is_block) return block_reduce<Do, Threads>(r);
    else return r;
  }

  template <class Op, class T, class... Of, class... X>
  static DFDX_INLINE type<T> apply(X const&... x) {
    return each<T>([&](int i) {
      if constexpr (sizeof...(X) == 3) return math::select(x.x[i]...);
      else return static_cast<T>(Op::eval(x.x[i]...));
    });
  }
  template <index_t Do, class T>
  static DFDX_INLINE type<T> combine(type<T> const& x, type<T> const& y) {
    return each<T>([&](int i) { return Combination<Do>::apply(x.x[i], y.x[i]); });
  }

 private:
  // Whether a pack of M is one access. (An operand that repeats, or lies across, may have wider numbers than others.)
  template <class M>
  static constexpr bool fits = sizeof(M) * N <= sizeof(uint4);
  template <class T, class F>
  static DFDX_INLINE type<T> each(F const& f) {
    type<T> r;
    DFDX_UNROLL for (int i = 0; i < N; ++i) r.x[i] = static_cast<T>(f(i));
    return r;
  }
};

/// pack_size - how many elements a thread is given of a loop whose lanes run over `Code`'s last dim: as many as fill 16
/// bytes of the widest operand, 8 at most, if all that lies side by side can be read so.
template <class Code>
constexpr int pack_size() {
  constexpr LoopFacts facts(Code::value);
  int widest = 0, n = 8;
  for (int k = 0; k < facts.operands; ++k)
    if (facts.stride_code(k, facts.dims - 1) == 1) {
      int const size = static_cast<int>(size_of(static_cast<DType>(facts.record(k, loop_code::dtype))));
      widest = size > widest ? size : widest;
    }
  if (widest == 0) return 1;
  while (n * widest > 16) n /= 2;
  return n;
}

}  // namespace cuda

/// Lanes - packs: more than 4096 is a number of threads and 4096 times that of the elements of each.
template <index_t Width>
  requires(Width > 4096 && Width < 65536)
struct Lanes<Width> : cuda::PackLanes<static_cast<int>(Width % 4096), static_cast<int>(Width / 4096)> {};

}  // namespace dfdx::kernels::inline DFDX_TARGET
