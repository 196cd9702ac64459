// SPDX-License-Identifier: BSL-1.0
// Attention and positions against plain loops, of Tensors against Arrays, compiled, and at bad inputs.
#include "ops/compiled.hpp"

#include <dfdx/testing/gradcheck.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/one_hot.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>

namespace tests::vocabulary_attention {

using namespace dfdx;
using Catch::Matchers::Message;

namespace {

double at(Array const& x, std::initializer_list<index_t> index) {
  Array const dense = dfdx::detail::packed(x);
  index_t flat = 0;
  int axis = 0;
  for (index_t i : index) flat = flat * x.shape()[axis++] + i;
  return read_real(dense.operand(), flat);
}
bool same(Array const& got, Array const& want, double tolerance = 1e-12) {
  return got.shape() == want.shape() && got.dtype() == want.dtype() &&
         testing::error_ratio(got, want, tolerance, tolerance) <= 1;
}

constexpr index_t batch = 2, heads = 6, kv_heads = 2, queries = 3, keys = 5, size = 4, width = 3;
Array const q = randn({batch, heads, queries, size}, Key{1}, DType::f64);
Array const k = randn({batch, kv_heads, keys, size}, Key{2}, DType::f64);
Array const v = randn({batch, kv_heads, keys, width}, Key{3}, DType::f64);

// By the definition; bias(b, h, i, j) is added, minus infinity hides.
template <class Bias>
Array reference(double scale, Bias bias) {
  Array y(Meta{DType::f64, make_shape(batch, heads, queries, width)});
  index_t to = 0;
  for (index_t b = 0; b < batch; ++b)
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < queries; ++i) {
        double weight[keys], total = 0;
        index_t const g = h / (heads / kv_heads);
        for (index_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (index_t d = 0; d < size; ++d) dot += at(q, {b, h, i, d}) * at(k, {b, g, j, d});
          total += weight[j] = std::exp(dot * scale + bias(b, h, i, j));
        }
        for (index_t e = 0; e < width; ++e) {
          double r = 0;
          for (index_t j = 0; j < keys; ++j) r += total == 0 ? 0 : weight[j] / total * at(v, {b, g, j, e});
          y.data<double>()[to++] = r;
        }
      }
  return y;
}
constexpr auto none = [](index_t, index_t, index_t, index_t) { return 0.0; };
double const hidden = -std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("attention with options and shared heads", "[vocabulary]") {
  CHECK(same(scaled_dot_product_attention(q, k, v), reference(0.5, none)));
  CHECK(same(scaled_dot_product_attention(q, k, v, {.scale = 0.3}), reference(0.3, none)));
  for (index_t offset : {0, 1, 2})
    CHECK(same(scaled_dot_product_attention(q, k, v, {.causal = true, .offset = offset}),
               reference(0.5, [&](index_t, index_t, index_t i, index_t j) {
                 return j <= i + offset ? 0 : hidden;
               })));
  // Slopes of six heads: 1/4, 1/16, 1/64, 1/256, then 1/2 and 1/8.
  double const slopes[] = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  CHECK(same(scaled_dot_product_attention(q, k, v, {.alibi = true, .offset = 2}),
             reference(0.5, [&](index_t, index_t h, index_t i, index_t j) {
               return slopes[h] * static_cast<double>(j - i - 2);
             })));
  Array const four = alibi_bias(zeros({4, 2, 3}, DType::f64));
  for (index_t h = 0; h < 4; ++h)
    CHECK(std::fabs(at(four, {h, 1, 0}) + std::pow(2.0, -2.0 * static_cast<double>(h + 1))) < 1e-15);
}

TEST_CASE("attention with masks", "[vocabulary]") {
  Array const truths = randint({batch, 1, queries, keys}, Key{5}, 0, 2, DType::boolean);
  CHECK(same(scaled_dot_product_attention(q, k, v, truths),
             reference(0.5, [&](index_t b, index_t, index_t i, index_t j) {
               return at(truths, {b, 0, i, j}) != 0 ? 0 : hidden;
             })));
  Array const bias = randn({queries, keys}, Key{6}, DType::f64);
  CHECK(same(scaled_dot_product_attention(q, k, v, bias, {.causal = true}),
             reference(0.5, [&](index_t, index_t, index_t i, index_t j) {
               return j <= i ? at(bias, {i, j}) : hidden;
             })));
  // No keys at all: 0, with gradients of 0.
  Array x = q.detach();
  x.requires_grad(true);
  Array const nothing = scaled_dot_product_attention(x, k, v, zeros({keys}, DType::boolean));
  CHECK(same(nothing.detach(), zeros(nothing.shape(), DType::f64), 0));
  sum(nothing).backward();
  CHECK(same(x.grad(), zeros(q.shape(), DType::f64), 0));
  CHECK(same(scaled_dot_product_attention(q, k, v, {.causal = true, .offset = -queries}),
             zeros({batch, heads, queries, width}, DType::f64), 0));
}

TEST_CASE("attention of 16 bits, without batches, and of nothing", "[vocabulary]") {
  Array const h =
      scaled_dot_product_attention(cast<float16>(q * 100.0), cast<float16>(k * 100.0), cast<float16>(v));
  CHECK(h.dtype() == DType::f16);
  CHECK(isfinite(sum(cast<float>(h))).item<bool>());
  Array const one = scaled_dot_product_attention(select(select(q, 0, 1), 0, 5), select(select(k, 0, 1), 0, 1),
                                                 select(select(v, 0, 1), 0, 1));
  CHECK(same(one, select(select(reference(0.5, none), 0, 1), 0, 5)));
  CHECK(scaled_dot_product_attention(zeros({2, 0, 4}), zeros({2, 3, 4}), zeros({2, 3, 5})).shape() ==
        make_shape(2, 0, 5));
  CHECK(same(scaled_dot_product_attention(ones({2, 1, 4}), zeros({2, 0, 4}), zeros({2, 0, 3}), zeros({1, 0})),
             zeros({2, 1, 3}), 0));
}

namespace {

constexpr auto plain = [](auto const& x, auto const& y, auto const& z) {
  return scaled_dot_product_attention(x, y, z);
};
constexpr auto causal = [](auto const& x, auto const& y, auto const& z) {
  return scaled_dot_product_attention(x, y, z, {.causal = true});
};
constexpr auto total = [](auto const& x, auto const& y, auto const& z) { return sum(plain(x, y, z)); };

// With extents of 0: what the formula gives, called and compiled, where other sizes would go by blocks.
template <std::size_t T, std::size_t S, std::size_t D, std::size_t E>
void check_of_nothing() {
  INFO(T << " " << S << " " << D << " " << E);
  auto const a = randn<float, 2, T, D>(Key{1});
  auto const b = randn<float, 2, S, D>(Key{2});
  auto const c = randn<float, 2, S, E>(Key{3});
  auto const want = [&] {
    if constexpr (S == 0) return zeros<float, 2, T, E>();
    else return Array(expand<2, T, E>(mean<1>(c, keepdim)));
  }();
  CHECK(allclose(Array(plain(a, b, c)), want, 1e-5, 1e-6));
  CHECK(allclose(Array(compile(plain)(a, b, c)), want, 1e-5, 1e-6));
  CHECK(allclose(compile(causal)(a, b, c), causal(a, b, c), 1e-5, 1e-6));
  auto const [da, db, dc] = grad(total, wrt<0, 1, 2>)(a, b, c);
  CHECK(array_equal(da, zeros_like(a)));
  CHECK(array_equal(db, zeros_like(b)));
  CHECK(allclose(dc, full_like(c, static_cast<double>(T) / (S == 0 ? 1 : S)), 1e-5, 1e-6));
}

}  // namespace

TEST_CASE("attention of no keys, no queries and no elements", "[vocabulary]") {
  check_of_nothing<3, 0, 4, 2>();
  check_of_nothing<0, 3, 4, 2>();
  check_of_nothing<64, 64, 0, 2>();
  check_of_nothing<64, 64, 4, 0>();
  check_of_nothing<0, 0, 0, 0>();
  auto const by_blocks = [](Array const& a, Array const& b, Array const& c) {
    return bind<op::attend>(op::AttentionOptions{}.attrs(), a, b, c);
  };
  Array const some = ones({2, 3, 4});
  CHECK_THROWS_MATCHES(by_blocks(some, zeros({2, 0, 4}), zeros({2, 0, 4})), error,
                       Message("attend: no numbers in [2, 0, 4]"));
  CHECK_THROWS_MATCHES(by_blocks(zeros({2, 3, 0}), zeros({2, 3, 0}), some), error,
                       Message("attend: no numbers in [2, 3, 0]"));
  CHECK_THROWS_MATCHES(by_blocks(some, some, zeros({2, 3, 0})), error,
                       Message("attend: no numbers in [2, 3, 0]"));
}

TEST_CASE("attention with dropout", "[vocabulary]") {
  // One value per key: what comes out are the weights, some of them dropped.
  constexpr index_t n = 200;
  Array const x = zeros({1, n, 2}, DType::f64), values = reshape(eye(n, DType::f64), {1, n, n});
  Array const weights = scaled_dot_product_attention(x, x, values, no_mask, Key{1}, {.dropout = 0.25});
  Array const kept = cast<double>(weights != 0);
  CHECK(same(weights, kept * (1 / (0.75 * n))));
  CHECK(std::fabs(mean(kept).item<double>() - 0.75) < 4 * std::sqrt(0.1875 / (n * n)));
  CHECK(same(scaled_dot_product_attention(x, x, values, no_mask, Key{1}, {.dropout = 0.25}), weights));
  CHECK(!same(scaled_dot_product_attention(x, x, values, no_mask, Key{1}, {.dropout = 0.25, .stream = 1}),
              weights));
  CHECK(same(scaled_dot_product_attention(x, x, values, no_mask, Key{1}, {}),
             scaled_dot_product_attention(x, x, values)));
  Array const bias = randn({n, n}, Key{2}, DType::f64);
  CHECK(same(scaled_dot_product_attention(x, x, values, bias, Key{1}, {.dropout = 0.25}),
             scaled_dot_product_attention(x, x, values, bias) * kept / 0.75));
}

TEST_CASE("gradients of attention and rope", "[vocabulary]") {
  auto const good = [](auto const& f, std::vector<Array> const& in) {
    auto const report = testing::gradcheck(f, in);
    INFO(report.text);
    CHECK(report.ok);
  };
  using V = std::span<Array const>;
  Array const bias = randn({queries, keys}, Key{6}, DType::f64);
  good(
      [](V x) {
        return scaled_dot_product_attention(x[0], x[1], x[2], x[3], {.causal = true, .alibi = true});
      },
      {q, k, v, bias});
  for (bool interleaved : {false, true})
    good([=](V x) { return rope(x[0], {.offset = 3, .interleaved = interleaved, .dims = 2}); }, {q});
}

TEST_CASE("rope by the definition", "[vocabulary]") {
  Array const x = randn({2, 3, 6}, Key{7}, DType::f64);
  Llama3 const stretch{
      .factor = 8, .low_frequency_factor = 1, .high_frequency_factor = 4, .original_context = 64};
  for (bool interleaved : {false, true})
    for (bool stretched : {false, true})
      for (index_t dims : {0, 4, 6}) {
        Rope o{.base = 100, .offset = 11, .interleaved = interleaved, .dims = dims};
        if (stretched) o.llama3 = stretch;
        Array const y = rope(x, o);
        index_t const n = dims == 0 ? 6 : dims;
        for (index_t b = 0; b < 2; ++b)
          for (index_t t = 0; t < 3; ++t) {
            for (index_t i = 0; i < n / 2; ++i) {
              double f = std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(n));
              double const wave = 2 * 3.14159265358979323846 / f;
              if (stretched) {
                double const s = (64 / wave - 1) / 3;
                f = wave > 64 ? f / 8 : wave < 16 ? f : (1 - s) * f / 8 + s * f;
              }
              double const angle = static_cast<double>(t + 11) * f;
              index_t const first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + n / 2;
              double const c = std::cos(angle), s = std::sin(angle);
              double const p = at(x, {b, t, first}), r = at(x, {b, t, second});
              CHECK(std::fabs(at(y, {b, t, first}) - (p * c - r * s)) < 1e-12);
              CHECK(std::fabs(at(y, {b, t, second}) - (p * s + r * c)) < 1e-12);
            }
            for (index_t i = n; i < 6; ++i) CHECK(at(y, {b, t, i}) == at(x, {b, t, i}));
          }
      }
  Array const places = reshape(from<std::int64_t>({11, 12, 13, 0, 1, 2}), {2, 3});
  Array const placed = rope(x, places, {.base = 100});
  CHECK(same(slice(placed, 0, 0, 1), slice(rope(x, {.base = 100, .offset = 11}), 0, 0, 1)));
  CHECK(same(slice(placed, 0, 1, 2), slice(rope(x, {.base = 100}), 0, 1, 2)));
  // Late positions are as exact in f32 as the rotation.
  Array const late = rope(cast<float>(x), {.offset = 1000000});
  CHECK(testing::error_ratio(late, rope(x, {.offset = 1000000}), 1e-5, 1e-6) <= 1);
}

