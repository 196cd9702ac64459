// SPDX-License-Identifier: BSL-1.0
// Numbers that a compiled function brings along itself: Tensors written down in it, and values that a model's type
// gives its members.
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include <dfdx/dfdx.hpp>
#include <dfdx/explain.hpp>

#include "support.hpp"

namespace tests::program_literals {

namespace {

using namespace dfdx;

void check_close(Array const& seen, Array const& wanted, double near) {
  INFO(seen << " for " << wanted);
  CHECK(seen.meta() == wanted.meta());
  CHECK(allclose(seen, wanted, near, near));
}

constexpr auto weighted = [](Tensor<float, 4, 3> const& x) {
  Tensor<float, 3> const w{1, 2, 5};
  Tensor<float, 3, 3> const m{{1, 2, 3}, {4, 5, 6}, {7, 8, 10}};
  auto const k = w / sum(w);  // of literals alone
  return matmul(x * k, transpose(m)) + Tensor<float>(2.0f) * eye<float, 4, 3>() - linspace<float, 3>(0, 1);
};
constexpr auto weighted_loss = [](Tensor<float, 4, 3> const& x) { return sum(square(weighted(x))); };

TEST_CASE("literals: Tensors written down in a compiled function", "[literals]") {
  auto const x = randn<float, 4, 3>(Key{1});
  auto run = compile(weighted);
  check_close(run(x), weighted(x), 1e-6);
  check_close(run(x + 1.0f), weighted(x + 1.0f), 1e-6);

  Array const on_tape = Array(x).clone();
  Array leaf = on_tape;
  leaf.requires_grad(true);
  Array const l = weighted_loss(Tensor<float, 4, 3>(leaf));
  l.backward();
  auto [value, slope] = value_and_grad(weighted_loss)(x);
  check_close(value, l.detach(), 1e-5);
  check_close(slope, leaf.grad(), 1e-5);
}

TEST_CASE("literals: every dtype keeps its numbers", "[literals]") {
  constexpr auto all = [](Tensor<float> const&) {
    constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;
    return std::tuple(Tensor<double, 2>{0.1, -1e300}, Tensor<float16, 2>{float16(0.1f), float16(-2.0f)},
                      Tensor<bfloat16, 2>{bfloat16(0.1f), bfloat16(3.0f)}, Tensor<std::int32_t, 2>{-1, 7},
                      Tensor<std::int64_t, 2>{large, -large}, Tensor<std::uint8_t, 2>{255, 1},
                      Tensor<std::int8_t, 2>{-128, 1}, Tensor<bool, 2>{true, false},
                      full<std::int64_t, 2>(large), Tensor<std::int64_t>(large),
                      arange<std::int32_t, 3>(4, -2));
  };
  auto run = compile(all);
  auto const seen = run(Tensor<float>(0.0f)), wanted = all(Tensor<float>(0.0f));
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    bool const equal[] = {array_equal(std::get<I>(seen), std::get<I>(wanted))...};
    for (bool const e : equal) CHECK(e);
  }(std::make_index_sequence<std::tuple_size_v<decltype(wanted)>>{});
}

TEST_CASE("literals: infinities, NaN, zeros with a sign, nothing at all", "[literals]") {
  constexpr auto f = [](Tensor<float, 4> const& x) {
    constexpr float inf = std::numeric_limits<float>::infinity(),
                    nan = std::numeric_limits<float>::quiet_NaN();
    return std::pair(x + Tensor<float, 4>{inf, -inf, nan, -0.0f}, concat<0>(x, zeros<float, 0>()));
  };
  auto const x = full<float, 4>(-0.0f);
  auto const [y, all] = compile(f)(x);
  CHECK(std::isinf(y(0)));
  CHECK((std::isinf(y(1)) && y(1) < 0));
  CHECK(std::isnan(y(2)));
  CHECK(std::signbit(y(3)));
  CHECK(array_equal(all, x));
}

TEST_CASE("literals: all elements alike are a number of the program, equal lists one input", "[literals]") {
  constexpr auto f = [](Tensor<float, 3> const& x) {
    return (x + ones<float, 3>()) * Tensor<float, 3>{2, 2, 2} * Tensor<float, 3>{1, 2, 3} +
           Tensor<float, 3>{1, 2, 3};
  };
  using P = decltype(compile(f))::program_for<Tensor<float, 3>>;
  STATIC_REQUIRE(P::plan.literal_inputs.count == 1);
  STATIC_REQUIRE(P::inputs == 2);
  STATIC_REQUIRE(P::kernels == 1);
  check_close(compile(f)(Tensor<float, 3>{1, 1, 1}), Tensor<float, 3>{5, 10, 15}, 0);
  auto run = compile(f);
  CHECK(explain(run, Tensor<float, 3>{1, 1, 1}).find("literal0") != std::string::npos);
}

TEST_CASE("literals: what functions do with them is what they do with arguments", "[literals]") {
  constexpr auto everything = [](Tensor<float, 4, 3> const& x) {
    auto sum_of_rows = zeros<float, 3>();
    for (int i = 0; i < 4; ++i) sum_of_rows += x[i];
    std::array<Tensor<float, 3>, 2> const pair{Tensor<float, 3>{1, 2, 3}, Tensor<float, 3>{3, 2, 1}};
    Tensor<float, 3> later;
    later = pair[0] * 2.0f;
    auto const [largest, places] = topk<2, 1>(x * pair[0]);
    return std::tuple(sum_of_rows, x * pair[0] + pair[1], x * later, largest, places,
                      stack(x[0], pair[0], ones<float, 3>()),
                      gather<1>(x, Tensor<std::int64_t, 4, 1>{{0}, {2}, {1}, {0}}),
                      where(Tensor<bool, 4>{true, false, true, false}, zeros<float, 4>(), sum<1>(x)),
                      einsum<"ij,j->i">(x, exp(-arange<float, 3>(0.5f))),
                      conv1d(unsqueeze<0>(x), Tensor<float, 1, 4, 2>{{{1, 2}, {3, 4}, {5, 6}, {7, 8}}}),
                      inverse(Tensor<float, 2, 2>{{1, 2}, {3, 4}}) + sum(x));
  };
  auto const x = randn<float, 4, 3>(Key{3});
  auto const seen = compile(everything)(x), wanted = everything(x);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check_close(std::get<I>(seen), std::get<I>(wanted), 1e-5), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(wanted)>>{});
}

