// SPDX-License-Identifier: BSL-1.0
// Positions of extremes along one axis: argmax, and argcummax of what comes up to each. Not fused: each has its own
// kernel here. Lines that lie side by side are gone through together, so that the compiler makes vectors of them.
#pragma once

#include <cstdint>

#include <dfdx/ops/index.hpp>
#include <dfdx/ops/lines.hpp>

namespace dfdx::op {

namespace detail {

/// beats - whether c is a better extreme than b before it: larger, or with `smallest` smaller; NaN is the best.
template <class C>
constexpr bool beats(C c, C b, bool smallest) {
  return b == b && !(smallest ? c >= b : c <= b);
}
/// follows - whether c is the extreme up to where it stands, if b was before: of equal ones the last.
template <class C>
constexpr bool follows(C c, C b, bool smallest) {
  return c != c || (smallest ? c <= b : c >= b);
}

// f(count of lines), known when compiled where it is the most there are.
template <class F>
void with_lines(index_t count, F const& f) {
  if (count == most_lines) f(std::integral_constant<index_t, most_lines>{});
  else f(count);
}

// Whether one of so many neighbours beats `best`, which is not NaN; not which.
template <index_t Count, bool Smallest, class T>
bool any_beats(T const* x, T best) {
  constexpr index_t lanes = 16;
  std::int32_t beaten[lanes] = {};
  for (index_t i = 0; i < Count; i += lanes)
    for (index_t j = 0; j < lanes; ++j) beaten[j] |= (Smallest ? x[i + j] >= best : x[i + j] <= best) ? 0 : 1;
  std::int32_t any = 0;
  for (index_t j = 0; j < lanes; ++j) any |= beaten[j];
  return any != 0;
}

// Whether one of so many neighbours is the extreme up to where it stands, if `best` was before all of them.
template <index_t Count, bool Smallest, class T>
bool any_follows(T const* x, T best) {
  constexpr index_t lanes = 16;
  std::int32_t following[lanes] = {};
  for (index_t i = 0; i < Count; i += lanes)
    for (index_t j = 0; j < lanes; ++j)
      following[j] |= (Smallest ? x[i + j] > best : x[i + j] < best) ? 0 : 1;
  std::int32_t any = 0;
  for (index_t j = 0; j < lanes; ++j) any |= following[j];
  return any != 0;
}

}  // namespace detail

/// argmax - position of the largest element along axis attrs.i[0], the first if several; of a NaN if there is one.
/// With attrs.i[1] = 1 the smallest: argmin.
///
/// Math      y = argmax_i x_i; no gradient
/// Shapes    x: [.., N, ..] -> y: [.., 1, ..]
/// Dtypes    x: any, y: i64
/// Errors    "argmax: empty axis 0 of [0, 3]"
/// Source    elementary
struct argmax : operation {
  static constexpr char const* name = "argmax";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    auto const axis = static_cast<int>(a.i[0]);
    if (in[0].shape[axis] == 0)
      return refuse(why, a.i[1] != 0 ? "argmin" : name, ": empty axis ", axis, " of ", in[0].shape);
    return Meta{DType::i64, reduced_shape(in[0].shape, index_t{1} << axis)};
  }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    index_t const n = in[0].meta.shape[axis], step = in[0].strides[axis];
    bool const smallest = a.i[1] != 0;
    Operand const* const x[] = {in, &out};
    auto const find = [&](detail::Lines<2> const& lines) {
      auto const* const from = static_cast<T const*>(in[0].data) + lines.begin[0];
      auto* const to = static_cast<std::int64_t*>(out.data) + lines.begin[1];
      if (lines.side_by_side() && n <= INT32_MAX)
        return detail::with_lines(lines.count,
                                  [&](auto count) { beside(from, n, step, count, smallest, to); });
      // Short lines are brought side by side: which of a few elements is better is hard to predict.
      constexpr index_t few = 16;
      if (n <= few && lines.count > 1 && lines.step[1] == 1) {
        T beside_others[few * detail::most_lines];
        for (index_t j = 0; j < lines.count; ++j)
          for (index_t i = 0; i < n; ++i)
            beside_others[i * detail::most_lines + j] = from[j * lines.step[0] + i * step];
        return detail::with_lines(lines.count, [&](auto count) {
          beside(beside_others, n, detail::most_lines, count, smallest, to);
        });
      }
      for (index_t j = 0; j < lines.count; ++j)
        to[j * lines.step[1]] = of_line(from + j * lines.step[0], n, step, smallest);
    };
    detail::for_lines(in[0].meta.shape, axis, x, 2, [&] { return find; });
  }

 private:
  template <class T>
  static index_t of_line(T const* x, index_t n, index_t step, bool smallest) {
    auto best = static_cast<compute_t<T>>(x[0]);
    index_t place = 0, i = 1;
    auto const look = [&](index_t end) {
      for (; i < end; ++i)
        if (auto const c = static_cast<compute_t<T>>(x[i * step]); detail::beats(c, best, smallest))
          best = c, place = i;
    };
    if constexpr (std::is_floating_point_v<T>) {
      constexpr index_t block = 64;  // few of which have a better one
      if (step == 1)
        while (n - i >= block && best == best) {
          if (smallest ? detail::any_beats<block, true>(x + i, best)
                       : detail::any_beats<block, false>(x + i, best))
            look(i + block);
          else i += block;
        }
    }
    look(n);
    return place;
  }
  template <class T, class Count>
  static void beside(T const* x, index_t n, index_t step, Count count, bool smallest, std::int64_t* to) {
    compute_t<T> best[detail::most_lines];
    std::int32_t place[detail::most_lines] = {};
    for (index_t j = 0; j < count; ++j) best[j] = static_cast<compute_t<T>>(x[j]);
    for (index_t i = 1; i < n; ++i)
      for (index_t j = 0; j < count; ++j) {
        auto const c = static_cast<compute_t<T>>(x[i * step + j]);
        bool const better = detail::beats(c, best[j], smallest);
        best[j] = better ? c : best[j];
        place[j] = better ? static_cast<std::int32_t>(i) : place[j];
      }
    for (index_t j = 0; j < count; ++j) to[j] = place[j];
  }
};