TEST_CASE("compiled attention", "[vocabulary]") {
  compiled::check_vjp(
      [](auto const& a, auto const& b, auto const& c, auto const& mask) {
        return std::tuple(scaled_dot_product_attention(a, b, c, {.causal = true, .offset = 2}),
                          scaled_dot_product_attention(rope(a), rope(b, {.interleaved = true}), c, mask));
      },
      randn<float, 2, 4, 3, 6>(Key{1}), randn<float, 2, 2, 5, 6>(Key{2}), randn<float, 2, 2, 5, 3>(Key{3}),
      randn<float, 3, 5>(Key{4}));
  compiled::check(
      [](auto const& a, auto const& b, auto const& c, auto const& mask, auto const& places, auto const& key) {
        return std::tuple(scaled_dot_product_attention(a, b, c, mask, key, {.dropout = 0.3}),
                          scaled_dot_product_attention(a, b, c, mask, {.alibi = true}),
                          rope(a, places, {.dims = 4, .llama3 = {.factor = 8, .original_context = 4}}));
      },
      randn<double, 2, 4, 3, 6>(Key{1}), randn<double, 2, 4, 5, 6>(Key{2}), randn<double, 2, 4, 5, 3>(Key{3}),
      randint<bool, 4, 1, 5>(Key{4}, 0, 2), randint<std::int32_t, 2, 1, 3>(Key{5}, 0, 9),
      Tensor<std::int64_t>(4));
}