// --- models ---
struct Scaled {
  Tensor<double> scale = 1.0;  // parameters that begin with these values
  Tensor<double, 2> shift{1, 2};
  Tensor<double, 2> fixed_part{3, 4};  // not named below: a constant of the type
  DFDX_FIELDS(scale, shift)
  constexpr auto operator()(auto const& x) const { return scale * x * fixed_part + shift; }
};
constexpr auto scaled_loss = [](Scaled const& m, Tensor<double, 2> const& x) { return sum(square(m(x))); };

// What functions choose between as they run: g++ 12 destroys what a conditional expression has made once too often.
constexpr auto chosen = [](Tensor<float, 3, 3> const& x) {
  Tensor<float, 3, 3> const m{{1, 2, 3}, {4, 5, 6}, {7, 8, 10}};
  Tensor<std::int64_t, 3> const labels{0, 2, 1};
  auto const rows = reshape<1, 3, 3>(m);
  auto const heads = reshape<1, 1, 3, 3>(m);
  return std::tuple(
      cross_entropy(x, labels), cross_entropy(m, arange<std::int64_t, 3>()) + sum(x), nll_loss(x, labels),
      tril(ones<float, 3, 3>()) * x, x + clamp(m, 2, 5), x + pad<1, 0>(slice<1, 1, 3>(m)),
      x + normalize<1>(m), x + squeeze<0>(interpolate<InterpolateOptions{.size = 3}>(slice<2, 0, 2>(rows))),
      x + reshape<3, 3>(scaled_dot_product_attention(heads, reshape<1, 1, 3, 3>(x), heads)),
      x + reshape<3, 3>(concat<2>(rope(slice<2, 1, 3>(rows), labels), slice<2, 0, 1>(rows))),
      x + slice<0, 0, 1>(select<2, 1>(unfold<0, 2, 1>(m))),
      x + cond(true, [](auto const& a) { return a * 2.0f; }, [](auto const& a) { return a; }, m));
};

TEST_CASE("literals: where a function chooses between two values", "[literals]") {
  auto const x = randn<float, 3, 3>(Key{6});
  auto const seen = compile(chosen)(x);
  auto const wanted = chosen(x);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check_close(std::get<I>(seen), std::get<I>(wanted), 1e-5), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(seen)>>{});
}

TEST_CASE("literals: values that a type gives its members", "[literals]") {
  Scaled const m;
  Tensor<double, 2> const x{5, 6};
  auto const [value, slope] = value_and_grad(scaled_loss)(m, x);
  CHECK(value.item() == 16 * 16 + 26 * 26);
  CHECK(slope.scale.item() == 2 * 16 * 15 + 2 * 26 * 24);
  check_close(slope.shift, Tensor<double, 2>{32, 52}, 0);
  Scaled other;
  other.scale = Tensor<double>(2.0);
  CHECK(value_and_grad(scaled_loss)(other, x).first.item() == 31 * 31 + 50 * 50);

  Scaled changed;
  changed.fixed_part(1) = 5;
  CHECK(error_of([&] { value_and_grad(scaled_loss)(changed, x); })
            .find("not in DFDX_FIELDS, differs from what its type says, which is what programs see: name it "
                  "there") != std::string::npos);

  Scaled trained;
  auto step = train_step(scaled_loss, optim::SGD{.lr = 1e-4});
  double const first = step(trained, x);
  double last = first;
  for (int i = 0; i < 20; ++i) last = step(trained, x);
  CHECK(first == 16 * 16 + 26 * 26);
  CHECK(last < first);
}

