// SPDX-License-Identifier: BSL-1.0
// A convolution or one of its gradients as libraries describe them: extents, steps and windows, known when it runs.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/window.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// ConvDoes - which of the three ops: its operands are (x, w; y), (y, w; x) or (x, y; w).
enum class ConvDoes { result, input, weight };

/// Convolution - what of a convolution decides how it is computed: extents and steps of x [N, C, ...], w
/// [K, C / groups, ...] and y [N, K, ...], whose axes are two or three, and the windows of those.
struct Convolution {
  struct Operand {
    std::array<std::int64_t, 5> extent{1, 1, 1, 1, 1}, step{1, 1, 1, 1, 1};
    auto operator<=>(Operand const&) const = default;

    std::int64_t size() const {
      std::int64_t n = 1;
      for (std::int64_t const e : extent) n *= e;
      return n;
    }

   private:
    friend Convolution;
    // From `rank` extents and steps, with `added` axes of one element behind the channels. How far apart those of one
    // are is said as if all lay row by row.
    bool set(Operand const& from, int rank, int added) {
      constexpr std::int64_t most = INT32_MAX;
      std::int64_t apart = 1, last = 0;
      for (int d = rank - 1; d >= 0; --d) {
        auto const i = static_cast<std::size_t>(d), to = static_cast<std::size_t>(d < 2 ? d : d + added);
        std::int64_t const n = from.extent[i], by = n == 1 ? apart : from.step[i];
        if (n < 1 || by < 1 || n > most || by > most) return false;
        extent[to] = n, step[to] = by, apart = n * by, last += (n - 1) * by;
        if (added != 0 && d == 2) step[2] = apart;
        if (apart > most || last > most) return false;
      }
      return true;
    }
  };
  ConvDoes does = ConvDoes::result;
  DType dtype = DType::f32;
  std::int64_t axes = 2;
  Operand x, w, y;
  std::array<std::int64_t, 3> before{}, after{}, stride{1, 1, 1}, dilation{1, 1, 1};

  auto operator<=>(Convolution const&) const = default;

  /// in_order - what belongs to x, w and y in the order of the op's operands.
  template <class T>
  static constexpr std::array<T, 3> in_order(ConvDoes does, T x, T w, T y) {
    if (does == ConvDoes::input) return {y, w, x};
    if (does == ConvDoes::weight) return {x, y, w};
    return {x, w, y};
  }

  /// of - the convolution of operands of `rank` extents and steps, in the order of the op, by windows along their axes;
  /// `axes` of it is 0 if cuDNN has none such: where elements of an operand are read twice or backwards, places do not
  /// fit in 32 bits, or windows do not end where y does. Of one axis it is the second of two.
  static Convolution of(ConvDoes does, DType dtype, int rank, std::array<Operand, 3> const& operands,
                        std::array<Window, 3> const& windows) {
    Convolution c, none;
    none.axes = 0;
    int const added = rank == 3 ? 1 : 0;
    c.does = does, c.dtype = dtype, c.axes = rank - 2 + added;
    std::array<Operand*, 3> const to = in_order(does, &c.x, &c.w, &c.y);
    for (std::size_t k = 0; k < 3; ++k)
      if (!to[k]->set(operands[k], rank, added)) return none;
    for (int a = added; a < c.axes; ++a) {
      auto const i = static_cast<std::size_t>(a);
      Window const& w = windows[i - static_cast<std::size_t>(added)];
      std::int64_t const behind =
          (c.y.extent[i + 2] - 1) * w.stride + w.reach() - w.before - c.x.extent[i + 2];
      c.before[i] = w.before, c.stride[i] = w.stride, c.dilation[i] = w.dilation;
      c.after[i] = behind < 0 ? 0 : behind;
      if (behind <= -w.stride) return none;
    }
    return c;
  }
  /// Multiplications, those with what lies outside of the input included.
  std::int64_t work() const { return w.extent[0] == 0 ? 0 : y.size() * (w.size() / w.extent[0]); }
  /// Bytes that may be used besides the operands: copies of all in another order, and some more.
  std::int64_t workspace() const {
    if (axes == 0) return 0;
    std::int64_t n = 0;
    for (Operand const* const o : {&x, &w, &y})
      n += (o->size() * static_cast<std::int64_t>(size_of(dtype)) + 255) / 256 * 256;
    return n + (std::int64_t{32} << 20);
  }
};

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
