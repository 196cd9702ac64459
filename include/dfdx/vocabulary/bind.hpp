// SPDX-License-Identifier: BSL-1.0
// bind for Array: the only place that looks at the regime. A recorded operand makes a node; operands in memory run
// a kernel now, or, for ops that only rename positions, make a view.
#pragma once

#include <dfdx/kernels/copy.hpp>
#include <dfdx/kernels/half_map.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/kernels/reduce.hpp>
#include <dfdx/ops/cast.hpp>
#include <dfdx/ops/comparison.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/join.hpp>
#include <dfdx/ops/matmul.hpp>
#include <dfdx/ops/reduce.hpp>
#include <dfdx/ops/unary.hpp>
#include <dfdx/value/device_ops.hpp>
#include <dfdx/vocabulary/literal.hpp>
#include <dfdx/vocabulary/multiply.hpp>
#include <dfdx/vocabulary/on_tape.hpp>

namespace dfdx {

namespace detail {

inline Array packed(Array const& x) {
  if (x.contiguous_memory()) return x;
  if (is_elsewhere(x)) return moved(x.device(), x);
  Array y(x.meta());
  if (!kernels::copy_transposed(x.operand(), y.operand())) copy_elements(x.operand(), y.operand());
  return y;
}

template <class Op, class E>
constexpr Meta result_of_computed() {
  constexpr bool conditional = Op::operand_dtype(0, dtype_v<E>) == DType::boolean;
  Meta const x{dtype_v<E>, {}};
  Meta const metas[3] = {conditional ? Meta{DType::boolean, {}} : x, x, x};
  return Op::infer(Attrs{}, metas, nullptr);
}

template <class Op, class E, std::size_t... I>
constexpr kernels::MapBlock map_block_of(std::index_sequence<I...>) {
  using R = element_t<result_of_computed<Op, E>().dtype>;
  return &kernels::map_block<
      Op, R,
      std::conditional_t<Op::operand_dtype(static_cast<int>(I), dtype_v<E>) == DType::boolean, bool, E>...>;
}

// The loop of an elementwise op on numbers of one type, null where there is none; what it computes with and makes, and
// which operands are truths (bit k for operand k).
struct Computation {
  kernels::MapBlock block = nullptr;
  DType as = DType::boolean, result = DType::boolean;
  unsigned truths = 0;
};
template <class Op, class E, std::size_t N>
constexpr Computation computation() {
  constexpr Meta made = result_of_computed<Op, E>();
  if constexpr (!made.valid() && !std::is_same_v<E, bool>) return computation<Op, bool, N>();
  else if constexpr (!made.valid()) return {};
  else {
    Computation c{map_block_of<Op, E>(std::make_index_sequence<N>{}), dtype_v<E>, made.dtype};
    for (std::size_t k = 0; k < N; ++k)
      c.truths |= (Op::operand_dtype(static_cast<int>(k), c.as) == DType::boolean ? 1u : 0u) << k;
    return c;
  }
}
// What blocks of T are computed with: where T is known, i32 as it is.
template <class T>
using block_number =
    std::conditional_t<std::is_same_v<T, std::int32_t>, T, element_t<kernels::computed_as(dtype_v<T>)>>;
template <class Op, class T, std::size_t N>
Computation const& computation_with(DType d) {
  if constexpr (!std::is_void_v<T>) {
    static constexpr Computation one = computation<Op, block_number<T>, N>();
    return one;
  } else {
    static constexpr Computation all[] = {computation<Op, double, N>(), computation<Op, float, N>(),
                                          computation<Op, std::int64_t, N>()};
    return all[d == DType::f64 ? 0 : is_floating(d) ? 1 : 2];
  }
}

// Not a template of the op: there are many.
template <bool Convert>
void run_elementwise(char const* name, Computation const& c, Array const& out, Array const* const* x, int n) {
  Operand in[max_arity];
  Operand const y = out.operand();
  kernels::Blocks blocks[max_arity];
  for (int k = 0; k < n; ++k) {
    in[k] = x[k]->operand();
    blocks[k] = {&in[k], (c.truths >> k & 1u) != 0 ? DType::boolean : c.as};
  }
  if (c.block == nullptr)
    raise(name, ": cannot be computed with ", kernels::computed_as(in[n - 1].meta.dtype));
  kernels::map<Convert>(c.block, blocks, n, {&y, c.result});
}
#if !defined(__CUDACC__)
template <class Op>
constexpr kernels::HalfOperation half_operation() {
  using kernels::HalfOperation;
  return std::is_same_v<Op, op::add>   ? HalfOperation::add
         : std::is_same_v<Op, op::sub> ? HalfOperation::sub
         : std::is_same_v<Op, op::mul> ? HalfOperation::mul
         : std::is_same_v<Op, op::div> ? HalfOperation::div
                                       : HalfOperation::none;
}
#endif
template <class Op, class T>
void run_elementwise(Array const& out, Array const* const* operands) {
  constexpr bool as_computed = [] {
    if constexpr (std::is_void_v<T>) return false;
    else return std::is_same_v<T, block_number<T>>;
  }();
  constexpr int n = Op::arity;
  if constexpr (std::is_same_v<Op, op::copy>)
    if (kernels::copy_transposed(operands[0]->operand(), out.operand())) return;
#if !defined(__CUDACC__)
  if constexpr (!as_computed && kernels::has_half_arithmetic) {
    constexpr auto what = half_operation<Op>();
    if constexpr (what != kernels::HalfOperation::none)
      if (operands[0]->dtype() == DType::f16 && operands[1]->dtype() == DType::f16)
        return run_elementwise<false>(Op::name, {&kernels::half_block<what>, DType::f16, DType::f16}, out,
                                      operands, n);
  }
#endif
  // The last operand has the common dtype.
  run_elementwise<!as_computed>(Op::name, computation_with<Op, T, n>(operands[n - 1]->dtype()), out, operands,
                                n);
}

template <Code C, class T>
void run_reduction(Array const& x, Operand const& y) {
  if (x.dtype() == DType::boolean) raise("reduction: numeric dtype required, got bool");
  kernels::reduce(*kernels::computed_with<T>(
                      x.dtype(), [](auto number) { return &kernels::reduction<C, decltype(number)>; }),
                  x.operand(), y);
}

inline Array run_reshape(Shape const& shape, Array const& x) {
  if (!shape.is_static())
    raise("reshape: cannot view ", x.shape(), " as ", shape);  // what a program would learn
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
  if (meta.shape.numel() < 0) raise("expand: size overflows: ", meta.shape);
  Strides t = x.strides();
  for (int i = 0; i < t.rank; ++i)
    if (x.shape()[i] != meta.shape[i]) t[i] = 0;
  return x.view(meta.shape, t);
}

template <class Op, class T>
Array run_now(Meta const& meta, Attrs const& attrs, Array const* const* x);

// On a device: by its kernel, else on the CPU, on copies. Apart from what runs on the CPU, which is short.
template <class Op, class T>
[[gnu::noinline]] Array run_there(Meta const& meta, Attrs const& attrs, Array const* const* x) {
  Array const y = run_elsewhere(Op::name, &Op::infer, meta, attrs, x, Op::arity);
  if (!y.empty()) return y;
  Array copies[Op::arity];
  Array const* at[Op::arity];
  for (int k = 0; k < Op::arity; ++k) at[k] = &(copies[k] = here(*x[k]));
  return moved(device_among(Op::name, x, Op::arity), run_now<Op, T>(meta, attrs, at));
}

// An op on its operands in memory. Not inline, and a template of nothing but the op and T, so that one source file may
// compile it for many (separate.hpp).
template <class Op, class T>
Array run_now(Meta const& meta, Attrs const& attrs, Array const* const* x) {
  Array const& a = *x[0];
  if constexpr (std::is_same_v<Op, op::reshape>) return run_reshape(meta.shape, a);
  else if constexpr (Op::code == Code::custom_vjp) return a.detach();
  else if constexpr (std::is_same_v<Op, op::permute>) return run_permute(attrs, meta, a);
  else if constexpr (std::is_same_v<Op, op::expand>) return run_expand(meta, a);
  else if constexpr (std::is_same_v<Op, op::slice> || std::is_same_v<Op, op::windows>)
    return Op::part(attrs, meta, a);
  else {
    for (int k = 0; k < Op::arity; ++k)
      if (is_elsewhere(*x[k])) [[unlikely]]
        return run_there<Op, T>(meta, attrs, x);
    Array out(meta);
    if constexpr (Op::elementwise) run_elementwise<Op, T>(out, x);
    else if constexpr (std::is_same_v<Op, op::cast>) kernels::convert(a.operand(), out.operand());
    else if constexpr (std::is_same_v<Op, op::matmul>) run_matmul<T>(a, *x[1], out);
    else if constexpr (Op::code != Code::opaque) run_reduction<Op::code, T>(a, out.operand());
    else {
      Operand in[Op::arity];
      for (int k = 0; k < Op::arity; ++k) in[k] = x[k]->operand();
      if constexpr ((std::is_same_v<T, float> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) &&
                    requires { &Op::template run_as_floats<0>; })
        Op::run_as_floats(attrs, in, out.operand());
      else if constexpr (!std::is_void_v<T> && requires { &Op::template run_as<T>; })
        Op::template run_as<T>(attrs, in, out.operand());
      else op::detail::run_any<Op>(attrs, in, out.operand());
    }
    return out;
  }
}

// Whether a value, whatever it is, lies on a device.
template <class X>
constexpr bool lies_elsewhere(X const& x) {
  if constexpr (!std::is_base_of_v<Array, X>) return false;
  else return !DFDX_IN_CONSTANT_EXPRESSION && !x.recorded() && is_elsewhere(x);
}

/// wants_values - whether nothing but numbers is asked of functions of x...: values in this memory, and no derivative
/// flows. Functions that are made of several ops may then come to them in one step.
template <class... X>
constexpr bool wants_values(X const&... x) {
  if constexpr (!(std::is_base_of_v<Array, X> && ...)) return false;
  else return !(x.recorded() || ...) && !on_tape(x...) && !(is_elsewhere(x) || ...);
}

// f(x as an operand, place) for the elements of a value in memory, in row-major order; none while it is recorded. With
// it functions refuse numbers that they cannot take, for which no program stops. What lies on a device is copied.
template <class X, class F>
constexpr void each_in_memory(X const& x, F const& f) {
  if constexpr (std::is_base_of_v<Array, X>) {
    if (DFDX_IN_CONSTANT_EXPRESSION || x.recorded() || x.bytes() == nullptr) return;
    if (is_elsewhere(x)) return each_in_memory<Array, F>(here(x), f);
    Strides const strides[1] = {x.strides()};
    Operand const o = x.operand();
    walk<1>(x.shape(), strides, [&](index_t const(&at)[1]) { f(o, at[0]); });
  }
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

// A product as the graph wants it (vocabulary/autocast.hpp): of operands in 16 bits, its result in the dtype it has.
template <class Op, class... S>
constexpr Sym record_product(Meta const& meta, Attrs const& attrs, Sym const& x, S const&... rest) {
  DType const narrow = x.graph->products;
  if (meta.dtype != DType::f32 || narrow == DType::f32) return bind_as<Op>(meta, attrs, x, rest...);
  auto const as = [](Sym const& v, DType d) { return bind<op::cast>(Attrs{{static_cast<index_t>(d)}}, v); };
  return as(bind_as<Op>(Meta{narrow, meta.shape}, attrs, as(x, narrow), as(rest, narrow)...), meta.dtype);
}

// The element type by which an op's rule differs.
template <class Op, class T>
using rule_type = std::conditional_t<Op::keeps_dtype, T, void>;

template <class Op, class T, class... X>
constexpr Array record_or_run(Meta const& meta, Attrs const& attrs, X const&... x) {
  static_assert(sizeof...(X) == Op::arity);
  if (DFDX_IN_CONSTANT_EXPRESSION) {
    require_recorded(Op::name, (x.recorded() && ...));
    Graph* g = nullptr;
    (meet(g, x.graph()), ...);
    Sym const operands[] = {in_graph(g, Op::name, x.sym())...};  // braces fix the order
    Sym const s = [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (Op::is_product) return record_product<Op>(meta, attrs, operands[I]...);
      else return bind_as<Op>(meta, attrs, operands[I]...);
    }(std::index_sequence_for<X...>{});
    return Array(g, s.id, meta);
  }
  Array const* const operands[] = {&x...};
  if ((x.recorded() || ...)) return record_now(Op::name, meta, attrs, operands, sizeof...(X));
  Array y = run_now<Op, T>(meta, attrs, operands);
  if (on_tape(x...)) record_on_tape(tape_rule<Op, rule_type<Op, T>>(), attrs, y, operands, sizeof...(X));
  return y;
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
    if (DFDX_IN_CONSTANT_EXPRESSION && x.recorded()) {
      Graph* g = x.graph();
      (detail::meet(g, rest.graph()), ...);
      detail::require_same<Op>(*g, attrs, in, 1 + sizeof...(X));
    }
  return detail::record_or_run<Op, T>(detail::checked_infer<Op>(attrs, in), attrs, x, rest...);
}

/// The same for what rules know the elements of.
template <class Op, class T, class... X>
detail::Known<T> bind_as(Meta const& meta, Attrs const& attrs, detail::Known<T> const& x, X const&... rest) {
  return detail::Known<T>(detail::record_or_run<Op, T>(meta, attrs, static_cast<Array const&>(x),
                                                       static_cast<Array const&>(rest)...));
}
template <class Op, class T, class... X>
detail::Known<T> bind(Attrs const& attrs, detail::Known<T> const& x, X const&... rest) {
  return detail::Known<T>(
      bind<Op, T>(attrs, static_cast<Array const&>(x), static_cast<Array const&>(rest)...));
}

}  // namespace dfdx
