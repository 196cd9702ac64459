// SPDX-License-Identifier: BSL-1.0
// Products of matrices and vectors by PyTorch's names.
#pragma once

#include <dfdx/vocabulary/einsum.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx {

namespace detail {

// matmul of operands that both have so many axes; called by a name of its own.
template <int Rank>
struct RankedMatmul : Matmul {
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (in[0].shape.rank != Rank || in[1].shape.rank != Rank)
      return refuse(why, "matmul: operands of ", Rank, " axes required, got ", in[0].shape, " x ",
                    in[1].shape);
    return Matmul::infer(in, why);
  }
};

// Each axis of x times the same axis of y, as axes that alternate.
struct Kron {
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const &a = in[0].shape, &b = in[1].shape;
    if (a.rank != b.rank || 2 * a.rank > max_rank)
      return refuse(why, "kron: operands of equal ranks up to 4 required, got ", a, " x ", b);
    Meta r{promote(in[0].dtype, in[1].dtype), a};
    for (int i = 0; i < a.rank; ++i) r.shape[i] = extent::mul(a[i], b[i]);
    return r;
  }
  template <class T, class V>
  constexpr V run(Meta const& z, V const& x0, V const& y0) const {
    auto const brought = [&](V const& v) {
      if constexpr (std::is_void_v<T>) return cast_to(v, z.dtype);
      else return v;
    };
    V const x = brought(x0), y = brought(y0);
    Shape wide_x, wide_y, all;
    for (int i = 0; i < z.shape.rank; ++i) {
      index_t const m = x.shape()[i], n = y.shape()[i];
      wide_x.push_back(m), wide_x.push_back(1);
      wide_y.push_back(1), wide_y.push_back(n);
      all.push_back(m), all.push_back(n);
    }
    return reshape_to(bind_element<op::mul, T>(Attrs{}, broadcast_to(reshape_to(x, wide_x), all),
                                               broadcast_to(reshape_to(y, wide_y), all)),
                      z.shape);
  }
};

// einsum by another name, of operands that fit what that says.
struct Outer : Einsum {
  constexpr Outer() : Einsum{"i,j->ij", 2} {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (in[0].shape.rank != 1 || in[1].shape.rank != 1)
      return refuse(why, "outer: two vectors required, got ", in[0].shape, " x ", in[1].shape);
    return Einsum::infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& a, V const& b) const {
    V const all[] = {a, b};
    return compute<T>(y, all, "outer");
  }
};
struct Bilinear : Einsum {
  constexpr Bilinear() : Einsum{"...i,oij,...j->...o", 3} {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const &x = in[0].shape, &w = in[1].shape, &y = in[2].shape;
    bool const fits = x.rank > 0 && w.rank == 3 && y.rank > 0 && op::extents_agree(x[x.rank - 1], w[1]) &&
                      op::extents_agree(y[y.rank - 1], w[2]);
    if (!fits) return refuse(why, "bilinear: weight ", w, " does not fit ", x, " and ", y);
    return Einsum::infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& z, V const& x, V const& w, V const& y) const {
    V const all[] = {x, w, y};
    return compute<T>(z, all, "bilinear");
  }
};

// The first operand as both are broadcast, if they have three elements on an axis of that.
template <int Axis>
struct Threes : Beside<"cross"> {
  static constexpr Meta infer(Meta const* in, Text* why) {
    Shape const &a = in[0].shape, &b = in[1].shape, all = op::broadcast_shapes("cross", a, b, why);
    int const axis = all.valid() ? rule_axis("cross", Axis, all, why) : -1;
    if (axis < 0) return refuse(nullptr);
    auto const of = [&](Shape const& s) {
      return axis < all.rank - s.rank ? 1 : s[axis - all.rank + s.rank];
    };
    if (of(a) != 3 || of(b) != 3)
      return refuse(why, "cross: three elements on axis ", axis, " required, got ", a, " x ", b);
    return Meta{in[0].dtype, all};
  }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& x, V const& other) {
    return broadcast_to(Beside<"cross">::template run<void>(y, x, other), y.shape);
  }
};

// The weight of `linear` as what x is multiplied with: columns for the rows of a matrix, a row as it is.
struct Columns : Transpose {
  constexpr Columns() : Transpose{-2, -1} {}
  constexpr Meta infer(Meta const* in, Text* why) const {
    return in->shape.rank == 1 ? *in : Transpose::infer(in, why);
  }
  template <class T, class V>
  constexpr V run(Meta const& y, V const& x) const {
    if (x.shape().rank == 1) return x;
    return Transpose::run<T>(y, x);
  }
};

}  // namespace detail

/// mm(x, y), bmm(x, y), dot(x, y) - matmul of two matrices, two batches of matrices, two vectors.
///
/// Shapes    mm: [M, K] x [K, N] -> [M, N]; bmm: [B, M, K] x [B, K, N] -> [B, M, N]; dot: [K] x [K] -> []
/// Dtypes    those of matmul
/// Errors    "mm: operands of 2 axes required, got [3] x [3, 4]"
/// Source    PyTorch's mm, bmm and dot
template <operand X, operand Y>
constexpr auto mm(X const& x, Y const& y) {
  return detail::call(detail::named<"mm">(detail::Fixed<detail::RankedMatmul<2>{}>{}), x, y);
}
template <operand X, operand Y>
constexpr auto bmm(X const& x, Y const& y) {
  return detail::call(detail::named<"bmm">(detail::Fixed<detail::RankedMatmul<3>{}>{}), x, y);
}
template <operand X, operand Y>
constexpr auto dot(X const& x, Y const& y) {
  return detail::call(detail::named<"dot">(detail::Fixed<detail::RankedMatmul<1>{}>{}), x, y);
}

