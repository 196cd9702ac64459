// SPDX-License-Identifier: BSL-1.0
// What an op is: the families an op's struct derives from, its static descriptor info<Op>, and `bind`, through
// which every use of an op goes. Rules of ops are templates over the value they compute with (V: Sym while a
// program is built, Array on memory), so one rule serves every regime; the functions they name are found when
// instantiated.
#pragma once

#include <type_traits>

#include <dfdx/core/loop_code.hpp>
#include <dfdx/core/math.hpp>
#include <dfdx/value/array.hpp>

namespace dfdx {

namespace op {

/// operation - base of every op. A derived struct names itself and gives a shape rule and what its engine needs:
/// `vjp<I>(ct, site)` the cotangent of operand I, `jvp<I>(tangent, site)` the contribution of operand I's tangent.
/// `reads(I)` says which values vjp<I> reads, not only their shapes: bit k for operand k, bit max_arity for the
/// result. A tape keeps no others. (Of elementwise ops it is found out.) `examples` says how vmap makes one use of
/// the op of many, `moves` whether it reads or adds elements at places. An op whose result is one of its operands but
/// for some elements says which, `takes_over`: a program may give its kernel the same memory for both. One that
/// is best computed with the op whose result is its last operand has `run_both` (value/node.hpp). An op with a kernel
/// of its own has `run`, or `run_as<T>` for a first operand of that type, of which programs bring one alone.
struct operation {
  static constexpr Code code = Code::opaque;
  static constexpr int arity = 1;
  static constexpr int cost = 1;
  static constexpr bool elementwise = false;
  static constexpr bool has_caller = false;  ///< errors name the Caller in attrs.i[2]
  static constexpr bool is_product = false;  ///< of matrices, or a convolution
  /// its rule uses nothing but ops whose operands and results are of the dtype of its own
  static constexpr bool keeps_dtype = false;
  static constexpr Examples examples = Examples::one_by_one;
  static constexpr Moves moves = Moves::nothing;
  static constexpr int takes_over = -1;
  static constexpr bool has_jvp = true;        ///< forward mode has a rule for it
  static constexpr Sized sized = Sized::none;  ///< with one, `run_sized` (ops/sized.hpp)
  static constexpr unsigned reads(int) { return ~(~0u << (max_arity + 1)); }

