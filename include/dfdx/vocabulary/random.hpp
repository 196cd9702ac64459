// SPDX-License-Identifier: BSL-1.0
// Random choices that depend on values: uniform_like, randn_like, bernoulli, dropout, multinomial; and the
// distributions normal, exponential and gumbel. All are functions of a key: a Key for values in memory or, in programs
// too, an i64 number that the program is given (a Key there would draw the same numbers in every run).
#pragma once

#include <limits>

#include <dfdx/kernels/random.hpp>
#include <dfdx/ops/random.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/order.hpp>

namespace dfdx {

namespace op::detail {

template <class Op>
void run_draw(Attrs const& a, Operand const& key_at, Operand const& out) {
  Key const key(static_cast<std::uint64_t>(*static_cast<std::int64_t const*>(key_at.data)));
  auto const stream = static_cast<std::uint64_t>(a.i[1]);
  bool const normal = a.i[2] != 0;
  auto const fill = [&](auto* y, double most) {
    if (is_contiguous(out.meta.shape, out.strides)) {
      if (normal) return kernels::draw_normal(key, stream, y, out.meta.shape.numel());
      return kernels::draw_uniform(key, stream, y, out.meta.shape.numel(), most);
    }
    Strides const strides[1] = {out.strides};
    std::uint64_t i = 0;
    walk<1>(out.meta.shape, strides, [&](index_t const(&o)[1]) {
      double const u = normal ? normal_at(key, i, stream) : uniform_at(key, i, stream);
      ++i;
      y[o[0]] = static_cast<std::remove_reference_t<decltype(*y)>>(normal || u < most ? u : most);
    });
  };
  if (out.meta.dtype == DType::f64) fill(static_cast<double*>(out.data), 1);
  else fill(static_cast<float*>(out.data), 1 - 0x1p-24);  // the last that does not round to 1
}

}  // namespace op::detail

/// Dropout - options of dropout. Draws of one key in different streams are unrelated.
struct Dropout {
  bool training = true;
  std::int64_t stream = 0;
};

namespace detail {

template <class K>
concept random_key = operand<K> || std::is_same_v<K, Key>;

struct Draw {
  std::int64_t stream = 0;
  bool normal = false;
  constexpr Attrs attrs(DType d) const {
    return Attrs{{static_cast<index_t>(promote(d, DType::f32)), stream, normal}};
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    if (!is_floating(in->dtype)) return refuse(why, "draw: floating dtype required, got ", in->dtype);
    return op::draw::infer(attrs(in->dtype), in, why);
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x, V const& key) const {
    return bind_as<op::draw>(y, attrs(x.dtype()), stop_gradient(x), key);
  }
};

// The key as a value beside x.
template <class X, class K>
constexpr auto key_beside(char const* name, X const& x, K const& key) {
  if constexpr (operand<K>) {
    static_cast<void>(x);
    return key;
  } else {
    if (x.recorded())
      raise(name,
            ": a program would draw the same numbers in every run; pass the key as an argument, a number of "
            "i64");
    return Tensor<std::int64_t>(static_cast<std::int64_t>(key.seed));
  }
}
template <Literal Name, class X, class K>
constexpr auto drawn(X const& x, K const& key, std::int64_t stream, bool normal = false) {
  if constexpr (refused<X, K>) return Refused{};
  else return call(named<Name>(FixedType<Draw{}>{{}, {stream, normal}}), x, key_beside(Name.text, x, key));
}

// Zero where a number from [0, 1) lies below p.
template <class X, class U>
constexpr auto dropped(X const& x, U const& u, double p) {
  return where(u < p, zeros_as(x), x * (p == 1 ? 0.0 : 1 / (1 - p)));
}

// Weights in memory from which nothing can be chosen are refused.
template <class X>
constexpr void require_weights(X const& weights) {
  if constexpr (!refused<X>) {
    if (!is_floating(weights.dtype()) || weights.shape().rank == 0) return;
    index_t const choices = weights.shape()[weights.shape().rank - 1];
    index_t seen = 0;
    double total = 0;
    each_in_memory(weights, [&](Operand const& o, index_t at) {
      double const w = read_real(o, at);
      if (!(w >= 0 && w <= std::numeric_limits<double>::max()))
        raise("multinomial: weights that are finite and not negative required");
      total += w;
      if (!(total <= std::numeric_limits<double>::max()))
        raise("multinomial: weights of a finite sum required, of ", weights.shape());
      if (++seen % choices != 0) return;
      if (total == 0) raise("multinomial: weights that are all 0, of ", weights.shape());
      total = 0;
    });
  }
}

struct Multinomial {
  index_t n;
  bool replacement;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape s = in[0].shape;
    if (!is_floating(in[0].dtype))
      return refuse(why, "multinomial: floating dtype required, got ", in[0].dtype);
    if (s.rank < 1 || s[s.rank - 1] < 1)
      return refuse(why, "multinomial: weights of a known number of choices required, got ", s);
    if (n < 0 || (!replacement && n > s[s.rank - 1]))
      return refuse(why, "multinomial: ", Position{n}, " choices wanted, of ", s);
    return Meta{DType::i64, with_extent(s, s.rank - 1, n)};
  }
  // Without replacement the places of the largest log p + Gumbel noise (Efraimidis and Spirakis 2006), else where a
  // number falls among the sums of the weights. In double, so that no choice of small weight is lost.
  template <class, class V>
  constexpr V run(Meta const& y, V const& weights, V const& key) const {
    V const p = cast_to(stop_gradient(weights), DType::f64);
    int const last = y.shape.rank - 1;
    Draw const uniform{};
    if (!replacement) {
      if (n == 0) return full_as(weights, y, 0);
      V const noise = -log(-log(call(uniform, p, key) + 0x1p-54));
      return bind<op::argsort>(Attrs{{last, 1, n}}, log(p) + noise);
    }
    V const sums = bind<op::cumsum>(Attrs{{last}}, p);
    index_t const choices = p.shape()[last];
    V const u = call(uniform, full_as(p, Meta{DType::f64, y.shape}, 0), key);
    V const at = bind<op::searchsorted>(Attrs{{1}}, sums, u * slice_axis(sums, last, choices - 1, 1));
    return minimum(at, static_cast<std::int64_t>(choices - 1));
  }
};

}  // namespace detail

