// SPDX-License-Identifier: BSL-1.0
// Arguments of bind that are fixed: the same results, with less to do at each call.
#include <dfdx/dfdx.hpp>
#include <dfdx/explain.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::program_fixed {

using namespace dfdx;

namespace {

constexpr auto forward = [](auto const& m, auto const& x) { return m(x); };

// Calls of the bound program with other values of x against those of one that is not told what is fixed.
template <class F, class Model, class X>
void check(F, Model const& model, X x, double tolerance) {
  auto tied = compile(F{}).bind(fixed(model), x);
  auto loose = compile(F{}).bind(model, x);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    x.copy_(uniform(x.shape(), Key{seed}, -1, 1, x.dtype()));
    CHECK(allclose(tied(), loose(), tolerance, tolerance));
  }
}

template <class F, class... A>
using program_of = typename Compiled<std::remove_cv_t<F>>::template program_for<A...>;

// A layer whose weights are scaled by rows and whose bias is a sum.
struct Folded {
  Tensor<float, 20, 6> weight;
  Tensor<float, 20, 1> scale;
  Tensor<float, 20> bias, more;
  DFDX_FIELDS(weight, scale, bias, more)
  constexpr auto operator()(auto const& x) const {
    return matmul(x, transpose(weight * exp(scale))) + (bias + softplus(more));
  }
};
Folded some_folded() {
  return {uniform<float, 20, 6>(Key{1}, -1, 1), uniform<float, 20, 1>(Key{2}, -1, 1),
          uniform<float, 20>(Key{3}, -1, 1), uniform<float, 20>(Key{4}, -1, 1)};
}

}  // namespace

TEST_CASE("products of one row with a fixed matrix", "[program]") {
  // One that is laid out by columns is an input of its own; of few columns, or for several rows, none is.
  constexpr auto more = []<class M, class X>(M const&, X const&) {
    return program_of<decltype(forward), FixedArgument<M>, X>::inputs -
           program_of<decltype(forward), M, X>::inputs;
  };
  static_assert(more(nn::Linear<16, 16>{}, Tensor<float, 16>{}) == 1);
  static_assert(more(nn::Linear<40, 3>{}, Tensor<float, 40>{}) == 0);
  static_assert(more(nn::Linear<6, 8>{}, Tensor<float, 3, 6>{}) == 0);
  check(forward, init<nn::Linear<16, 16>>(1), zeros<float, 16>(), 1e-6);
  check(forward, init<nn::Linear<7, 5>>(1), zeros<float, 1, 7>(), 1e-6);
  check(forward, init<nn::Linear<3, 100>>(1), zeros<float, 3>(), 1e-6);       // lanes and a rest
  check(forward, init<nn::Linear<33, 331>>(1), zeros<float, 1, 33>(), 1e-6);  // panels of them
  check(forward, init<nn::Linear<40, 3>>(1), zeros<float, 40>(), 1e-6);       // few columns: stays as it lies
  check(forward, init<nn::Linear<9, 21, true, double>>(1), zeros<double, 9>(), 1e-14);
  check(forward, init<nn::Linear<6, 8>>(1), zeros<float, 3, 6>(), 1e-6);  // several rows
}

TEST_CASE("what depends on fixed values alone is computed once", "[program]") {
  using Loose = program_of<decltype(forward), Folded, Tensor<float, 6>>;
  using Tied = program_of<decltype(forward), FixedArgument<Folded>, Tensor<float, 6>>;
  static_assert(Loose::kernels > 1 && Tied::kernels == 1);
  check(forward, some_folded(), zeros<float, 6>(), 1e-5);
  check(forward, some_folded(), zeros<float, 4, 6>(), 1e-5);
  std::string const text = explain(compile(forward), fixed(some_folded()), zeros<float, 6>());
  INFO(text);
  CHECK(text.find("kept") != text.npos);
  CHECK(text.find("exp") == text.npos);
}