/// argcummax - position of the largest element up to each along axis attrs.i[0], the last if several; of a NaN from the
/// first on. With attrs.i[1] = 1 of the smallest.
///
/// Math      y_i = argmax_{j <= i} x_j; no gradient
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    x: any, y: i64
/// Errors    "cummax: axis 2 out of range for [2, 3]"
/// Source    PyTorch's cummax
struct argcummax : operation {
  static constexpr char const* name = "argcummax";
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return Meta{DType::i64, in[0].shape}; }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(a.i[0]);
    index_t const n = out.meta.shape[axis], step = in[0].strides[axis], to_step = out.strides[axis];
    bool const smallest = a.i[1] != 0;
    Operand const* const x[] = {in, &out};
    auto const find = [&](detail::Lines<2> const& lines) {
      auto const* const from = static_cast<T const*>(in[0].data) + lines.begin[0];
      auto* const to = static_cast<std::int64_t*>(out.data) + lines.begin[1];
      // Count lines side by side, the first of them so far behind the first of all.
      auto const follow = [&](auto count, index_t x_first, index_t y_first) {
        compute_t<T> best[detail::most_lines];
        index_t place[detail::most_lines] = {};
        for (index_t j = 0; j < count; ++j) best[j] = static_cast<compute_t<T>>(from[x_first + j]);
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < count; ++j) {
            auto const c = static_cast<compute_t<T>>(from[x_first + i * step + j]);
            bool const better = detail::follows(c, best[j], smallest);
            best[j] = better ? c : best[j];
            place[j] = better ? i : place[j];
            to[y_first + i * to_step + j] = place[j];
          }
      };
      if (lines.side_by_side())
        return detail::with_lines(lines.count, [&](auto count) { follow(count, 0, 0); });
      for (index_t j = 0; j < lines.count; ++j) {
        if constexpr (std::is_floating_point_v<T>)
          if (step == 1 && to_step == 1) {
            of_line(from + j * lines.step[0], n, smallest, to + j * lines.step[1]);
            continue;
          }
        follow(std::integral_constant<index_t, 1>{}, j * lines.step[0], j * lines.step[1]);
      }
    };
    detail::for_lines(out.meta.shape, axis, x, 8, [&] { return find; });
  }

 private:
  // By blocks, few of which have a new extreme.
  template <class T>
  static void of_line(T const* DFDX_RESTRICT x, index_t n, bool smallest, std::int64_t* DFDX_RESTRICT to) {
    constexpr index_t block = 32;
    T best = x[0];
    std::int64_t place = 0;
    for (index_t i = 0; i < n;) {
      index_t const end = n - i < block ? n : i + block;
      if (end - i == block && !(smallest ? detail::any_follows<block, true>(x + i, best)
                                         : detail::any_follows<block, false>(x + i, best))) {
        dfdx::detail::repeat(to + i, block, place);
        i = end;
        continue;
      }
      for (; i < end; ++i) {
        bool const better = detail::follows(x[i], best, smallest);
        best = better ? x[i] : best;
        place = better ? i : place;
        to[i] = place;
      }
    }
  }
};

}  // namespace dfdx::op
