// SPDX-License-Identifier: BSL-1.0
// Images at places that a grid gives, and the gradients of that, of dense float or double. Where places are is found in
// vectors; elements of images are read one by one, those of a place in several channels after one another.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include <dfdx/core/grid.hpp>
#include <dfdx/core/parallel.hpp>
#include <dfdx/kernels/lanes.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// GridImages - images [count, channels, extent...] and places [count, places, 2] in memory.
struct GridImages {
  index_t count, channels, extent[2], places;
  GridSampleOptions options;

  GridImages(index_t packed, Shape const& x, Shape const& grid)
      : count(x[0]),
        channels(x[1]),
        extent{x[2], x[3]},
        places(grid[1] * grid[2]),
        options(op::detail::grid_options(packed)) {}
  index_t plane() const { return extent[0] * extent[1]; }
  /// Whether floats tell all elements of an axis apart, and 32 bits those of an image.
  bool fits_floats() const { return extent[0] < 1 << 24 && extent[1] < 1 << 24 && plane() <= INT32_MAX; }
};

namespace detail {

/// GridBlock - the terms of some places, of each its column and its row, as the grid has them; elements of rows as how
/// far they are from the first of an image.
template <class T, int K>
struct GridBlock {
  static constexpr index_t size = 64;
  using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  alignas(64) T weight[K][2 * size], slope[K][2 * size];
  alignas(64) I at[K][2 * size], some[2 * size];

  template <GridPadding Padding>
  void fill(T const* grid, index_t n, GridImages const& g) {
    using Axis = op::detail::GridAxis<T>;
    alignas(64) T few[2 * size] = {};
    if (n < size) {
      std::copy_n(grid, 2 * n, few);
      grid = few;
    }
    Axis const axes[] = {Axis::of(g.extent[1], g.options.align_corners),
                         Axis::of(g.extent[0], g.options.align_corners)};
    I const step[] = {1, static_cast<I>(g.extent[1])};
#if defined(__CUDACC__) || defined(DFDX_RVV)
    for (index_t i = 0; i < 2 * n; ++i) {
      auto const terms = op::detail::grid_terms_of<K>(grid[i], axes[i % 2], Padding);
      for (int k = 0; k < K; ++k) {
        at[k][i] = static_cast<I>(terms.at[k]) * step[i % 2];
        weight[k][i] = terms.weight[k], slope[k][i] = terms.slope[k];
      }
      some[i] = static_cast<I>(terms.some);
    }
#else
    using V = lane<T>;
    auto const by_turns = [](auto a, auto b) {
      using E = decltype(a);
      alignas(64) E x[lane_size<E>];
      for (int i = 0; i < lane_size<E>; ++i) x[i] = i % 2 == 0 ? a : b;
      return lane<E>::load_aligned(x);
    };
    op::detail::GridAxis<V> const both{
        by_turns(axes[0].last, axes[1].last), by_turns(axes[0].scale, axes[1].scale),
        by_turns(axes[0].shift, axes[1].shift), by_turns(axes[0].turns, axes[1].turns)};
    lane<I> const steps = by_turns(step[0], step[1]);
    for (index_t i = 0; i < 2 * n; i += lane_size<T>) {
      auto const terms = op::detail::grid_terms_of<K>(V::load_unaligned(grid + i), both, Padding);
      DFDX_UNROLL for (int k = 0; k < K; ++k) {
        (xsimd::to_int(terms.at[k]) * steps).store_aligned(at[k] + i);
        terms.weight[k].store_aligned(weight[k] + i);
        terms.slope[k].store_aligned(slope[k] + i);
      }
      xsimd::to_int(terms.some).store_aligned(some + i);
    }
#endif
  }
};
/// GridPlace - one of them: its elements, and what they count; rows first.
template <class T, int K>
struct GridPlace {
  index_t row[K], column[K];
  T row_weight[K], column_weight[K], row_slope[K], column_slope[K];
  bool some, all = true;

