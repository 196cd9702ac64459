// SPDX-License-Identifier: BSL-1.0
// The transforms on arrays whose shapes are known at run time only: what value_and_grad(f), vmap(f), hessian(f) and the
// others do when an argument is an Array, or a tree with one. They run f on the tape, and nest.
#pragma once

#include <vector>

#include <dfdx/program/derivatives.hpp>
#include <dfdx/tape/backward.hpp>
#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// A compiled function is what it was compiled from.
template <class F>
struct Eager<Compiled<F>> : Eager<F> {};

// A value whose gradient the tape computes, with the numbers of this one. What is on the tape gets a node of its own
// above its old one, as in programs: by one argument is not by another that depends on it, or is the same.
template <class Leaf>
void put_on_tape(Leaf& leaf) {
  Array const& old = leaf;
  Array fresh =
      old.requires_grad() ? bind_as<op::reshape>(old.meta(), Attrs{}, lazy<sizeof(Leaf)>(old)) : old.detach();
  if (!fresh.requires_grad()) fresh.requires_grad(true);
  if constexpr (typed<Leaf>) leaf = Leaf(typename Leaf::Unchecked{}, fresh);
  else leaf = fresh;
}

template <class V>
void require_scalar(V const& y) {
  if (y.ndim() != 0) raise("grad: the function must return a scalar, got ", y.shape());
  if (!is_floating(y.dtype())) raise("grad: the function must return a floating value, got ", y.dtype());
}

// The arguments of a function that is about to be differentiated: copies of which the leaves of those named in W are
// values of the tape. Inside of another transform some may have been already.
template <class W, class... A>
struct Started;
template <std::size_t... I, class... A>
struct Started<Wrt<I...>, A...> {
  enable_grad recording;
  bool nested = false;
  std::tuple<A...> args;
  std::vector<Array> wrt;

  explicit Started(A const&... given) : args(given...) {
    std::apply([&](auto const&... a) { (look(a), ...); }, args);
    (enter(std::get<I>(args)), ...);
  }
  template <class F>
  auto run() const {
    return std::apply([](auto const&... a) { return Eager<F>::call(a...); }, args);
  }
  template <class F>
  auto loss() const {
    auto y = loss_of(run<F>());
    require_scalar(y);
    return y;
  }
  // What a result depends on besides.
  template <class T>
  void look(T const& t) {
    if constexpr (tree<T>) visit(t, [&](auto const& leaf) { nested = nested || leaf.requires_grad(); });
  }
  BackwardOptions keep() const { return {true, true}; }
  BackwardOptions options() const { return {true, nested}; }

  // What lies at the leaves of the chosen arguments, as their trees.
  auto trees(std::vector<Array> const& leaves) const {
    std::size_t k = 0;
    std::tuple<std::tuple_element_t<I, std::tuple<A...>>...> r{std::get<I>(args)...};
    r = filled(std::move(r), [&] { return leaves[k++]; });
    return std::apply([](auto... t) { return joined_trees(std::move(t)...); }, std::move(r));
  }

 private:
  template <class T>
  void enter(T& t) {
    visit(t, [&](auto& leaf) {
      if (!is_floating(leaf.dtype())) raise("grad: floating arguments required, got ", leaf.dtype());
      put_on_tape(leaf);
      wrt.push_back(leaf);
    });
  }
};

// (These are templates so that programs without such transforms do not instantiate what they call.)
template <class V>
std::vector<V> slopes(V const& y, std::vector<V> const& wrt, BackwardOptions options) {
  if (y.requires_grad()) return gradients<0>(y, std::span<V const>(wrt), options);
  std::vector<V> r;
  for (V const& x : wrt) r.push_back(zeros_like(x.detach()));
  return r;
}

// sum over all leaves of x times y, a number on the tape.
template <class V>
V paired(std::vector<V> const& x, std::vector<V> const& y) {
  if (x.size() != y.size())
    raise("vjp: ", static_cast<index_t>(y.size()), " cotangents for ", static_cast<index_t>(x.size()),
          " results");
  V total;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!(x[k].shape() == y[k].shape()))
      raise("vjp: a direction of shape ", y[k].shape(), " for a value of shape ", x[k].shape());
    V const one = sum(x[k] * y[k]);
    total = k == 0 ? one : total + one;
  }
  return total;
}
template <class V>
std::vector<V> zeros_to_watch(std::vector<V> const& like) {
  std::vector<V> r;
  for (V const& x : like) {
    r.push_back(full_as(x.detach(), x.meta(), 0.0) * 1.0);
    r.back().requires_grad(true);
  }
  return r;
}
template <class T>
std::vector<Array> arrays_of(T const& t) {
  std::vector<Array> r;
  visit(t, [&](auto const& leaf) { r.push_back(leaf); });
  return r;
}
template <class T>
T with_arrays(T const& t, std::vector<Array> const& leaves) {
  std::size_t k = 0;
  return filled(t, [&] { return leaves[k++]; });
}
// A result for who does not differentiate further.
template <class T>
T finished(T const& t, bool nested) {
  if (nested) return t;
  return filled(t, [all = arrays_of(t), k = std::size_t{0}]() mutable { return all[k++].detach(); });
}