/// addmm(c, x, y, beta, alpha) - beta c + alpha x y; baddbmm for batches of matrices.
///
/// Shapes    c: broadcasts with the product, x: [M, K], y: [K, N] -> [M, N]; baddbmm: [B, M, K], [B, K, N] -> [B, M, N]
/// Dtypes    those of matmul, c promoted with them; of integers beta and alpha are integers
/// Errors    "addmm: operands of 2 axes required, got [3] x [3, 4]"
/// Source    PyTorch's addmm and baddbmm
template <operand C, operand X, operand Y>
constexpr auto addmm(C const& c, X const& x, Y const& y, double beta = 1, double alpha = 1) {
  auto const z = detail::call(detail::named<"addmm">(detail::Fixed<detail::RankedMatmul<2>{}>{}), x, y);
  return detail::beside<"addmm">(c, z) * full_as(c, beta) + z * full_as(z, alpha);
}
template <operand C, operand X, operand Y>
constexpr auto baddbmm(C const& c, X const& x, Y const& y, double beta = 1, double alpha = 1) {
  auto const z = detail::call(detail::named<"baddbmm">(detail::Fixed<detail::RankedMatmul<3>{}>{}), x, y);
  return detail::beside<"baddbmm">(c, z) * full_as(c, beta) + z * full_as(z, alpha);
}

/// outer(x, y) - the products of all pairs of elements of two vectors.
///
/// Math      z_ij = x_i y_j
/// Shapes    x: [M], y: [N] -> [M, N]
/// Dtypes    all but bool, promoted; of u8 and i8 the result is i32
/// Errors    "outer: two vectors required, got [2, 2] x [3]"
/// Source    NumPy's outer
template <operand X, operand Y>
constexpr auto outer(X const& x, Y const& y) {
  return detail::call(detail::named<"outer">(detail::Fixed<detail::Outer{}>{}), x, y);
}

/// cross(x, y), cross<Axis>(x, y) - the vector products of triples along an axis, the last one if none is named.
///
/// Math      z = (x_1 y_2 - x_2 y_1, x_2 y_0 - x_0 y_2, x_0 y_1 - x_1 y_0)
/// Shapes    x, y: [.., 3, ..], broadcast -> [.., 3, ..]
/// Dtypes    all but bool, promoted
/// Errors    "cross: three elements on axis 1 required, got [5, 4] x [5, 4]"
/// Source    elementary; torch.linalg.cross
template <int Axis = -1, operand X, operand Y>
constexpr auto cross(X const& x, Y const& y) {
  auto const a = detail::call(detail::Fixed<detail::Threes<Axis>{}>{}, x, y);
  if constexpr (refused<decltype(a)>) {
    return Refused{};
  } else {
    auto const b = detail::call(detail::Fixed<detail::Threes<Axis>{}>{}, y, x);
    auto const x0 = select<Axis, 0>(a), x1 = select<Axis, 1>(a), x2 = select<Axis, 2>(a);
    auto const y0 = select<Axis, 0>(b), y1 = select<Axis, 1>(b), y2 = select<Axis, 2>(b);
    return stack<Axis>(x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0);
  }
}

/// kron(x, y) - the Kronecker product of operands of equal rank.
///
/// Math      z[i N + j] = x[i] y[j] on each axis
/// Shapes    x: [M...], y: [N...] -> [M N...], axis by axis
/// Dtypes    all but bool, promoted
/// Errors    "kron: operands of equal ranks up to 4 required, got [2] x [2, 2]"
/// Source    NumPy's kron
template <operand X, operand Y>
constexpr auto kron(X const& x, Y const& y) {
  return detail::call(detail::Fixed<detail::Kron{}>{}, x, y);
}

/// linear(x, weight, bias) - x weight^T + bias.
///
/// Shapes    x: [B..., I], weight: [O, I], bias: [O] -> [B..., O]; weight: [I], bias: [] -> [B...]
/// Dtypes    those of matmul, the bias promoted with them
/// Errors    "linear: inner dimensions differ: [32, 20] x [30, 200]"
/// Source    PyTorch's linear
template <operand X, operand W>
constexpr auto linear(X const& x, W const& weight) {
  using namespace detail;
  return call(named<"linear">(Fixed<Matmul{}>{}), x, call(named<"linear">(Fixed<Columns{}>{}), weight));
}
template <operand X, operand W, operand B>
constexpr auto linear(X const& x, W const& weight, B const& bias) {
  auto const y = linear(x, weight);
  return y + detail::beside<"linear">(bias, y);
}

/// bilinear(x, y, weight, bias) - x^T weight_o y + bias_o for each o.
///
/// Shapes    x: [B..., I], y: [B..., J], weight: [O, I, J], bias: [O] -> [B..., O]
/// Dtypes    all but bool, promoted; of u8 and i8 the result is i32
/// Errors    "bilinear: weight [5, 3, 4] does not fit [2, 3] and [2, 5]"
/// Source    PyTorch's bilinear
template <operand X, operand Y, operand W>
constexpr auto bilinear(X const& x, Y const& y, W const& weight) {
  return detail::call(detail::named<"bilinear">(detail::Fixed<detail::Bilinear{}>{}), x, weight, y);
}
template <operand X, operand Y, operand W, operand B>
constexpr auto bilinear(X const& x, Y const& y, W const& weight, B const& bias) {
  auto const z = bilinear(x, y, weight);
  return z + detail::beside<"bilinear">(bias, z);
}

}  // namespace dfdx
