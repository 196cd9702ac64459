// SPDX-License-Identifier: BSL-1.0
// matmul in all of NumPy's cases, brought to the one that op::matmul knows, and take/gather/scatter_add/one_hot.
#pragma once

#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx {

namespace detail {

// How a product of any ranks becomes one of equal ranks >= 2: the operands' shapes, and the result's.
struct MatmulPlan {
  Shape a{}, b{}, result{};
  bool fold = false;  // b is one matrix: the batch of a joins its rows
};

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

// OneDtype: both operands are Tensors of element type T, so that no conversion is compiled.
template <class V, class T, bool OneDtype = false>
constexpr V matmul_untyped(V const& x0, V const& y0) {
  auto const brought = [&](V const& v) {
    if constexpr (OneDtype) return v;
    else return cast_to(v, promote(x0.dtype(), y0.dtype()));
  };
  V const x = brought(x0), y = brought(y0);
  MatmulPlan const p = plan_matmul(x.meta(), y.meta(), nullptr);
  if (!p.result.valid()) {
    Text why;
    plan_matmul(x.meta(), y.meta(), &why);
    raise(why);
  }
  // A vector becomes a matrix by reshape, a batch by broadcasting; both are views.
  auto const matrix = [](V const& v, Shape const& to, bool is_left) {
    Shape const s = v.shape();
    V const m = s.rank == 1 ? reshape_to(v, is_left ? make_shape(1, s[0]) : make_shape(s[0], 1)) : v;
    return broadcast_to(m, to, "matmul");
  };
  V const a = p.fold ? reshape_to(x, p.a) : matrix(x, p.a, true);
  V const b = matrix(y, p.b, false);
  if constexpr (std::is_same_v<V, Sym>) return reshape_to(bind<op::matmul>(Attrs{}, a, b), p.result);
  else return reshape_to(bind<op::matmul, T>(Attrs{}, a, b), p.result);
}

template <class X, class Y>
struct MatmulRule {
  static constexpr Meta infer(Text* why) {
    DType const dtype = promote(X::static_meta.dtype, Y::static_meta.dtype);
    if (dtype == DType::boolean) return refuse(why, "matmul: one numeric dtype required, got bool x bool");
    return Meta{dtype, plan_matmul(X::static_meta, Y::static_meta, why).result};
  }
};

}  // namespace detail

/// matmul - NumPy's and PyTorch's matrix product: vectors count as a row on the left and a column on the right,
/// leading axes are batches and broadcast.
///
/// Shapes    [M, K] x [K, N] -> [M, N]; [K] x [K, N] -> [N]; [M, K] x [K] -> [M]; [B..., M, K] x [C..., K, N]
/// Errors    "matmul: inner dimensions differ: [32, 784] x [128, 10]"
template <operand X, operand Y>
constexpr auto matmul(X const& x, Y const& y) {
  if constexpr (refused<X, Y>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<Y>) {
    using Rule = detail::MatmulRule<X, Y>;
    using R = typename decltype(detail::result_type<Rule>())::type;
    if constexpr (refused<R>) return Refused{};
    else
      return detail::wrap<R>(
          detail::matmul_untyped<Array, typename R::value_type,
                                 std::is_same_v<typename X::value_type, typename Y::value_type>>(
              detail::untyped(x), detail::untyped(y)));
  } else if constexpr (detail::sym<X>) {
    return detail::matmul_untyped<Sym, void>(x, y);
  } else {
    return detail::matmul_untyped<Array, void>(x, y);
  }
}

namespace detail {
template <class Op, class X, class Y>
struct IndexRule {
  static constexpr Meta infer(Text* why) {
    Meta const in[] = {static_meta_or_empty<X>(), static_meta_or_empty<Y>()};
    return Op::infer(Attrs{}, in, why);
  }
};
}  // namespace detail

