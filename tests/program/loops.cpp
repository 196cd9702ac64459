// SPDX-License-Identifier: BSL-1.0
// scan and nn::Repeat: eager, compiled and unrolled agree, in values and in derivatives of two orders; a repeated
// block is named, initialised and trained as an array of blocks is.
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

#include <catch2/catch_test_macros.hpp>

#include <map>

namespace tests::program_loops {

namespace {

using namespace dfdx;
using testing::error_ratio;

constexpr std::size_t steps = 5;
using Weights = Tensor<double, 3, 3>;
using Input = Tensor<double, steps, 3>;
using State = Tensor<double, 3>;

// A recurrent network: the weights are outside of the loop, their gradient is a sum over its iterations.
constexpr auto recurrent = [](Weights const& w, Input const& x, State const& h0) {
  auto const [h, all] = scan(
      [&](State const& h, State const& part) {
        auto const next = tanh(matmul(w, h) + part);
        return std::pair(next, next * part);
      },
      h0, x);
  return sum(square(h)) + sum(all);
};
constexpr auto unrolled = [](Weights const& w, Input const& x, State const& h0) {
  State h = h0;
  auto total = sum(h0 * 0.0);
  for (int i = 0; i < static_cast<int>(steps); ++i) {
    // Inside of a program the part at a position that is a variable is a slice.
    auto const part =
        State(typename State::Unchecked{}, reshape_to(slice_axis(Array(x), 0, i, 1), make_shape(3)));
    h = tanh(matmul(w, h) + part);
    total = total + sum(h * part);
  }
  return sum(square(h)) + total;
};

// Squares of differences of what is rounded to 16 bits and of what is there before the loop: the differences are wanted
// in the backward pass.
template <class Half>
constexpr auto rounded = [](Tensor<float, 4, 6> const& x, Tensor<float, 6> const& outside,
                            Tensor<float, steps, 4, 6> const& parts) {
  auto const [last, all] = scan(
      [&](auto const& carry, auto const& part) {
        auto const low = cast<float>(cast<Half>(carry * 1.5f));
        auto const next = tanh(square(part - low) - square(low - outside) + carry * sin(low * 0.5f));
        return std::pair(next, next * part);
      },
      x, parts);
  return sum(square(last)) + sum(all);
};

Weights weights() { return randn<double, 3, 3>(Key{1}); }
Input input() { return randn<double, steps, 3>(Key{2}); }
State state() { return randn<double, 3>(Key{3}); }

struct Block {
  nn::Linear<8, 8> a, b;
  DFDX_FIELDS(a, b)
  constexpr auto operator()(auto const& x) const { return x + b(tanh(a(x))); }
};
template <class Blocks>
struct Net {
  nn::Linear<4, 8> in;
  Blocks blocks;
  nn::Linear<8, 5> out;
  DFDX_FIELDS(in, blocks, out)
  constexpr auto operator()(auto const& x) const {
    auto h = in(x);
    if constexpr (requires { blocks(h); }) h = blocks(h);
    else
      for (auto const& block : blocks) h = block(h);
    return out(h);
  }
};
using Looped = Net<nn::Repeat<Block, 4>>;
using Unrolled = Net<std::array<Block, 4>>;
constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return cross_entropy(m(x), y); };

// Gradient descent inside of a program: w - 0.1 d/dw sum(w^2 sin x) = w (1 - 0.2 sin x).
using Vector = Tensor<double, 3>;
constexpr auto inner = [](Vector const& w, Vector const& x) { return sum(square(w) * sin(x)); };
constexpr auto descend = [](Vector const& w0, Tensor<double, 4, 3> const& xs) {
  return scan([](Vector const& w, Vector const& x) { return w - 0.1 * grad(inner)(w, x); }, w0, xs);
};
constexpr auto total = [](Vector const& w, Tensor<double, 4, 3> const& x) { return sum(descend(w, x)); };

// A loop that a constant expression runs.
constexpr auto once = [](Tensor<double> const& x) {
  return scan([&](Tensor<double> const& c, Tensor<double> const& part) { return c * x + part; }, x * 2.0,
              reshape<1>(x));
};
static_assert(compile(once)(1.5) == 2 * 1.5 * 1.5 + 1.5);
static_assert(grad(once)(1.5) == 4 * 1.5 + 1);

// Functions whose arguments depend on one another where they are called.
using Number = Tensor<double>;
constexpr auto product = [](Number const& a, Number const& b) { return a * a * b; };
constexpr auto dependent = [](Number const& x) { return grad(product)(x, exp(x)); };
constexpr auto repeated = [](Number const& x) { return grad(product)(x, x); };
constexpr auto forward = [](Number const& x) { return jvp(product)(x, x, x, x * 0.0).second; };

template <class M>
std::map<std::string, Array> state_of(M const& m) {
  std::map<std::string, Array> r;
  visit_state(m, [&](std::string const& name, auto const& leaf) { r[name] = dfdx::detail::packed(leaf); });
  return r;
}

template <class M, class N>
void require_same_state(M const& a, N const& b, double tolerance) {
  auto const x = state_of(a), y = state_of(b);
  REQUIRE(x.size() == y.size());
  for (auto const& [name, value] : x) {
    INFO(name);
    REQUIRE(y.contains(name));
    REQUIRE(error_ratio(value, y.at(name), tolerance, tolerance) <= 1);
  }
}

}  // namespace