TEST_CASE("attention and rope refuse what does not fit", "[vocabulary]") {
  auto const says = [](auto const& f, char const* text) { CHECK_THROWS_MATCHES(f(), error, Message(text)); };
  Array const a = zeros({2, 4, 8, 8}), b = zeros({2, 3, 6, 8}), c = zeros({2, 4, 6, 8});
  says([&] { return scaled_dot_product_attention(a, b, b); },
       "scaled_dot_product_attention: [2, 4, 8, 8], [2, 3, 6, 8] and [2, 3, 6, 8] do not fit");
  says([&] { return scaled_dot_product_attention(a, c, zeros({2, 4, 7, 8})); },
       "scaled_dot_product_attention: [2, 4, 8, 8], [2, 4, 6, 8] and [2, 4, 7, 8] do not fit");
  says([&] { return scaled_dot_product_attention(a, c, c, zeros({8, 8})); },
       "scaled_dot_product_attention: mask [8, 8] does not fit scores [2, 4, 8, 6]");
  says([&] { return scaled_dot_product_attention(a, c, c, zeros({8, 6}, DType::i32)); },
       "scaled_dot_product_attention: mask of truths or floating numbers required, got i32");
  says([&] { return scaled_dot_product_attention(a, cast<double>(c), c); },
       "scaled_dot_product_attention: one floating dtype required, got f32, f64 and f32");
  says([&] { return rope(zeros({2, 5})); }, "rope: an even number of the elements of [2, 5] required, got 5");
  says([&] { return rope(zeros<float, 2, 6>(), {.dims = 3}); },
       "rope: an even number of the elements of [2, 6] required, got 3");
  says([&] { return rope(zeros({2, 6}), {.dims = 8}); },
       "rope: an even number of the elements of [2, 6] required, got 8");
  says([&] { return rope(zeros({2, 6}), zeros({3}, DType::i64)); },
       "rope: positions i64 [3] do not fit [2, 6]");
  says([&] { return scaled_dot_product_attention(a, c, c, {.dropout = 0.1}); },
       "scaled_dot_product_attention: dropout needs a key");
  says([&] { return scaled_dot_product_attention(a, c, c, no_mask, Key{1}, {.dropout = 2}); },
       "scaled_dot_product_attention: dropout with a probability required");
  says([&] { return alibi_bias(zeros({2, 6})); }, "alibi: scores of heads required, got [2, 6]");
}

