// SPDX-License-Identifier: BSL-1.0
// Random choices: their statistics with fixed keys, their gradients, the same numbers in every regime, and refusals.
#include "ops/compiled.hpp"

#include <dfdx/tape/backward.hpp>
#include <dfdx/vocabulary/random.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>

namespace tests::vocabulary_random {

using namespace dfdx;
using Catch::Matchers::Message;

namespace {

double value(Array const& x) { return read_real(x.operand(), 0); }
bool equal(Array const& a, Array const& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && testing::error_ratio(a, b, 0, 1e-300) <= 1;
}

}  // namespace

TEST_CASE("uniform_like draws what uniform does, streams of a key differ", "[vocabulary]") {
  Array const x = zeros({3, 50}, DType::f64);
  CHECK(equal(uniform_like(x, Key{7}), uniform({3, 50}, Key{7}, 0, 1, DType::f64)));
  CHECK(equal(uniform_like(transpose(x), Key{7}), uniform({50, 3}, Key{7}, 0, 1, DType::f64)));
  CHECK(!equal(uniform_like(x, Key{7}), uniform_like(x, Key{8})));
  CHECK(!equal(uniform_like(x, Key{7}), uniform_like(x, Key{7}, 1)));
  CHECK(uniform_like(zeros({4}, DType::f16), Key{7}).dtype() == DType::f32);
  CHECK(uniform_like(zeros({0, 4}), Key{7}).shape() == make_shape(0, 4));
  Key const large(0xfedcba9876543210ull);
  CHECK(equal(uniform_like(x, large), uniform({3, 50}, large, 0, 1, DType::f64)));
}

TEST_CASE("randn_like has the moments of a normal distribution, streams of a key differ", "[vocabulary]") {
  constexpr index_t n = 40000;
  for (DType d : {DType::f32, DType::f64}) {
    Array const x = randn_like(zeros({n}, d), Key{5});
    CHECK(x.dtype() == d);
    Array const y = cast_to(x, DType::f64), squares = y * y;
    double const bound = 4 / std::sqrt(static_cast<double>(n));
    CHECK(std::fabs(value(mean(y))) < bound);
    CHECK(std::fabs(value(mean(squares)) - 1) < bound * std::sqrt(2.0));
    CHECK(std::fabs(value(mean(squares * y))) < bound * std::sqrt(15.0));
    CHECK(std::fabs(value(mean(squares * squares)) - 3) < bound * std::sqrt(96.0));
    // Unrelated to the numbers of another stream, and of another key.
    for (Array const& other : {randn_like(x, Key{5}, 1), randn_like(x, Key{6})})
      CHECK(std::fabs(value(mean(y * cast_to(other, DType::f64)))) < bound);
    // Two neighbours are made of the same bits: they are unrelated too, and so are their squares.
    auto const product_of_pairs = [](Array const& v) { return mean(prod(reshape(v, {n / 2, 2}), 1)); };
    CHECK(std::fabs(value(product_of_pairs(y))) < bound * std::sqrt(2.0));
    CHECK(std::fabs(value(product_of_pairs(squares)) - 1) < bound * std::sqrt(2.0 * 8));
    CHECK(equal(x, randn({n}, Key{5}, d)));
  }
  CHECK(equal(randn_like(transpose(zeros({3, 5})), Key{5}), randn({5, 3}, Key{5})));
}

TEST_CASE("dropout keeps the mean and its gradient has the same zeros", "[vocabulary]") {
  constexpr index_t n = 40000;
  Array x = full({n}, 3, DType::f64);
  x.requires_grad(true);
  Array const y = dropout(x, 0.2, Key{1});
  Array const kept = cast<double>(y.detach() != 0);
  double const part = value(mean(kept));
  CHECK(std::fabs(part - 0.8) < 4 * std::sqrt(0.16 / n));
  CHECK(equal(y.detach(), kept * 3.75));
  sum(y).backward();
  CHECK(equal(x.grad(), kept * 1.25));
  CHECK(equal(dropout(x.detach(), 0.2, Key{1}), y.detach()));
  CHECK(!equal(dropout(x.detach(), 0.2, Key{2}), y.detach()));
  CHECK(equal(dropout(x.detach(), 0.2, Key{1}, {.training = false}), x.detach()));
  CHECK(equal(dropout(x.detach(), 0, Key{1}), x.detach()));
  CHECK(equal(dropout(x.detach(), 1, Key{1}), zeros({n}, DType::f64)));
  CHECK(dropout(ones({8}, DType::bf16), 0.5, Key{1}).dtype() == DType::bf16);
}

TEST_CASE("normal draws are those of randn, scaled and moved", "[vocabulary]") {
  for (DType d : {DType::f32, DType::f64, DType::f16, DType::bf16})
    CHECK(array_equal(normal({3, 5}, Key{7}, 1.5, 0.25, d), randn({3, 5}, Key{7}, d) * 0.25 + 1.5));
  CHECK(array_equal(normal({4}, Key{7}, 2, 0), full({4}, 2)));
}

TEST_CASE("bernoulli, exponential and gumbel have their moments", "[vocabulary]") {
  constexpr index_t n = 40000;
  double const bound = 4 / std::sqrt(static_cast<double>(n));
  Array const p = concat({full({n}, 0.3), full({n}, 1), full({n}, 0)});
  Array const b = reshape(bernoulli(p, Key{3}), {3, n});
  CHECK(b.dtype() == DType::f32);
  CHECK(std::fabs(value(mean(slice(b, 0, 0, 1))) - 0.3) < bound * std::sqrt(0.21));
  CHECK(value(mean(slice(b, 0, 1, 2))) == 1);
  CHECK(value(mean(slice(b, 0, 2, 3))) == 0);
  Array const e = exponential({n}, Key{4}, 2, DType::f64), g = gumbel({n}, Key{5}, DType::f64);
  CHECK(std::fabs(value(mean(e)) - 0.5) < bound * 0.5);
  CHECK(std::fabs(value(var(e, {0})) - 0.25) < bound * 0.25 * std::sqrt(8.0));
  CHECK(value(min(e)) >= 0);
  CHECK(std::fabs(value(mean(g)) - 0.5772156649) < bound * 1.2825);
  CHECK(std::fabs(value(var(g, {0})) - 1.6449340668) < bound * 1.645 * std::sqrt(4.4));
  // Of a type the same draws.
  CHECK(array_equal(exponential<double, dyn>(Key{4}, 2, {n}), e));
  CHECK(array_equal(gumbel<double, 2, 3>(Key{5}), gumbel({2, 3}, Key{5}, DType::f64)));
  CHECK(array_equal(normal<float, 5>(Key{6}, 1, 0.5), normal({5}, Key{6}, 1, 0.5)));
}

TEST_CASE("multinomial chooses by weight, with and without replacement", "[vocabulary]") {
  constexpr index_t n = 40000;
  Array const w = from<double>({1, 0, 4, 5});
  Array const many = multinomial(w, n, Key{6}, true);
  CHECK(many.shape() == make_shape(n));
  CHECK(many.dtype() == DType::i64);
  double const want[] = {0.1, 0, 0.4, 0.5};
  for (int k = 0; k < 4; ++k) {
    double const part = value(mean(cast<double>(many == k)));
    CHECK(std::fabs(part - want[k]) <= 4 * std::sqrt(want[k] * (1 - want[k]) / n));
  }
  // Two of them without replacement, in many rows: the chance that k comes first is w_k, and that j follows w_j / (1
  // - w_k).
  Array const rows = expand(w, {n, 4});
  Array const two = multinomial(rows, 2, Key{7});
  CHECK(two.shape() == make_shape(n, 2));
  Array const first = slice(two, 1, 0, 1), second = slice(two, 1, 1, 2);
  for (int k = 0; k < 4; ++k) {
    CHECK(std::fabs(value(mean(cast<double>(first == k))) - want[k]) <=
          4 * std::sqrt(want[k] * (1 - want[k]) / n));
    double after = 0;
    for (int j = 0; j < 4; ++j)
      if (j != k) after += want[j] * want[k] / (1 - want[j]);
    CHECK(std::fabs(value(mean(cast<double>(second == k))) - after) <=
          4 * std::sqrt(after * (1 - after) / n));
  }
  CHECK(value(sum(cast<double>(first == second))) == 0);
  // All of them: a permutation, with what has no weight at the end.
  Array const all = multinomial(w, 4, Key{8});
  CHECK(value(select(all, 0, 3)) == 1);
  CHECK(value(sum(all)) == 6);
  // A later choice of a row with replacement is independent of the row.
  Array const pairs = multinomial(rows, 2, Key{9}, true);
  double const both = value(mean(cast<double>(slice(pairs, 1, 0, 1) == slice(pairs, 1, 1, 2))));
  CHECK(std::fabs(both - 0.42) < 4 * std::sqrt(0.42 * 0.58 / n));
}

TEST_CASE("compiled programs draw by a key that is an argument, as memory does", "[vocabulary]") {
  constexpr auto f = [](auto const& x, auto const& key) {
    return std::tuple(dropout(tanh(x), 0.4, key), dropout(x, 0.4, key, {.stream = 1}), uniform_like(x, key),
                      bernoulli(sigmoid(x), key), randn_like(x, key));
  };
  auto const x = randn<float, 6, 7>(Key{1});
  compiled::check(f, x, Tensor<std::int64_t>(12));
  compiled::check_vjp(
      [](auto const& v, auto const& key) {
        return std::tuple(dropout(v * v, 0.4, key), dropout(v, 0.5, key));
      },
      randn<double, 6, 7>(Key{1}), Tensor<std::int64_t>(13));
  compiled::check(
      [](auto const& v, auto const& key) {
        auto const p = sigmoid(v);
        return std::tuple(multinomial<3>(p, key), multinomial<5, true>(p, key));
      },
      x, Tensor<std::int64_t>(14));
  // A key given as a Key or as a number draws the same; another key, others.
  CHECK(equal(dropout(x, 0.4, Key{12}), dropout(x, 0.4, Tensor<std::int64_t>(12))));
  auto const program = compile([](auto const& v, auto const& key) { return dropout(v, 0.4, key); });
  CHECK(equal(program(x, Tensor<std::int64_t>(12)), dropout(x, 0.4, Key{12})));
  CHECK(!equal(program(x, Tensor<std::int64_t>(13)), dropout(x, 0.4, Key{12})));
}

TEST_CASE("shapes are drawn by a key that is an argument, too, and keys are made of it", "[vocabulary]") {
  constexpr auto f = [](auto const& key) {
    auto const other = fold_in(key, 1);
    return std::tuple(randn<float, 3, 4>(key), uniform<double, 5>(other), uniform<float, 2, 2>(key, -3, -1),
                      randn<double>(other), other, fold_in(key, 2), randn<float16, 3>(key));
  };
  Tensor<std::int64_t> const key(12);
  compiled::check(f, key);
  auto const [normal, numbers, scaled, one, other, third, narrow] = compile(f)(key);
  CHECK(equal(normal, randn<float, 3, 4>(Key{12})));
  CHECK(equal(numbers, uniform<double, 5>(Key{static_cast<std::uint64_t>(other.item())})));
  CHECK(min(scaled).item() >= -3);
  CHECK(max(scaled).item() < -1);
  CHECK(other.item() != third.item());
  CHECK(other.item() != 12);
}

TEST_CASE("random choices refuse what does not fit", "[vocabulary]") {
  auto const says = [](auto const& f, char const* text) { CHECK_THROWS_MATCHES(f(), error, Message(text)); };
  Array const x = ones({2, 3});
  says([&] { return dropout(x, 1.5, Key{1}); }, "dropout: a probability required");
  says([&] { return dropout(x, 0.5, ones({1}, DType::i64)); },
       "dropout: a key, one number of i64, required, got i64 [1]");
  says([&] { return bernoulli(ones({2}, DType::i32), Key{1}); },
       "bernoulli: floating dtype required, got i32");
  says([&] { return multinomial(x, 4, Key{1}); }, "multinomial: 4 choices wanted, of [2, 3]");
  says([&] { return multinomial(full({}, 1), 1, Key{1}); },
       "multinomial: weights of a known number of choices required, got []");
  says([&] { return bernoulli(full({2}, 1.5), Key{1}); }, "bernoulli: probabilities required");
  says([&] { return multinomial(full({2}, -1), 1, Key{1}); },
       "multinomial: weights that are finite and not negative required");
  says([&] { return multinomial(full({2, 3}, NAN), 1, Key{1}, true); },
       "multinomial: weights that are finite and not negative required");
  says([&] { return multinomial(zeros({3}), 1, Key{1}); }, "multinomial: weights that are all 0, of [3]");
  says([&] { return exponential({2}, Key{1}, -1); }, "exponential: a positive rate required");
  says([&] { return normal({2}, Key{1}, 0, -1); }, "normal: a deviation that is not negative required");
  says([&] { return normal({2}, Key{1}, 0, 1, DType::i64); }, "normal: floating dtype required, got i64");
  says([&] { return gumbel({2}, Key{1}, DType::i64); }, "gumbel: floating dtype required, got i64");
  says(
      [&] {
        Graph g = testing::new_graph();
        return dropout(testing::add_input(g, x.meta()), 0.5, Key{1});
      },
      "dropout: a program would draw the same numbers in every run; pass the key as an argument, a number of "
      "i64");
}

}  // namespace tests::vocabulary_random
