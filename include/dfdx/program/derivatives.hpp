// SPDX-License-Identifier: BSL-1.0
// Transforms for derivatives of more than one direction or order: jacobian and hessian, its diagonal, and the products
// of both with vectors. All are the two walks over the graph that value_and_grad and jvp take, batched where they go in
// many directions.
#pragma once

#include <dfdx/program/vmap.hpp>

namespace dfdx::detail {

// The dims of Y followed by those of X, the element type of X.
template <class Y, class X>
struct jacobian_type;
template <class A, std::size_t... D, class B, std::size_t... E>
struct jacobian_type<Tensor<A, D...>, Tensor<B, E...>> {
  using type = Tensor<B, D..., E...>;
};
template <class Y, class X>
using jacobian_t = typename jacobian_type<typename tensor_base<Y>::type, typename tensor_base<X>::type>::type;

constexpr Shape joined_shape(Shape a, Shape const& b) {
  if (a.rank + b.rank > max_rank) raise("jacobian: no room for the axes of ", a, " and ", b);
  for (int i = 0; i < b.rank; ++i) a.push_back(b[i]);
  return a;
}

// The unit vectors of the space of arrays like x: [n, S...], n the number of elements of x: [S...].
template <class V>
constexpr V unit_vectors(V const& x) {
  index_t const n = x.shape().numel();
  auto const count_along = [&](int axis) {
    return x.graph->push(Node{&info<op::iota>, Attrs{{axis}}, Meta{DType::i64, make_shape(n, n)}, {}});
  };
  V const rows = count_along(0), columns = count_along(1);
  V const one = cast_to(bind<op::equal>(Attrs{}, rows, columns), x.dtype());
  return reshape_to(one, joined_shape(make_shape(n), x.shape()));
}

// Whether X can be one side of a matrix of derivatives; says so if not.
template <class X>
constexpr bool is_side() {
  if constexpr (refused<X>) return false;
  else {
    static_assert(typed<X>,
                  "jacobian: what is differentiated, and with respect to what, must be Tensors, not trees");
    if constexpr (typed<X>) return is_floating_side<X, "jacobian: floating values">();
    else return false;
  }
}

// The derivatives of y along given directions of x: [n, S...] -> [n, R...].
template <class V>  // a template: programs without it batch nothing
constexpr V along(V const& y, V const& x, V const& directions) {
  graph::Batch<lazily<V>> batch(*x.graph, directions.shape()[0]);
  Vec<int> const wrt = {x.id};
  Vec<Sym> const one = {batch.one(directions)}, ends = {y};
  return batch.all(graph::push_forward(*x.graph, wrt, one, ends))[0];
}

// The derivatives of Y by the chosen arguments as a tree, given as symbols.
template <class Y, std::size_t... I, class... A>
constexpr auto jacobian_tree(Wrt<I...>, std::tuple<A const&...> const&, Vec<Sym> const& parts) {
  std::tuple<jacobian_t<Y, std::tuple_element_t<I, std::tuple<A...>>>...> all;
  std::size_t k = 0;
  all = filled(all, [&] { return Array(parts[k++]); });
  return std::apply([](auto... t) { return joined_trees(std::move(t)...); }, std::move(all));
}

// f(the arguments but the last N, the last N), both as tuples.
template <std::size_t N, class F, class... A>
constexpr auto with_last_apart(F const& f, A const&... args) {
  static_assert(sizeof...(A) > N,
                "the arguments are those of the function and then a direction for each that counts");
  auto const all = std::tie(args...);
  return [&]<std::size_t... K, std::size_t... L>(std::index_sequence<K...>, std::index_sequence<L...>) {
    return f(std::tie(std::get<K>(all)...), std::tie(std::get<sizeof...(K) + L>(all)...));
  }(std::make_index_sequence<sizeof...(A) - N>{}, std::make_index_sequence<N>{});
}
// Whether each direction has the type of the argument that it belongs to; says so if not.
template <class W, class X, class D>
struct DirectionsFit;
template <std::size_t... I, class... X, class... D>
struct DirectionsFit<Wrt<I...>, std::tuple<X const&...>, std::tuple<D const&...>>
    : std::bool_constant<(std::is_same_v<std::tuple_element_t<I, std::tuple<X...>>, D> && ...)> {};
template <class W, class X, class D>
constexpr bool directions_fit() {
  constexpr bool fit = DirectionsFit<W, X, D>::value;
  static_assert(fit,
                "the directions come after all arguments, each of the type of the one that it belongs to");
  return fit;
}

}  // namespace dfdx::detail

