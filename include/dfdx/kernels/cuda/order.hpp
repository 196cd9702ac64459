// SPDX-License-Identifier: BSL-1.0
// Device kernels of the ops along one axis in which order matters: argsort, searchsorted and argmax (scans of lines:
// kernels/cuda/scan.hpp).
#pragma once

#include <dfdx/core/order.hpp>
#include <dfdx/kernels/cuda/lines.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// SortKernel - places of the elements of each line in order. A block sorts a piece in shared memory; then pieces that
/// lie side by side are merged, each element by itself: its place among the others is found by bisection. Equal
/// elements stay in their order. Those that attrs.i[2] asks for are stored (ops/order.hpp).
template <class Code, class T, int Axis, bool Descending>
struct SortKernel {
  using At = AxisLines<Code, 0, Axis>;
  using Key = decltype(op::detail::sort_key(T{}));
  struct Keyed {
    Key key, place;
  };
  static constexpr int threads = own_threads;
  static constexpr index_t piece = 1024;

  struct Arguments {
    OwnArguments own;
    Keyed const* from;
    Keyed* to;
    index_t width;
  };

  static constexpr index_t elements(index_t const* s) { return At::lines(s) * At::length(s); }
  static constexpr index_t workspace(index_t const* s) {
    return At::length(s) <= piece ? 0 : 2 * elements(s) * static_cast<index_t>(sizeof(Keyed));
  }

  // The place that element i of one of two sorted runs has among both; runs begin at multiples of 2 width.
  static DFDX_INLINE index_t merged_place(Keyed const* x, index_t n, index_t i, index_t width) {
    index_t const begin = i / (2 * width) * (2 * width), middle = begin + width < n ? begin + width : n,
                  end = middle + width < n ? middle + width : n;
    bool const first = i < middle;
    Key const key = x[i].key;
    index_t low = first ? middle : begin, high = first ? end : middle;
    index_t const other = low;
    while (low < high) {
      index_t const m = low + (high - low) / 2;
      if (first ? x[m].key < key : x[m].key <= key) low = m + 1;
      else high = m;
    }
    return begin + (i - (first ? begin : middle)) + (low - other);
  }

  struct Pieces {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(Arguments const& a) {
      OwnArguments const& x = a.own;
      index_t const* const s = x.symbols;
      index_t const n = At::length(s), of_line = (n + piece - 1) / piece, all = At::lines(s) * of_line;
      Keyed* const room = shared<Pieces, Keyed, 2 * static_cast<int>(piece)>();
      for (index_t t = block(); t < all; t += blocks()) {
        index_t const line = t / of_line, first = t % of_line * piece,
                      size = n - first < piece ? n - first : piece;
        T const* const from = static_cast<T const*>(x.base[0]) + At::template begin<0>(line, s);
        barrier();  // until all have read what the last piece left
        for (index_t i = thread(); i < size; i += threads) {
          Key const key = op::detail::sort_key(from[(first + i) * At::template step<0>(s)]);
          room[i] = {Descending ? static_cast<Key>(~key) : key, static_cast<Key>(first + i)};
        }
        barrier();
        index_t half = 0;
        for (index_t width = 1; width < size; width *= 2, half = piece - half) {
          for (index_t i = thread(); i < size; i += threads)
            room[piece - half + merged_place(room + half, size, i, width)] = room[half + i];
          barrier();
        }
        for (index_t i = thread(); i < size; i += threads) {
          if (a.to != nullptr) a.to[line * n + first + i] = room[half + i];
          else store(x, line, i, room[half + i]);
        }
      }
    }
  };
  struct Merge {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(Arguments const& a) {
      index_t const* const s = a.own.symbols;
      index_t const n = At::length(s), all = elements(s);
      bool const last = 2 * a.width >= n;
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        index_t const line = t / n, i = t % n;
        Keyed const* const from = a.from + line * n;
        index_t const place = merged_place(from, n, i, a.width);
        if (last) store(a.own, line, place, from[i]);
        else a.to[line * n + place] = from[i];
      }
    }
  };

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const n = At::length(x.symbols), all = elements(x.symbols);
    if (all == 0) return cudaSuccess;
    bool const is_short = n <= piece;
    auto* from = is_short ? nullptr : static_cast<Keyed*>(x.workspace);
    Keyed* to = is_short ? nullptr : from + all;
    index_t const pieces = At::lines(x.symbols) * ((n + piece - 1) / piece);
    cudaError_t said = start<Pieces>(Arguments{x, nullptr, from, 0}, blocks_for(pieces, 1), stream);
    for (index_t width = piece; width < n && said == cudaSuccess; width *= 2) {
      said = start<Merge>(Arguments{x, from, to, width}, blocks_for(all, threads), stream);
      Keyed* const next = to;
      to = from, from = next;
    }
    return said;
  }

 private:
  static DFDX_INLINE void store(OwnArguments const& x, index_t line, index_t i, Keyed const& v) {
    index_t const* const s = x.symbols;
    index_t const wanted = x.attrs.i[2], first = wanted < 0 ? -wanted - 1 : 0, at = i - first;
    if (wanted != 0 && (at < 0 || at >= (wanted < 0 ? 1 : wanted))) return;
    static_cast<std::int64_t*>(x.base[1])[At::template begin<1>(line, s) + at * At::template step<1>(s)] =
        static_cast<std::int64_t>(v.place);
  }
};

