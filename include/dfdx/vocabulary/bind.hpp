// SPDX-License-Identifier: BSL-1.0
// bind for Array: the only place that looks at the regime. A recorded operand makes a node; operands in memory run
// a kernel now, or, for ops that only rename positions, make a view.
#pragma once

#include <limits>

#include <dfdx/kernels/reference/gemm.hpp>
#include <dfdx/kernels/reference/map.hpp>
#include <dfdx/ops/cast.hpp>
#include <dfdx/ops/comparison.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/join.hpp>
#include <dfdx/ops/matmul.hpp>
#include <dfdx/ops/reduce.hpp>
#include <dfdx/ops/unary.hpp>
#include <dfdx/vocabulary/on_tape.hpp>

namespace dfdx {

namespace detail {

inline Array packed(Array const& x) {
  if (x.contiguous_memory()) return x;
  Array y(x.meta());
  copy_elements(x.operand(), y.operand());
  return y;
}

// Calls f with the type of the dtype, or with T when the caller knew it (then nothing else is instantiated).
template <class T, class F>
void with_type(DType d, F&& f) {
  if constexpr (std::is_void_v<T>) dispatch(d, f);
  else f(std::type_identity<T>{});
}

template <class Op, class T, class... X>
void run_elementwise(Array const& out, X const&... x) {
  Operand const in[] = {x.operand()...};
  with_type<T>(in[sizeof...(X) - 1].meta.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    constexpr DType d = dtype_v<E>;
    constexpr bool is_where = std::is_same_v<Op, op::where>;
    constexpr Meta operand{d, {}};
    constexpr Meta metas[3] = {is_where ? Meta{DType::boolean, {}} : operand, operand, operand};
    if constexpr (Op::infer(Attrs{}, metas, nullptr).valid()) {
      using R = element_t<Op::infer(Attrs{}, metas, nullptr).dtype>;
      if constexpr (is_where) kernels::reference::map<Op, R, bool, E, E>(in, out.operand());
      else if constexpr (sizeof...(X) == 1) kernels::reference::map<Op, R, E>(in, out.operand());
      else kernels::reference::map<Op, R, E, E>(in, out.operand());
    }
  });
}

template <class T>
void run_cast(Array const& x, Array const& y) {
  dispatch(x.dtype(), [&](auto from) {
    with_type<T>(y.dtype(), [&](auto to) {
      kernels::reference::convert<typename decltype(to)::type, typename decltype(from)::type>(x.operand(),
                                                                                              y.operand());
    });
  });
}

template <Code C, class T>
void run_reduction(Array const& x, Array const& y) {
  with_type<T>(x.dtype(), [&](auto type) {
    using E = typename decltype(type)::type;
    // Sums of floats are carried in double: this is also the oracle of the fused kernels.
    using A = std::conditional_t<is_floating(dtype_v<E>), double, E>;
    using L = std::numeric_limits<A>;
    Operand const in = x.operand(), out = y.operand();
    if constexpr (std::is_same_v<E, bool>) raise("reduction: numeric dtype required, got bool");
    else if constexpr (C == Code::reduce_sum)
      kernels::reference::reduce<A, E>(in, out, A(0), [](A a, A b) { return static_cast<A>(a + b); });
    else if constexpr (C == Code::reduce_prod)
      kernels::reference::reduce<A, E>(in, out, A(1), [](A a, A b) { return static_cast<A>(a * b); });
    else if constexpr (C == Code::reduce_max)
      kernels::reference::reduce<A, E>(in, out,
                                       L::has_infinity ? static_cast<A>(-L::infinity()) : L::lowest(),
                                       [](A a, A b) { return math::maximum(a, b); });
    else
      kernels::reference::reduce<A, E>(in, out, L::has_infinity ? L::infinity() : L::max(),
                                       [](A a, A b) { return math::minimum(a, b); });
  });
}

template <class T>
void run_matmul(Array const& a, Array const& b, Array const& c) {
  with_type<T>(a.dtype(), [&](auto type) {
    using E = typename decltype(type)::type;
    int const r = c.ndim();
    Shape batch = c.shape();
    batch.rank = r - 2;
    Strides const strides[3] = {a.strides(), b.strides(), c.strides()};
    auto const *x = static_cast<E const*>(a.operand().data), *y = static_cast<E const*>(b.operand().data);
    auto* z = static_cast<E*>(c.operand().data);
    if constexpr (!std::is_same_v<E, bool>)
      walk<3>(batch, strides, [&](index_t const(&o)[3]) {
        kernels::reference::gemm(c.shape()[r - 2], c.shape()[r - 1], a.shape()[r - 1], x + o[0],
                                 a.strides()[r - 2], a.strides()[r - 1], y + o[1], b.strides()[r - 2],
                                 b.strides()[r - 1], z + o[2], c.strides()[r - 2], c.strides()[r - 1]);
      });
  });
}

inline Array run_reshape(Shape const& shape, Array const& x) {
  Strides const t = reshape_strides(x.shape(), x.strides(), shape);
  if (t.rank >= 0) return x.view(shape, t);
  return packed(x).view(shape, contiguous(shape));
}

inline Array run_permute(Attrs const& a, Meta const& meta, Array const& x) {
  Strides t = x.strides();
  for (int i = 0; i < t.rank; ++i) t[i] = x.strides()[op::axis_of(a.i[0], i)];
  return x.view(meta.shape, t);
}

inline Array run_expand(Meta const& meta, Array const& x) {
  Strides t = x.strides();
  for (int i = 0; i < t.rank; ++i)
    if (x.shape()[i] != meta.shape[i]) t[i] = 0;
  return x.view(meta.shape, t);
}

template <class Op, class T, class... X>
Array run_now(Meta const& meta, Attrs const& attrs, X const&... x) {
  auto const first = [](auto const& a, auto const&...) -> Array const& { return a; };
  Array const& a = first(x...);
  if constexpr (std::is_same_v<Op, op::reshape>) return run_reshape(meta.shape, a);
  else if constexpr (std::is_same_v<Op, op::permute>) return run_permute(attrs, meta, a);
  else if constexpr (std::is_same_v<Op, op::expand>) return run_expand(meta, a);
  else if constexpr (std::is_same_v<Op, op::slice>) return op::slice::part(attrs, meta, a);
  else {
    Array out(meta, a.device());
    if constexpr (Op::elementwise) run_elementwise<Op, T>(out, x...);
    else if constexpr (std::is_same_v<Op, op::cast>) run_cast<T>(a, out);
    else if constexpr (std::is_same_v<Op, op::matmul>) run_matmul<T>(x..., out);
    else if constexpr (Op::code != Code::opaque) run_reduction<Op::code, T>(a, out);
    else {
      Operand const in[] = {x.operand()...};
      Op::run(attrs, in, out.operand());
    }
    return out;
  }
}

[[noreturn]] inline void refuse_mixture(char const* op) {
  raise(op, ": a value in memory meets one that is being recorded; pass it as an argument");
}

// Recording at run time, by the name of the op (Graph::find_op).
inline Array record_now(char const* op, Meta const& meta, Attrs const& attrs, Array const* const* x, int n) {
  Graph* const g = x[0]->graph();
  Node node{nullptr, attrs, meta, {}};
  Meta metas[max_arity + 1];
  for (int k = 0; k < n; ++k) {
    if (g == nullptr || x[k]->graph() != g) refuse_mixture(op);
    node.in[k] = x[k]->id();
    metas[k] = x[k]->meta();
  }
  metas[n] = meta;
  node.op = g->find_op != nullptr ? g->find_op(op) : nullptr;
  if (node.op == nullptr) raise(op, ": recorded at run time in a graph that does not know it");
  node.op->require(*g, attrs, metas);
  return Array(g, g->push(node).id, meta);
}

template <class Op, class T, class... X>
constexpr Array record_or_run(Meta const& meta, Attrs const& attrs, X const&... x) {
  bool const any = (x.recorded() || ...), all = (x.recorded() && ...);
  if (!any) {
    Array y = run_now<Op, T>(meta, attrs, x...);
    if (on_tape(x...)) {
      Array const* const operands[] = {&x...};
      record_on_tape(tape_rule<Op>, attrs, y, operands, sizeof...(X));
    }
    return y;
  }
  if (std::is_constant_evaluated()) {
    if (!all) refuse_mixture(Op::name);
    Sym const s = bind_as<Op>(meta, attrs, x.sym()...);
    return Array(s.graph, s.id, meta);
  }
  Array const* const operands[] = {&x...};
  return record_now(Op::name, meta, attrs, operands, sizeof...(X));
}

}  // namespace detail

/// bind_as, bind - as for Sym (ops/op.hpp). T is the element type when the caller knows it, else void.
template <class Op, class T = void, class... X>
constexpr Array bind_as(Meta const& meta, Attrs const& attrs, Array const& x, X const&... rest) {
  return detail::record_or_run<Op, T>(meta, attrs, x, rest...);
}

template <class Op, class T = void, class... X>
constexpr Array bind(Attrs const& attrs, Array const& x, X const&... rest) {
  Meta const in[] = {x.meta(), rest.meta()...};
  if constexpr (sizeof...(X) > 0)
    if (std::is_constant_evaluated() && x.recorded())
      detail::require_same<Op>(*x.graph(), attrs, in, 1 + sizeof...(X));
  return detail::record_or_run<Op, T>(detail::checked_infer<Op>(attrs, in), attrs, x, rest...);
}

}  // namespace dfdx
