// SPDX-License-Identifier: BSL-1.0
// Where the largest elements of windows are, for a lane of windows at a time. Operands are dense.
#pragma once

#include <algorithm>
#include <type_traits>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/kernels/rvv/gather.hpp>
#include <dfdx/kernels/simd/batch.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// window_argmax - y[b, p] = the place of the largest element in window p of x[b], the first if several, of a NaN if
/// there is one. n and m are extents of a sample and of its windows, `windows` what the op's attributes hold. Which
/// element is larger is hard to predict, so there is no branch on it. E is float or double; for float a sample has
/// less than 2^30 elements. Places are integers of 1, 4 or 8 bytes, as y has them, enough for each.
template <class E>
void window_argmax(E const* x, void* y, int bytes, index_t batch, index_t const (&n)[3],
                   index_t const (&m)[3], index_t const (&windows)[3]) {
  using I = std::conditional_t<sizeof(E) == 4, std::int32_t, std::int64_t>;
#if defined(__CUDACC__) || defined(DFDX_RVV)
  constexpr index_t width = 1;
#else
  constexpr index_t width = lane_size<E>;
#endif
  ScratchVector<Span> spans[3];
  index_t most[3] = {};
  for (int axis = 0; axis < 3; ++axis)
    for (index_t p = 0; p < m[axis]; ++p) {
      spans[axis].push_back(Span::of(windows[axis], p, n[axis], m[axis]));
      most[axis] = std::max(most[axis], spans[axis].back().count);
    }
  // Element k of window p of an axis. Windows that have fewer than others, at edges, repeat their last one, which
  // changes no maximum.
  auto const element = [&](int axis, index_t p, index_t k) {
    Span const& s = spans[axis][static_cast<std::size_t>(p)];
    return s.first + std::min(k, s.count - 1) * s.step;
  };

  [[maybe_unused]] auto const put = []<class Y>(Y* to, I const* found, index_t n_found) {
    if (n_found == width)
      for (index_t i = 0; i < width; ++i) to[i] = static_cast<Y>(found[i]);
    else
      for (index_t i = 0; i < n_found; ++i) to[i] = static_cast<Y>(found[i]);
  };

  // Lines of windows in blocks, for which the places of the elements are the same in each sample.
  index_t const elements = most[0] * most[1] * most[2], lines = m[0] * m[1];
  index_t const block = std::clamp<index_t>(4096 / std::max<index_t>(elements * m[2], 1), 1, lines);
  ScratchVector<I> table;
  for (index_t line = 0; line < lines; line += block) {
    index_t const count = std::min(block, lines - line), from = line * m[2], size = count * m[2],
                  room = (size + width - 1) / width * width;
    table.assign(static_cast<std::size_t>(elements * room), I(0));
    I* at = table.data();
    for (index_t i = 0; i < most[0]; ++i)
      for (index_t j = 0; j < most[1]; ++j)
        for (index_t k = 0; k < most[2]; ++k, at += room) {
          I* to = at;
          for (index_t l = line; l < line + count; ++l) {
            index_t const first = (element(0, l / m[1], i) * n[1] + element(1, l % m[1], j)) * n[2];
            for (index_t p = 0; p < m[2]; ++p) *to++ = static_cast<I>(first + element(2, p, k));
          }
        }

    auto const sample_of = [&](index_t b) {
      E const* const sample = x + b * n[0] * n[1] * n[2];
      index_t const result = b * lines * m[2] + from;
#if defined(DFDX_RVV)
      if (bytes == 1)
        rvv::gather_most(sample, table.data(), room, elements, static_cast<std::uint8_t*>(y) + result, size);
      else if (bytes == 4)
        rvv::gather_most(sample, table.data(), room, elements, static_cast<std::int32_t*>(y) + result, size);
      else
        rvv::gather_most(sample, table.data(), room, elements, static_cast<std::int64_t*>(y) + result, size);
#else
      for (index_t p = 0; p < size; p += width) {
        I const* place = table.data() + p;
#if !defined(__CUDACC__)
        auto best = lane<I>::load_unaligned(place);
        auto top = lane<E>::gather(sample, best);
        for (index_t e = 1; e < elements; ++e) {
          auto const here = lane<I>::load_unaligned(place += room);
          auto const v = lane<E>::gather(sample, here);
          auto const more = (v > top) | ((v != v) & (top == top));
          top = xsimd::select(more, v, top);
          best = xsimd::select(xsimd::batch_bool_cast<I>(more), here, best);
        }
        alignas(64) I found[lane<I>::size];
        best.store_aligned(found);
#else
        I found[1] = {*place};
        for (index_t e = 1; e < elements; ++e) {
          place += room;
          E const v = sample[*place], top = sample[found[0]];
          if (v > top || (v != v && top == top)) found[0] = *place;
        }
#endif
        auto const rest = std::min(width, size - p);
        if (bytes == 1) put(static_cast<std::uint8_t*>(y) + result + p, found, rest);
        else if (bytes == 4) put(static_cast<std::int32_t*>(y) + result + p, found, rest);
        else put(static_cast<std::int64_t*>(y) + result + p, found, rest);
      }
#endif
    };
    int const parts = parts_of(4 * batch * size * elements, batch);
    in_parallel(parts, [&](int i) {
      Part const part = part_of(batch, i, parts);
      for (index_t b = part.begin; b < part.end; ++b) sample_of(b);
    });
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