/// SearchKernel - where values belong in ascending lists, a thread for each value.
template <class Code, class T, bool Behind>
struct SearchKernel {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, lists = W::template rank<0>, rank = W::template rank<1>;
  static constexpr index_t work(index_t const* s) { return W::template count<2>(s); }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const count = work(s), n = W::template extent<0, lists - 1>(s),
                  step = W::template stride<0, lists - 1>(s);
    for (index_t t = block() * threads + thread(); t < count; t += blocks() * threads) {
      auto const v =
          static_cast<compute_t<T>>(static_cast<T const*>(x.base[1])[W::template offset<1, 0, rank>(t, s)]);
      T const* list = static_cast<T const*>(x.base[0]);
      if constexpr (lists > 1)
        list += W::template offset<1, 0, rank - 1, 0>(t / W::template extent<1, rank - 1>(s), s);
      index_t low = 0, high = n;
      while (low < high) {
        index_t const m = low + (high - low) / 2;
        auto const other = static_cast<compute_t<T>>(list[m * step]);
        if (Behind ? !op::detail::before(v, other) : op::detail::before(other, v)) low = m + 1;
        else high = m;
      }
      static_cast<std::int64_t*>(x.base[2])[W::template offset<2, 0, rank>(t, s)] = low;
    }
  }
};

/// ArgmaxKernel - a block for each line: the first of the largest elements along an axis (of the smallest), or of NaN.
template <class Code, class T, int Axis, bool Smallest>
struct ArgmaxKernel {
  using At = AxisLines<Code, 0, Axis>;
  static constexpr int threads = 128;
  static constexpr index_t work(index_t const* s) { return At::lines(s) * threads; }
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const lines = At::lines(s), n = At::length(s), step = At::template step<0>(s);
    Found* const found = shared<ArgmaxKernel, Found, threads>();
    for (index_t line = block(); line < lines; line += blocks()) {
      T const* const from = static_cast<T const*>(x.base[0]) + At::template begin<0>(line, s);
      Found mine{static_cast<compute_t<T>>(from[0]), 0};
      for (index_t i = thread(); i < n; i += threads) {
        Found const other{static_cast<compute_t<T>>(from[i * step]), i};
        if (other.is_before(mine)) mine = other;
      }
      barrier();  // until all have read what the last line left
      found[thread()] = mine;
      barrier();
      for (int half = threads / 2; half > 0; half /= 2) {
        if (thread() < half && found[thread() + half].is_before(found[thread()]))
          found[thread()] = found[thread() + half];
        barrier();
      }
      if (thread() == 0)
        static_cast<std::int64_t*>(x.base[1])[At::template begin<1>(line, s)] = found[0].place;
    }
  }

 private:
  struct Found {
    compute_t<T> value;
    index_t place;
    DFDX_INLINE bool is_before(Found const& o) const {
      bool const is_nan = value != value, other_is_nan = o.value != o.value;
      if (is_nan || other_is_nan) return is_nan && (!other_is_nan || place < o.place);
      if (value == o.value) return place < o.place;
      return Smallest ? value < o.value : value > o.value;
    }
  };
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
