// SPDX-License-Identifier: BSL-1.0
// What comes up to each element along one axis: running sums and products, and recurrences, of which derivatives are
// made. Not fused: each has its kernel here.
#pragma once

#include <dfdx/ops/join.hpp>
#include <dfdx/ops/lines.hpp>

namespace dfdx::op {

namespace detail {

/// carried_t - what sums and products of elements of type T are carried in: floats in double.
template <class T>
using carried_t = std::conditional_t<is_floating(dtype_v<T>), double, T>;

/// with_each_line - f(how many, which is the first, known to lie side by side): all lines where they lie so, else four
/// at a time, of which none waits for another.
template <int N, class F>
void with_each_line(Lines<N> const& lines, F const& f) {
  if (lines.side_by_side()) return f(lines.count, 0, std::true_type{});
  index_t j = 0;
  for (; j + 4 <= lines.count; j += 4) f(std::integral_constant<index_t, 4>{}, j, std::false_type{});
  for (; j < lines.count; ++j) f(std::integral_constant<index_t, 1>{}, j, std::false_type{});
}

/// scan - y_i = combine(y_{i-1}, x_i) along an axis, from `start` on; backwards y_{i+1} in the place of y_{i-1}.
template <class T, class Combine>
void scan(int axis, bool backwards, Operand const& in, Operand const& out, int start,
          Combine const& combine) {
  Operand const* const operands[] = {&in, &out};
  index_t const n = out.meta.shape[axis], sign = backwards ? -1 : 1, first = backwards ? n - 1 : 0;
  index_t const x_step = sign * in.strides[axis], y_step = sign * out.strides[axis];
  auto const lines_of = [&](Lines<2> const& lines) {
    using A = carried_t<T>;
    auto const* const x = static_cast<T const*>(in.data) + lines.begin[0] + first * in.strides[axis];
    auto* const y = static_cast<T*>(out.data) + lines.begin[1] + first * out.strides[axis];
    with_each_line(lines, [&](auto count, index_t line, auto side_by_side) {
      if constexpr (side_by_side) {
        A total[most_lines];
        for (index_t j = 0; j < count; ++j) total[j] = static_cast<A>(start);
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < count; ++j) {
            total[j] = static_cast<A>(combine(total[j], static_cast<A>(x[i * x_step + j])));
            y[i * y_step + j] = static_cast<T>(total[j]);
          }
      } else {
        constexpr index_t c = decltype(count)::value;
        T const* from[c];
        T* to[c];
        A total[c];
        DFDX_UNROLL for (index_t j = 0; j < c; ++j) {
          from[j] = x + (line + j) * lines.step[0], to[j] = y + (line + j) * lines.step[1];
          total[j] = static_cast<A>(start);
        }
        for (index_t i = 0; i < n; ++i) DFDX_UNROLL for (index_t j = 0; j < c; ++j) {
            total[j] = static_cast<A>(combine(total[j], static_cast<A>(from[j][i * x_step])));
            to[j][i * y_step] = static_cast<T>(total[j]);
          }
      }
    });
  };
  for_lines(out.meta.shape, axis, operands, 4, [&] { return lines_of; });
}

/// running_products - y_i = x_0 ... x_i along an axis.
template <int = 0>
void running_products(int axis, Operand const& in, Operand const& out) {
  dispatch(out.meta.dtype, [&](auto type) {
    scan<typename decltype(type)::type>(axis, false, in, out, 1,
                                        [](auto p, auto x) { return math::times(p, x); });
  });
}

}  // namespace detail

/// cumsum - sums of the elements up to each along axis attrs.i[0], or with attrs.i[1] = 1 from each on.
///
/// Math      y_i = sum_{j <= i} x_j, transpose: the sums from the other end
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    all but bool; floats are carried in double
/// Errors    "cumsum: axis 2 out of range for [2, 3]"
/// Source    elementary
struct cumsum : operation {
  static constexpr char const* name = "cumsum";
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    if (in[0].dtype == DType::boolean) return refuse(why, name, ": numeric dtype required, got bool");
    return in[0];
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return bind<cumsum>(Attrs{{s.attrs.i[0], 1 - s.attrs.i[1]}}, ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return bind<cumsum>(s.attrs, t);
  }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    detail::scan<T>(static_cast<int>(a.i[0]), a.i[1] != 0, in[0], out, 0,
                    [](auto sum, auto x) { return math::plus(sum, x); });
  }
};

