// SPDX-License-Identifier: BSL-1.0
// Norms of dense rows and their gradients: a row is read while it is in the cache and written once.
#pragma once

#include <cmath>
#include <limits>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/reduce.hpp>
#include <dfdx/kernels/simd/partial.hpp>
#include <dfdx/value/norm_options.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// RowMoments - where the means of rows go, and the means of the squared distances from them; nowhere if null.
template <class T>
struct RowMoments {
  T *means = nullptr, *variances = nullptr;
  void put(index_t row, double mean, double variance) const {
    if (means != nullptr) means[row] = static_cast<T>(mean), variances[row] = static_cast<T>(variance);
  }
};

namespace detail {

/// NormLanes - so many numbers at once: a vector, or one number where there are no vectors of a size.
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
template <class T>
struct NormLanes {
  using V = lane<T>;
  static constexpr index_t size = lane_size<T>;
  int n = size;
  DFDX_INLINE V load(T const* p) const { return load_n(p, n); }
  DFDX_INLINE void store(T* p, V const& v) const { store_n(p, v, n); }
  static DFDX_INLINE V splat(T x) { return V(x); }
  static DFDX_INLINE double sum(V const& v) {
    using Doubles = Lanes<loop_code::eight_bytes>;
    constexpr index_t how = fold_code<Code::reduce_sum>;
    if constexpr (std::is_same_v<T, double>) return Doubles::template horizontal<how, T>(v);
    else {
      auto const wide = widened(v);
      return Doubles::template horizontal<how, double>(wide[0] + wide[1]);
    }
  }
};
#else
template <class T>
struct NormLanes {
  using V = T;
  static constexpr index_t size = 1;
  int n = 1;
  DFDX_INLINE V load(T const* p) const { return *p; }
  DFDX_INLINE void store(T* p, V const& v) const { *p = v; }
  static DFDX_INLINE V splat(T x) { return x; }
  static DFDX_INLINE double sum(V const& v) { return static_cast<double>(v); }
};
#endif

// f(i, lanes) for all of n numbers; the last lanes may be fewer.
template <class T, class F>
DFDX_INLINE void each_lanes(index_t n, F const& f) {
  constexpr index_t w = NormLanes<T>::size;
  index_t i = 0;
  for (; i + w <= n; i += w) f(i, NormLanes<T>{});
  if (w > 1 && i < n) f(i, NormLanes<T>{static_cast<int>(n - i)});
}

// totals[s] += sums that f(part, i, lanes) adds to its part[s] for all of n numbers; in lanes for blocks, which are
// added up in double.
template <class T, int Sums, class F>
DFDX_INLINE void add_up(double (&totals)[Sums], index_t n, F const& f) {
  using L = NormLanes<T>;
  constexpr index_t w = L::size, block = 4096;
  for (index_t i = 0; i < n;) {
    index_t const end = i + (n - i < block ? n - i : block);
    typename L::V part[4][Sums];
    DFDX_UNROLL for (auto& p : part) DFDX_UNROLL for (auto& s : p) s = L::splat(T(0));
    for (; i + 4 * w <= end; i += 4 * w) DFDX_UNROLL for (int k = 0; k < 4; ++k) f(part[k], i + k * w, L{});
    for (; i + w <= end; i += w) f(part[0], i, L{});
    if (w > 1 && i < end) f(part[1], i, L{static_cast<int>(end - i)});
    i = end;
    DFDX_UNROLL for (int s = 0; s < Sums; ++s) totals[s] +=
        L::sum((part[0][s] + part[1][s]) + (part[2][s] + part[3][s]));
  }
}

/// hardly_vary - whether numbers vary so little that the rounding of their sum, by which they seem to vary too, could
/// show: those that are all alike would not be brought to 0, but to 1 or -1. Their mean is then looked for again.
template <class T>
constexpr bool hardly_vary(double mean, double variance) {
  constexpr double share = 4096 * static_cast<double>(std::numeric_limits<T>::epsilon());
  return variance < share * mean * (share * mean);
}

/// RowsOf - the rows of a norm, each in pieces of which all elements have one parameter each, or the same.
template <class T>
class RowsOf {
 public:
  struct Moments {
    double mean, variance;
  };
  struct Standard {
    T mean, scale;
  };

  RowsOf(op::NormRows const& r, T const* x) : r_(r), x_(x), whole_(r.inner == 1 && !r.across) {
    if (whole_) pieces_ = 1, piece_ = r.channels;
    else pieces_ = r.across ? r.samples : r.channels, piece_ = r.inner;
    apart_ = r.across ? r.groups * r.inner : piece_;
  }

  Moments moments(index_t row) const {
    T const* const x = x_ + at(row);
    double sum = 0;
    if (r_.centred)
      for (index_t p = 0; p < pieces_; ++p) sum = fold_line<Code::reduce_sum>(sum, x + p * apart_, piece_);
    double const mean = sum / static_cast<double>(r_.length());
    Moments const m{mean, apart<2>(x, static_cast<T>(mean))};
    return hardly_vary<T>(m.mean, m.variance) ? moments_near(x, static_cast<T>(m.mean)) : m;
  }
  Standard standard(index_t row, RowMoments<T> const& put = {}) const {
    Moments const m = moments(row);
    put.put(row, m.mean, m.variance);
    return {static_cast<T>(m.mean), static_cast<T>(r_.scale(m.variance))};
  }