  template <int I, class V>
  static constexpr V vjp(V const&, Site<V> const&) {
    return V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const&, Site<V> const&) {
    return V{};
  }
};

/// Caller - which function asks for an op whose kernel looks at elements and may refuse them: the error names it.
/// Such ops say has_caller and have it in attrs.i[2].
enum class Caller : index_t {
  itself,
  at,
  bincount,
  cross_entropy,
  ctc_loss,
  embedding,
  embedding_bag,
  index_add,
  index_reduce,
  index_select,
  inv,
  multi_margin_loss,
  nll_loss,
  scatter,
  scatter_add,
  scatter_reduce,
  sparse_rows,
  stack,
  take,
  take_along
};

constexpr Code numbered(int n) { return static_cast<Code>(n); }

namespace detail {

constexpr char const* called(Attrs const& a, char const* itself) {
  constexpr char const* names[] = {nullptr,        "at",           "bincount",      "cross_entropy",
                                   "ctc_loss",     "embedding",    "embedding_bag", "index_add",
                                   "index_reduce", "index_select", "inv",           "multi_margin_loss",
                                   "nll_loss",     "scatter",      "scatter_add",   "scatter_reduce",
                                   "sparse_rows",  "stack",        "take",          "take_along"};
  return a.i[2] == 0 ? itself : names[a.i[2]];
}
constexpr Attrs attrs_for(Caller by, index_t i = 0, index_t j = 0) {
  return Attrs{{i, j, static_cast<index_t>(by)}};
}

template <class Op, class V>
constexpr V vjp(V const& ct, Site<V> const& s, int which) {
  if constexpr (Op::arity >= 1)
    if (which == 0) return Op::template vjp<0>(ct, s);
  if constexpr (Op::arity >= 2)
    if (which == 1) return Op::template vjp<1>(ct, s);
  if constexpr (Op::arity >= 3)
    if (which == 2) return Op::template vjp<2>(ct, s);
  if constexpr (Op::arity >= 4)
    if (which == 3) return Op::template vjp<3>(ct, s);
  if constexpr (Op::arity >= 5)
    if (which == 4) return Op::template vjp<4>(ct, s);
  return V{};
}

template <class Op, class V>
constexpr V jvp(V const& tangent, Site<V> const& s, int which) {
  if constexpr (Op::arity >= 1)
    if (which == 0) return Op::template jvp<0>(tangent, s);
  if constexpr (Op::arity >= 2)
    if (which == 1) return Op::template jvp<1>(tangent, s);
  if constexpr (Op::arity >= 3)
    if (which == 2) return Op::template jvp<2>(tangent, s);
  if constexpr (Op::arity >= 4)
    if (which == 3) return Op::template jvp<3>(tangent, s);
  if constexpr (Op::arity >= 5)
    if (which == 4) return Op::template jvp<4>(tangent, s);
  return V{};
}

template <class Op>
constexpr double fold(double const* x) {
  constexpr Meta number{DType::f64, {}};
  constexpr Meta numbers[3] = {number, number, number};
  if constexpr (Op::arity == 3) {
    return static_cast<double>(Op::eval(x[0] != 0, x[1], x[2]));
  } else {
    constexpr bool numeric = Op::infer(Attrs{}, numbers, nullptr).valid();
    if constexpr (numeric && Op::arity == 1) return static_cast<double>(Op::eval(x[0]));
    else if constexpr (numeric) return static_cast<double>(Op::eval(x[0], x[1]));
    else if constexpr (Op::arity == 1) return static_cast<double>(Op::eval(x[0] != 0));
    else return static_cast<double>(Op::eval(x[0] != 0, x[1] != 0));
  }
}

template <class Op>
constexpr void require(Graph& g, Attrs const& attrs, Meta const* metas);

// Of some ops the kernel for what a program knows of a use. They choose by themselves (`run_for`), have one for each
// dtype of their first operand (`run_as<T>`), or one for results of f32 and of 16 bits (`run_as_floats`).
template <class Op>
concept has_run_for = requires { &Op::template run_for<0>; } || requires { &Op::template run_as<float>; } ||
                      requires { &Op::template run_as_floats<0>; };
template <class Op>
constexpr OwnRun run_for(Attrs const& attrs, Meta const* metas) {
  if constexpr (requires { &Op::template run_for<0>; }) {
    return Op::template run_for<0>(attrs, metas);
  } else if constexpr (requires { &Op::template run_as<float>; }) {
    return dispatch(metas[0].dtype,
                    [](auto type) -> OwnRun { return &Op::template run_as<typename decltype(type)::type>; });
  } else {
    DType const made = metas[Op::arity].dtype;
    return is_floating(made) && made != DType::f64 ? &Op::template run_as_floats<0> : &Op::template run<0>;
  }
}

// Whether an op has a kernel for all dtypes, or one for each: asked by calls, for nvcc does not see templates that are
// only named.
template <class Op>
concept runs = requires(Attrs const& a, Operand const* in, Operand const& out) { Op::run(a, in, out); };
template <class Op>
concept runs_as_dtype = requires(Attrs const& a, Operand const* in, Operand const& out) {
  Op::template run_as<float>(a, in, out);
};

/// run_any - an op's kernel for operands of any dtype.
template <class Op>
void run_any(Attrs const& attrs, Operand const* in, Operand const& out) {
  if constexpr (runs<Op>) Op::run(attrs, in, out);
  else
    dispatch(in[0].meta.dtype,
             [&](auto type) { Op::template run_as<typename decltype(type)::type>(attrs, in, out); });
}

template <class Op>
constexpr OpInfo make_info() {
  OpInfo r{Op::name, Op::code, Op::arity, Op::cost, Op::elementwise};
  r.examples = Op::elementwise ? Examples::same : Op::examples;
  r.moves = Op::moves;
  r.takes_over = Op::takes_over;
  r.infer = &Op::infer;
  r.vjp = &vjp<Op, Sym>;
  r.has_jvp = Op::has_jvp;
  r.sized = Op::sized;
  if constexpr (Op::has_jvp) r.jvp = &jvp<Op, Sym>;
  if constexpr (Op::elementwise) r.fold = &fold<Op>;
  // Kernels of the library are templates, so that programs compile those that they use.
  if constexpr (requires { &Op::template run<0>; }) r.run = &Op::template run<0>;
  else if constexpr (requires { &Op::run; }) r.run = &Op::run;
  else if constexpr (runs_as_dtype<Op>) r.run = &run_any<Op>;
  if constexpr (has_run_for<Op>) r.has_run_for = true, r.run_for = &run_for<Op>;
  if constexpr (requires { &Op::template run_both<0>; }) {
    r.has_run_both = true;
    r.run_both = &Op::template run_both<0>;
    r.run_both_as_floats = &Op::template run_both_as_floats<0>;
  }
  r.require = &require<Op>;
  return r;
}

}  // namespace detail

}  // namespace op

/// info - the one descriptor of an op; its address is the op's identity in a graph.
template <class Op>
inline constexpr OpInfo info = op::detail::make_info<Op>();

/// is_op - whether a descriptor is Op's. It does not make Op's own, which brings all of its rules and its kernel.
template <class Op>
constexpr bool is_op(OpInfo const& a) {
  return same_op(a, Op::code, Op::name);
}

namespace detail {

template <class Op>
constexpr Meta checked_infer(Attrs const& attrs, Meta const* in) {
  Meta m = Op::infer(attrs, in, nullptr);
  if (!m.valid()) {
    Text why;
    Op::infer(attrs, in, &why);
    raise(why);
  }
  return m;
}

// Extents that the rule let pass because one is known only when the program is called are checked then.
template <class Op>
constexpr void require_same(Graph& g, Attrs const& attrs, Meta const* in, std::size_t n) {
  char const* const by = Op::has_caller ? op::detail::called(attrs, Op::name) : Op::name;
  auto const require = [&](index_t a, index_t b, bool or_less) {
    if (a != b && (a < 0 || b < 0)) g.requirements.push_back(SameExtent{by, a, b, or_less});
  };
  auto const same = [&](index_t a, index_t b) { require(a, b, false); };
  static_cast<void>(attrs);
  if constexpr (Op::elementwise) {
    for (std::size_t k = 1; k < n; ++k)
      for (int i = 0; i < in[0].shape.rank; ++i) same(in[0].shape[i], in[k].shape[i]);
  } else if constexpr (Op::code == Code::matmul) {
    int const r = in[0].shape.rank;
    for (int i = 0; i + 2 < r; ++i) same(in[0].shape[i], in[1].shape[i]);
    same(in[0].shape[r - 1], in[1].shape[r - 2]);
  } else if constexpr (requires { Op::require(attrs, in, require); }) {
    Op::require(attrs, in, require);
  }
}

// The same for views, whose results are given.
template <class Op>
constexpr void require_view(Graph& g, Attrs const& attrs, Shape const& from, Shape const& to) {
  if constexpr (Op::code == Code::reshape) {
    index_t const a = from.numel(), b = to.numel();
    if (a != b && a != extent::unknown && b != extent::unknown)
      g.requirements.push_back(SameExtent{Op::name, a, b});
  } else if constexpr (Op::code == Code::slice) {
    index_t const n = from[Op::axis(attrs)];
    if (n < 0 && attrs.i[2] > 0)
      g.requirements.push_back(
          SameExtent{Op::name, n, attrs.i[1] + Op::step(attrs) * (attrs.i[2] - 1) + 1, true});
  }
}

}  // namespace detail

namespace op::detail {

template <class Op>
constexpr void require(Graph& g, Attrs const& attrs, Meta const* metas) {
  if constexpr (Op::arity > 1) dfdx::detail::require_same<Op>(g, attrs, metas, Op::arity);
  if constexpr (Op::arity == 1) dfdx::detail::require_view<Op>(g, attrs, metas[0].shape, metas[1].shape);
}

}  // namespace op::detail

/// bind_as - a use of Op whose result has the given meta; the op's shape rule is not asked.
template <class Op, class... X>
constexpr Sym bind_as(Meta const& meta, Attrs const& attrs, Sym const& x, X const&... rest) {
  static_assert(Op::arity == 1 + sizeof...(X));
  detail::require_view<Op>(*x.graph, attrs, x.shape(), meta.shape);
  return x.graph->push(Node{&info<Op>, attrs, meta, {x.id, rest.id...}});
}

/// bind - a use of Op: asks its shape rule, then records a node (overloads for Array, in vocabulary/, may run it).
template <class Op, class... X>
constexpr Sym bind(Attrs const& attrs, Sym const& x, X const&... rest) {
  Meta const in[] = {x.meta(), rest.meta()...};
  if constexpr (sizeof...(X) > 0) detail::require_same<Op>(*x.graph, attrs, in, 1 + sizeof...(X));
  return bind_as<Op>(detail::checked_infer<Op>(attrs, in), attrs, x, rest...);
}

}  // namespace dfdx
