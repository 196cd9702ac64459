// SPDX-License-Identifier: BSL-1.0
// A function object is one thread's: a call while another runs is refused, and the other one goes on.
#include "support.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <thread>

namespace tests::program_shared_object {

using namespace dfdx;

namespace {

std::atomic<bool> holds = false, held = false;

// The first to come stays as long as it is held; others pass, so that a call that is not refused ends.
void stay() {
  if (!holds || held.exchange(true)) return;
  while (holds) std::this_thread::yield();
}

// The operand, once nobody holds it.
struct held_op : op::analytic<held_op, 1> {
  static constexpr char const* name = "held";
  static constexpr Code code = op::numbered(1040);
  static constexpr auto eval(auto const& x) {
    if (!std::is_constant_evaluated()) stay();
    return x + std::remove_cvref_t<decltype(x)>(0);
  }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return t;
  }
};

constexpr auto twice = [](Tensor<float, 8> const& x) { return dfdx::apply<held_op>(x) * 2.0f; };
constexpr auto counted = [](Tensor<float, 8> const& state, Tensor<float, 8> const& x) {
  auto const next = dfdx::apply<held_op>(state) + x;
  return std::pair(sum(next), next);
};
constexpr auto error_of_model = [](Tensor<float, 8> const& w, Tensor<float, 8> const& x) {
  return mean(square(dfdx::apply<held_op>(w) - x));
};
// Vectors whose length is not known are given an op's formula, which nothing can hold up.
void skip_without_calls() {
#if defined(DFDX_RVV)
  SKIP("on vectors without a size no op calls anything");
#endif
}

constexpr char const* refusal =
    "program: two calls at a time of one function object, whose memory is its own; each thread needs a copy";

// What a second thread is told while the first is in call().
template <class F>
std::string told_meanwhile(F const& call) {
  holds = true, held = false;
  std::thread first([&] { call(); });
  while (!held) std::this_thread::yield();
  std::string const r = error_of(call);
  holds = false;
  first.join();
  return r;
}

}  // namespace

}  // namespace tests::program_shared_object

template <>
struct dfdx::op::fused<1040> {
  using type = tests::program_shared_object::held_op;
};

namespace tests::program_shared_object {

TEST_CASE("a second call of an object that runs is refused", "[program]") {
  skip_without_calls();
  auto const x = full<float, 8>(3);
  auto f = compile(twice);
  float first = 0;
  CHECK(told_meanwhile([&] { first = f(x)(7); }) == refusal);
  CHECK(first == 6);
  CHECK(f(x)(7) == 6);  // it is of use again

  auto state = zeros<float, 8>();
  auto count = stateful(counted);
  CHECK(told_meanwhile([&] { count(state, x); }) == refusal);
  CHECK(state(0) == 3);

  auto w = zeros<float, 8>();
  auto step = train_step(error_of_model, optim::SGD{.lr = 4.0f});
  CHECK(told_meanwhile([&] { step(w, x); }) == refusal);
  CHECK(step.steps() == 1);
  CHECK(w(0) == 3);
}

TEST_CASE("copies of an object, and constant ones, run at once", "[program]") {
  skip_without_calls();
  auto const x = full<float, 8>(3);
  auto const both = [&](auto& f, auto& g) {
    float of_f = 0, of_g = 0;
    holds = true, held = false;
    std::thread first([&] { of_f = f(x)(7); });
    while (!held) std::this_thread::yield();
    held = false;
    std::thread second([&] { of_g = g(x)(7); });
    while (!held) std::this_thread::yield();
    holds = false;
    first.join(), second.join();
    return of_f == 6 && of_g == 6;
  };
  auto f = compile(twice), g = f;
  CHECK(both(f, g));
  auto const always = compile(twice);
  CHECK(both(always, always));
}

}  // namespace tests::program_shared_object
