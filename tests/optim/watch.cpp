// SPDX-License-Identifier: BSL-1.0
// watch: what is not a number is traced to the op that made it, and nothing is lost.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <limits>

namespace tests::optim_watch {

namespace {

using namespace dfdx;

struct Model {
  Tensor<float, 3> w;
  Tensor<float, 2, 3> unused;
  DFDX_FIELDS(w, unused)
};
using X = Tensor<float, 3>;

constexpr auto logarithm = [](auto const& m, auto const& x) { return sum(log(m.w + x)); };
// Its value at 0 is 0, its derivative infinity times 0.
constexpr auto kink = [](auto const& m, auto const& x) { return sum(sqrt(m.w * x) * 0.0f); };
constexpr auto plain = [](auto const& m, auto const& x) { return sum(m.w * x); };

Model fresh() { return {Tensor<float, 3>::from({0.5f, 1.0f, 2.0f}), zeros<float, 2, 3>()}; }

std::vector<std::uint8_t> bits(Model const& m) {
  std::vector<std::uint8_t> r;
  visit(m, [&](auto const& leaf) {
    auto const* p = reinterpret_cast<std::uint8_t const*>(leaf.bytes());
    r.insert(r.end(), p, p + leaf.size() * 4);
  });
  return r;
}

template <class Loss, class Rule>
void stops(Loss const& loss, Rule const& rule, X const& bad, std::string const& words) {
  X const good = X::from({0.001f, 0.002f, 0.003f});
  Model model = fresh(), twin = fresh();
  auto step = train_step(loss, rule), other = train_step(loss, rule);
  auto one = watch(step, model);
  for (int i = 0; i < 3; ++i) {
    one(good);
    other(twin, good);
  }
  auto const before = bits(model);
  std::string said;
  try {
    one(bad);
  } catch (error const& e) {
    said = e.what();
  }
  CHECK(said == "train_step: step 4: " + words + "; the model is as it was after 3 steps");
  CHECK(bits(model) == before);
  CHECK(step.steps() == 3);
  // And goes on as if it had not been.
  CHECK(one(good) == other(twin, good));
  CHECK(bits(model) == bits(twin));
}

}  // namespace

TEST_CASE("watch: the op that made NaN is named, the model stays", "[optim]") {
  optim::Adam const adam{.lr = 0.01f};
  stops(logarithm, adam, X::from({1.0f, -9.0f, 1.0f}), "log: made NaN of numbers, in a result of shape [3]");
  stops(kink, adam, X::from({1.0f, 0.0f, 1.0f}),
        "backward of sqrt: made NaN of numbers, in the gradient of operand 0 of shape [3]");
  stops(plain, optim::SGD{.lr = 0.01f}, X::from({3e38f, 3e38f, 3e38f}), "the loss is inf");
  stops(plain, optim::SGD{.lr = 2.0f}, X::from({3e38f, 0.0f, 0.0f}),
        "the optimizer makes numbers that are not finite of a finite gradient");
}

TEST_CASE("first_nan looks past numbers that have no gradient", "[optim]") {
  struct Indexed {
    Tensor<float, 3> w;
    Tensor<std::int32_t, 3> order;
    DFDX_FIELDS(w, order)
  };
  constexpr auto loss = [](auto const& m, auto const& x) { return sum(log(take(m.w, m.order) + x)); };
  Indexed const model{Tensor<float, 3>::from({0.5f, 1.0f, 2.0f}), Tensor<std::int32_t, 3>::from({2, 0, 1})};
  CHECK(first_nan(loss, model, X::from({0.0f, 0.0f, 0.0f})) == "");
  CHECK(first_nan(loss, model, X::from({0.0f, -3.0f, 0.0f})) ==
        "log: made NaN of numbers, in a result of shape [3]");
  CHECK(!model.w.requires_grad());
}

namespace {

// A number that is not finite is seen wherever it lies, and no others are.
template <class T>
void sees_what_is_not_finite() {
  using Limits = std::numeric_limits<T>;
  for (index_t n : {1, 63, 64, 65, 200}) {
    auto x = full({n}, static_cast<double>(Limits::max()), dtype_v<T>).clone();
    CHECK(all_finite(x));
    CHECK(all_finite(Array(-x)));
    for (index_t at : {index_t{0}, n / 2, n - 1})
      for (T bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
        x.template data<T>()[at] = bad;
        CHECK(!all_finite(x));
        x.template data<T>()[at] = Limits::denorm_min();
        CHECK(all_finite(x));
      }
  }
  // Only what belongs to a view is looked at.
  auto x = zeros({4, 100}, dtype_v<T>).clone();
  x.template at<T>({2, 30}) = Limits::infinity();
  CHECK(all_finite(Array(x.part(1))));
  CHECK(!all_finite(Array(x.part(2))));
  CHECK(all_finite(Array(x.T().part(29))));
  CHECK(!all_finite(Array(x.T().part(30))));
}

}  // namespace

TEST_CASE("all_finite", "[optim]") {
  sees_what_is_not_finite<float>();
  sees_what_is_not_finite<double>();
  struct Mixed {
    Tensor<float, 3> w;
    Tensor<std::int32_t, 2> bits;
    DFDX_FIELDS(w, bits)
  };
  Mixed m{Tensor<float, 3>::from({1, 2, 3}), Tensor<std::int32_t, 2>::from({0x7f800000, 0x7fc00000})};
  CHECK(all_finite(m));
  m.w(1) = std::numeric_limits<float>::quiet_NaN();
  CHECK(!all_finite(m));
  Array const half = full({70}, 1.0, DType::f16).clone();
  CHECK(all_finite(half));
  CHECK(!all_finite(Array(half * 1e6)));
  CHECK(all_finite(Array()));  // as a gradient that nothing reached
}

}  // namespace tests::optim_watch
