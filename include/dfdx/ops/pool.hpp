// SPDX-License-Identifier: BSL-1.0
// Where the largest elements of windows are. Values are gathered from there; sums over windows are ops/resample.hpp.
#pragma once

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::op {

namespace detail {

/// Defined where kernels are known; false where there is none for the operands.
template <class Op, class T>
bool run_window_argmax(Attrs const& a, Operand const& x, Operand const& out);

}  // namespace detail

/// window_argmax - the place of each window's largest element among those of its sample, in row-major order; the
/// first if several; of a NaN if there is one. attrs.i[axis] is a window, or 0 for bins of equal size. The result's
/// shape is given with bind_as; every window must hold an element.
///
/// Math      y[b, p] = argmax over the window p of x[b]; no gradient
/// Shapes    x: [B, S...] -> y: [B, P...], u8, i32 or i64, as wide as a place needs; one to three axes S
/// Dtypes    x: all but bool
/// Errors    those of max_pool2d
/// Source    PyTorch's max_pool2d
struct window_argmax : operation {
  static constexpr char const* name = "window_argmax";
  static constexpr Examples examples = Examples::join;
  static constexpr int cost = 100;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
  template <class T>
  static void run_as(Attrs const& a, Operand const* in, Operand const& out) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      if (detail::run_window_argmax<window_argmax, T>(a, in[0], out)) return;
    reference_as<T>(a, in[0], out);
  }
  template <int = 0>
  static void reference(Attrs const& a, Operand const* in, Operand const& out) {
    dispatch(in[0].meta.dtype,
             [&](auto type) { reference_as<typename decltype(type)::type>(a, in[0], out); });
  }

  /// Extents of a sample and of its windows, and the windows; leading axes of one element where there are fewer than
  /// three.
  static void extents(Attrs const& a, Shape const& x, Shape const& y, index_t (&n)[3], index_t (&m)[3],
                      index_t (&window)[3]) {
    for (int i = 1; i < x.rank; ++i) {
      int const at = 3 - x.rank + i;
      n[at] = x[i];
      m[at] = y[i];
      window[at] = a.i[i - 1];
    }
  }

 private:
  template <class T>
  static void reference_as(Attrs const& a, Operand const& in, Operand const& out) {
    Shape const &x = in.meta.shape, &y = out.meta.shape;
    if (y.numel() == 0) return;
    index_t n[3] = {1, 1, 1}, m[3] = {1, 1, 1}, window[3] = {}, step[3] = {};
    extents(a, x, y, n, m, window);
    for (int i = 1; i < x.rank; ++i) step[3 - x.rank + i] = in.strides[i];
    kernels::ScratchVector<Span> spans[3];
    for (int axis = 0; axis < 3; ++axis)
      for (index_t p = 0; p < m[axis]; ++p)
        spans[axis].push_back(Span::of(window[axis], p, n[axis], m[axis]));
    Span s[3];
    index_t at = 0;
    for (index_t b = 0; b < y[0]; ++b) {
      T const* const sample = static_cast<T const*>(in.data) + b * in.strides[0];
      for (index_t i = 0; i < m[0]; ++i)
        for (index_t j = 0; j < m[1]; ++j)
          for (index_t k = 0; k < m[2]; ++k) {
            s[0] = spans[0][static_cast<std::size_t>(i)];
            s[1] = spans[1][static_cast<std::size_t>(j)];
            s[2] = spans[2][static_cast<std::size_t>(k)];
            put_place(out, at++, largest_place(sample, s, n, step));
          }
    }
  }
  // Element i of the result.
  template <int = 0>
  static void put_place(Operand const& out, index_t i, index_t place) {
    if (out.meta.dtype == DType::u8)
      static_cast<std::uint8_t*>(out.data)[i] = static_cast<std::uint8_t>(place);
    else if (out.meta.dtype == DType::i32)
      static_cast<std::int32_t*>(out.data)[i] = static_cast<std::int32_t>(place);
    else static_cast<std::int64_t*>(out.data)[i] = place;
  }
};

}  // namespace dfdx::op
