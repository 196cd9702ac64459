// SPDX-License-Identifier: BSL-1.0
// The short way of elementwise ops: operands that are dense or repeat one number need no walk through memory. One code
// for all ops.
#pragma once

#include <dfdx/core/convert.hpp>
#include <dfdx/vocabulary/bind.hpp>

namespace dfdx {

/// full_as - every element is `value`, in the regime of `like`.
///
/// Shapes    -> [S...], as meta says
/// Dtypes    any
/// Source    elementary
constexpr Sym full_as(Sym const& like, Meta const& meta, double value) {
  return like.graph->push(Node{&info<op::constant>, Attrs{{}, {value}}, meta, {}});
}
template <int = 0>  // so that programs without it do not compile it
constexpr Array full_as(Array const& like, Meta const& meta, double value) {
  if (like.recorded()) return Array(like.graph(), full_as(like.sym(), meta, value).id, meta);
  Array one(Meta{meta.dtype, Shape{}});
  dispatch(meta.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    *one.data<T>() = math::convert_number<T>(value);
  });
  if (detail::is_elsewhere(like)) one = detail::moved(like.device(), one);
  Strides none;
  none.rank = meta.shape.rank;
  return one.view(meta.shape, none);
}

namespace detail {

// Every element is its position along an axis, in the regime of `like`.
constexpr Sym iota_as(Sym const& like, Meta const& meta, int axis) {
  return like.graph->push(Node{&info<op::iota>, Attrs{{axis}}, meta, {}});
}
template <int = 0>
constexpr Array iota_as(Array const& like, Meta const& meta, int axis) {
  if (like.recorded()) return Array(like.graph(), iota_as(like.sym(), meta, axis).id, meta);
  if (is_elsewhere(like)) {  // one line, which repeats
    Meta line{meta.dtype, {}};
    Strides steps;
    for (int i = 0; i < meta.shape.rank; ++i) {
      line.shape.push_back(i == axis ? meta.shape[i] : 1);
      steps.push_back(i == axis ? 1 : 0);
    }
    return moved(like.device(), iota_as(Array(), line, axis)).view(meta.shape, steps);
  }
  Array r(meta);
  dispatch(meta.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    auto* p = r.data<T>();
    index_t inner = 1, outer = 1;
    for (int i = 0; i < meta.shape.rank; ++i)
      if (i != axis) (i < axis ? outer : inner) *= meta.shape[i];
    if (inner == 0) return;
    index_t const n = meta.shape[axis];
    for (; outer > 0; --outer, p += n * inner)
      for (index_t k = 0; k < n; ++k) {
        T const x = math::convert_number<T>(k);
        if (inner == 1) p[k] = x;
        else std::fill_n(p + k * inner, inner, x);
      }
  });
  return r;
}

// Which number a view on the CPU repeats.
inline double one_number(Array const& x) {
  return x.dtype() == DType::f32 ? static_cast<double>(*reinterpret_cast<float const*>(x.bytes()))
                                 : *reinterpret_cast<double const*>(x.bytes());
}

// Operands of one shape and dtype, f32 or f64, that are dense or repeat one number go straight to the loop, as plain
// numbers do. The first that is dense, which the result is like; null if there is none, or one of another kind.
[[gnu::noinline]] inline Array const* dense_among(Array const* const* x, int n) {
  Array const* like = nullptr;
  for (int k = 0; k < n; ++k) {
    if (x[k] == nullptr) continue;
    if (x[k]->bytes() == nullptr || !x[k]->device().is_cpu()) return nullptr;
    if (like == nullptr && x[k]->contiguous_memory()) like = x[k];
  }
  if (like == nullptr || (like->dtype() != DType::f32 && like->dtype() != DType::f64)) return nullptr;
  for (int k = 0; k < n; ++k)
    if (x[k] != nullptr && x[k] != like &&
        (!(x[k]->meta() == like->meta()) || (!x[k]->contiguous_memory() && !repeats_one(*x[k]))))
      return nullptr;
  return like;
}

// y = f(x...) for n operands that are like y, which is dense, or repeat one number, numbers[k] where x[k] is null: that
// stands for as many elements as the loop takes at once. y may be one of them. Not a template: an op has no code here.
[[gnu::noinline]] inline void run_dense(kernels::MapBlock f, Array const& y, Array const* const* x,
                                        double const* numbers, int n) {
  constexpr index_t at_once = 256;
  bool const narrow = y.dtype() == DType::f32;
  index_t const size = y.size(), element = narrow ? 4 : 8;
  alignas(64) std::byte repeated[max_arity][at_once * sizeof(double)];
  std::byte const* from[max_arity];
  index_t advance[max_arity];
  bool all_arrays = true;
  for (int k = 0; k < n; ++k) {
    if (x[k] != nullptr && x[k]->contiguous_memory()) {
      from[k] = x[k]->bytes();
      advance[k] = element;
      continue;
    }
    all_arrays = false;
    from[k] = repeated[k];
    advance[k] = 0;
    double const number = x[k] != nullptr ? one_number(*x[k]) : numbers[k];
    index_t const count = size < at_once ? size : at_once;
    if (narrow) std::fill_n(reinterpret_cast<float*>(repeated[k]), count, static_cast<float>(number));
    else std::fill_n(reinterpret_cast<double*>(repeated[k]), count, number);
  }
  index_t const step = all_arrays ? size : at_once;
  for (index_t i = 0; i < size; i += step) {
    void const* in[max_arity] = {};
    for (int k = 0; k < n; ++k) in[k] = from[k] + i * advance[k];
    f(y.bytes() + i * element, in, size - i < step ? size - i : step);
  }
}

// The same in new memory, and on the tape.
[[gnu::noinline]] inline Array apply_to_dense(kernels::MapBlock f, TapeRule const& rule, Array const& like,
                                              Array const* const* x, double const* numbers, int n) {
  Array y(like.meta());
  run_dense(f, y, x, numbers, n);
  bool taped = false;
  for (int k = 0; k < n; ++k) taped = taped || (x[k] != nullptr && x[k]->tape() != nullptr);
  if (!taped || !is_grad_enabled()) return y;
  // The tape has numbers with the shape they stand for, and with memory if a rule reads them.
  unsigned reads = 0;
  for (int k = 0; k < n; ++k) reads |= rule.reads(k);
  Operands room;
  Array const* operands[max_arity] = {};
  for (int k = 0; k < n; ++k)
    operands[k] = x[k] != nullptr ? x[k] : &room.add([&] {
      return (reads >> k & 1u) != 0 ? full_as(Array(), like.meta(), numbers[k])
                                    : Array(nullptr, -1, like.meta());
    });
  record_on_tape(rule, Attrs{}, y, operands, n);
  return y;
}

// Whether an op makes numbers of numbers, in the dtype that they have.
template <class Op>
constexpr bool is_numeric() {
  if constexpr (Op::elementwise) {
    Meta metas[max_arity] = {};
    for (Meta& m : metas) m.dtype = DType::f64;
    return Op::infer(Attrs{}, metas, nullptr) == metas[0] && Op::operand_dtype(0, DType::f64) == DType::f64;
  }
  return false;
}

// As run_now, one source file may compile it for many.
template <class Op, class E>
Array apply_to_dense(Array const& like, Array const* const* arrays, double const* numbers) {
  if constexpr (is_numeric<Op>())
    return apply_to_dense(map_block_of<Op, E>(std::make_index_sequence<Op::arity>{}), tape_rule<Op>(), like,
                          arrays, numbers, Op::arity);
  return {};
}

}  // namespace detail

}  // namespace dfdx