namespace dfdx::inline DFDX_TARGET {

/// JacobianReverse - what jacrev(f) compiles: one reverse pass for all elements of the result.
template <class F, class W>
struct JacobianReverse;
template <class F, std::size_t... I>
struct JacobianReverse<F, Wrt<I...>> {
  template <class... A>
  static constexpr auto record(A const&... args) {
    return of(detail::record_call<F>(args...), args...);
  }
  /// The same where F has been recorded: y is its result.
  template <class Y, class... A>
  static constexpr auto of(Y const& y, A const&... args) {
    if constexpr (!detail::is_side<Y>() ||
                  !(detail::is_side<std::tuple_element_t<I, std::tuple<A...>>>() && ...)) {
      return Refused{};
    } else {
      auto const all = std::tie(args...);
      Vec<Sym> const x = detail::syms_of(Wrt<I...>{}, all);
      auto const seeds = detail::unit_vectors(y.sym());
      graph::Batch<detail::lazily<A...>> batch(*seeds.graph, seeds.shape()[0]);
      Vec<Sym> const ends = {y.sym()}, cts = {batch.one(seeds)};
      Vec<Sym> parts = batch.all(graph::pull_back(*seeds.graph, ends, cts, detail::ids_of(x)));
      for (std::size_t k = 0; k < x.size(); ++k)
        parts[k] = reshape_to(parts[k], detail::joined_shape(y.shape(), x[k].shape()));
      return detail::jacobian_tree<Y>(Wrt<I...>{}, all, parts);
    }
  }
};

/// JacobianForward - what jacfwd(f) compiles: one forward pass for all elements of an argument.
template <class F, class W>
struct JacobianForward;
template <class F, std::size_t... I>
struct JacobianForward<F, Wrt<I...>> {
  template <class... A>
  static constexpr bool check() {
    if constexpr (requires { F::template check<A...>(); }) return F::template check<A...>();
    else return true;
  }
  template <class... A>
  static constexpr auto record(A const&... args) {
    return of(detail::record_call<F>(args...), args...);
  }
  template <class Y, class... A>
  static constexpr auto of(Y const& y, A const&... args) {
    if constexpr (!detail::is_side<Y>() ||
                  !(detail::is_side<std::tuple_element_t<I, std::tuple<A...>>>() && ...)) {
      return Refused{};
    } else {
      auto const all = std::tie(args...);
      Vec<Sym> parts;
      for (auto const& x : detail::syms_of(Wrt<I...>{}, all)) parts.push_back(part(y.sym(), x));
      return detail::jacobian_tree<Y>(Wrt<I...>{}, all, parts);
    }
  }

