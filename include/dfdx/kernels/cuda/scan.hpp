// SPDX-License-Identifier: BSL-1.0
// Device kernels of cumsum and argcummax: what a rule makes of the elements up to each along an axis, or from each on.
#pragma once

#include <limits>

#include <dfdx/kernels/cuda/lines.hpp>
#include <dfdx/kernels/cuda/packs.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// SumRule - sums up to each element, floats in double as on the CPU.
template <class T>
struct SumRule {
  using Element = T;
  using Result = T;
  using Value = std::conditional_t<is_floating(dtype_v<T>), double, T>;
  /// What changes nothing that is joined to it.
  static DFDX_INLINE Value nothing() { return Value(); }
  static DFDX_INLINE Value of(T x, index_t) { return static_cast<Value>(x); }
  static DFDX_INLINE Value join(Value a, Value b) { return static_cast<Value>(math::plus(a, b)); }
  static DFDX_INLINE T result(Value v) { return static_cast<T>(v); }
  static DFDX_INLINE Value exchanged(Value v, int mask) { return cuda::exchanged(v, mask); }
};

/// LargestRule - the place of the largest element so far, the last if several; of a NaN from the first on.
template <class T, bool Smallest>
struct LargestRule {
  using Element = T;
  using Result = std::int64_t;
  using Number = compute_t<T>;
  struct Value {
    Number number;
    index_t place;
  };
  static DFDX_INLINE Value nothing() {
    using Limits = std::numeric_limits<Number>;
    if constexpr (Limits::has_infinity) return {Smallest ? Limits::infinity() : -Limits::infinity(), 0};
    else return {Smallest ? Limits::max() : Limits::lowest(), 0};
  }
  static DFDX_INLINE Value of(T x, index_t i) { return {static_cast<Number>(x), i}; }
  static DFDX_INLINE Value join(Value const& a, Value const& b) {
    auto const x = a.number, y = b.number;
    return y != y || (x == x && (Smallest ? y <= x : y >= x)) ? b : a;
  }
  static DFDX_INLINE std::int64_t result(Value const& v) { return v.place; }
  static DFDX_INLINE Value exchanged(Value const& v, int mask) {
    return {cuda::exchanged(v.number, mask), cuda::exchanged(v.place, mask)};
  }
};

/// scan_warp - what Rule makes of the values `v` of the threads of the warp before this one, and in `v` of all.
template <class Rule, class Value>
DFDX_INLINE Value scan_warp(Value& v) {
  Value before = Rule::nothing();
  DFDX_UNROLL for (int distance = 1; distance < warp_size; distance *= 2) {
    Value const other = Rule::exchanged(v, distance);
    bool const is_behind = (thread() & distance) != 0;
    if (is_behind) before = Rule::join(other, before);
    v = is_behind ? Rule::join(other, v) : Rule::join(v, other);
  }
  return before;
}

/// join_warps - what Rule makes of the values `v` of the warps of a block before this one, and in `v` of all. `room`
/// is of 2 Warps values, of which calls use the halves by turns: so one barrier does, for when a half is used again
/// all have read it.
template <class Rule, int Warps, class Value>
DFDX_INLINE Value join_warps(Value& v, Value* room, int& half) {
  int const mine = thread() / warp_size;
  Value* const of_warp = room + half;
  half = Warps - half;
  if (thread() % warp_size == 0) of_warp[mine] = v;
  barrier();
  Value before = Rule::nothing(), all = before;
  DFDX_UNROLL for (int w = 0; w < Warps; ++w) {
    if (w == mine) before = all;
    all = Rule::join(all, of_warp[w]);
  }
  v = all;
  return before;
}

/// ScanKernel - what a rule makes of the elements up to each along an axis, or from each on. Lines have a block or a
/// warp each, whose threads read elements side by side; but short ones have a thread, and so have many lines side by
/// side.
template <class Code, class Rule, int Axis, bool Backwards>
struct ScanKernel {
  using At = AxisLines<Code, 1, Axis>;
  using Element = typename Rule::Element;
  using Result = typename Rule::Result;
  using Value = typename Rule::Value;
  static constexpr index_t few_lines = 1024, short_line = 32;