template <class F, class W>
struct Eager<ValueAndGrad<F, W>> {
  template <class... A>
  static auto call(A const&... args) {
    Started<W, A...> const s(args...);
    auto const y = s.template run<F>();
    require_scalar(loss_of(y));
    auto g = s.trees(slopes<Array>(loss_of(y), s.wrt, s.options()));
    return std::pair(finished(y, s.nested), std::move(g));
  }
};

template <class F, class W>
struct Eager<Grad<F, W>> {
  template <class... A>
  static auto call(A const&... args) {
    return Eager<ValueAndGrad<F, W>>::call(args...).second;
  }
};

template <std::size_t... I>
Wrt<I...> all_of(std::index_sequence<I...>);
template <class Tuple>
using every_argument = decltype(all_of(std::make_index_sequence<std::tuple_size_v<Tuple>>{}));
template <class W, class... A>
Started<W, A...> started(std::tuple<A const&...> const& args) {
  return std::make_from_tuple<Started<W, A...>>(args);
}

template <class F>
struct Eager<Vjp<F>> {
  template <class... A>
  static auto call(A const&... args) {
    return with_last_apart<1>(
        [](auto const& x, auto const& ct) {
          auto s = started<every_argument<std::remove_cvref_t<decltype(x)>>>(x);
          s.look(ct);
          auto const y = s.template run<F>();
          auto g = s.trees(slopes(paired(arrays_of(y), arrays_of(ct)), s.wrt, s.options()));
          return std::pair(finished(y, s.nested), std::move(g));
        },
        args...);
  }
};

// Derivatives of y along directions of x: those of the reverse pass along y, which is linear in what it starts from.
template <class V>
std::vector<V> directional(std::vector<V> const& y, std::vector<V> const& x, std::vector<V> const& directions,
                           BackwardOptions options) {
  std::vector<V> const u = zeros_to_watch(y);
  std::vector<V> const back = slopes(paired(y, u), x, {true, true});
  return slopes(paired(back, directions), u, options);
}

template <class F>
struct Eager<Jvp<F>> {
  template <class... A>
  static auto call(A const&... args) {
    static_assert(sizeof...(A) % 2 == 0, "jvp: as many tangents as arguments");
    return with_last_apart<sizeof...(A) / 2>(
        [](auto const& x, auto const& directions) {
          auto s = started<every_argument<std::remove_cvref_t<decltype(x)>>>(x);
          s.look(directions);
          auto const y = s.template run<F>();
          auto dy = with_arrays(y, directional(arrays_of(y), s.wrt, arrays_of(directions), s.options()));
          return std::pair(finished(y, s.nested), std::move(dy));
        },
        args...);
  }
};

template <class F, class W>
struct Eager<JacobianReverse<F, W>> {
  template <class... A>
  static auto call(A const&... args) {
    Started<W, A...> const s(args...);
    Array const y = s.template run<F>(), elements = reshape_to(lazy<sizeof(F)>(y), make_shape(y.size()));
    std::vector<std::vector<Array>> rows(s.wrt.size());
    for (index_t e = 0; e < y.size(); ++e) {
      std::vector<Array> const one = slopes(at_position(lazy<sizeof(F)>(elements), e), s.wrt, s.options());
      for (std::size_t k = 0; k < one.size(); ++k) rows[k].push_back(one[k]);
    }
    std::vector<Array> parts;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      Shape const shape = joined_shape(y.shape(), s.wrt[k].shape());
      parts.push_back(rows[k].empty()
                          ? Array(Meta{s.wrt[k].dtype(), shape})
                          : reshape_to(lazy<sizeof(F)>(stack(std::span<Array const>(rows[k]), 0)), shape));
    }
    return as_tuple(parts, s);
  }

 private:
  template <class S>
  static auto as_tuple(std::vector<Array> const& parts, S const&) {
    return tuple_of(parts, W{});
  }
  template <std::size_t... I>
  static auto tuple_of(std::vector<Array> const& parts, Wrt<I...>) {
    std::array<Array, sizeof...(I)> all;
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = parts[k];
    return std::apply([](auto... t) { return joined_trees(std::move(t)...); }, all);
  }
};
template <class F, class W>
struct Eager<JacobianForward<F, W>> : Eager<JacobianReverse<F, W>> {};
template <class F, class W>
struct Eager<Hessian<F, W>> : Eager<JacobianReverse<Grad<F, W>, W>> {};
template <class F, class W>
struct Eager<Jacobian<F, W>> : Eager<JacobianReverse<F, W>> {};

template <class F, std::size_t... I>
struct Eager<HessianProduct<F, Wrt<I...>>> {
  template <class... A>
  static auto call(A const&... args) {
    return with_last_apart<sizeof...(I)>(
        [](auto const& x, auto const& directions) {
          auto s = started<Wrt<I...>>(x);
          s.look(directions);
          auto const y = s.template loss<F>();
          std::vector<Array> const g = slopes<Array>(y, s.wrt, s.keep());
          return s.trees(slopes(paired(g, arrays_of(directions)), s.wrt, s.options()));
        },
        args...);
  }
};