TEST_CASE("scan: eager, compiled and unrolled agree", "[program]") {
  auto const w = weights();
  auto const x = input();
  auto const h = state();
  double const want = unrolled(w, x, h).item();
  REQUIRE(std::fabs(recurrent(w, x, h).item() - want) < 1e-12);
  REQUIRE(std::fabs(compile(recurrent)(w, x, h).item() - want) < 1e-12);

  auto const [y, d] = value_and_grad(recurrent, wrt<0, 1, 2>)(w, x, h);
  auto const [z, e] = value_and_grad(unrolled, wrt<0, 1, 2>)(w, x, h);
  REQUIRE(std::fabs(y.item() - z.item()) < 1e-12);
  REQUIRE(error_ratio(std::get<0>(d), std::get<0>(e), 1e-12, 1e-12) <= 1);
  REQUIRE(error_ratio(std::get<1>(d), std::get<1>(e), 1e-12, 1e-12) <= 1);
  REQUIRE(error_ratio(std::get<2>(d), std::get<2>(e), 1e-12, 1e-12) <= 1);
}

TEST_CASE("scan: derivatives of the second order", "[program]") {
  constexpr auto a = [](Weights const& w, Input const& x, State const& h) {
    return sum(square(grad(recurrent)(w, x, h)));
  };
  constexpr auto b = [](Weights const& w, Input const& x, State const& h) {
    return sum(square(grad(unrolled)(w, x, h)));
  };
  auto const p = grad(a)(weights(), input(), state());
  auto const q = grad(b)(weights(), input(), state());
  REQUIRE(error_ratio(p, q, 1e-11, 1e-11) <= 1);

  // Forward over reverse is the same matrix.
  auto const v = randn<double, 3, 3>(Key{9});
  constexpr auto g = [](Weights const& w, Input const& x, State const& h) {
    return grad(recurrent)(w, x, h);
  };
  auto const [value, hv] =
      jvp(g)(weights(), input(), state(), v, zeros<double, steps, 3>(), zeros<double, 3>());
  constexpr auto along = [](Weights const& w, Input const& x, State const& h, Weights const& t) {
    return sum(grad(unrolled)(w, x, h) * t);
  };
  REQUIRE(error_ratio(hv, grad(along)(weights(), input(), state(), v), 1e-11, 1e-11) <= 1);
}

