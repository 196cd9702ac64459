// SPDX-License-Identifier: BSL-1.0
//
// spread_lines - what windows of three by three, two apart along both axes, leave at the elements of a plane: the
// gradient of the input of a convolution of single channels. An element of the plane at an even place has seen other
// elements of the window than its neighbour; both kinds are summed in lanes of their own, which alternate when stored.
#pragma once

#include <algorithm>

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/window.hpp>
#include <dfdx/kernels/simd/pairs.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET::detail {

/// SpreadLines - y becomes x, plane by plane.
template <class E>
class SpreadLines {
 public:
  /// Whether a geometry's windows are such.
  static bool fits(ConvGeometry const& g) {
    bool r = g.in == 1 && g.out == 1 && g.x[0] == 1 && g.y[0] == 1 && g.w[0].size == 1 && g.w[0].before == 0;
    for (int i = 1; i < 3; ++i)
      r = r && g.w[i].size == 3 && g.w[i].stride == 2 && g.w[i].dilation == 1 && g.w[i].before <= 2;
    return r;
  }

  explicit SpreadLines(ConvGeometry const& g)
      : x_{g.x[1], g.x[2]},
        y_{g.y[1], g.y[2]},
        before_{g.w[1].before, g.w[2].before},
        rows_(std::max(y_[0], x_[0] / 2 + 1) + 2),
        pitch_(std::max(y_[1], (x_[1] / 2 / W + 1) * W) + 2),
        frame_(static_cast<std::size_t>(rows_ * pitch_)) {
    std::fill_n(frame_.get(), rows_ * pitch_, E(0));
  }

  /// x = the sums of y times w over the windows that see each element.
  void input(E* x, E const* w, E const* y) const {
    // A frame of zeros about y: elements that are not there count nothing.
    for (index_t j = 0; j < y_[0]; ++j) std::copy_n(y + j * y_[1], y_[1], at(j, 0));
    for (index_t r = 0; r < x_[0]; ++r, x += x_[1]) {
      // The rows of the window that see this one: one or two, and then the rows of y.
      E const *from[2] = {}, *by[2] = {};
      int count = 0;
      for (index_t k = (r + before_[0]) % 2; k < 3; k += 2) {
        from[count] = at((r + before_[0] - k) / 2, 0);
        by[count++] = w + 3 * k;
      }
      if (before_[1] % 2 != 0) line<1>(x, from, by, count);
      else line<0>(x, from, by, count);
    }
  }

 private:
  static constexpr int W = lane_size<E>;
  using V = lane<E>;

  // Element (j, q) of y, from -1 on.
  E* at(index_t j, index_t q) const { return frame_.get() + (j + 1) * pitch_ + q + 1; }

  // Odd is the remainder of `before` along lines: the middle of a window sees elements of one kind, its ends the other.
  template <int Odd>
  DFDX_INLINE void line(E* x, E const* const* from, E const* const* by, int count) const {
    // Element 2 t + p of x sees y at t + (p + before - k) / 2, for k of the same parity as p + before.
    index_t const shift = before_[1] / 2;
    for (index_t t = 0; 2 * t < x_[1]; t += W) {
      V middle(E(0)), ends(E(0));
      for (int i = 0; i < count; ++i) {
        E const* const y = from[i] + t + shift;
        // Even elements if Odd, else odd ones: k is 1. The others: k is 0 and 2.
        middle = xsimd::fma(V(by[i][1]), V::load_unaligned(y), middle);
        ends = xsimd::fma(V(by[i][0]), V::load_unaligned(y + Odd), ends);
        ends = xsimd::fma(V(by[i][2]), V::load_unaligned(y + Odd - 1), ends);
      }
      ask_to_write(x + 2 * t + 4096 / static_cast<index_t>(sizeof(E)));
      V const even = Odd != 0 ? middle : ends, odd = Odd != 0 ? ends : middle;
      join(even, odd, x + 2 * t, std::min<index_t>(x_[1] - 2 * t, 2 * W));
    }
  }

  index_t x_[2], y_[2], before_[2], rows_, pitch_;
  Scratch<E> frame_;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail

#endif  // !__CUDACC__