  void forward(T const* weight, T const* bias, T* to, RowMoments<T> const& put) const {
    in_parts(r_.number(), 4, [&](int, Part const& mine) {
      for (index_t row = mine.begin; row < mine.end; ++row) {
        Standard const s = standard(row, put);
        T const* const x = x_ + at(row);
        T* const y = to + at(row);
        if (whole_ && weight != nullptr) {
          index_t const c = row % r_.groups * r_.channels;
          if (bias != nullptr) scaled<true>(x, s, weight + c, bias + c, y);
          else scaled<false>(x, s, weight + c, nullptr, y);
          continue;
        }
        for (index_t p = 0; p < pieces_; ++p) {
          index_t const c = channel(row, p);
          piece(x + p * apart_, s, weight == nullptr ? T(1) : weight[c], bias == nullptr ? T(-0.0) : bias[c],
                y + p * apart_);
        }
      }
    });
  }

  // Gradients; those of parameters only where there are some.
  void backward(T const* weight, T const* ct, T* dx, T* d_weight, T* d_bias) const {
    index_t const n = d_weight == nullptr ? 0 : r_.parameters();
    bool const whole = whole_ && weight != nullptr;
    index_t const units = whole ? r_.samples : r_.number();
    int const most = parts_of(8 * r_.length() * r_.number(), units);
    Scratch<double> sums(static_cast<std::size_t>(2 * n * most));
    std::fill_n(sums.get(), 2 * n * most, 0.0);
    in_parts(units, 8, [&](int i, Part const& mine) {
      double* const to = n == 0 ? nullptr : sums.get() + 2 * n * i;
      if (!whole) pieces_back(mine, weight, ct, dx, to);
      else if (d_bias != nullptr) whole_back<true>(mine, weight, ct, dx, to);
      else whole_back<false>(mine, weight, ct, dx, to);
    });
    for (index_t c = 0; c < 2 * n; ++c) {
      double total = sums.get()[c];
      for (int i = 1; i < most; ++i) total += sums.get()[2 * n * i + c];
      if (c < n) d_weight[c] = static_cast<T>(total);
      else if (d_bias != nullptr) d_bias[c - n] = static_cast<T>(total);
    }
  }

 private:
  using L = NormLanes<T>;
  using V = typename L::V;

  [[gnu::noinline]] Moments moments_near(T const* x, T near) const {
    double const mean = static_cast<double>(near) + apart<1>(x, near);
    return {mean, apart<2>(x, static_cast<T>(mean))};
  }
  // The mean of x - from over a row, or of its square.
  template <int Power>
  DFDX_INLINE double apart(T const* x, T from) const {
    double sums[1] = {0};
    auto const m = L::splat(from);
    for (index_t p = 0; p < pieces_; ++p) {
      T const* const v = x + p * apart_;
      // Lanes beyond the last are 0, and 0 is what is taken from them.
      add_up<T>(sums, piece_, [&](V(&s)[1], index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
        V const d = lanes.load(v + i) - (lanes.n == L::size ? m : kept(m, lanes));
        if constexpr (Power == 1) s[0] = s[0] + d;
        else s[0] = s[0] + d * d;
      });
    }
    return sums[0] / static_cast<double>(r_.length());
  }
  // Where a row begins.
  index_t at(index_t row) const { return row * r_.channels * r_.inner; }
  index_t channel(index_t row, index_t p) const {
    return r_.across ? row : row % r_.groups * r_.channels + p;
  }
  static DFDX_INLINE V kept(V const& m, L const& lanes) {
    alignas(64) T all[L::size];
    L{}.store(all, m);
    return lanes.load(all);
  }
  template <class F>
  void in_parts(index_t n, int cost, F const& f) const {
    int const parts = parts_of(cost * r_.length() * r_.number(), n);
    in_parallel(parts, [&](int i) { f(i, part_of(n, i, parts)); });
  }

  template <bool Biased>
  void scaled(T const* x, Standard const& by, T const* w, T const* b, T* y) const {
    auto const m = L::splat(by.mean), s = L::splat(by.scale);
    each_lanes<T>(piece_, [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
      V v = (lanes.load(x + i) - m) * s * lanes.load(w + i);
      if constexpr (Biased) v = v + lanes.load(b + i);
      lanes.store(y + i, v);
    });
  }
  void piece(T const* x, Standard const& by, T weight, T bias, T* y) const {
    auto const m = L::splat(by.mean), s = L::splat(by.scale), w = L::splat(weight), b = L::splat(bias);
    each_lanes<T>(piece_, [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
      lanes.store(y + i, (lanes.load(x + i) - m) * s * w + b);
    });
  }

