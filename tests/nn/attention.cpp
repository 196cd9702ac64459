// SPDX-License-Identifier: BSL-1.0
// Layers of attention: against the same sums written out, their names, what they draw in training.
#include "support.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::nn_attention {

using namespace dfdx;

namespace {

constexpr std::size_t B = 2, T = 5, S = 7, E = 12;

template <class M>
std::vector<std::string> names(M const& m) {
  std::vector<std::string> r;
  visit_state(m, [&](std::string const& name, auto const&) { r.push_back(name); });
  return r;
}

double difference(Array const& a, Array const& b) { return max(abs(a - b)).item(); }

// Heads by loops, from the definition: row `from` of the weights on for queries, and so on.
Array written_out(Array const& q, Array const& k, Array const& v, Array const& w, Array const& b,
                  Array const& w_out, Array const& b_out, index_t heads, index_t kv, bool causal,
                  bool turned) {
  index_t const e = q.shape()[2], d = e / heads;
  auto const map = [&](Array const& x, index_t begin, index_t rows) {
    return matmul(x, transpose(slice(w, 0, begin, begin + rows), 0, 1)) + slice(b, 0, begin, begin + rows);
  };
  Array const Q = map(q, 0, e), K = map(k, e, kv * d), V = map(v, e + kv * d, kv * d);
  std::vector<Array> out;
  for (index_t h = 0; h < heads; ++h) {
    index_t const g = h / (heads / kv);
    auto head = [&](Array const& x, index_t i) { return slice(x, 2, i * d, (i + 1) * d); };
    Array a = head(Q, h), c = head(K, g);
    if (turned) a = rope(a), c = rope(c);
    Array scores = matmul(a, transpose(c, 1, 2)) * (1 / std::sqrt(static_cast<double>(d)));
    if (causal)
      for (index_t n = 0; n < scores.shape()[0]; ++n)
        for (index_t i = 0; i < scores.shape()[1]; ++i)
          for (index_t j = i + 1; j < scores.shape()[2]; ++j)
            scores.data<double>()[(n * scores.shape()[1] + i) * scores.shape()[2] + j] = -1e300;
    out.push_back(matmul(softmax(scores, -1), head(V, g)));
  }
  return matmul(concat(std::span<Array const>(out), 2), transpose(w_out, 0, 1)) + b_out;
}

}  // namespace

