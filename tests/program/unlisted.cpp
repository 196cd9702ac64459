// SPDX-License-Identifier: BSL-1.0
// Members that DFDX_FIELDS does not name: what programs make of them, and which structs can be looked at.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tests::program_unlisted {

namespace {

using namespace dfdx;

enum class Kind { relu, tanh };
struct Sizes {
  int of[3] = {1, 2, 3};
  double rate = 0.5;
};
struct Part {
  Tensor<float, 3> w;
  float p = 2;
  DFDX_FIELDS(w)
  constexpr auto operator()(auto const& x) const { return x * w * static_cast<double>(p); }
};
struct Net {
  Part first, second{{}, 3};
  std::array<Part, 2> more;
  int heads = 1;
  Kind kind = Kind::relu;
  Sizes sizes;
  std::optional<int> window;
  double limit = std::numeric_limits<double>::quiet_NaN();
  std::vector<int> list{1, 2};
  std::string mode = "a text that is longer than what a string holds in itself";
  nn::ReLU relu;
  int const* shared = nullptr;
  Unread<int> epochs;
  static constexpr double constant = 4;
  DFDX_FIELDS(first, second, more, relu)
  constexpr auto operator()(auto const& x) const { return relu(more[0](second(first(x)))) * constant; }
};
static_assert(detail::member_count<Net>() == 13);

// What cannot be taken apart.
struct Base {};
struct Derived : Base {
  Tensor<float, 3> w;
  int k = 1;
  DFDX_FIELDS(w)
};
class Closed {
 public:
  Tensor<float, 3> w;
  int k() const { return k_; }
  DFDX_FIELDS(w)
 private:
  int k_ = 1;
};
struct Explicit {
  explicit Explicit() = default;
};
struct WithExplicit {
  Tensor<float, 3> w;
  Explicit e = Explicit();
  int k = 1;
  DFDX_FIELDS(w)
};
struct Seventeen {
  int a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0, j = 0, k = 0, l = 0, m = 0, n = 0, o = 0,
      p = 0, q = 0;
};
static_assert(detail::member_count<Derived>() == detail::unknown_members);
static_assert(detail::member_count<Closed>() == detail::unknown_members);
static_assert(detail::member_count<WithExplicit>() == detail::unknown_members);
static_assert(detail::member_count<Seventeen>() == detail::unknown_members);
// What costs nothing.
static_assert(!detail::may_differ<nn::Linear<2, 3>>() && !detail::may_differ<Tensor<float>>());
static_assert(!detail::may_differ<Derived>() && detail::may_differ<nn::Sequential<nn::LayerNorm<3>>>());

constexpr auto run = [](auto const& m, auto const& x) { return m(x); };

std::string differs(char const* type, int member) {
  return std::string("program: member ") + std::to_string(member) + " of " + type +
         ", not in DFDX_FIELDS, differs from what its type says, which is what programs see: make it a "
         "template "
         "argument or a Tensor; or Unread";
}

// The program refuses a model that is changed so.
template <class M, class Change>
void refuses(std::string const& message, Change const& change) {
  auto model = init<M>(1);
  auto const x = ones<float, 3>();
  auto f = compile(run);
  CHECK(allclose(f(model, x), model(x)));
  change(model);
  CHECK_THROWS_MATCHES(f(model, x), std::exception, Catch::Matchers::Message(message));
  CHECK_THROWS_MATCHES(f.bind(model, x), std::exception, Catch::Matchers::Message(message));
  CHECK_THROWS_MATCHES(f.bind(fixed(model), x), std::exception, Catch::Matchers::Message(message));
}

}  // namespace

TEST_CASE("programs refuse models whose unlisted members differ from their type's", "[program]") {
  refuses<Part>(differs("Part", 2), [](Part& m) { m.p = 3; });
  refuses<Net>(differs("Part", 2), [](Net& m) { m.second.p = 2; });
  refuses<Net>(differs("Part", 2), [](Net& m) { m.more[1].p = 3; });
  refuses<Net>(differs("Net", 4), [](Net& m) { m.heads = 2; });
  refuses<Net>(differs("Net", 5), [](Net& m) { m.kind = Kind::tanh; });
  refuses<Net>(differs("Net", 6), [](Net& m) { m.sizes.of[1] = 3; });
  refuses<Net>(differs("Net", 7), [](Net& m) { m.window = 4; });
  refuses<Net>(differs("Net", 8), [](Net& m) { m.limit = 0; });
  refuses<Net>(differs("Net", 9), [](Net& m) { m.list = {1}; });
  refuses<Net>(differs("Net", 10), [](Net& m) { m.mode = "other"; });
  refuses<nn::LayerNorm<3>>(differs("LayerNorm", 3), [](auto& m) { m.eps = 1e-3; });
}

TEST_CASE("members that no program reads may have any value", "[program]") {
  auto model = init<Net>(1);
  model.epochs.value = 3;
  model.shared = &model.heads;
  auto const x = ones<float, 3>();
  CHECK(allclose(compile(run)(model, x), model(x)));
}

TEST_CASE("a training step that refused a model takes it when it is mended", "[program]") {
  auto model = init<Part>(1);
  auto step = train_step([](auto const& m, auto const& x) { return sum(m(x)); }, optim::Adam{.lr = 0.1f});
  model.p = 3;
  CHECK_THROWS_MATCHES(step(model, ones<float, 3>()), std::exception,
                       Catch::Matchers::Message(differs("Part", 2)));
  model.p = 2;
  step(model, ones<float, 3>());
  CHECK(step.steps() == 1);
}

}  // namespace tests::program_unlisted
