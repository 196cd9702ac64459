// SPDX-License-Identifier: BSL-1.0
// stateful: programs that change a state in place, and index_copy in them.
#include "program/moves.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <cmath>
#include <vector>

namespace tests::program_stateful {

using namespace dfdx;

namespace {

struct Notes {
  Tensor<float, 3, 8, 2> rows;
  Tensor<std::int32_t> length;
  DFDX_FIELDS(rows, length)
};

Notes empty_notes() { return {zeros<float, 3, 8, 2>(), zeros<std::int32_t>()}; }

// Adds a row to each of three lists; the result is what the sums of the lists were before.
constexpr auto note = [](Notes const& notes, Tensor<float, 3, 1, 2> const& row) {
  auto const before = sum<1>(notes.rows);
  auto const at = unsqueeze<0>(notes.length);
  return std::pair(before, Notes{index_copy<1>(notes.rows, at, row), notes.length + 1});
};
using NoteProgram = Stateful<decltype(note)>::program_for<Notes, Tensor<float, 3, 1, 2>>;

}  // namespace

TEST_CASE("a program that adds to its state", "[program]") {
  auto step = stateful(note);
  Notes notes = empty_notes();
  float const* const memory = notes.rows.data();
  Tensor<float, 3, 2> expected = zeros<float, 3, 2>();
  for (int i = 0; i < 8; ++i) {
    auto const row = uniform<float, 3, 1, 2>(Key{static_cast<std::uint64_t>(i)}, -1, 1);
    auto const before = step(notes, row);
    CHECK(allclose(before, expected, 1e-6, 1e-6));
    expected = expected + squeeze<1>(row);
    CHECK(array_equal(slice(Array(notes.rows), 1, i, i + 1), row));
    CHECK(notes.length.item() == i + 1);
  }
  CHECK(notes.rows.data() == memory);
  CHECK_THROWS_WITH((step(notes, zeros<float, 3, 1, 2>())),
                    "index_copy: index 8 out of range for axis 1 of [3, 8, 2]");
}

TEST_CASE("a step tied to its state and arguments", "[program]") {
  Notes notes = empty_notes(), others = empty_notes();
  auto row = uniform<float, 3, 1, 2>(Key{1}, -1, 1);
  auto loose = stateful(note);
  auto step = loose.bind(notes, row);
  for (int i = 0; i < 4; ++i) {
    row.data()[0] = static_cast<float>(i);
    CHECK(array_equal(step(), loose(others, row)));
    CHECK(array_equal(notes.rows, others.rows));
    CHECK(notes.length.item() == i + 1);
  }
  constexpr auto add = [](Tensor<float, 2, 3> const& s, Tensor<float> const& x) {
    return std::pair(sum(s), s + x);
  };
  Tensor<float, 2, 3> across = transpose(zeros<float, 3, 2>());
  Tensor<float> const one(1.0f);
  CHECK_THROWS_WITH(stateful(add).bind(across, one), "stateful: a state must be contiguous");
  CHECK_THROWS_WITH(stateful(add)(across, one), "stateful: a state must be contiguous");
}

namespace {

// A program tied to its arguments as a member, and several of these in a list.
class Counter {
 public:
  explicit Counter(float by) : by_(by), step_(stateful(count).bind(sum_, fixed(by_), extra_)) {}
  void extra(float x) { extra_.data()[0] = x; }
  float operator()() { return step_().item(); }