TEST_CASE("scan: a number for the first carry has the dtype of what it goes over", "[program]") {
  constexpr auto decayed = [](auto const& x) {
    return scan(
        [](auto const& c, auto const& v) {
          auto const next = c * 0.5 + v;
          return std::pair(next, next);
        },
        2, x);
  };
  auto const x = Tensor<float, 3>::from({1, 2, 3});
  auto const [last, all] = decayed(x);
  STATIC_REQUIRE(std::is_same_v<decltype(last), Tensor<float> const>);
  REQUIRE(array_equal(all, Tensor<float, 3>::from({2, 3, 4.5f})));
  auto const [compiled_last, compiled_all] = compile(decayed)(x);
  REQUIRE(compiled_last.item() == last.item());
  REQUIRE(array_equal(compiled_all, all));
  auto const [array_last, array_all] = decayed(Array(x));
  REQUIRE(array_last.dtype() == DType::f32);
  REQUIRE(array_equal(array_all, all));
}
TEST_CASE("scan: backwards, without values to stack, over several arrays", "[program]") {
  constexpr auto horner = [](Tensor<double, 4> const& c, Tensor<double> const& x) {
    return scan([&](Tensor<double> const& y, Tensor<double> const& a) { return y * x + a; }, x * 0.0, c,
                Order::backward);
  };
  auto const c = Tensor<double, 4>::from({1, 2, 3, 4});
  REQUIRE(horner(c, Tensor<double>(2.0)).item() == 49);
  REQUIRE(compile(horner)(c, 2.0).item() == 49);
  REQUIRE(grad(horner, wrt<1>)(c, 2.0).item() == 2 + 2 * 3 * 2 + 3 * 4 * 4);

  constexpr auto dot = [](Tensor<double, 4> const& a, Tensor<double, 4> const& b,
                          Tensor<double> const& zero) {
    return scan([](auto const& s, auto const& xy) { return s + std::get<0>(xy) * std::get<1>(xy); }, zero,
                std::tuple(a, b));
  };
  REQUIRE(dot(c, c, Tensor<double>(0.0)).item() == 30);
  REQUIRE(compile(dot)(c, c, Tensor<double>(0.0)).item() == 30);
}

TEST_CASE("scan: what is stacked backwards lies where it was read", "[program]") {
  constexpr auto sums = [](Tensor<double, 4> const& c, Tensor<double> const& zero) {
    auto const f = [](Tensor<double> const& s, Tensor<double> const& x) { return std::pair(s + x, s + x); };
    return scan(f, zero, c, Order::backward).second;
  };
  auto const c = Tensor<double, 4>::from({1, 2, 3, 4}), want = Tensor<double, 4>::from({10, 9, 7, 4});
  REQUIRE(error_ratio(sums(c, Tensor<double>(0.0)), want, 0, 0) <= 1);
  REQUIRE(error_ratio(compile(sums)(c, Tensor<double>(0.0)), want, 0, 0) <= 1);
}

TEST_CASE("scan: two carries that become the same value", "[program]") {
  using Pair = std::pair<Tensor<double, 2>, Tensor<double, 2>>;
  constexpr auto run = [](Tensor<double, 2> const& a, Tensor<double, 2> const& b,
                          Tensor<double, 3, 2> const& x) {
    auto const [p, q] = scan(
        [](Pair const& c, Tensor<double, 2> const& part) {
          auto const next = c.first * part - c.second;
          return Pair(next, next);
        },
        Pair(a, b), x);
    return sum(p * q + p);
  };
  auto const a = randn<double, 2>(Key{1}), b = randn<double, 2>(Key{2});
  auto const x = randn<double, 3, 2>(Key{3});
  REQUIRE(std::fabs(compile(run)(a, b, x).item() - run(a, b, x).item()) < 1e-12);
}

TEST_CASE("scan: a loop over numbers is one kernel, forward and backward", "[program]") {
  // Three carries that change places, in both directions, a value that is stacked, a number from outside, a value that
  // only lasts an iteration.
  constexpr auto f = [](Tensor<double, 40> const& x, Tensor<double> const& k) {
    auto const [last, all] = scan(
        [&](auto const& c, auto const& v) {
          auto const& [a, b, d] = c;
          auto const next = sin(a * k + v);
          return std::pair(std::tuple(b, next * 0.5 + d, a), next * b);
        },
        std::tuple(k, k * 0.25, k * 0.5), x);
    return std::get<0>(last) * std::get<1>(last) + sum(all);
  };
  auto const x = randn<double, 40>(Key{1});
  Tensor<double> const k(0.7);
  using Program = decltype(value_and_grad(f, wrt<0, 1>))::program_for<Tensor<double, 40>, Tensor<double>>;
  CHECK(Program::plan.loops.empty());
  auto const [y, gradients] = value_and_grad(f, wrt<0, 1>)(x, k);
  double a = 0.7, b = 0.175, d = 0.35, total = 0;
  for (index_t i = 0; i < 40; ++i) {
    double const next = std::sin(a * 0.7 + x(i));
    total += next * b;
    std::tie(a, b, d) = std::tuple(b, next * 0.5 + d, a);
  }
  CHECK(std::fabs(y.item() - (a * b + total)) < 1e-12);
  Array watched_x = x.clone(), watched_k = k.clone();
  watched_x.requires_grad(true), watched_k.requires_grad(true);
  f(Tensor<double, 40>(watched_x), Tensor<double>(watched_k)).backward();
  CHECK(error_ratio(std::get<0>(gradients), watched_x.grad(), 1e-12, 1e-12) <= 1);
  CHECK(error_ratio(std::get<1>(gradients), watched_k.grad(), 1e-12, 1e-12) <= 1);
}

TEST_CASE("scan: refusals", "[program]") {
  auto const add = [](Tensor<double> const& s, auto const& xy) {
    return s + std::get<0>(xy) + std::get<1>(xy);
  };
  auto const message = [](auto const& f) -> std::string {
    try {
      f();
    } catch (error const& e) {
      return e.what();
    }
    return "";
  };
  REQUIRE(message([&] {
            scan(add, Tensor<double>(0.0),
                 std::tuple(Tensor<double, dyn>(ones<double, 4>()), Tensor<double, dyn>(ones<double, 3>())));
          }) == "scan: axis 0 of [3] must have the extent of the loop, 4");
  Stacked<Block, 3> const blocks{};
  REQUIRE(message([&] { static_cast<void>(blocks[3]); }) == "stacked: part 3 of 3");
}

// What a filter notes of each step: a struct within a struct, and what is no field.
struct Moments {
  Tensor<double, 3> mean;
  Tensor<double> variance;
  DFDX_FIELDS(mean, variance)
};
struct Note {
  Tensor<double, 3> sample;
  Moments moments;
  Tensor<double, 3> scratch;
  DFDX_FIELDS(sample, moments)
};

TEST_CASE("scan: the fields of the structs that it stacks", "[program]") {
  constexpr auto notes = [](Input const& x) {
    return scan(
        [](State const& h, State const& part) {
          Moments const now{0.5 * (h + part), sum(square(part))};
          return std::pair(now.mean, Note{part, now, {}});
        },
        State{0, 0, 0}, x);
  };
  constexpr auto fields = [](Input const& x) {
    auto const all = decltype(notes){}(x).second;
    auto const moments = all[&Note::moments];
    static_assert(std::is_same_v<std::remove_const_t<decltype(moments)>, Stacked<Moments, steps>>);
    return std::tuple(all[&Note::sample], tanh(moments[&Moments::mean]), moments[&Moments::variance]);
  };
  auto const x = randn<double, steps, 3>(Key{3});
  auto const all = notes(x).second;
  auto const [samples, means, variances] = compile(fields)(x);
  static_assert(std::is_same_v<decltype(all[&Note::sample]), Input>);
  REQUIRE(array_equal(samples, x));
  REQUIRE(array_equal(all[&Note::sample], x));
  for (index_t i = 0; i < static_cast<index_t>(steps); ++i) {
    REQUIRE(error_ratio(select(Array(means), 0, i), tanh(all[i].moments.mean), 1e-12, 1e-12) <= 1);
    REQUIRE(error_ratio(select(Array(variances), 0, i), all[i].moments.variance, 1e-12, 1e-12) <= 1);
  }
  REQUIRE(all[&Note::sample].bytes() == all[0].sample.bytes());  // a view
  REQUIRE_THROWS(all[&Note::scratch]);
}

TEST_CASE("scan with a batch of unknown size", "[program]") {
  constexpr auto sums = [](Tensor<float, dyn, 3> const& h0, Tensor<float, 4, 3> const& x) {
    return scan([](auto const& h, auto const& part) { return tanh(h + part); }, h0, x);
  };
  auto compiled = compile(sums);
  auto const x = randn<float, 4, 3>(Key{5});
  for (std::size_t n : {1, 6, 3}) {
    Tensor<float, dyn, 3> const h = Tensor<float, dyn, 3>(randn(make_shape(n, 3), Key{n}, DType::f32));
    REQUIRE(error_ratio(compiled(h, x), sums(h, x), 1e-5, 1e-6) <= 1);
  }
}

TEST_CASE("Repeat: the same model as an array of blocks", "[program]") {
  auto looped = init<Looped>(42);
  auto array = init<Unrolled>(42);
  auto const state = state_of(looped);
  REQUIRE(state.contains("blocks.3.b.weight"));
  REQUIRE(state.at("blocks.3.b.weight").shape() == make_shape(8, 8));
  require_same_state(looped, array, 0);

  auto const x = randn<float, 6, 4>(Key{7});
  auto const y = randint<std::int32_t, 6>(Key{8}, 0, 5);
  REQUIRE(error_ratio(looped(x), array(x), 0, 0) <= 1);
  REQUIRE(error_ratio(looped.blocks[2](looped.in(x)), array.blocks[2](array.in(x)), 0, 0) <= 1);

  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f});
  auto other = train_step(loss, optim::AdamW{.lr = 1e-2f});
  float first = 0, last = 0;
  for (int i = 0; i < 10; ++i) {
    last = step(looped, x, y);
    REQUIRE(std::fabs(last - other(array, x, y)) < 1e-5f);
    if (i == 0) first = last;
  }
  REQUIRE(last < first);
  require_same_state(looped, array, 2e-5);
}

TEST_CASE("Repeat: the program does not grow", "[program]") {
  using X = Tensor<float, 6, 4>;
  using Y = Tensor<std::int32_t, 6>;
  using Step = decltype(train_step(loss, optim::SGD{}));
  using Short = Step::program_for<Net<nn::Repeat<Block, 4>>, X, Y>;
  using Long = Step::program_for<Net<nn::Repeat<Block, 400>>, X, Y>;
  STATIC_REQUIRE(Short::nodes == Long::nodes);
  STATIC_REQUIRE(Short::kernels == Long::kernels);
  STATIC_REQUIRE(Short::flops() < Long::flops() / 50);
}

TEST_CASE("repeat<N>(block) copies a block", "[program]") {
  auto const block = init<Block>(3);
  auto const three = repeat<3>(block);
  auto const x = randn<float, 2, 8>(Key{4});
  REQUIRE(error_ratio(three(x), block(block(block(x))), 0, 0) <= 1);
  REQUIRE(three[0].a.weight.bytes() != block.a.weight.bytes());
}

TEST_CASE("Repeat of one block and of none", "[program]") {
  constexpr auto run = [](auto const& blocks, Tensor<float, 2, 8> const& x) {
    return sum(square(blocks(x)));
  };
  auto const x = randn<float, 2, 8>(Key{4});
  auto const one = init<nn::Repeat<Block, 1>>(1);
  auto const [y, d] = value_and_grad(run)(one, x);
  auto const [z, e] = value_and_grad(run)(one[0], x);
  REQUIRE(std::fabs(y.item() - z.item()) < 1e-4f);
  REQUIRE(error_ratio(d[0].a.weight, e.a.weight, 1e-4, 1e-5) <= 1);
  nn::Repeat<Block, 0> none;
  none.allocate();
  REQUIRE(std::fabs(compile(run)(none, x).item() - sum(square(x)).item()) < 1e-4f);
}

TEST_CASE("derivatives taken in the body of a scan", "[program]") {
  auto const w0 = randn<double, 3>(Key{1});
  auto const xs = randn<double, 4, 3>(Key{2});
  auto const got = compile(descend)(w0, xs);
  auto const slope = grad(total)(w0, xs);
  for (index_t k = 0; k < 3; ++k) {
    double factor = 1;
    for (index_t i = 0; i < 4; ++i) factor *= 1 - 0.2 * std::sin(xs(i, k));
    REQUIRE(std::fabs(got(k) - w0(k) * factor) < 1e-12);
    REQUIRE(std::fabs(slope(k) - factor) < 1e-12);
  }
}

TEST_CASE("arguments of a nested function are its own", "[program]") {
  Number const x(0.7);
  REQUIRE(std::fabs(compile(dependent)(x).item() - 2 * 0.7 * std::exp(0.7)) < 1e-12);
  REQUIRE(std::fabs(compile(repeated)(x).item() - 2 * 0.7 * 0.7) < 1e-12);
  REQUIRE(std::fabs(compile(forward)(x).item() - 2 * 0.7 * 0.7 * 0.7) < 1e-12);
}

TEST_CASE("slices of slices with an unknown extent between", "[program]") {
  using X = Tensor<double, 6, dyn, 5>;
  constexpr auto f = [](X const& x) { return exp(slice<2, 2, 4>(slice<0, 1, 3>(x))); };
  auto compiled = compile(f);
  for (std::size_t n : {1, 4}) {
    auto const x = X(randn(make_shape(6, n, 5), Key{n}, DType::f64));
    REQUIRE(error_ratio(compiled(x), f(x), 1e-12, 1e-12) <= 1);
  }
}