template <class F, class L>
struct Eager<GaussNewtonProduct<F, L>> {
  template <class... A>
  static auto call(A const&... args) {
    return with_last_apart<1>(
        [](auto const& x, auto const& directions) {
          auto s = started<Wrt<0>>(x);
          s.look(directions);
          auto const y = s.template run<F>();
          std::vector<Array> const out = arrays_of(y);
          std::vector<Array> const dy = directional(out, s.wrt, arrays_of(directions), s.options());
          auto const inner = with_arrays(y, own_values(out));
          auto const l = std::apply(
              [&](auto const&, auto const&... data) { return Eager<L>::call(inner, data...); }, s.args);
          require_scalar(l);
          std::vector<Array> const g = slopes<Array>(l, arrays_of(inner), s.keep());
          std::vector<Array> const curved = slopes(paired(g, dy), arrays_of(inner), s.options());
          if (!s.nested) return s.trees(slopes(paired(out, curved), s.wrt, s.options()));
          // On the tape what is paired depends on these arguments itself: others of the same values.
          auto const again = started<Wrt<0>>(x);
          return s.trees(slopes(paired(arrays_of(again.template run<F>()), curved), again.wrt, s.options()));
        },
        args...);
  }
  static std::vector<Array> own_values(std::vector<Array> all) {
    for (Array& x : all) put_on_tape(x);
    return all;
  }
};

template <class F, std::size_t I>
struct Eager<DiagonalHessian<F, I>> {
  template <class... A>
  static auto call(A const&... args) {
    Started<Wrt<I>, A...> const s(args...);
    auto const y = s.template loss<F>();
    Array const x = s.wrt[0], g = reshape_to(slopes<Array>(y, s.wrt, s.keep())[0], make_shape(x.size()));
    std::vector<Array> diagonal;
    for (index_t e = 0; e < x.size(); ++e) {
      Array const row = slopes(at_position(lazy<sizeof(F)>(g), e), s.wrt, s.options())[0];
      diagonal.push_back(at_position(reshape_to(lazy<sizeof(F)>(row), make_shape(x.size())), e));
    }
    if (diagonal.empty()) return x.detach();
    return reshape_to(lazy<sizeof(F)>(stack(std::span<Array const>(diagonal), 0)), x.shape());
  }
};

template <class F, int... In, int... Out>
struct Eager<Vmap<F, InAxes<In...>, OutAxes<Out...>>> {
  template <class... A>
  static auto call(A const&... args) {
    return each(std::index_sequence_for<A...>{}, args...);
  }

 private:
  template <std::size_t K>
  static constexpr int axis = axis_of_argument<K>(std::integer_sequence<int, In...>{});

  template <std::size_t... K, class... A>
  static auto each(std::index_sequence<K...>, A const&... args) {
    static_assert(sizeof...(In) <= 1 || sizeof...(In) == sizeof...(A),
                  "vmap: in_axes names an axis for each argument");
    std::tuple const all{mapped_in_front<axis<K>>(args)...};
    index_t count = -1;
    (look < axis<K> != unmapped > (std::get<K>(all), count), ...);
    if (count < 0) raise("vmap: no argument is mapped over");
    if (count == 0) raise("vmap: no examples to map over");
    auto const one = [&](index_t i) {
      return Eager<F>::call(example < axis<K> != unmapped > (std::get<K>(all), i)...);
    };
    using Y = decltype(one(0));
    std::vector<std::vector<Array>> rows;
    for (index_t i = 0; i < count; ++i) {
      std::vector<Array> const leaves = arrays_of(one(i));
      rows.resize(leaves.size());
      for (std::size_t k = 0; k < leaves.size(); ++k) rows[k].push_back(leaves[k]);
    }
    std::size_t k = 0;
    return placed(OutAxes<Out...>{},
                  filled(stacked_t<Y, dyn>{}, [&] { return stack(std::span<Array const>(rows[k++]), 0); }));
  }
  template <bool Mapped, class T>
  static void look(T const& t, index_t& count) {
    if constexpr (Mapped)
      visit(t, [&](auto const& leaf) {
        if (leaf.ndim() == 0) raise("vmap: axis 0 out of range for ", leaf.shape());
        if (count >= 0 && leaf.shape()[0] != count)
          raise("vmap: axis 0 of ", leaf.shape(), " must have the extent mapped over, ", count);
        count = leaf.shape()[0];
      });
  }
  template <bool Mapped, class T>
  static auto example(T const& t, index_t i) {
    if constexpr (!Mapped) return t;
    else {
      std::vector<Array> const leaves = arrays_of(t);
      std::size_t k = 0;
      return filled(part_t<T>{}, [&] { return at_position(lazy<sizeof(T)>(leaves[k++]), i); });
    }
  }
};

}  // namespace dfdx::detail::inline DFDX_TARGET