TEST_CASE("outputs, inputs and sizes of all kinds beside fixed values", "[program]") {
  // Nothing worth keeping, a result of fixed values alone, one that is an input, and a value larger than its source.
  constexpr auto all = [](auto const& m, auto const& x) {
    return std::tuple(x + m.bias, exp(m.bias), m.more, x * sum(m.bias), expand<3, 20>(m.bias * m.more) + x);
  };
  auto const m = some_folded();
  auto x = uniform<float, 20>(Key{9}, -1, 1);
  auto run = compile(all).bind(fixed(m), x);
  x.copy_(uniform<float, 20>(Key{10}, -1, 1));
  auto const& [a, b, c, d, e] = run();
  CHECK(allclose(a, Array(x) + m.bias));
  CHECK(allclose(b, exp(Array(m.bias)), 1e-6, 1e-6));
  CHECK(array_equal(c, m.more));
  CHECK(allclose(d, Array(x) * sum(Array(m.bias)), 1e-6, 1e-6));
  CHECK(allclose(e, Array(m.bias) * m.more + Array(x), 1e-6, 1e-6));

  // A number of rows that only the call knows.
  Tensor<float, dyn, 6> const rows(uniform({5, 6}, Key{11}, -1, 1));
  auto by_rows = compile(forward).bind(fixed(m), rows);
  CHECK(allclose(by_rows(), m(Array(rows)), 1e-5, 1e-5));

  // A number; and what its measurement reads.
  constexpr auto scaled = [](auto const& f, auto const& v) { return exp(f) * v; };
  auto by_two = compile(scaled).bind(fixed(2.0f), x);
  CHECK(allclose(by_two(), Array(x) * std::exp(2.0), 1e-6, 1e-6));
  CHECK(profile(compile(scaled), fixed(m.bias), x).kernels.size() == 1);

  // All arguments fixed; two that are, around one that is not.
  constexpr auto between = [](auto const& p, auto const& v, auto const& q) { return exp(p) * v + log1p(q); };
  auto const p = uniform<float, 20>(Key{12}), q = uniform<float, 20>(Key{13});
  auto among = compile(between).bind(fixed(p), x, fixed(q));
  CHECK(allclose(among(), exp(Array(p)) * x + log1p(Array(q)), 1e-6, 1e-6));
  auto none = compile(between).bind(fixed(p), fixed(x), fixed(q));
  CHECK(allclose(none(), among(), 1e-6, 1e-6));
}

TEST_CASE("fixed weights of steps with a state", "[program]") {
  constexpr auto gru = [](auto const& h, auto const& m, auto const& x) {
    auto const next = gru_cell(x, h, m.weight_ih_l0, m.weight_hh_l0, m.bias_ih_l0, m.bias_hh_l0);
    return std::pair(next, next);
  };
  auto const model = init<nn::GRU<5, 12>>(3);
  auto h = zeros<float, 1, 12>(), other = zeros<float, 1, 12>();
  auto x = zeros<float, 1, 5>();
  auto tied = stateful(gru).bind(h, fixed(model), x);
  auto loose = stateful(gru).bind(other, model, x);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    x.copy_(uniform<float, 1, 5>(Key{seed}, -2, 2));
    CHECK(allclose(tied(), loose(), 1e-6, 1e-6));
    CHECK(allclose(h, other, 1e-6, 1e-6));
  }
}

TEST_CASE("fixed weights in loops and in another dtype", "[program]") {
  constexpr auto over_time = [](auto const& m, Tensor<float, 4, 12> const& xs) {
    auto const step = [&](Tensor<float, 12> const& h, Tensor<float, 12> const& x) {
      auto const next = tanh(m(h) + x);
      return std::pair(next, next);
    };
    return scan(step, sum<0>(xs), xs).second;
  };
  check(over_time, init<nn::Linear<12, 12>>(2), zeros<float, 4, 12>(), 1e-6);

  constexpr auto narrow = [](auto const& m, auto const& x) {
    return cast<float>(matmul(cast<bfloat16>(x), transpose(cast<bfloat16>(m.weight))));
  };
  check(narrow, init<nn::Linear<32, 48>>(1), zeros<float, 4, 32>(), 0);
  using Tied = program_of<decltype(narrow), FixedArgument<nn::Linear<32, 48>>, Tensor<float, 4, 32>>;
  using Loose = program_of<decltype(narrow), nn::Linear<32, 48>, Tensor<float, 4, 32>>;
  static_assert(Tied::bytes_moved() < Loose::bytes_moved());
}

}  // namespace tests::program_fixed