// Objects with static storage are tried in a constant expression first, and then made in memory.
Tensor<double, 2> const at_start{1, 2};
Scaled const scaled_at_start;
TEST_CASE("literals: none outlives its function", "[literals]") {
  static Tensor<double, 2, 2> const when_first_seen{{1, 2}, {3, 4}};
  CHECK(at_start(1) == 2);
  CHECK(scaled_at_start.fixed_part(1) == 4);
  CHECK(when_first_seen(1, 0) == 3);
}

// --- transforms ---
constexpr auto price = [](Tensor<double> const& volatility, Tensor<double> const& spot,
                          Tensor<double> const& k) {
  return spot * exp(-square(volatility)) - k * volatility;
};
TEST_CASE("literals: as arguments of transforms inside of a compiled function", "[literals]") {
  constexpr auto slopes = [](Tensor<double, 3> const& v, Tensor<double, 3> const& k) {
    return vmap(grad(price), in_axes<0, unmapped, 0>)(v, Tensor<double>(100.0), k);
  };
  constexpr auto second = [](Tensor<double> const& v) {
    return hessian(price)(v, 100.0, Tensor<double>(90.0));  // numbers too
  };
  constexpr auto moved = [](Tensor<double, 2> const& x) {
    constexpr auto f = [](Tensor<double, 2> const& u) { return square(u) * Tensor<double, 2>{1, 3}; };
    return jvp(f)(x, Tensor<double, 2>{1, -1});
  };
  Tensor<double, 3> const v{0.1, 0.2, 0.3}, k{90, 100, 110};
  auto const seen = compile(slopes)(v, k);
  for (int i = 0; i < 3; ++i)
    CHECK(std::fabs(seen(i) - (-200 * v(i) * std::exp(-v(i) * v(i)) - k(i))) < 1e-10);
  double const s = 0.3;
  CHECK(std::fabs(compile(second)(Tensor<double>(s)).item() - 100 * std::exp(-s * s) * (4 * s * s - 2)) <
        1e-10);
  auto const [y, t] = compile(moved)(Tensor<double, 2>{2, 3});
  check_close(y, Tensor<double, 2>{4, 27}, 0);
  check_close(t, Tensor<double, 2>{4, -18}, 0);
}

TEST_CASE("literals: functions whose results are literals", "[literals]") {
  constexpr auto none = [](Tensor<double, 2> const& x) {
    return std::pair(x, Tensor<double, 2>{1, 2} * 2.0);
  };
  auto const [x, y] = compile(none)(Tensor<double, 2>{5, 6});
  check_close(x, Tensor<double, 2>{5, 6}, 0);
  check_close(y, Tensor<double, 2>{2, 4}, 0);
  constexpr auto flat = [](Tensor<double, 2> const&) { return Tensor<double>(3.0); };
  auto const [value, slope] = value_and_grad(flat)(Tensor<double, 2>{5, 6});
  CHECK(value.item() == 3);
  check_close(slope, zeros<double, 2>(), 0);
}

// --- loops ---
TEST_CASE("literals: in loops, as their state, as what they go over, in their bodies", "[literals]") {
  constexpr auto from_zero = [](Tensor<double, 5> const& x) {
    return scan(
        [](auto const& sum, auto const& part) { return std::pair(sum + part, sum * Tensor<double>(2.0)); },
        Tensor<double>(0.0), x);
  };
  auto const [last, all] = compile(from_zero)(Tensor<double, 5>{1, 2, 3, 4, 5});
  CHECK(last.item() == 15);
  check_close(all, Tensor<double, 5>{0, 2, 6, 12, 20}, 0);

  // The body alone reads arguments.
  constexpr auto polynomial = [](Tensor<double> const& x) {
    return scan([&](auto const& y, auto const& c) { return y * x + c; }, Tensor<double>(0.0),
                Tensor<double, 4>{2, 0, -1, 5});
  };
  CHECK(compile(polynomial)(Tensor<double>(3.0)).item() == 2 * 27 - 3 + 5);
  CHECK(value_and_grad(polynomial)(Tensor<double>(3.0)).second.item() == 6 * 9 - 1);

  constexpr auto root = [](Tensor<double> const& a) {
    return while_loop<30>([&](auto const& x) { return abs(x * x - a) > 1e-12; },
                          [&](auto const& x) { return 0.5 * (x + a / x); }, Tensor<double>(1.0));
  };
  CHECK(std::fabs(compile(root)(Tensor<double>(2.0)).item() - std::sqrt(2.0)) < 1e-12);

  constexpr auto kept = [](Tensor<double, 2> const& x) {
    return sum(
        checkpoint([](auto const& u, auto const& w) { return exp(u) * w; })(x, Tensor<double, 2>{1, 3}));
  };
  auto const slope = grad(kept)(Tensor<double, 2>{0, 1});
  check_close(slope, Tensor<double, 2>{1, 3 * std::exp(1.0)}, 1e-12);
}