using Heads = Tensor<float, 1, 2, 70, 16>;
constexpr auto look_back = [](Heads const& q, Heads const& k, Heads const& v) {
  return scaled_dot_product_attention(q, k, v, {.causal = true});
};

TEST_CASE("attention to one key alone, where scores are large", "[attention]") {
  for (double size : {1e4, 1e9, 1e17}) {
    auto const q = Heads(randn<float, 1, 2, 70, 16>(Key{1}) * static_cast<float>(size));
    auto const k = Heads(randn<float, 1, 2, 70, 16>(Key{2})), v = Heads(randn<float, 1, 2, 70, 16>(Key{3}));
    auto const y = compile(look_back)(q, k, v);
    auto const [dq, dk, dv] =
        grad([](auto const&... x) { return sum(look_back(x...)); }, Wrt<0, 1, 2>{})(q, k, v);
    Array const scores = matmul(cast<double>(q), transpose(cast<double>(k)));
    Array const seen = tril(ones({70, 70})) != 0.0;
    Array const best = argmax(where(seen, scores, -INFINITY), -1);
    CHECK(allclose(y, gather(Array(v), 2, expand(unsqueeze(best, -1), y.shape())), 1e-4, 1e-4));
    CHECK(all(isfinite(dq)).item());
    CHECK(all(isfinite(dk)).item());
    Array const looked = sum(cast<float>(one_hot(best, 70)), 2);  // how many queries look at each key
    CHECK(allclose(dv, expand(unsqueeze(looked, -1), dv.shape()), 1e-3, 1e-2));
  }
}

}  // namespace tests::vocabulary_attention