  DFDX_INLINE GridPlace(GridBlock<T, K> const& b, index_t i)
      : some((b.some[2 * i] & b.some[2 * i + 1]) != 0) {
    DFDX_UNROLL for (int k = 0; k < K; ++k) {
      row[k] = b.at[k][2 * i + 1], column[k] = b.at[k][2 * i];
      row_weight[k] = b.weight[k][2 * i + 1], column_weight[k] = b.weight[k][2 * i];
      row_slope[k] = b.slope[k][2 * i + 1], column_slope[k] = b.slope[k][2 * i];
      if constexpr (K == 4) all = all && (row[k] | column[k]) >= 0;
    }
  }
  DFDX_INLINE bool is_element(int r, int c) const { return K < 4 || all || (row[r] | column[c]) >= 0; }
  /// The sum over a row of what its elements count; those that do not exist are not read.
  DFDX_INLINE T along(T const* x, int r, T const (&counts)[K]) const {
    T sum = 0;
    DFDX_UNROLL for (int c = 0; c < K; ++c) {
      T const term = is_element(r, c) ? counts[c] * x[row[r] + column[c]] : T(0);
      sum = c == 0 ? term : sum + term;
    }
    return sum;
  }
  DFDX_INLINE T value(T const* x) const {
    if constexpr (K == 1) return x[row[0] + column[0]];
    T sum = 0;
    DFDX_UNROLL for (int r = 0; r < K; ++r) {
      T const term = row_weight[r] * along(x, r, column_weight);
      sum = r == 0 ? term : sum + term;
    }
    return sum;
  }
  DFDX_INLINE void add(T ct, T* x) const {
    DFDX_UNROLL for (int r = 0; r < K; ++r) {
      T const of_row = K == 1 ? ct : ct * row_weight[r];
      DFDX_UNROLL for (int c = 0; c < K; ++c) {
        if (is_element(r, c)) x[row[r] + column[c]] += K == 1 ? of_row : of_row * column_weight[c];
      }
    }
  }
};
/// GridSums - of the elements of a place the sums over channels of what each is multiplied with: with them it is cheap
/// to say by how much the value changes with row and column.
template <class T, int K>
struct GridSums {
  T of[K][K] = {};
  DFDX_INLINE void add(GridPlace<T, K> const& p, T ct, T const* x) {
    DFDX_UNROLL for (int r = 0; r < K; ++r) DFDX_UNROLL for (int c = 0; c < K; ++c) {
      if (p.is_element(r, c)) of[r][c] += ct * x[p.row[r] + p.column[c]];
    }
  }
  DFDX_INLINE void finish(GridPlace<T, K> const& p, T* to) const {
    DFDX_UNROLL for (int r = 0; r < K; ++r) {
      T by_weight = 0, by_slope = 0;
      DFDX_UNROLL for (int c = 0; c < K; ++c) {
        by_weight += p.column_weight[c] * of[r][c];
        by_slope += p.column_slope[c] * of[r][c];
      }
      to[0] += p.row_weight[r] * by_slope;
      to[1] += p.row_slope[r] * by_weight;
    }
  }
};

/// for_grid_places - f(block, its first place and how many, image, its first channel and how many) for all places, on
/// several threads: by places, or by channels, some of which are done at once.
template <class T, int K, GridPadding Padding, class F>
void for_grid_places(GridImages const& g, T const* grid, bool by_channels, F const& f) {
  using Block = GridBlock<T, K>;
  constexpr index_t at_once = 16;
  index_t const blocks = (g.places + Block::size - 1) / Block::size,
                chunks = (g.channels + at_once - 1) / at_once, of_image = by_channels ? chunks : blocks,
                units = g.count * of_image;
  int const parts = parts_of(g.count * g.places * g.channels * 8 * K, units);
  in_parallel(parts, [&](int i) {
    Part const mine = part_of(units, i, parts);
    Block block;
    for (index_t u = mine.begin; u < mine.end; ++u) {
      index_t const image = u / of_image, unit = u % of_image;
      for (index_t b = by_channels ? 0 : unit; b < (by_channels ? blocks : unit + 1); ++b) {
        index_t const first = b * Block::size, n = std::min(Block::size, g.places - first);
        block.template fill<Padding>(grid + 2 * (image * g.places + first), n, g);
        for (index_t c = by_channels ? unit : 0; c < (by_channels ? unit + 1 : chunks); ++c) {
          index_t const channel = c * at_once, channels = std::min(at_once, g.channels - channel);
          f(block, first, n, image, channel, channels);
        }
      }
    }
  });
}
template <class T, class F>
void with_grid_places(GridImages const& g, T const* grid, bool by_channels, F const& f) {
  auto const padded = [&](auto k) {
    constexpr int K = decltype(k)::value;
    switch (g.options.padding_mode) {
      case GridPadding::zeros: return for_grid_places<T, K, GridPadding::zeros>(g, grid, by_channels, f);
      case GridPadding::border: return for_grid_places<T, K, GridPadding::border>(g, grid, by_channels, f);
      default: return for_grid_places<T, K, GridPadding::reflection>(g, grid, by_channels, f);
    }
  };
  switch (g.options.mode) {
    case GridMode::nearest: return padded(std::integral_constant<int, 1>{});
    case GridMode::bilinear: return padded(std::integral_constant<int, 2>{});
    default: return padded(std::integral_constant<int, 4>{});
  }
}

}  // namespace detail