/// uniform_like(x, key, stream) - numbers from [0, 1) for each element of x: those of uniform(shape, key). f32, or
/// f64 for x of f64.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    x: floating; a key that is a value: i64
/// Errors    "uniform_like: a program would draw the same numbers in every run; pass the key as an argument, a
///           number of i64"
/// Source    Salmon et al., SC 2011 (Philox)
template <operand X, detail::random_key K>
constexpr auto uniform_like(X const& x, K const& key, std::int64_t stream = 0) {
  return detail::drawn<"uniform_like">(x, key, stream);
}

/// randn_like(x, key, stream) - numbers from N(0, 1) for each element of x: those of randn(shape, key). f32, or f64 for
/// x of f64.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    x: floating; a key that is a value: i64
/// Errors    those of uniform_like
/// Source    Box and Muller 1958
template <operand X, detail::random_key K>
constexpr auto randn_like(X const& x, K const& key, std::int64_t stream = 0) {
  return detail::drawn<"randn_like">(x, key, stream, true);
}

/// fold_in(key, n) - of a key that is a value, as programs have it: one that depends on (key, n) and is unrelated to
/// others. (Of a Key: core/random.hpp.)
///
/// Shapes    key: [S...] -> [S...]
/// Dtypes    i64
/// Errors    those of uniform_like
/// Source    elementary
template <operand K>
constexpr auto fold_in(K const& key, std::int64_t n) {
  return cast<std::int64_t>(uniform_like(cast<double>(key), key, n) * 0x1p53);
}

namespace detail {

// What numbers of a Tensor type are drawn for, by a key that is a value: only its shape and dtype count.
template <class Y, class K>
constexpr auto drawn_places(K const& key) {
  static_assert(
      Y::static_shape.is_static(),
      "uniform, randn: of a key that is a value every extent must be known; uniform_like takes those of x");
  using Wide = std::conditional_t<std::is_same_v<typename Y::value_type, double>, double, float>;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (sizeof...(I) == 0) return cast<Wide>(key);
    else return expand<Y::static_shape[I]...>(reshape<(static_cast<index_t>(I) * 0 + 1)...>(cast<Wide>(key)));
  }(std::make_index_sequence<Y::static_rank>{});
}

}  // namespace detail

/// uniform<T, Dims...>(key, low, high), randn<T, Dims...>(key) - the draws of draw.hpp by a key that is a value, a
/// number of i64, as programs have it.
///
/// Shapes    key: [] -> [Dims...], which are known
/// Dtypes    T: floating
/// Errors    those of uniform_like
/// Source    Salmon et al., SC 2011 (Philox); Box and Muller 1958
template <class T, std::size_t... Dims, operand K>
constexpr auto uniform(K const& key, double low = 0, double high = 1) {
  using Y = detail::created<T, Dims...>;
  auto const u = uniform_like(detail::drawn_places<Y>(key), key);
  auto const y = u * (high - low) + low;
  return cast<typename Y::value_type>(
      where(y < high, y, full_as(y, low)));  // of a number next to 1 it may be high
}
template <class T, std::size_t... Dims, operand K>
constexpr auto randn(K const& key) {
  using Y = detail::created<T, Dims...>;
  return cast<typename Y::value_type>(randn_like(detail::drawn_places<Y>(key), key));
}

/// bernoulli(p, key) - 1 with probability p for each element, else 0; in the dtype of p.
///
/// Shapes    p: [S...] -> [S...]
/// Dtypes    floating
/// Errors    "bernoulli: probabilities required", of values in memory
/// Source    PyTorch's bernoulli
template <operand X, detail::random_key K>
constexpr auto bernoulli(X const& p, K const& key, std::int64_t stream = 0) {
  detail::each_in_memory(p, [](Operand const& o, index_t at) {
    double const v = read_real(o, at);
    if (!(v >= 0 && v <= 1)) raise("bernoulli: probabilities required");
  });
  return where(detail::drawn<"bernoulli">(p, key, stream) < p, ones_as(p), zeros_as(p));
}