 private:
  template <class V>
  static constexpr V part(V const& y, V const& x) {
    V const columns = detail::along(y, x, detail::unit_vectors(x));
    int axes[max_rank] = {};
    int const r = columns.shape().rank;
    for (int i = 0; i + 1 < r; ++i) axes[i] = i + 1;
    return reshape_to(permute_axes(columns, op::pack_axes(axes, r)),
                      detail::joined_shape(y.shape(), x.shape()));
  }
};

/// JacobianWhereItCan - by forward mode; by reverse mode where a function on the way has no rule for the other.
template <class F, class W>
struct JacobianWhereItCan {
  /// y is the result of F, which has been recorded.
  template <class Y, class... A>
  static constexpr auto of(Y const& y, A const&... args) {
    if constexpr (detail::is_side<Y>()) {
      Vec<Sym> const x = detail::syms_of(W{}, std::tie(args...));
      if (!graph::can_push_forward(*x[0].graph, detail::ids_of(x), y.sym()))
        return JacobianReverse<F, W>::of(y, args...);
    }
    return JacobianForward<F, W>::of(y, args...);
  }
};

/// Hessian - what hessian(f) compiles: forward mode over reverse mode where it can.
template <class F, class W>
struct Hessian : JacobianForward<Grad<F, W>, W> {
  template <class... A>
  static constexpr auto record(A const&... args) {
    return JacobianWhereItCan<Grad<F, W>, W>::of(detail::record_call<Grad<F, W>>(args...), args...);
  }
};

/// HessianProduct - what hvp(f) compiles: forward mode over reverse mode.
template <class F, class W>
struct HessianProduct;
template <class F, std::size_t... I>
struct HessianProduct<F, Wrt<I...>> {
  template <class... A>
  static constexpr auto record(A const&... args) {
    return detail::with_last_apart<sizeof...(I)>(
        []<class X, class D>(X const& x, D const& directions) {
          if constexpr (!detail::directions_fit<Wrt<I...>, X, D>()) return Refused{};
          else {
            auto g = std::apply([](auto const&... a) { return Grad<F, Wrt<I...>>::record(a...); }, x);
            if constexpr (refused<decltype(g)>) return g;
            else {
              Vec<Sym> const from = detail::syms_of(Wrt<I...>{}, x), ends = detail::syms_of(g);
              Vec<Sym> const found = graph::push_forward(*ends[0].graph, detail::ids_of(from),
                                                         detail::syms_of(directions), ends);
              Sym const* next = found.data();
              return detail::with_leaves(std::move(g), next);
            }
          }
        },
        args...);
  }
};

/// GaussNewtonProduct - what gauss_newton_vp(f, loss) compiles.
template <class F, class L>
struct GaussNewtonProduct {
  template <class... A>
  static constexpr auto record(A const&... args) {
    return detail::with_last_apart<1>(
        []<class X, class D>(X const& x, D const& directions) {
          if constexpr (!detail::directions_fit<Wrt<0>, X, D>()) return Refused{};
          else {
            auto const y = std::apply([](auto const&... a) { return detail::record_call<F>(a...); }, x);
            auto const l = std::apply(
                [&](auto const&, auto const&... data) { return detail::record_call<L>(y, data...); }, x);
            if constexpr (!detail::is_scalar<std::remove_const_t<decltype(l)>>()) return Refused{};
            else {
              Graph& g = *l.graph();
              Vec<Sym> const from = detail::syms_of(std::get<0>(x)), out = detail::syms_of(y);
              Vec<int> const wrt = detail::ids_of(from), inner = detail::ids_of(out);
              Vec<Sym> const ends = {l.sym()}, ones = {full_as(l.sym(), l.meta(), 1)};
              Vec<Sym> const dy = graph::push_forward(g, wrt, detail::syms_of(directions), out);
              Vec<Sym> const slope = graph::pull_back(g, ends, ones, inner);
              Vec<Sym> const curved = graph::push_forward(g, inner, dy, slope);
              Vec<Sym> const found = graph::pull_back(g, out, curved, wrt);
              Sym const* next = found.data();
              return detail::with_leaves(std::get<0>(x), next);
            }
          }
        },
        args...);
  }
};

/// DiagonalHessian - what diagonal_hessian(f) compiles.
template <class F, std::size_t I>
struct DiagonalHessian {
  template <class... A>
  static constexpr auto record(A const&... args) {
    auto g = Grad<F, Wrt<I>>::record(args...);
    if constexpr (!detail::is_side<decltype(g)>()) return Refused{};
    else {
      auto const x = std::get<I>(std::tie(args...)).sym(), seeds = detail::unit_vectors(x);
      auto const columns = detail::along(g.sym(), x, seeds),
                 diagonal = sum_axes(bind<op::mul>(Attrs{}, columns, seeds), index_t{1});
      return detail::wrap<decltype(g)>(Array(reshape_to(diagonal, x.shape())));
    }
  }
};

}  // namespace dfdx::inline DFDX_TARGET