/// take - rows of a table by index, as an embedding does.
///
/// Shapes    table: [N, R...], index: [I...] -> [I..., R...]
/// Errors    "take: index 30 out of range for axis 0 of [27, 10]" (thrown, also by compiled programs)
template <operand X, operand I>
constexpr auto take(X const& table, I const& index) {
  if constexpr (refused<X, I>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<I>) {
    using R = typename decltype(detail::result_type<detail::IndexRule<op::take, X, I>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return detail::wrap<R>(bind<op::take>(Attrs{}, detail::untyped(table), detail::untyped(index)));
  } else {
    return bind<op::take>(Attrs{}, detail::untyped(table), detail::untyped(index));
  }
}

namespace detail {
template <int Axis, class X, class I>
struct GatherRule {
  static constexpr Meta infer(Text* why) {
    Meta const in[] = {static_meta_or_empty<X>(), static_meta_or_empty<I>()};
    int const axis = rule_axis("gather", Axis, in[0].shape, why);
    return axis < 0 ? refuse(nullptr) : op::gather::infer(Attrs{{axis}}, in, why);
  }
};
}  // namespace detail

/// gather<Axis> - elements at given places along an axis (PyTorch's gather).
template <int Axis, operand X, operand I>
constexpr auto gather(X const& x, I const& index) {
  auto const gathered = [&] {
    Attrs const attrs{{detail::checked_axis("gather", Axis, x.shape())}};
    return bind<op::gather>(attrs, detail::untyped(x), detail::untyped(index));
  };
  if constexpr (refused<X, I>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<I>) {
    using R = typename decltype(detail::result_type<detail::GatherRule<Axis, X, I>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return detail::wrap<R>(gathered());
  } else {
    return gathered();
  }
}

namespace detail {

// The index fits as gather has it, and each of its elements has one of src.
constexpr Meta infer_scatter_add(int axis, Meta const& x, Meta const& index, Meta const& src, Text* why) {
  int const a = rule_axis("scatter_add", axis, x.shape, why);
  if (a < 0) return refuse(nullptr);
  Meta const in[] = {x, index};
  if (!op::gather::infer(Attrs{{a}}, in, why).valid()) return refuse(nullptr);
  bool same = index.shape.rank == src.shape.rank;
  for (int i = 0; same && i < src.shape.rank; ++i) same = op::extents_agree(index.shape[i], src.shape[i]);
  if (!same) return refuse(why, "scatter_add: index ", index.shape, " and source ", src.shape, " differ");
  if (x.dtype != src.dtype)
    return refuse(why, "scatter_add: one dtype required, got ", x.dtype, " and ", src.dtype);
  return x;
}

template <int Axis, class X, class I, class S>
struct ScatterAddRule {
  static constexpr Meta infer(Text* why) {
    return infer_scatter_add(Axis, static_meta_or_empty<X>(), static_meta_or_empty<I>(),
                             static_meta_or_empty<S>(), why);
  }
};

// What is added to x.
template <class V>
constexpr V scattered(int axis, V const& x, V const& index, V const& src) {
  Text why;
  if (!infer_scatter_add(axis, x.meta(), index.meta(), src.meta(), &why).valid()) raise(why);
  Attrs const attrs{{checked_axis("scatter_add", axis, x.shape())}};
  Meta const in[] = {x.meta(), index.meta()};
  if (Graph* const g = recorder_of(x)) {
    require_same<op::gather>(*g, attrs, in, 2);
    for (int i = 0; i < src.shape().rank; ++i)
      if (index.shape()[i] != src.shape()[i])
        g->requirements.push_back(SameExtent{"scatter_add", index.shape()[i], src.shape()[i]});
  }
  return bind_as<op::scatter>(x.meta(), attrs, src, index);
}

}  // namespace detail

/// scatter_add<Axis> - x plus the elements of src added at given places along an axis (PyTorch's scatter_add).
///
/// Errors    "scatter_add: index [2, 3] and source [2, 4] differ"
template <int Axis, operand X, operand I, operand S>
constexpr auto scatter_add(X const& x, I const& index, S const& src) {
  auto const added = [&] {
    return detail::scattered(Axis, detail::untyped(x), detail::untyped(index), detail::untyped(src));
  };
  if constexpr (refused<X, I, S>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<I> && typed<S>) {
    using R = typename decltype(detail::result_type<detail::ScatterAddRule<Axis, X, I, S>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return x + detail::wrap<R>(added());
  } else {
    return x + added();
  }
}

namespace detail {

constexpr Sym iota_as(Sym const& like, Meta const& meta, int axis) {
  return like.graph->push(Node{&info<op::iota>, Attrs{{axis}}, meta, {}});
}
constexpr Array iota_as(Array const& like, Meta const& meta, int axis) {
  if (like.recorded()) return Array(like.graph(), iota_as(like.sym(), meta, axis).id, meta);
  Array r(meta, like.device());
  dispatch(meta.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    Strides const steps[1] = {contiguous(meta.shape)};
    auto* p = r.data<T>();
    index_t inner = 1;
    for (int i = axis + 1; i < meta.shape.rank; ++i) inner *= meta.shape[i];
    walk<1>(meta.shape, steps, [&](index_t const(&o)[1]) {
      p[o[0]] = static_cast<T>(static_cast<compute_t<T>>(o[0] / inner % meta.shape[axis]));
    });
  });
  return r;
}

}  // namespace detail

/// positions<Axis>(index, n) - 0 .. n-1 along an axis, of the dtype and rank of `index`, extent 1 elsewhere: what a
/// one-hot mask compares an index with. For Tensors n is a template argument.
template <int Axis, index_t N, operand I>
constexpr auto positions(I const& index) {
  struct Rule {
    static constexpr Meta make(Meta m) {
      int const axis = normalize_axis(Axis, m.shape.rank);
      for (int i = 0; i < m.shape.rank; ++i) m.shape[i] = i == axis ? N : 1;
      return m;
    }
    static constexpr Meta infer(Text*) { return make(detail::static_meta_or_empty<I>()); }
  };
  return detail::shaped<Rule>(index, [](auto const& v) {
    return detail::iota_as(v, Rule::make(v.meta()), detail::checked_axis("positions", Axis, v.shape()));
  });
}

/// one_hot<N> - 1 at the index, 0 elsewhere, along a new last axis.
///
/// Shapes    index: [I...] -> y: [I..., N]
template <index_t N, element T = float, operand I>
constexpr auto one_hot(I const& index) {
  auto const wide = unsqueeze<-1>(index);
  return cast<T>(wide == positions<-1, N>(wide));
}

}  // namespace dfdx