  struct ByThread {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = At::length(s), all = At::lines(s);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        Line<false> const line(x, t);
        Value sum = Rule::nothing();
        for (index_t k = 0; k < n; ++k) {
          sum = Rule::join(sum, line.value(k));
          line.store(k, sum);
        }
      }
    }
  };

  /// Threads for each line: a block, or a warp of one. A thread has `packs` packs of elements of a piece of the line,
  /// those of the threads of a warp side by side. (Left to itself the compiler spills in some of them.)
  template <int Threads, bool Dense>
  struct Together {
    static constexpr int threads = own_threads, lines = threads / Threads, warps = Threads / warp_size;
    static constexpr int least_blocks = 2;
    static constexpr int in_words = sizeof(Element) > 2 ? 16 / static_cast<int>(sizeof(Element)) : 8,
                         width = Dense ? in_words : 1,
                         elements = (Dense ? 16 : 4) / (sizeof(Value) > 8 ? 2 : 1), packs = elements / width;
    static constexpr index_t row = warp_size * width, piece = Threads * width * packs;

    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = At::length(s), all = At::lines(s);
      int const lane = thread() % warp_size, warp = thread() / warp_size % warps;
      Value* const room = shared<Together, Value, 2 * warps>();
      int half = 0;
      for (index_t t = block() * lines + thread() / Threads; t < all; t += blocks() * lines) {
        Line<Dense> const line(x, t);
        bool const is_packed = line.template is_packed<width>();
        Value before = Rule::nothing();
        for (index_t first = 0; first < n; first += piece) {
          index_t const mine = first + warp * packs * row;
          Value sum[packs][width], before_pack[packs], total = Rule::nothing();
          DFDX_UNROLL for (int r = 0; r < packs; ++r) {
            if (mine + r * row < n) line.load(sum[r], mine + r * row + lane * width, is_packed);
          }
          DFDX_UNROLL for (int r = 0; r < packs; ++r) {
            before_pack[r] = total;
            if (mine + r * row >= n) continue;
            DFDX_UNROLL for (int i = 1; i < width; ++i) sum[r][i] = Rule::join(sum[r][i - 1], sum[r][i]);
            Value of_row = sum[r][width - 1];
            before_pack[r] = Rule::join(total, scan_warp<Rule>(of_row));
            total = Rule::join(total, of_row);
          }
          Value before_warp = before;
          if constexpr (warps > 1)
            before_warp = Rule::join(before, join_warps<Rule, warps>(total, room, half));
          before = Rule::join(before, total);
          DFDX_UNROLL for (int r = 0; r < packs; ++r) {
            if (mine + r * row >= n) continue;
            Value const all_before = Rule::join(before_warp, before_pack[r]);
            DFDX_UNROLL for (int i = 0; i < width; ++i) sum[r][i] = Rule::join(all_before, sum[r][i]);
            line.store(sum[r], mine + r * row + lane * width, is_packed);
          }
        }
      }
    }
  };

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    index_t const lines = At::lines(s), n = At::length(s);
    bool const is_dense = At::template step<0>(s) == 1 && At::template step<1>(s) == 1;
    if (n <= short_line || (lines >= few_lines && !is_dense))
      return start<ByThread>(x, blocks_for(lines, own_threads), stream);
    using ByWarp = Together<warp_size, true>;
    if (!is_dense) return start<Together<own_threads, false>>(x, blocks_for(lines, 1), stream);
    if (n <= 2 * ByWarp::piece) return start<ByWarp>(x, blocks_for(lines, ByWarp::lines), stream);
    return start<Together<own_threads, true>>(x, blocks_for(lines, 1), stream);
  }

 private:
  // Its elements in the order in which they are joined. Dense: they lie side by side, and so do results.
  template <bool Dense>
  struct Line {
    Element const* from;
    Result* to;
    index_t from_step, to_step, n;
    DFDX_INLINE Line(OwnArguments const& x, index_t t)
        : from(static_cast<Element const*>(x.base[0]) + At::template begin<0>(t, x.symbols)),
          to(static_cast<Result*>(x.base[1]) + At::template begin<1>(t, x.symbols)),
          from_step(Dense ? 1 : At::template step<0>(x.symbols)),
          to_step(Dense ? 1 : At::template step<1>(x.symbols)),
          n(At::length(x.symbols)) {}
    DFDX_INLINE index_t at(index_t k) const { return Backwards ? n - 1 - k : k; }
    DFDX_INLINE Value value(index_t k) const { return Rule::of(from[at(k) * from_step], at(k)); }
    DFDX_INLINE void store(index_t k, Value const& v) const { to[at(k) * to_step] = Rule::result(v); }

    // Whether packs of N elements, and what becomes of them, begin where words can be read and written.
    template <int N>
    DFDX_INLINE bool is_packed() const {
      index_t const first = Backwards ? n % N : 0;
      return Dense && detail::is_aligned<word_of<Element, N>>(from + first) &&
             detail::is_aligned<word_of<Result, N>>(to + first);
    }
    // Elements k to k + N - 1, as far as there are.
    template <int N>
    DFDX_INLINE void load(Value (&v)[N], index_t k, bool packed) const {
      if (Dense && packed && k + N <= n) {
        index_t const first = Backwards ? n - N - k : k;
        auto const x =
            std::bit_cast<Pack<Element, N>>(*reinterpret_cast<word_of<Element, N> const*>(from + first));
        DFDX_UNROLL for (int i = 0; i < N; ++i) v[i] = Rule::of(x.x[Backwards ? N - 1 - i : i], at(k + i));
      } else {
        DFDX_UNROLL for (int i = 0; i < N; ++i) v[i] = k + i < n ? value(k + i) : Rule::nothing();
      }
    }
    template <int N>
    DFDX_INLINE void store(Value const (&v)[N], index_t k, bool packed) const {
      if (Dense && packed && k + N <= n) {
        using W = word_of<Result, N>;
        constexpr int in_word = static_cast<int>(sizeof(W) / sizeof(Result));
        auto* const words = reinterpret_cast<W*>(to + (Backwards ? n - N - k : k));
        DFDX_UNROLL for (int w = 0; w < N / in_word; ++w) {
          Pack<Result, in_word> y;
          DFDX_UNROLL for (int i = 0; i < in_word; ++i) {
            int const at = w * in_word + i;
            y.x[i] = Rule::result(v[Backwards ? N - 1 - at : at]);
          }
          words[w] = std::bit_cast<W>(y);
        }
      } else {
        DFDX_UNROLL for (int i = 0; i < N; ++i) {
          if (k + i < n) store(k + i, v[i]);
        }
      }
    }
  };
  // What N numbers are read or written by, 16 bytes at most.
  template <class T, int N>
  using word_of = typename detail::Word<(sizeof(T) * N < 16 ? static_cast<int>(sizeof(T)) * N : 16)>::type;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