namespace dfdx::detail::inline DFDX_TARGET {

template <class W>
using or_first = std::conditional_t<std::is_same_v<W, Wrt<>>, Wrt<0>, W>;

// Reverse mode where the result has fewer elements than what it is differentiated by, and where a function on the way
// has no rule for the other.
template <class F, class W>
struct Jacobian;
template <class F, std::size_t... I>
struct Jacobian<F, Wrt<I...>> {
  template <class... A>
  static constexpr auto record(A const&... args) {
    auto const y = record_call<F>(args...);
    using Y = std::remove_const_t<decltype(y)>;
    if constexpr (typed<Y> && (typed<std::tuple_element_t<I, std::tuple<A...>>> && ...)) {
      constexpr index_t rows = Y::static_shape.numel();
      constexpr index_t columns = (std::tuple_element_t<I, std::tuple<A...>>::static_shape.numel() + ...);
      if constexpr (rows > columns && columns >= 0) return JacobianWhereItCan<F, Wrt<I...>>::of(y, args...);
    }
    return JacobianReverse<F, Wrt<I...>>::of(y, args...);
  }
};

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// jacrev(f)(args...), jacfwd(f)(args...) - the derivatives of all elements of f's result by all elements of the first
/// argument (or those of wrt<...>, as a tuple if several): by reverse mode, at the price of a gradient for each element
/// of the result, or by forward mode, at that of one for each element of the argument. Both go in all directions at
/// once.
///
/// Math      J[i, j] = dy_i / dx_j
/// Shapes    x: [S...], y: [R...] -> J: [R..., S...]
/// Dtypes    floating
/// Errors    "jacobian: floating values required, got i32" at compile time
/// Source    Griewank and Walther, Evaluating Derivatives, 2008
template <class F, std::size_t... I>
constexpr auto jacrev(F const&, Wrt<I...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "jacobian: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, JacobianReverse<F, detail::or_first<Wrt<I...>>>, Refused>();
}
template <class F, std::size_t... I>
constexpr auto jacfwd(F const&, Wrt<I...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "jacobian: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, JacobianForward<F, detail::or_first<Wrt<I...>>>, Refused>();
}
/// jacobian(f)(args...) - the cheaper of the two; reverse mode for what has no rule for forward mode (custom_vjp).
template <class F, std::size_t... I>
constexpr auto jacobian(F const&, Wrt<I...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "jacobian: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, detail::Jacobian<F, detail::or_first<Wrt<I...>>>, Refused>();
}

/// hessian(f)(args...) - the second derivatives of a scalar function by the first argument, or that of wrt<I>: forward
/// mode over reverse mode, all directions at once; reverse mode twice for what has no rule for forward mode
/// (custom_vjp).
///
/// Math      H[i, j] = d2y / dx_i dx_j
/// Shapes    x: [S...] -> H: [S..., S...]
/// Dtypes    floating
/// Errors    "grad: the function must return a scalar, got [3]" at compile time
/// Source    Griewank and Walther, Evaluating Derivatives, 2008
template <class F, std::size_t I = 0>
constexpr auto hessian(F const&, Wrt<I> = {}) {
  static_assert(detail::captures_nothing<F>,
                "hessian: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, Hessian<F, Wrt<I>>, Refused>();
}

/// diagonal_hessian(f)(args...) - its diagonal.
///
/// Math      y[i] = d2y / dx_i^2; their sum is the Laplacian
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating
/// Errors    those of hessian
/// Source    elementary
template <class F, std::size_t I = 0>
constexpr auto diagonal_hessian(F const&, Wrt<I> = {}) {
  static_assert(detail::captures_nothing<F>,
                "hessian: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, DiagonalHessian<F, I>, Refused>();
}

/// hvp(f)(args..., v...) - the Hessian times a direction, without the Hessian, at about twice the price of a gradient.
/// The directions have the types of the arguments they belong to, models for instance.
///
/// Math      H v
/// Source    Pearlmutter, Fast exact multiplication by the Hessian, 1994
template <class F, std::size_t... I>
constexpr auto hvp(F const&, Wrt<I...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "hvp: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, HessianProduct<F, detail::or_first<Wrt<I...>>>, Refused>();
}

/// gauss_newton_vp(f, loss)(x, data..., v) - the Gauss-Newton matrix of loss(f(x, data...), data...) times a direction
/// like x: what of the Hessian comes from the loss alone, positive semidefinite where the loss is convex.
///
/// Math      J^T L'' J v, J = df/dx, L'' the Hessian of the loss by f's result
/// Source    Schraudolph, Fast curvature matrix-vector products, 2002
template <class F, class L>
constexpr auto gauss_newton_vp(F const&, L const&) {
  static_assert(
      detail::captures_nothing<F> && detail::captures_nothing<L>,
      "gauss_newton_vp: lambdas or function objects without captures required; pass values as arguments");
  return detail::transformed<F, GaussNewtonProduct<F, L>, Refused>();
}

}  // namespace dfdx::inline DFDX_TARGET