/// dropout(x, p, key, options) - in training each element is 0 with probability p, and the others are divided by 1 - p;
/// else x itself. In programs the key is an argument, a number of i64 that differs from run to run; layers take
/// different streams of it.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating
/// Errors    "dropout: a probability required"; those of uniform_like
/// Source    Srivastava et al., JMLR 15 (2014)
template <operand X, detail::random_key K>
constexpr auto dropout(X const& x, double p, K const& key, Dropout const& options = {}) {
  if (!(p >= 0 && p <= 1)) raise("dropout: a probability required");
  using R = std::remove_cvref_t<decltype(x * 1.0)>;
  if constexpr (refused<X, K>) {
    return Refused{};
  } else {
    if (!options.training || p == 0) return static_cast<R>(x);
    return detail::dropped(x, detail::drawn<"dropout">(x, key, options.stream), p);
  }
}

/// multinomial<N>(weights, key, replacement), multinomial(weights, n, key, replacement) - n places of the last axis,
/// each with a probability in proportion to its weight; no place twice, unless with replacement. Weights need not
/// add up to 1; those of 0 are chosen only after all others.
///
/// Shapes    weights: [B..., C] -> [B..., N], i64
/// Dtypes    weights: floating; computed in f64
/// Errors    "multinomial: 4 choices wanted, of [2, 3]"; of weights in memory "multinomial: weights that are finite and
///           not negative required"
/// Source    PyTorch's multinomial; without replacement Efraimidis and Spirakis 2006
template <index_t N, bool Replacement = false, operand X, detail::random_key K>
constexpr auto multinomial(X const& weights, K const& key) {
  detail::require_weights(weights);
  return detail::call(detail::Fixed<detail::Multinomial{N, Replacement}>{}, weights,
                      detail::key_beside("multinomial", weights, key));
}
template <operand X, detail::random_key K>
constexpr auto multinomial(X const& weights, index_t n, K const& key, bool replacement = false) {
  detail::require_weights(weights);
  return detail::call(detail::Multinomial{n, replacement}, weights,
                      detail::key_beside("multinomial", weights, key));
}

/// normal(shape, key, mean, deviation), normal<T, Dims...>(key, mean, deviation) - independent draws from a normal
/// distribution: those of randn, scaled, moved.
///
/// Math      mean + deviation z, z from randn
/// Shapes    -> [S...], as given
/// Dtypes    floating; f32, unless another is named
/// Errors    "normal: a deviation that is not negative required"
/// Source    PyTorch's normal
template <int Lazy = 0>
Array normal(Extents const& shape, Key key, double mean = 0, double deviation = 1, DType dtype = DType::f32) {
  if (!(deviation >= 0)) raise("normal: a deviation that is not negative required");
  return detail::lazy<Lazy>(detail::normal_array("normal", shape.shape, dtype, key)) * deviation + mean;
}
template <class T, std::size_t... Dims>
auto normal(Key key, double mean = 0, double deviation = 1,
            Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "normal", shape, [&](Shape const& s, DType d) { return normal(s, key, mean, deviation, d); });
}

/// exponential(shape, key, rate), exponential<T, Dims...>(key, rate) - independent draws from the exponential
/// distribution; gumbel(shape, key), gumbel<T, Dims...>(key) - from the standard Gumbel distribution.
///
/// Math      -log(1 - u) / rate; -log(-log u), u from uniform
/// Shapes    -> [S...], as given
/// Dtypes    floating; f32, unless another is named
/// Errors    "exponential: a positive rate required"
/// Source    elementary
inline Array exponential(Extents const& shape, Key key, double rate = 1, DType dtype = DType::f32) {
  detail::require_floating("exponential", dtype);
  if (!(rate > 0)) raise("exponential: a positive rate required");
  return detail::generate_as("exponential", shape.shape, dtype, [=](index_t i) {
    return -constant_math::log1p(-uniform_at(key, static_cast<std::uint64_t>(i))) / rate;
  });
}
template <class T, std::size_t... Dims>
auto exponential(Key key, double rate = 1, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "exponential", shape, [&](Shape const& s, DType d) { return exponential(s, key, rate, d); });
}
inline Array gumbel(Extents const& shape, Key key, DType dtype = DType::f32) {
  detail::require_floating("gumbel", dtype);
  return detail::generate_as("gumbel", shape.shape, dtype, [=](index_t i) {
    double const u = uniform_at(key, static_cast<std::uint64_t>(i)) + 0x1p-54;
    return -constant_math::log(-constant_math::log(u));
  });
}
template <class T, std::size_t... Dims>
auto gumbel(Key key, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "gumbel", shape, [&](Shape const& s, DType d) { return gumbel(s, key, d); });
}

}  // namespace dfdx