TEST_CASE("attention is what its definition says, and has PyTorch's names", "[nn]") {
  auto const x = randn<double, B, T, E>(Key{1});
  auto const m = randn<double, B, S, E>(Key{2}), n = randn<double, B, S, E>(Key{3});
  auto const check = [&]<std::size_t Heads, nn::Multihead O>(std::integral_constant<std::size_t, Heads>,
                                                             std::integral_constant<nn::Multihead, O>) {
    using Layer = nn::MultiheadAttention<E, Heads, O, true, double>;
    auto layer = init<Layer>(4);
    nn::init::uniform(layer.in_proj_bias, Key{5}, -1, 1);
    nn::init::uniform(layer.out_proj.bias, Key{6}, -1, 1);
    auto const want = [&](auto const& q, auto const& k, auto const& v) {
      return written_out(q, k, v, layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight,
                         layer.out_proj.bias, Heads, Layer::kv_heads, O.causal, O.rope);
    };
    auto const y = layer(x);
    static_assert(std::is_same_v<decltype(y), Tensor<double, B, T, E> const>);
    CHECK(difference(y, want(x, x, x)) < 1e-13);
    CHECK(difference(layer(x, m, n), want(x, m, n)) < 1e-13);
    CHECK(difference(compile([](auto const& l, auto const& v) { return l(v); })(layer, x), y) < 1e-13);
  };
  using std::integral_constant;
  check(integral_constant<std::size_t, 3>{}, integral_constant<nn::Multihead, nn::Multihead{}>{});
  check(integral_constant<std::size_t, 6>{},
        integral_constant<nn::Multihead, nn::Multihead{.kv_heads = 2, .causal = true, .rope = true}>{});

  using Layer = nn::MultiheadAttention<E, 3>;
  CHECK(names(Layer{}) ==
        std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  CHECK(names(nn::MultiheadAttention<E, 3, nn::Multihead{}, false>{}) ==
        std::vector<std::string>{"in_proj_weight", "out_proj.weight"});
  auto const fresh = init<Layer>(1);
  CHECK(max(abs(fresh.in_proj_bias)).item() == 0);
  CHECK(max(abs(fresh.out_proj.bias)).item() == 0);
  double const bound = std::sqrt(6.0 / (4 * E));
  CHECK((max(abs(fresh.in_proj_weight)).item() <= bound &&
         max(abs(fresh.in_proj_weight)).item() > 0.98 * bound));
}

TEST_CASE("masks hide and add", "[nn]") {
  auto const layer = init<nn::MultiheadAttention<E, 3>>(1);
  auto const hiding = init<nn::MultiheadAttention<E, 3, nn::Multihead{.causal = true}>>(1);
  auto const x = randn<float, B, T, E>(Key{2});
  auto const i = unsqueeze<1>(arange<std::int64_t, T>());
  auto const j = unsqueeze<0>(arange<std::int64_t, T>());
  CHECK(difference(layer(x, j <= i), hiding(x)) < 1e-6);
  CHECK(difference(layer(x, where(j <= i, 0.0f, -1e30f)), hiding(x)) < 1e-6);
  CHECK(difference(layer(x, x, x, j <= i), hiding(x)) < 1e-6);
  CHECK(difference(layer(x), hiding(x)) > 1e-2);
}

TEST_CASE("layers of transformers are their parts in order", "[nn]") {
  auto const x = randn<float, B, T, E>(Key{1});
  auto const memory = randn<float, B, S, E>(Key{2});
  using Encoder = nn::TransformerEncoderLayer<E, 3, 20>;
  auto const e = init<Encoder>(3);
  auto const h = e.norm1(x + e.self_attn(x));
  CHECK(difference(e(x), e.norm2(h + e.linear2(relu(e.linear1(h))))) < 1e-6);
  auto const f = init<
      nn::TransformerEncoderLayer<E, 3, 20, nn::Transformer{.norm_first = true, .causal = true}, nn::GELU>>(
      3);
  auto const u = f.norm1(x), g = x + f.self_attn(u);
  CHECK(difference(f(x), g + f.linear2(gelu(f.linear1(f.norm2(g))))) < 1e-6);

  auto const d = init<nn::TransformerDecoderLayer<E, 3, 20>>(4);
  auto const a = d.norm1(x + d.self_attn(x)), b = d.norm2(a + d.multihead_attn(a, memory, memory));
  CHECK(difference(d(x, memory), d.norm3(b + d.linear2(relu(d.linear1(b))))) < 1e-6);

  CHECK(names(e) == std::vector<std::string>{
                        "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                        "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight",
                        "linear2.bias", "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"});
  CHECK(names(d).size() == 18);
}

TEST_CASE("training drops by a key, evaluation does not", "[nn]") {
  using Layer = nn::TransformerEncoderLayer<E, 3, 20, nn::Transformer{.dropout = 0.5}>;
  auto const layer = init<Layer>(3);
  auto const x = randn<float, B, T, E>(Key{1});
  CHECK(array_equal(layer.train(x, Key{1}), layer.train(x, Key{1})));
  CHECK(difference(layer.train(x, Key{1}), layer.train(x, Key{2})) > 0.1);
  CHECK(difference(layer.train(x, Key{1}), layer(x)) > 0.1);
  using Kept = nn::TransformerEncoderLayer<E, 3, 20, nn::Transformer{.dropout = 0}>;
  auto const kept = init<Kept>(3);
  CHECK(difference(kept.train(x, Key{1}), layer(x)) < 1e-6);

  // In programs the key is a number; eagerly the same number draws the same.
  auto const run = compile([](auto const& l, auto const& v, auto const& key) { return l.train(v, key); });
  Tensor<std::int64_t> const one(1), two(2);
  CHECK(difference(run(layer, x, one), layer.train(x, one)) < 1e-6);
  CHECK(difference(run(layer, x, one), run(layer, x, two)) > 0.1);
}

TEST_CASE("layers without biases are those whose biases are 0", "[nn]") {
  auto const x = randn<float, B, T, E>(Key{1});
  auto const memory = randn<float, B, S, E>(Key{2});
  auto const with = init<nn::MultiheadAttention<E, 3>>(1);  // biases begin at 0
  auto without = init<nn::MultiheadAttention<E, 3, nn::Multihead{}, false>>(2);
  without.in_proj_weight = with.in_proj_weight;
  without.out_proj.weight = with.out_proj.weight;
  CHECK(difference(with(x), without(x)) < 1e-6);
  CHECK(difference(with(x, memory, memory), without(x, memory, memory)) < 1e-6);
}

TEST_CASE("masks and options reach the attention they are for", "[nn]") {
  auto const x = randn<float, B, T, E>(Key{1});
  auto const memory = randn<float, B, S, E>(Key{2});
  auto const i = unsqueeze<1>(arange<std::int64_t, T>());
  auto const seen = unsqueeze<0>(arange<std::int64_t, T>()) <= i;
  auto const first = unsqueeze<0>(arange<std::int64_t, S>()) < 3;
  constexpr nn::Transformer still{.dropout = 0}, causal{.causal = true, .dropout = 0};

  auto const e = init<nn::TransformerEncoderLayer<E, 3, 20, still>>(3);
  auto const hiding = init<nn::TransformerEncoderLayer<E, 3, 20, causal>>(3);
  CHECK(difference(e(x, seen), hiding(x)) < 1e-6);
  CHECK(difference(e.train(x, seen, Key{1}), hiding(x)) < 1e-6);
  CHECK(difference(e(x), hiding(x)) > 1e-2);

  auto const d = init<nn::TransformerDecoderLayer<E, 3, 20, still>>(4);
  auto const future = init<nn::TransformerDecoderLayer<E, 3, 20, causal>>(4);
  CHECK(difference(d(x, memory, seen, no_mask), future(x, memory)) < 1e-6);
  CHECK(difference(d(x, memory), future(x, memory)) > 1e-2);
  CHECK(difference(d(x, memory, no_mask, first), d(x, slice<1, 0, 3>(memory))) < 1e-6);
  CHECK(difference(d.train(x, memory, seen, first, Key{1}), future(x, slice<1, 0, 3>(memory))) < 1e-6);
  CHECK(difference(d.train(x, memory, Key{1}), d(x, memory)) < 1e-6);

  // Weights alone are dropped: of one key to look at all or nothing.
  auto const dropping = init<nn::MultiheadAttention<E, E, nn::Multihead{.dropout = 0.5}>>(5);
  auto const one = slice<1, 0, 1>(x);
  CHECK(difference(dropping.train(one, Key{1}), dropping(one)) > 1e-2);
  CHECK(difference(dropping.train(one, one, one, no_mask, Key{1}), dropping.train(one, Key{1})) < 1e-6);
}

}  // namespace tests::nn_attention