  // What is taken from h = ct weight: a + b z.
  struct Taken {
    T a, b;
  };
  Taken taken(double h, double h_z) const {
    auto const count = static_cast<double>(r_.length());
    return {static_cast<T>(r_.centred ? h / count : 0), static_cast<T>(h_z / count)};
  }

  void pieces_back(Part const& mine, T const* weight, T const* ct, T* to, double* sums) const {
    for (index_t row = mine.begin; row < mine.end; ++row) {
      Standard const by = standard(row);
      T const *const x = x_ + at(row), *const g = ct + at(row);
      auto const m = L::splat(by.mean), s = L::splat(by.scale);
      double h[2] = {0, 0};
      for (index_t p = 0; p < pieces_; ++p) {
        double own[2] = {0, 0};
        T const *const px = x + p * apart_, *const pg = g + p * apart_;
        add_up<T>(own, piece_, [&](V(&sum)[2], index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
          V const c = lanes.load(pg + i);
          sum[0] = sum[0] + c;
          sum[1] = sum[1] + c * ((lanes.load(px + i) - m) * s);
        });
        index_t const c = channel(row, p);
        double const w = weight == nullptr ? 1 : static_cast<double>(weight[c]);
        h[0] += w * own[0], h[1] += w * own[1];
        if (sums != nullptr) sums[c] += own[1], sums[r_.parameters() + c] += own[0];
      }
      Taken const t = taken(h[0], h[1]);
      auto const a = L::splat(t.a), b = L::splat(t.b);
      for (index_t p = 0; p < pieces_; ++p) {
        auto const w = L::splat(weight == nullptr ? T(1) : weight[channel(row, p)]);
        T const *const px = x + p * apart_, *const pg = g + p * apart_;
        T* const y = to + at(row) + p * apart_;
        each_lanes<T>(piece_, [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
          V const z = (lanes.load(px + i) - m) * s;
          lanes.store(y + i, (lanes.load(pg + i) * w - a - z * b) * s);
        });
      }
    }
  }

  // Sums of parameters over some rows in T, then in double; four rows at once read and write them once.
  template <bool Biased>
  void whole_back(Part const& mine, T const* weight, T const* ct, T* to, double* sums) const {
    constexpr index_t block = 64;
    index_t const n = r_.channels;
    Scratch<T> own(static_cast<std::size_t>(2 * n));
    for (index_t g = 0; g < r_.groups; ++g)
      for (index_t i = mine.begin; i < mine.end;) {
        index_t const end = i + (mine.end - i < block ? mine.end - i : block);
        std::fill_n(own.get(), 2 * n, T(0));
        for (; i + 4 <= end; i += 4) rows_back<4, Biased>(i, g, weight, ct, to, own.get());
        for (; i < end; ++i) rows_back<1, Biased>(i, g, weight, ct, to, own.get());
        for (index_t c = 0; c < n; ++c) {
          sums[g * n + c] += static_cast<double>(own.get()[c]);
          if constexpr (Biased) sums[r_.parameters() + g * n + c] += static_cast<double>(own.get()[n + c]);
        }
      }
  }
  template <int Rows, bool Biased>
  void rows_back(index_t sample, index_t group, T const* weight, T const* ct, T* to, T* sums) const {
    index_t const n = r_.channels, from = r_.groups * n;
    T const *const x = x_ + sample * from + group * n, *const g = ct + sample * from + group * n,
                   *const w = weight + group * n;
    T* const y = to + sample * from + group * n;
    V m[Rows], s[Rows], a[Rows], b[Rows];
    for (int k = 0; k < Rows; ++k) {
      Standard const by = standard((sample + k) * r_.groups + group);
      V const mean = m[k] = L::splat(by.mean), scale = s[k] = L::splat(by.scale);
      double h[2] = {0, 0};
      add_up<T>(h, n, [&](V(&sum)[2], index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
        V const c = lanes.load(g + k * from + i) * lanes.load(w + i);
        sum[0] = sum[0] + c;
        sum[1] = sum[1] + c * ((lanes.load(x + k * from + i) - mean) * scale);
      });
      Taken const t = taken(h[0], h[1]);
      a[k] = L::splat(t.a), b[k] = L::splat(t.b);
    }
    each_lanes<T>(n, [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
      V const wi = lanes.load(w + i);
      V d_weight = lanes.load(sums + i), d_bias = Biased ? lanes.load(sums + n + i) : d_weight;
      DFDX_UNROLL for (int k = 0; k < Rows; ++k) {
        V const c = lanes.load(g + k * from + i), z = (lanes.load(x + k * from + i) - m[k]) * s[k];
        d_weight = d_weight + c * z;
        if constexpr (Biased) d_bias = d_bias + c;
        lanes.store(y + k * from + i, (c * wi - a[k] - z * b[k]) * s[k]);
      }
      lanes.store(sums + i, d_weight);
      if constexpr (Biased) lanes.store(sums + n + i, d_bias);
    });
  }

  op::NormRows r_;
  T const* x_;
  bool whole_;
  index_t pieces_ = 1, piece_ = 1, apart_ = 1;
};

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET
