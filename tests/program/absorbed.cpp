// SPDX-License-Identifier: BSL-1.0
// Maps over what a loop stacks, computed in the loop (graph/absorb.hpp), and written where an input lies, or not where
// that would be too early: programs with a state against the same functions called eagerly.
#include "program/moves.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::program_absorbed {

using namespace dfdx;

namespace {

using Part = Tensor<float, 64, 64>;
using All = Tensor<float, 3, 64, 64>;

struct Two {
  All w, m;
  DFDX_FIELDS(w, m)
};

All numbers(std::uint64_t key) { return uniform<float, 3, 64, 64>(Key{key}, -0.2, 0.2); }
All numbers_1() { return numbers(1); }
Two two() { return {numbers(1), numbers(2)}; }
Part start() { return uniform<float, 64, 64>(Key{3}, -1, 1); }

// How many steps are in loops.
template <class P>
constexpr int in_loops() {
  int n = 0;
  for (auto const& l : P::plan.loops) n += l.last - l.first;
  return n;
}
// That several steps of the program are what calls of the function give, and the state in the place it had.
template <class F, class State>
bool agrees(F const& f, State (*make)()) {
  auto step = stateful(f);
  State mine = make(), want = make();
  std::byte const* const memory = dfdx::detail::leaves_of(mine)[0].bytes();
  bool ok = true;
  for (int i = 0; i < 3; ++i) {
    Part const x = start() * static_cast<float>(i + 1);
    auto const got = step(mine, x);
    auto const [y, next] = f(want, x);
    want = next;
    ok = ok && allclose(got, y, 1e-4, 1e-4);
    Vec<Array> const a = dfdx::detail::leaves_of(mine), b = dfdx::detail::leaves_of(want);
    for (std::size_t k = 0; k < a.size(); ++k) ok = ok && allclose(a[k], b[k], 1e-4, 1e-4);
  }
  return ok && dfdx::detail::leaves_of(mine)[0].bytes() == memory;
}
template <class F, class State>
using ProgramOf = typename Stateful<F>::template program_for<State, Part>;

// What a loop makes of each part of w, and of what it carries.
constexpr auto body = [](auto const& c, auto const& w) {
  auto const next = tanh(matmul(c, w));
  return std::pair(next, matmul(c, next) * 0.1f);
};
constexpr auto updated = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(body, x, w);
  return std::pair(sum(last), w - 0.1f * y);
};
constexpr auto updated_backward = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(body, x, w, Order::backward);
  return std::pair(sum(last), w - 0.1f * y);
};
constexpr auto momentum = [](auto const& s, auto const& x) {
  auto const [last, y] = scan(body, x, s.w);
  auto const m = s.m * 0.9f + y;
  return std::pair(sum(last), std::remove_cvref_t<decltype(s)>{s.w - 0.1f * m / (sqrt(m * m) + 1.0f), m});
};
// The loop reads a part when it could be written already.
constexpr auto read_late = [](auto const& w, auto const& x) {
  auto const late = [](auto const& c, auto const& part) {
    auto const y = matmul(c, c) * 0.1f;
    return std::pair(tanh(matmul(y, part)), y);
  };
  auto const [last, y] = scan(late, x, w);
  return std::pair(sum(last), w - 0.1f * y);
};
// The product that is made where a part lies reads it.
constexpr auto read_by_product = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(
      [](auto const& c, auto const& part) {
        auto const y = matmul(c, part);
        return std::pair(tanh(y), y);
      },
      x, w);
  return std::pair(sum(last), w - 0.1f * y);
};
// Every iteration reads all parts.
constexpr auto read_whole = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(
      [&](auto const& c, auto const& part) {
        auto const next = tanh(matmul(c, part) + sum<0>(w * c));
        return std::pair(next, matmul(c, next) * 0.1f);
      },
      x, w);
  return std::pair(sum(last), w - 0.1f * y);
};
// Something after the loop, which waits for it, reads the state as it was.
constexpr auto read_after = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(body, x, w);
  return std::pair(sum(w * last), w - 0.1f * y);
};
// How much the parts are changed depends on all that is stacked.
constexpr auto clipped = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(body, x, w);
  return std::pair(sum(last), w - y / (sum(y * y) + 1.0f));
};
// Two loops write the state, one after the other.
constexpr auto twice = [](auto const& w, auto const& x) {
  auto const [last, y] = scan(body, x, w);
  auto const once = w - 0.1f * y;
  auto const [end, z] = scan(body, last, once, Order::backward);
  return std::pair(sum(end), once + 0.1f * z);
};

constexpr index_t part = 64 * 64 * 4;

}  // namespace

TEST_CASE("what is computed from stacked values is computed in their loop", "[program]") {
  CHECK(agrees(updated, numbers_1));
  CHECK(agrees(updated_backward, numbers_1));
  CHECK(agrees(momentum, two));
  // No stack in memory: the carry's ring and little else.
  using Plain = ProgramOf<decltype(updated), All>;
  STATIC_CHECK(in_loops<Plain>() >= 2);
  STATIC_CHECK(moves<Plain>() == 0);
  STATIC_CHECK(Plain::arena_bytes < 4 * part);
  STATIC_CHECK(moves<ProgramOf<decltype(updated_backward), All>>() == 0);
  using Moving = ProgramOf<decltype(momentum), Two>;
  STATIC_CHECK(moves<Moving>() == 0);
  STATIC_CHECK(Moving::arena_bytes < 4 * part);
}

TEST_CASE("a state of unknown extents is written where its parts are read", "[program]") {
  constexpr auto halved = [](auto const& w, auto const& x) {
    auto const [last, y] = scan(
        [](auto const& c, auto const& p) {
          auto const next = tanh(c + p);
          return std::pair(next, p - 0.1f * next);
        },
        x, w);
    return std::pair(sum(last), y);
  };
  using Open = Tensor<float, 3, dyn, 4>;
  auto step = stateful(halved);
  Open mine(uniform({3, 5, 4}, Key{1}, -1, 1)), want(uniform({3, 5, 4}, Key{1}, -1, 1));
  Tensor<float, dyn, 4> const x(uniform({5, 4}, Key{3}, -1, 1));
  for (int i = 0; i < 3; ++i) {
    auto const got = step(mine, x);
    auto const [y, next] = halved(want, x);
    want = next;
    CHECK(allclose(got, y, 1e-4, 1e-4));
    CHECK(allclose(mine, want, 1e-4, 1e-4));
  }
  STATIC_CHECK(moves<decltype(step)::program_for<Open, Tensor<float, dyn, 4>>>() == 0);
}

TEST_CASE("a loop writes over an input when nothing reads that any more", "[program]") {
  CHECK(agrees(read_late, numbers_1));
  CHECK(agrees(read_by_product, numbers_1));
  CHECK(agrees(read_whole, numbers_1));
  CHECK(agrees(read_after, numbers_1));
  CHECK(agrees(clipped, numbers_1));
  CHECK(agrees(twice, numbers_1));
  STATIC_CHECK(moves<ProgramOf<decltype(read_late), All>>() == 1);
  STATIC_CHECK(moves<ProgramOf<decltype(read_by_product), All>>() == 1);
  STATIC_CHECK(moves<ProgramOf<decltype(read_whole), All>>() == 1);
  STATIC_CHECK(moves<ProgramOf<decltype(read_after), All>>() == 1);
}

TEST_CASE("a loop whose carry becomes what an absorbing loop leaves comes after that", "[program]") {
  constexpr auto handed_on = [](All const& w, Part const& x) {
    auto const r = scan([](auto const& c, auto const& p) { return std::pair(c + p, sin(p)); }, x, w);
    auto const seen = scan([&](auto const& c, auto const&) { return std::pair(r.first, c); }, x, w).second;
    return std::tuple(sum<0>(seen), minimum(r.second, w));
  };
  auto const [seen, least] = compile(handed_on)(numbers(1), start());
  auto const [want_seen, want_least] = handed_on(numbers(1), start());
  CHECK(allclose(seen, want_seen, 1e-5, 1e-5));
  CHECK(allclose(least, want_least, 1e-5, 1e-5));
}

}  // namespace tests::program_absorbed