/// grid_sample - y[n, c, p] = the image x[n, c] at place p of grid[n]; no element is read that has no weight there.
template <class T>
void grid_sample(GridImages const& g, T const* x, T const* grid, T* y) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  auto const each = [&]<int K>(detail::GridBlock<T, K> const& block, index_t first, index_t n, index_t image,
                               index_t channel, index_t channels) {
    T const* const from = x + (image * g.channels + channel) * g.plane();
    T* const to = y + (image * g.channels + channel) * g.places + first;
    // Which places are outside is hard to predict: they have an element like others.
    auto const kept = [&](T value, Bits mask) { return std::bit_cast<T>(std::bit_cast<Bits>(value) & mask); };
    if constexpr (K == 1) {
      typename detail::GridBlock<T, K>::I at[detail::GridBlock<T, K>::size];
      Bits mask[detail::GridBlock<T, K>::size];
      for (index_t p = 0; p < n; ++p) {
        at[p] = block.at[0][2 * p] + block.at[0][2 * p + 1];
        mask[p] = Bits(0) - static_cast<Bits>(block.some[2 * p] & block.some[2 * p + 1]);
      }
      for (index_t c = 0; c < channels; ++c)
        for (index_t p = 0; p < n; ++p) to[c * g.places + p] = kept((from + c * g.plane())[at[p]], mask[p]);
    } else {
      for (index_t p = 0; p < n; ++p) {
        detail::GridPlace<T, K> const place(block, p);
        Bits const mask = Bits(0) - Bits(place.some);
        for (index_t c = 0; c < channels; ++c)
          to[c * g.places + p] = kept(place.value(from + c * g.plane()), mask);
      }
    }
  };
  detail::with_grid_places(g, grid, false, each);
}
/// grid_sample_images - adds to d_x what comes from ct [N, C, P], place by place.
template <class T>
void grid_sample_images(GridImages const& g, T const* ct, T const* grid, T* d_x) {
  auto const each = [&]<int K>(detail::GridBlock<T, K> const& block, index_t first, index_t n, index_t image,
                               index_t channel, index_t channels) {
    T const* const from = ct + (image * g.channels + channel) * g.places + first;
    T* const to = d_x + (image * g.channels + channel) * g.plane();
    for (index_t p = 0; p < n; ++p) {
      detail::GridPlace<T, K> const place(block, p);
      if (place.some)
        for (index_t c = 0; c < channels; ++c) place.add(from[c * g.places + p], to + c * g.plane());
    }
  };
  detail::with_grid_places(g, grid, true, each);
}
/// grid_sample_places - adds to d_grid what comes from ct [N, C, P], channel by channel.
template <class T>
void grid_sample_places(GridImages const& g, T const* x, T const* grid, T const* ct, T* d_grid) {
  auto const each = [&]<int K>(detail::GridBlock<T, K> const& block, index_t first, index_t n, index_t image,
                               index_t channel, index_t channels) {
    T const* const from = x + (image * g.channels + channel) * g.plane();
    T const* const by = ct + (image * g.channels + channel) * g.places + first;
    for (index_t p = 0; p < n; ++p) {
      detail::GridPlace<T, K> const place(block, p);
      if (!place.some) continue;
      detail::GridSums<T, K> sums;
      for (index_t c = 0; c < channels; ++c) sums.add(place, by[c * g.places + p], from + c * g.plane());
      sums.finish(place, d_grid + 2 * (image * g.places + first + p));
    }
  };
  detail::with_grid_places(g, grid, false, each);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