// Their first state is an array of literals, by itself and in a struct.
struct Taps {
  std::array<Tensor<double>, 2> past;
  double gain = 1;  // no field: as init has it
  DFDX_FIELDS(past)
};
constexpr auto delayed = [](Tensor<double, 5> const& x) {
  using Past = std::array<Tensor<double>, 2>;
  auto const bare = [](Past const& s, auto const& v) {
    auto const y = v + 0.5 * s[1];
    return std::pair(Past{y, s[0]}, y);
  };
  auto const in_struct = [](Taps const& s, auto const& v) {
    Taps next = s;
    next.past = {v + 0.5 * s.past[1] * s.gain, s.past[0]};
    return std::pair(next, next.past[0]);
  };
  Taps first{{0.5, 0.25}};
  first.gain = 2;
  auto const [last, kept] = scan(in_struct, first, x);
  return std::tuple(scan(bare, Past{0.5, 0.25}, x).second, kept, last.past[1] * last.gain);
};

TEST_CASE("literals: an array of them as the state of a loop", "[literals]") {
  Tensor<double, 5> const x{1, 2, 3, 4, 5};
  auto const [bare, in_struct, last] = compile(delayed)(x);
  auto const [a, b, c] = delayed(x);
  check_close(bare, a, 1e-12);
  check_close(in_struct, b, 1e-12);
  check_close(last, c, 1e-12);
  CHECK(bare(4) == 5 + 0.5 * (3 + 0.5 * (1 + 0.5 * 0.25)));
  CHECK(in_struct(4) == 5 + 3 + 1 + 0.25);
}

TEST_CASE("literals: beside extents that only a call knows", "[literals]") {
  constexpr auto f = [](Tensor<float, dyn, 3> const& x) {
    return matmul(x * Tensor<float, 3>{1, 2, 3}, Tensor<float, 3, 2>{{1, 0}, {0, 1}, {1, 1}});
  };
  auto run = compile(f);
  for (index_t n : {1, 4, 7}) {
    auto const x = randn<float, dyn, 3>(Key{static_cast<std::uint64_t>(n)}, {n, 3});
    check_close(run(x), f(x), 1e-6);
  }
  constexpr auto same = [](Tensor<float, dyn> const& x) { return x + Tensor<float, 3>{1, 2, 3}; };
  auto add = compile(same);
  check_close(add(Tensor<float, dyn>::from({1.0f, 1.0f, 1.0f})), Tensor<float, 3>{2, 3, 4}, 0);
  CHECK(error_of([&] { add(Tensor<float, dyn>::from({1.0f, 1.0f})); }).find("extents differ") !=
        std::string::npos);
}

TEST_CASE("literals: in bound and stateful programs, what depends on them alone is kept", "[literals]") {
  constexpr auto filter = [](Tensor<float, 3> const& memory, Tensor<float, 3> const& gain,
                             Tensor<float> const& x) {
    Tensor<float, 3, 3> const mix{{0.5f, 0.25f, 0}, {0, 0.5f, 0.25f}, {0.25f, 0, 0.5f}};
    auto const next = matmul(mix, memory) + x * gain * exp(Tensor<float, 3>{0, 1, 2});
    return std::pair(sum(next), next);
  };
  Tensor<float, 3> memory{1, 2, 3};
  Tensor<float, 3> eager = clone(memory);
  Tensor<float, 3> const gain{1, 0.5f, 0.25f};
  Tensor<float> sample = 0.5f;
  auto run = stateful(filter).bind(memory, fixed(gain), sample);
  for (int i = 0; i < 4; ++i) {
    sample.fill_(0.5f + static_cast<float>(i));
    auto const [wanted, next] = filter(eager, gain, sample);
    eager = next;
    check_close(run(), wanted, 1e-5);
    check_close(memory, eager, 1e-5);
  }
}

}  // namespace

}  // namespace tests::program_literals
