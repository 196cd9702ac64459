// SPDX-License-Identifier: BSL-1.0
// The ops that kernels know by name, run on memory by the reference kernels: plain loops that are obviously right. What
// fused loops, and the kernels of eager calls, are tested against.
#pragma once

#include <limits>

#include <dfdx/kernels/reference/gemm.hpp>
#include <dfdx/kernels/reference/map.hpp>
#include <dfdx/vocabulary/bind.hpp>

namespace dfdx::testing::reference {

template <class Op, class... X>
void run_elementwise(Array const& out, X const&... x) {
  Operand const in[] = {x.operand()...};
  dispatch(in[sizeof...(X) - 1].meta.dtype, [&](auto type) {
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

inline void run_cast(Array const& x, Array const& y) {
  dispatch(x.dtype(), [&](auto from) {
    dispatch(y.dtype(), [&](auto to) {
      kernels::reference::convert<typename decltype(to)::type, typename decltype(from)::type>(x.operand(),
                                                                                              y.operand());
    });
  });
}

template <Code C>
void run_reduction(Array const& x, Array const& y) {
  dispatch(x.dtype(), [&](auto type) {
    using E = typename decltype(type)::type;
    // Sums of floats are carried in double: this is also the oracle of the fused kernels.
    using A = std::conditional_t<is_floating(dtype_v<E>), double, E>;
    using L = std::numeric_limits<A>;
    Operand const in = x.operand(), out = y.operand();
    if constexpr (std::is_same_v<E, bool>) raise("reduction: numeric dtype required, got bool");
    else if constexpr (C == Code::reduce_sum)
      kernels::reference::reduce<A, E>(in, out, A(0),
                                       [](A a, A b) { return static_cast<A>(math::plus(a, b)); });
    else if constexpr (C == Code::reduce_prod)
      kernels::reference::reduce<A, E>(in, out, A(1),
                                       [](A a, A b) { return static_cast<A>(math::times(a, b)); });
    else if constexpr (C == Code::reduce_max)
      kernels::reference::reduce<A, E>(in, out,
                                       L::has_infinity ? static_cast<A>(-L::infinity()) : L::lowest(),
                                       [](A a, A b) { return math::maximum(a, b); });
    else
      kernels::reference::reduce<A, E>(in, out, L::has_infinity ? L::infinity() : L::max(),
                                       [](A a, A b) { return math::minimum(a, b); });
  });
}

inline void run_matmul(Array const& a, Array const& b, Array const& c) {
  if (is_byte(a.dtype())) {
    Array const x(Meta{c.dtype(), a.shape()}), y(Meta{c.dtype(), b.shape()});
    run_cast(a, x), run_cast(b, y);
    return run_matmul(x, y, c);
  }
  dispatch(a.dtype(), [&](auto type) {
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

/// run - one op; what is neither known by name nor has a plain kernel, `reference`, runs as it does eagerly.
template <class Op, class... X>
Array run(Meta const& meta, Attrs const& attrs, X const&... x) {
  auto const first = [](auto const& a, auto const&...) -> Array const& { return a; };
  constexpr bool known = Op::elementwise || Op::code == Code::cast || Op::code == Code::matmul ||
                         (Op::code >= Code::reduce_sum && Op::code <= Code::reduce_min);
  if constexpr (requires { &Op::template reference<0>; }) {
    Array out(meta);
    Operand const in[] = {x.operand()...};
    Op::reference(attrs, in, out.operand());
    return out;
  } else if constexpr (!known) {
    return bind_as<Op>(meta, attrs, x...);
  } else {
    Array out(meta);
    if constexpr (Op::elementwise) run_elementwise<Op>(out, x...);
    else if constexpr (Op::code == Code::cast) run_cast(first(x...), out);
    else if constexpr (Op::code == Code::matmul) run_matmul(x..., out);
    else run_reduction<Op::code>(first(x...), out);
    return out;
  }
}

}  // namespace dfdx::testing::reference