TEST_CASE("scan in constant expressions, and without iterations", "[program]") {
  using S = Tensor<double>;
  constexpr auto cube = [](S const& x) {
    return scan([&](S const& c, S const&) { return c * x; }, x * 0.0 + 1.0,
                concat<0>(reshape<1>(x), concat<0>(reshape<1>(x), reshape<1>(x))));
  };
  REQUIRE(std::fabs(compile(cube)(1.5) - 3.375) < 1e-12);
  auto const [c, ys] =
      scan([](Tensor<double, 3> const& h, Tensor<double, 3> const& x) { return std::pair(h + x, h * x); },
           ones<double, 3>(), zeros<double, 0, 3>());
  REQUIRE(c(0) == 1);
  REQUIRE(ys.shape() == make_shape(0, 3));
}

namespace {
using Rows = Tensor<float, 64, 256>;
using Layers = Tensor<float, 16, 256, 256>;
constexpr auto deep = [](Rows const& x, Layers const& w) {
  return sum(scan([](auto const& h, auto const& v) { return gelu(matmul(h, v)); }, x, w));
};
constexpr auto deep_slope = grad(deep, wrt<1>);
}  // namespace

TEST_CASE("scan: what is soon computed again is not kept for the backward pass", "[program]") {
  auto const x = randn<float, 64, 256>(Key{1});
  Layers const w = randn<float, 16, 256, 256>(Key{2}) * 0.1;
  // Of each iteration what goes into the product and what comes out of it; of gelu in between, nothing. (The rest is a
  // few values of one iteration, and what products work with: more where vectors are longer than the compiler knows.)
  constexpr index_t kept = 2 * 16 * 64 * 256 * 4, slopes = 16 * 256 * 256 * 4, one = 64 * 256 * 4;
  using Program = decltype(deep_slope)::program_for<Rows, Layers>;
#if defined(__riscv_vector)
  constexpr index_t rest = 8 * one;
#else
  constexpr index_t rest = 6 * one;
#endif
  STATIC_REQUIRE(Program::arena_bytes <= kept + slopes + rest);
  Array on_tape = Array(w).clone();
  on_tape.requires_grad(true);
  Array h = x;
  for (index_t i = 0; i < 16; ++i) h = gelu(matmul(h, on_tape[i]));
  sum(h).backward();
  CHECK(allclose(deep_slope(x, w), on_tape.grad(), 1e-3, 1e-2));  // of numbers up to 10^4
}

namespace {
constexpr auto copies = [](auto const& x, auto const& w, auto const& xs) {
  return scan(
      [&](auto const& h, auto const& s) {
        auto const a = tanh(s);
        auto const part = reshape<1, 12>(slice<1, 0, 3>(a));  // a copy, and the first that reads it
        return tanh(h * 0.5f + matmul(part, w) * a);
      },
      x, xs);
};
}  // namespace

TEST_CASE("scan: a value that waits for nothing is there when it is copied", "[program]") {
  auto const x = randn<float, 4, 6>(Key{1});
  auto const w = randn<float, 12, 6>(Key{2});
  auto const xs = randn<float, 3, 4, 6>(Key{3});
  CHECK(allclose(compile(copies)(x, w, xs), copies(x, w, xs), 1e-5, 1e-6));
}

TEST_CASE("what is made of 16 bits in a loop is computed again in its backward pass", "[program]") {
  auto const x = randn<float, 4, 6>(Key{1});
  auto const outside = randn<float, 6>(Key{2});
  auto const parts = randn<float, steps, 4, 6>(Key{3});
  auto const check = [&](auto const& f) {
    auto const g = value_and_grad(f, wrt<0, 1, 2>);
    auto const [y, grads] = g(x, outside, parts);
    auto a = x;
    auto b = outside;
    auto c = parts;
    a.requires_grad(true), b.requires_grad(true), c.requires_grad(true);
    auto const want = f(a, b, c);
    want.backward();
    CHECK(allclose(y, want, 1e-5, 1e-6));
    CHECK(allclose(std::get<0>(grads), a.grad(), 1e-4, 1e-5));
    CHECK(allclose(std::get<1>(grads), b.grad(), 1e-4, 1e-5));
    CHECK(allclose(std::get<2>(grads), c.grad(), 1e-4, 1e-5));
  };
  check(rounded<bfloat16>);
  check(rounded<float16>);
  // The carries in f32, and in 16 bits what else an iteration leaves: no sums of both.
  constexpr auto once = [](Tensor<float, 64, 64> const& start, Tensor<float, steps, 64, 64> const& all) {
    auto const body = [](auto const& carry, auto const& part) {
      return std::pair(tanh(sin(part - cast<float>(cast<bfloat16>(carry * 1.5f)))), sum(carry));
    };
    return sum(square(scan(body, start, all).first));
  };
  using P = program<ValueAndGrad<std::remove_const_t<decltype(once)>, Wrt<0>>, Tensor<float, 64, 64>,
                    Tensor<float, steps, 64, 64>>;
  constexpr index_t part = 64 * 64 * 4;
  STATIC_CHECK(P::arena_bytes < (steps + 3) * part + steps * part / 2 + 4096);
}

