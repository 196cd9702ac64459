// SPDX-License-Identifier: BSL-1.0
// What positions of a Llama see, for models whose sizes the compiler knows: rotary angles, and attention to each other
// and to what a cache holds.
#pragma once

#include <dfdx/models/llama_config.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/composite.hpp>
#include <dfdx/vocabulary/index.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx::models::detail {

/// Positions along an axis, as floating numbers that broadcast beside x.
template <int Axis, index_t N, operand X>
constexpr auto places(X const& x) {
  return positions<Axis, N>(cast<float>(x));
}

/// The places of tokens [B..., N] that are the first: [N].
template <index_t N, operand I>
constexpr auto places_of(I const& tokens) {
  return reshape<N>(places<-1, N>(tokens));
}

/// Cosines and sines of the turns at given places, [T]: [T, D / 2] each, rounded as Angles has them.
template <class X>
struct TypedAngles {
  X cos, sin;
};
template <LlamaSizes S, element T, operand P>
constexpr auto llama_angles(P const& places) {
  using Kind = RopeFrequencies::Kind;
  static_assert(S.rope.kind != Kind::dynamic && S.rope.kind != Kind::yarn && S.rope.kind != Kind::longrope,
                "llama: rotary embeddings of this kind need a model of the running program's sizes");
  constexpr RopeFrequencies r = S.rope;
  auto const column = unsqueeze<-1>(places);
  auto const pair = positions<-1, S.head_size / 2>(cast<double>(column));
  auto const plain = exp(pair * (-2 * constant_math::log(r.base) / static_cast<double>(S.head_size)));
  auto const turns = [&] {
    if constexpr (r.kind == Kind::linear) return plain / r.factor;
    else if constexpr (r.kind == Kind::llama3) {
      // 1 for frequencies that turn often in the original context, 0 for the slow ones, which are divided.
      auto const often = plain * (r.original_context / (2 * constant_math::pi));
      auto const kept = clip((often - r.low_factor) / (r.high_factor - r.low_factor), 0.0, 1.0);
      return plain * (kept * (1 - 1 / r.factor) + 1 / r.factor);
    } else {
      return plain;
    }
  }();
  auto const angle = cast<double>(cast<float>(column) * cast<float>(turns));
  auto const c = cast<T>(cast<float>(cos(angle)));
  return TypedAngles<std::remove_const_t<decltype(c)>>{c, cast<T>(cast<float>(sin(angle)))};
}
template <operand X, class A>
constexpr auto rotate(X const& x, TypedAngles<A> const& by) {
  constexpr index_t half = X::static_shape[X::static_rank - 1] / 2;
  auto const a = slice<-1, 0, half>(x), b = slice<-1, half>(x);
  return concat<-1>(a * by.cos - b * by.sin, b * by.cos + a * by.sin);
}

/// What each position makes of those up to it.
template <index_t Window, operand Q, operand K, operand V>
constexpr auto seen(Q const& q, K const& k, V const& v) {
  constexpr index_t n = Q::static_shape[Q::static_rank - 2];
  if constexpr (Window == 0 || n <= Window) {
    return scaled_dot_product_attention(q, k, v, {.causal = true});
  } else {
    auto const i = places<-2, n>(q);
    auto const j = places<-1, n>(q);
    return scaled_dot_product_attention(q, k, v, logical_and(j <= i, j > i - static_cast<float>(Window)));
  }
}

/// The same for positions that come after `length` others, whose keys and values a cache has.
///
/// Shapes    q: [H, T, D], k, v: [K, T, D], keys, values: [K, C, D], of which the first `length` count -> [H, T, D]
template <index_t Window, operand Q, operand K, operand V, operand C, operand D, operand L>
constexpr auto seen_beside(Q const& q, K const& k, V const& v, C const& keys, D const& values,
                           L const& length) {
  constexpr index_t heads = Q::static_shape[0], n = Q::static_shape[1], size = Q::static_shape[2];
  constexpr index_t shared = K::static_shape[0], group = heads / shared, room = C::static_shape[1];
  auto const rows =
      reshape<shared, group * n, size>(q * (1 / constant_math::sqrt(static_cast<double>(size))));
  auto const scores = [&](auto const& of) { return matmul(rows, swapaxes<-2, -1>(of)); };
  auto const apart = [](auto const& s) { return unflatten<1, group, n>(s); };
  auto const old = apart(scores(keys));
  auto const fresh = apart(scores(k));
  auto const i = places<-2, n>(old);
  auto const back = places<-1, room>(old) - cast<float>(length);  // from the first new position
  auto const among = places<-1, n>(fresh);
  auto const in_sight = [&](auto const& j) {
    if constexpr (Window == 0) return j <= i;
    else return logical_and(j <= i, j > i - static_cast<float>(Window));
  };
  auto const shown = [](auto const& seen, auto const& s) {
    return where(seen, s, full_as(s, -std::numeric_limits<double>::infinity()));
  };
  auto const all =
      concat<-1>(shown(logical_and(back < 0, in_sight(back)), old), shown(in_sight(among), fresh));
  auto const weights = reshape<shared, group * n, room + n>(softmax<-1>(all));
  auto const y = matmul(slice<-1, 0, room>(weights), values) + matmul(slice<-1, room>(weights), v);
  return reshape<heads, n, size>(y);
}

}  // namespace dfdx::models::detail
