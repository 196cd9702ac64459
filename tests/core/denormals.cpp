// SPDX-License-Identifier: BSL-1.0
// Denormal numbers under FlushDenormals and outside of it, in programs and in eager arithmetic. On several threads:
// threads/programs.cpp.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <limits>

namespace tests::core_denormals {

namespace {

using namespace dfdx;

// How many numbers are left of so many when all are halved, and of those that halving makes denormal.
template <class E>
struct Left {
  index_t denormal, halved, eager;
};
template <class E>
Left<E> left() {
  constexpr E least = std::numeric_limits<E>::min();
  using T = Tensor<E, 100>;
  auto half = compile([](auto const& x) { return x * E(0.5); });
  auto const kept = [](T const& y) {
    index_t n = 0;
    for (E v : y.template to_vector<E>()) n += v != 0;
    return n;
  };
  return {kept(half(full<E, 100>(least / 4))), kept(half(full<E, 100>(least * E(1.5)))),
          kept(T(Array(full<E, 100>(least * E(1.5))) * E(0.5)))};
}

constexpr index_t flushed = FlushDenormals::is_supported ? 0 : 100;

template <class E>
void check() {
  auto const all = [](Left<E> const& n, index_t wanted) {
    return n.denormal == wanted && n.halved == wanted && n.eager == wanted;
  };
  CHECK(all(left<E>(), 100));
  {
    FlushDenormals const guard;
    CHECK(all(left<E>(), flushed));
    {
      FlushDenormals const off(false);
      CHECK(all(left<E>(), 100));
    }
    CHECK(all(left<E>(), flushed));
  }
  CHECK(all(left<E>(), 100));
}

}  // namespace

TEST_CASE("denormal numbers are zero under a guard", "[core]") {
  check<float>();
  check<double>();
}

TEST_CASE("f16 keeps its denormal numbers under a guard", "[core]") {
  FlushDenormals const guard;
  auto const x = full<float16, 32>(float16(3e-6f));
  CHECK(static_cast<float>(compile([](auto const& v) { return v + v; })(x)(5)) > 5e-6f);
}

}  // namespace tests::core_denormals
