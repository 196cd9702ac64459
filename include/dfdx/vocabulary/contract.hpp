// SPDX-License-Identifier: BSL-1.0
// matmul in all of NumPy's cases, brought to the one that op::matmul knows.
#pragma once

#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx {

namespace detail {

// How a product of any ranks becomes one of equal ranks >= 2: the operands' shapes, and the result's.
struct MatmulPlan {
  Shape a{}, b{}, result{};
  bool fold = false;  // b is one matrix: the batch of a joins its rows
};

template <int = 0>
constexpr MatmulPlan plan_matmul(Meta const& x, Meta const& y, Text* why) {
  MatmulPlan p;
  Shape a = x.shape, b = y.shape;
  p.result.rank = -1;
  if (a.rank == 0 || b.rank == 0)
    return refuse(why, "matmul: a scalar cannot be multiplied: ", a, " x ", b), p;
  bool const row = a.rank == 1, column = b.rank == 1;
  if (row) a = make_shape(1, a[0]);
  if (column) b = make_shape(b[0], 1);
  if (!op::extents_agree(a[a.rank - 1], b[b.rank - 2]))
    return refuse(why, "matmul: inner dimensions differ: ", x.shape, " x ", y.shape), p;
  Shape batch_a = a, batch_b = b;
  batch_a.rank -= 2;
  batch_b.rank -= 2;
  Shape batch = op::broadcast_shapes("matmul", batch_a, batch_b, nullptr);
  if (!batch.valid()) return refuse(why, "matmul: batch dimensions differ: ", x.shape, " x ", y.shape), p;
  Shape result = batch;
  if (!row) result.push_back(a[a.rank - 2]);
  if (!column) result.push_back(b[b.rank - 1]);
  p.result = result;
  if (b.rank == 2 && a.rank > 2) {
    p.fold = true;
    index_t rows = a[a.rank - 2];
    for (int i = 0; i < batch_a.rank; ++i) rows = extent::mul(rows, a[i]);
    p.a = make_shape(rows, a[a.rank - 1]);
    p.b = b;
    return p;
  }
  p.a = p.b = batch;
  p.a.push_back(a[a.rank - 2]);
  p.a.push_back(a[a.rank - 1]);
  p.b.push_back(b[b.rank - 2]);
  p.b.push_back(b[b.rank - 1]);
  return p;
}

struct Matmul {
  template <int = 0>
  constexpr Meta infer(Meta const* in, Text* why) const {
    DType const dtype = product_dtype(in[0].dtype, in[1].dtype);
    if (dtype == DType::boolean) return refuse(why, "matmul: one numeric dtype required, got bool x bool");
    return Meta{dtype, plan_matmul(in[0], in[1], why).result};
  }
  template <class T, class V>
  constexpr V run(Meta const& z, V const& x0, V const& y0) const {
    [[maybe_unused]] bool const bytes = is_byte(x0.dtype()) && is_byte(y0.dtype());
    auto const brought = [&](V const& v) {
      if constexpr (std::is_void_v<T>)
        return either(bytes, [&] { return v; }, [&] { return cast_to(v, z.dtype); });
      else return v;
    };
    V const x = brought(x0), y = brought(y0);
    MatmulPlan const p = plan_matmul(x.meta(), y.meta(), nullptr);
    // A vector becomes a matrix by reshape, a batch by broadcasting; both are views.
    auto const matrix = [](V const& v, Shape const& to, bool is_left) {
      Shape const s = v.shape();
      V const m = either(
          s.rank == 1, [&] { return reshape_to(v, is_left ? make_shape(1, s[0]) : make_shape(s[0], 1)); },
          [&] { return v; });
      return broadcast_to(m, to, "matmul");
    };
    V const a = either(p.fold, [&] { return reshape_to(x, p.a); }, [&] { return matrix(x, p.a, true); });
    V const b = matrix(y, p.b, false);
    return reshape_to(bind_element<op::matmul, T>(Attrs{}, a, b), p.result);
  }
};

// Bytes as that which their sums are in, as those of products are.
template <class X>
constexpr decltype(auto) summable_bytes(X const& x) {
  if constexpr (refused<X>) return (x);
  else if constexpr (!typed<X>) {
    X r = x;
    if (is_byte(x.dtype())) r = cast_to(x, DType::i32);
    return r;
  } else if constexpr (is_byte(dtype_v<typename X::value_type>)) return cast<std::int32_t>(x);
  else return (x);
}

}  // namespace detail

/// matmul - NumPy's and PyTorch's matrix product: vectors count as a row on the left and a column on the right,
/// leading axes are batches and broadcast.
///
/// Shapes    [M, K] x [K, N] -> [M, N]; [K] x [K, N] -> [N]; [M, K] x [K] -> [M]; [B..., M, K] x [C..., K, N]
/// Dtypes    all but bool, promoted; f16 and bf16 accumulate in f32. Of u8 and i8, in any combination, the result is
///           i32, computed modulo 2^32: products of eight bits are the fastest that processors have
/// Errors    "matmul: inner dimensions differ: [32, 784] x [128, 10]"
/// Source    NumPy's matmul
template <operand X, operand Y>
constexpr auto matmul(X const& x, Y const& y) {
  return detail::call(detail::Fixed<detail::Matmul{}>{}, x, y);
}

}  // namespace dfdx