 private:
  static constexpr auto count = [](Tensor<float> const& sum, Tensor<float> const& by,
                                   Tensor<float, 1> const& extra) {
    auto const next = sum + exp(by) + squeeze<0>(extra);
    return std::pair(next, next);
  };
  Tensor<float> sum_ = 0.0f, by_;
  Tensor<float, 1> extra_{0};
  decltype(stateful(count).bind(std::declval<Tensor<float>&>(), fixed(std::declval<Tensor<float> const&>()),
                                std::declval<Tensor<float, 1> const&>())) step_;
};

}  // namespace

TEST_CASE("what is tied can be moved", "[program]") {
  std::vector<Counter> all;
  for (float const by : {0.0f, 1.0f, 2.0f}) all.emplace_back(by);
  all[0].extra(2);
  for (int i = 1; i < 4; ++i) {
    float const n = static_cast<float>(i);
    CHECK(all[0]() == 3 * n);
    CHECK(std::fabs(all[2]() - std::exp(2.0f) * n) < 1e-4f);
  }
  all[0] = std::move(all[1]);
  CHECK(std::fabs(all[0]() - std::exp(1.0f)) < 1e-5f);
  all.erase(all.begin());
  all.insert(all.begin(), Counter(1));
  CHECK(std::fabs(all[2]() - 4 * std::exp(2.0f)) < 1e-4f);
  CHECK(std::fabs(all[0]() - std::exp(1.0f)) < 1e-5f);

  constexpr auto twice = [](auto const& x) { return x * 2.0f; };
  auto x = ones<float, 3>();
  std::vector<decltype(compile(twice).bind(x))> programs;
  for (int i = 0; i < 3; ++i) programs.push_back(compile(twice).bind(x));
  auto const made = std::move(programs.front());
  x += 1.0f;
  CHECK(array_equal(programs[2](), full<float, 3>(4)));
  static_assert(!std::is_copy_constructible_v<std::remove_const_t<decltype(made)>>);
}

TEST_CASE("rows are written where they belong and nothing else is", "[program]") {
  // No copy of the state: none in the arena, and nothing is moved at the end.
  static_assert(NoteProgram::arena_bytes < 3 * 8 * 2 * 4 + 64);
  CHECK(moves<NoteProgram>() == 0);
  // A state of a large memory, of which a call touches a little: it would show.
  constexpr auto put = [](Tensor<float, 1024, 64> const& s, Tensor<float, 1, 64> const& row,
                          Tensor<std::int64_t, 1> const& at) {
    return std::pair(sum(row), index_copy<0>(s, at, row));
  };
  using P = Stateful<decltype(put)>::program_for<Tensor<float, 1024, 64>, Tensor<float, 1, 64>,
                                                 Tensor<std::int64_t, 1>>;
  static_assert(P::arena_bytes < 1024);
  CHECK(moves<P>() == 0);
}

// What is added to parts of a large state, or to elements of it, or put there, is written where it belongs.
template <class F, class... X>
void check_onto(F const& f, X const&... x) {
  using Table = Tensor<float, 512, 48>;
  using P = typename Stateful<F>::template program_for<Table, X...>;
  static_assert(P::arena_bytes < 16384);
  CHECK(moves<P>() == 0);
  auto table = randn<float, 512, 48>(Key{1});
  float const* const memory = table.data();
  auto step = stateful(f);
  for (int i = 0; i < 3; ++i) {
    Array const expected = Array(f(table, x...)).clone();
    step(table, x...);
    CHECK(array_equal(table, expected));
  }
  CHECK(table.data() == memory);
}
TEST_CASE("elements are added to a state in its place", "[program]") {
  auto const rows = Tensor<std::int64_t, 5>::from({3, 511, 3, 0, 3});
  auto const columns = Tensor<std::int32_t, 3>::from({47, 0, 47});
  check_onto([](auto const& s, auto const& at, auto const& x) { return index_add<0>(s, at, x); }, rows,
             randn<float, 5, 48>(Key{2}));
  check_onto([](auto const& s, auto const& at, auto const& x) { return index_add<1>(s, at, x, -0.5); },
             columns, randn<float, 512, 3>(Key{3}));
  auto const places = randint<std::int64_t, 9, 48>(Key{4}, 0, 512);
  check_onto([](auto const& s, auto const& at, auto const& x) { return scatter_add<0>(s, at, x); }, places,
             randn<float, 9, 48>(Key{5}));
  check_onto([](auto const& s, auto const& at, auto const& x) { return scatter<0>(s, at, x); }, places,
             randn<float, 9, 48>(Key{6}));
  // All indices are looked at before anything is written, more than one look takes in, and those of other lines.
  constexpr auto add = [](Tensor<float, 4, 2> const& s, Tensor<std::int64_t, 1300> const& at,
                          Tensor<float, 1300, 2> const& x) { return index_add<0>(s, at, x); };
  auto state = ones<float, 4, 2>();
  auto far = zeros<std::int64_t, 1300>();
  far(1299) = 4;
  CHECK_THROWS_WITH((stateful(add)(state, far, ones<float, 1300, 2>())),
                    "index_add: index 4 out of range for axis 0 of [4, 2]");
  CHECK(array_equal(state, ones<float, 4, 2>()));
  constexpr auto put = [](Tensor<float, 4, 2> const& s, Tensor<std::int64_t, 3, 1> const& at,
                          Tensor<float, 3, 1> const& x) { return scatter<1>(s, at, x); };
  CHECK_THROWS_WITH(
      (stateful(put)(state, Tensor<std::int64_t, 3, 1>::from({{0}, {1}, {-1}}), zeros<float, 3, 1>())),
      "scatter: index -1 out of range for axis 1 of [4, 2]");
  CHECK(array_equal(state, ones<float, 4, 2>()));
}

TEST_CASE("a state that is read after it was changed is moved at the end", "[program]") {
  // What replaces rows of a state by other rows of it.
  constexpr auto turn = [](Tensor<float, 4, 2> const& s, Tensor<std::int64_t, 4> const& at) {
    return std::pair(sum(s), index_copy<0>(s, at, s));
  };
  auto step = stateful(turn);
  auto state = Tensor<float, 4, 2>::from({{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  step(state, Tensor<std::int64_t, 4>::from({1, 2, 3, 0}));
  CHECK(array_equal(state, Tensor<float, 4, 2>::from({{6, 7}, {0, 1}, {2, 3}, {4, 5}})));
  // One that is a result as well.
  constexpr auto shown = [](Tensor<float, 4, 2> const& s, Tensor<float, 1, 2> const& row,
                            Tensor<std::int64_t, 1> const& at) {
    auto const next = index_copy<0>(s, at, row);
    return std::pair(next * 2.0f, next);
  };
  auto both = stateful(shown);
  auto const seen = both(state, Tensor<float, 1, 2>::from({{8, 9}}), Tensor<std::int64_t, 1>::from({2}));
  CHECK(array_equal(state, Tensor<float, 4, 2>::from({{6, 7}, {0, 1}, {8, 9}, {4, 5}})));
  CHECK(array_equal(seen, state * 2.0f));
}

// A step of a simulation has no result but its state.
constexpr auto diffuse = [](Tensor<double, 16> const& heat, Tensor<double> const& rate) {
  return heat + rate * (roll<1, 0>(heat) + roll<-1, 0>(heat) - 2.0 * heat);
};
constexpr auto decay = [](Notes const& notes, Tensor<float> const& by) {
  return Notes{notes.rows * by, notes.length + 1};
};

TEST_CASE("a function that returns the next state alone", "[program]") {
  auto heat = randn<double, 16>(Key{3});
  auto bound = heat.clone(), eager = heat.clone();
  Tensor<double> const rate = 0.2;
  double const* const memory = heat.data();
  auto step = stateful(diffuse);
  auto tied = stateful(diffuse).bind(bound, fixed(rate));
  static_assert(std::is_void_v<decltype(step(heat, rate))> && std::is_void_v<decltype(tied())>);
  for (int i = 0; i < 5; ++i) {
    step(heat, rate);
    tied();
    eager = diffuse(eager, rate);
  }
  CHECK(heat.data() == memory);
  CHECK(allclose(heat, eager, 1e-12, 1e-12));
  CHECK(array_equal(bound, heat));

  Notes notes{ones<float, 3, 8, 2>(), zeros<std::int32_t>()};
  auto fade = stateful(decay);
  fade(notes, Tensor<float>(0.5f));
  fade(notes, Tensor<float>(0.5f));
  CHECK(array_equal(notes.rows, full<float, 3, 8, 2>(0.25f)));
  CHECK(notes.length.item() == 2);
}

TEST_CASE("a place out of range leaves the state as it was", "[program]") {
  constexpr auto put = [](Tensor<float, 4, 2> const& s, Tensor<float, 2, 2> const& rows,
                          Tensor<std::int64_t, 2> const& at) {
    return std::pair(sum(rows), index_copy<0>(s, at, rows));
  };
  auto step = stateful(put);
  auto state = zeros<float, 4, 2>();
  CHECK_THROWS_WITH(step(state, ones<float, 2, 2>(), Tensor<std::int64_t, 2>::from({1, 4})),
                    "index_copy: index 4 out of range for axis 0 of [4, 2]");
  CHECK(array_equal(state, zeros<float, 4, 2>()));
}

TEST_CASE("index_copy of many examples", "[program]") {
  constexpr auto put = [](auto const& x, auto const& at, auto const& src) {
    return index_copy<1>(x, at, src * 2.0f);
  };
  auto const x = uniform<float, 3, 2, 4>(Key{1}, -1, 1);
  auto const src = uniform<float, 3, 2, 2>(Key{2}, -1, 1);
  auto const at = Tensor<std::int32_t, 2>::from({3, 1});
  auto const one_place = vmap(put, in_axes<0, unmapped, 0>)(x, at, src);
  auto const places = Tensor<std::int32_t, 3, 2>::from({{3, 1}, {0, 2}, {1, 0}});
  auto const own_places = vmap(put)(x, places, src);
  for (index_t i = 0; i < 3; ++i) {
    CHECK(array_equal(one_place[i], put(x[i], at, src[i])));
    CHECK(array_equal(own_places[i], put(x[i], places[i], src[i])));
  }
}

TEST_CASE("what is read after the new state is known is the old state", "[program]") {
  constexpr auto moved = [](Tensor<float, 4, 6> const& s, Tensor<float, 4, 6> const& x) {
    auto const next = tanh(x * 2.0f);
    return std::pair(s - next, next);
  };
  auto step = stateful(moved);
  auto state = randn<float, 4, 6>(Key{1});
  auto const before = state + 0.0f, x = randn<float, 4, 6>(Key{2});
  auto const distance = step(state, x);
  CHECK(array_equal(distance, before - state));
  CHECK(allclose(state, tanh(x * 2.0f), 1e-6, 1e-7));
}

namespace {

// A window of the last values, the latest at its end or at its front.
template <int Axis, bool AtFront, class Window, class New>
struct Moved {
  static constexpr index_t n = Window::static_shape[Axis], m = New::static_shape[Axis];
  constexpr auto operator()(Window const& w, New const& x) const {
    if constexpr (AtFront) return with_sum(concat<Axis>(x, slice<Axis, 0, n - m>(w)));
    else return with_sum(concat<Axis>(slice<Axis, m, n>(w), x));
  }
  static constexpr auto with_sum(Window const& next) { return std::pair(sum(cast<float>(next)), next); }
};

// Against the same with Arrays, which is concat. The window is moved in its place: the program has no memory for one.
template <int Axis, bool AtFront, class Window, class New>
void check_window() {
  using Step = Moved<Axis, AtFront, Window, New>;
  using P = typename Stateful<Step>::template program_for<Window, New>;
  static_assert(P::arena_bytes <= 64 && moves<P>() == 0);
  index_t const n = Step::n, m = Step::m;
  DType const dtype = Window::static_meta.dtype;
  Window w(zeros(Window::static_shape, dtype));
  Array expected = zeros(Window::static_shape, dtype);
  auto run = stateful(Step{});
  for (std::uint64_t i = 0; i < 5; ++i) {
    New const x(floor(uniform(New::static_shape, Key{i}, 0, 9)).to(dtype));
    if (AtFront) expected = concat({Array(x), slice(expected, Axis, 0, n - m)}, Axis);
    else expected = concat({slice(expected, Axis, m, n), Array(x)}, Axis);
    Array const total = run(w, x);
    CHECK(array_equal(w, expected));
    CHECK(array_equal(total, sum(expected.to(DType::f32))));
  }
}

}  // namespace

TEST_CASE("a window that moves on does so in its place", "[program]") {
  check_window<2, false, Tensor<float, 1, 16, 15>, Tensor<float, 1, 16, 1>>();
  check_window<2, true, Tensor<float, 2, 3, 5>, Tensor<float, 2, 3, 2>>();
  check_window<0, false, Tensor<double, 7, 3>, Tensor<double, 2, 3>>();
  check_window<1, true, Tensor<std::uint8_t, 3, 70, 2>, Tensor<std::uint8_t, 3, 1, 2>>();
  check_window<0, true, Tensor<bfloat16, 9>, Tensor<bfloat16, 9>>();  // all of it is new
}

TEST_CASE("a window whose old values are read as well, and new ones from a view", "[program]") {
  constexpr auto step = [](Tensor<float, 3, 4> const& w, Tensor<float, 2, 3> const& x) {
    Tensor<float, 3, 4> const next = concat<1>(slice<1, 2, 4>(w), transpose(x));
    return std::pair(next - w, next);
  };
  auto w = uniform<float, 3, 4>(Key{1});
  auto run = stateful(step);
  for (std::uint64_t i = 2; i < 6; ++i) {
    auto const x = uniform<float, 2, 3>(Key{i});
    Array const before = Array(w) + 0;
    Array const expected = concat({slice(before, 1, 2, 4), transpose(Array(x))}, 1);
    CHECK(array_equal(run(w, x), expected - before));
    CHECK(array_equal(w, expected));
  }
}

TEST_CASE("a window that constants move into", "[program]") {
  constexpr auto step = [](Tensor<float, 2, 5> const& w, Tensor<float> const& x) {
    Tensor<float, 2, 5> const next = concat<1>(slice<1, 2, 5>(w), zeros_like(slice<1, 0, 2>(w)));
    return std::pair(sum(next) * x, next);
  };
  auto w = ones<float, 2, 5>();
  auto run = stateful(step);
  for (float const total : {6.0f, 2.0f, 0.0f, 0.0f}) CHECK(run(w, Tensor<float>(1.0f)).item() == total);
}

}  // namespace tests::program_stateful