TEST_CASE("a loop begins with two values side by side, one of which is read after it", "[program]") {
  constexpr auto f = [](Tensor<double, 4> const& x, Tensor<double, steps, 8> const& xs) {
    auto const a = tanh(x), b = sin(x);
    auto const [last, sums] = scan(
        [](Tensor<double, 8> const& c, Tensor<double, 8> const& part) {
          auto const next = tanh(c + part);
          return std::pair(next, sum(next));
        },
        concat(a, b), xs);
    return a * sum(last) + sum(sums);
  };
  auto const x = randn<double, 4>(Key{1});
  auto const xs = randn<double, steps, 8>(Key{2});
  CHECK(allclose(compile(f)(x, xs), f(x, xs), 1e-12, 1e-12));
}

TEST_CASE("windows of several layers move on, each in its memory", "[program]") {
  constexpr auto step = [](Tensor<double, 3, 6, 4> const& windows, Tensor<double, 4> const& x) {
    auto const [last, all] = scan(
        [](Tensor<double, 4> const& h, Tensor<double, 6, 4> const& window) {
          auto const moved = concat(reshape<1, 4>(tanh(h)), slice<0, 0, 5>(window));
          return std::pair(tanh(sum<0>(moved)), moved);
        },
        x, windows);
    return std::pair(last, all);
  };
  auto state = randn<double, 3, 6, 4>(Key{1});
  auto run = stateful(step);
  for (std::uint64_t i = 2; i < 5; ++i) {
    auto const x = randn<double, 4>(Key{i});
    auto const [want, next] = step(state, x);
    CHECK(allclose(run(state, x), want, 1e-12, 1e-12));
    CHECK(allclose(state, next, 1e-12, 1e-12));
  }
}

// Filters one behind the other. Of each round what reads numbers of another loop is part of that one.
constexpr auto two_filters = [](Tensor<double, 2> const& logs, Tensor<double, 40> const& x) {
  auto const a = exp(logs);  // a term of it and of a sample could not wait for a loop to be computed in
  return scan(
             [&](auto const& state, auto const& sample) {
               auto const [a0, a1] = unbind<0>(a);
               auto const [s, t] = unbind<0>(state);
               auto const [s0, s1] = unbind<0>(s);
               auto const [t0, t1] = unbind<0>(t);
               auto const y = a0 * sample + s0, z = a1 * y + t0;
               return std::pair(stack(stack(a1 * sample - a0 * y + s1, 0.5 * sample - a1 * y),
                                      stack(a0 * y - a1 * z + t1, 0.25 * y - a0 * z)),
                                z);
             },
             zeros<double, 2, 2>(), x)
      .second;
};

TEST_CASE("a round of a cascade of filters is one kernel") {
  using Program = decltype(compile(two_filters))::program_for<Tensor<double, 2>, Tensor<double, 40>>;
  CHECK(Program::kernels == 3);  // one for the exponentials, one fills the first state
  Tensor<double, 2> const logs{-0.9, -1.2};
  Tensor<double, 2> const a = exp(logs);
  auto const x = randn<double, 40>(Key{7});
  auto const y = compile(two_filters)(logs, x);
  CHECK(allclose(y, two_filters(logs, x), 1e-13, 1e-13));
  double s0 = 0, s1 = 0, t0 = 0, t1 = 0;
  for (index_t i = 0; i < 40; ++i) {
    double const in = x(i), u = a(0) * in + s0, z = a(1) * u + t0;
    s0 = a(1) * in - a(0) * u + s1, s1 = 0.5 * in - a(1) * u;
    t0 = a(0) * u - a(1) * z + t1, t1 = 0.25 * u - a(0) * z;
    CHECK(std::fabs(y(i) - z) < 1e-13);
  }
}

}  // namespace tests::program_loops