/// recurrence - y_i = a_i y_{i-1} + b_i along axis attrs.i[0], with y_{-1} = 0. Bits of attrs.i[1]: 1 from the other
/// end, y_{i+1} in the place of y_{i-1}; 2 with the a of the place before, that from which y is taken. Its transpose is
/// the recurrence with both bits changed; so it has derivatives of any order, also where a is 0.
///
/// Math      y_i = a_i y_{i-1} + b_i; db_i = dy_i + a_{i+1} db_{i+1}, da_i = y_{i-1} db_i
/// Shapes    a, b: [S...] -> y: [S...]
/// Dtypes    one, all but bool; floats are carried in double
/// Errors    "recurrence: operands of one dtype and shape required"
/// Source    Blelloch, Prefix sums and their applications, 1990
struct recurrence : operation {
  static constexpr char const* name = "recurrence";
  static constexpr int arity = 2;
  static constexpr Examples examples = Examples::axis;
  static constexpr int cost = 100;
  /// Both ask for a, and the derivative of a for the result.
  static constexpr unsigned reads(int k) { return k == 0 ? 1u | 1u << max_arity : 1u; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    bool same = in[0].dtype == in[1].dtype && in[0].shape.rank == in[1].shape.rank;
    for (int i = 0; same && i < in[0].shape.rank; ++i) same = extents_agree(in[0].shape[i], in[1].shape[i]);
    if (!same) return refuse(why, name, ": operands of one dtype and shape required");
    if (in[0].dtype == DType::boolean) return refuse(why, name, ": numeric dtype required, got bool");
    return in[1];
  }
  template <class Require>
  static constexpr void require(Attrs const&, Meta const* in, Require const& must) {
    for (int i = 0; i < in[0].shape.rank; ++i) must(in[0].shape[i], in[1].shape[i], false);
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    Attrs turned = s.attrs;
    turned.i[1] ^= 3;
    V const d = once(s, [&] { return bind<recurrence>(turned, s.x[0], ct); });
    if constexpr (I == 1) return d;
    else if ((s.attrs.i[1] & 2) == 0) return d * before(s.y, s.attrs);
    else return s.y * before(d, turned);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 1) return bind<recurrence>(s.attrs, s.x[0], t);
    else if ((s.attrs.i[1] & 2) == 0) return bind<recurrence>(s.attrs, s.x[0], t * before(s.y, s.attrs));
    else return bind<recurrence>(s.attrs, s.x[0], before(t * s.y, s.attrs));
  }
  template <class T>
  static void run_as(Attrs const& at, Operand const* in, Operand const& out) {
    auto const axis = static_cast<int>(at.i[0]);
    bool const backwards = (at.i[1] & 1) != 0, of_before = (at.i[1] & 2) != 0;
    Operand const* const operands[] = {&in[0], &in[1], &out};
    index_t const n = out.meta.shape[axis], sign = backwards ? -1 : 1, first = backwards ? n - 1 : 0;
    index_t const a_step = sign * in[0].strides[axis], b_step = sign * in[1].strides[axis],
                  y_step = sign * out.strides[axis];
    auto const lines_of = [&](detail::Lines<3> const& lines) {
      using A = detail::carried_t<T>;
      auto const* const a = static_cast<T const*>(in[0].data) + lines.begin[0] + first * in[0].strides[axis] -
                            (of_before ? a_step : 0);
      auto const* const b = static_cast<T const*>(in[1].data) + lines.begin[1] + first * in[1].strides[axis];
      auto* const y = static_cast<T*>(out.data) + lines.begin[2] + first * out.strides[axis];
      auto const next = [](A before, T by, T more) {
        auto const scaled = static_cast<A>(math::times(before, static_cast<A>(by)));
        return static_cast<A>(math::plus(scaled, static_cast<A>(more)));
      };
      detail::with_each_line(lines, [&](auto count, index_t line, auto side_by_side) {
        if constexpr (side_by_side) {
          A carried[detail::most_lines];
          for (index_t j = 0; j < count; ++j) y[j] = b[j], carried[j] = static_cast<A>(b[j]);
          for (index_t i = 1; i < n; ++i)
            for (index_t j = 0; j < count; ++j) {
              carried[j] = next(carried[j], a[i * a_step + j], b[i * b_step + j]);
              y[i * y_step + j] = static_cast<T>(carried[j]);
            }
        } else {
          constexpr index_t c = decltype(count)::value;
          A carried[c];
          index_t const* const step = lines.step;
          DFDX_UNROLL for (index_t j = 0; j < c; ++j) {
            T const from = b[(line + j) * step[1]];
            y[(line + j) * step[2]] = from, carried[j] = static_cast<A>(from);
          }
          for (index_t i = 1; i < n; ++i) DFDX_UNROLL for (index_t j = 0; j < c; ++j) {
              carried[j] = next(carried[j], a[(line + j) * step[0] + i * a_step],
                                b[(line + j) * step[1] + i * b_step]);
              y[(line + j) * step[2] + i * y_step] = static_cast<T>(carried[j]);
            }
        }
      });
    };
    detail::for_lines(out.meta.shape, axis, operands, 8, [&] { return lines_of; });
  }

 private:
  // At each place the element before it in the order of the recurrence, at the first 0.
  template <class V>
  static constexpr V before(V const& v, Attrs const& at) {
    auto const axis = static_cast<int>(at.i[0]);
    index_t const n = v.shape()[axis];
    if (n <= 0) return v;
    bool const backwards = (at.i[1] & 1) != 0;
    return pad_axis(slice_axis(v, axis, backwards ? 1 : 0, n - 1), axis, backwards ? 0 : 1, backwards ? 1 : 0,
                    0);
  }
};

}  // namespace dfdx::op
