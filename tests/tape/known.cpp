// SPDX-License-Identifier: BSL-1.0
// Rules of products of Tensors compute in the dtype that these have: their gradients, of first and second order, are
// those of Arrays to the bit.
#include "../support.hpp"

#include <cstring>

#include <catch2/catch_test_macros.hpp>

#include <dfdx/dfdx.hpp>

namespace tests::tape_known {

namespace {

using namespace dfdx;

bool same_bits(Array const& a, Array const& b) {
  return a.meta() == b.meta() && std::memcmp(a.contiguous().bytes(), b.contiguous().bytes(),
                                             static_cast<std::size_t>(a.size()) * size_of(a.dtype())) == 0;
}

// Gradients of f of x and w, and those of the sum of their squares.
template <class F, class X, class W>
std::vector<Array> gradients_of(F const& f, X x, W w) {
  x.requires_grad(true), w.requires_grad(true);
  std::vector<Array> r = gradients(sum(square(Array(f(x, w)))), {x, w}, {.create_graph = true});
  Array const all = sum(square(r[0])) + sum(square(r[1]));
  for (Array const& g : gradients(all, {x, w})) r.push_back(g);
  return r;
}

template <class F, class X, class W>
void check(F const& f, X const& x, W const& w) {
  auto const known = gradients_of(f, clone(x), clone(w));
  auto const unknown = gradients_of(f, clone(Array(x)), clone(Array(w)));
  REQUIRE(known.size() == 4);
  for (std::size_t i = 0; i < known.size(); ++i) {
    INFO("gradient " << i << " of " << name_of(x.dtype()));
    CHECK(same_bits(known[i], unknown[i]));
  }
}

template <class T>
void check_all() {
  auto const product = [](auto const& a, auto const& b) { return matmul(a, b); };
  check(product, uniform<T, 5, 7>(Key{1}), uniform<T, 7, 3>(Key{2}));
  check(product, uniform<T, 2, 5, 7>(Key{1}), uniform<T, 2, 7, 3>(Key{2}));
  auto const windows = [](auto const& a, auto const& b) { return conv2d(a, b, {.stride = 2, .padding = 1}); };
  check(windows, uniform<T, 2, 4, 7, 9>(Key{3}), uniform<T, 6, 4, 3, 3>(Key{4}));
  auto const one_window = [](auto const& a, auto const& b) { return conv2d(a, b, {}); };
  check(one_window, uniform<T, 2, 4, 3, 3>(Key{3}), uniform<T, 6, 4, 3, 3>(Key{4}));
  auto const spread = [](auto const& a, auto const& b) { return conv_transpose2d(a, b, {.stride = 2}); };
  check(spread, uniform<T, 2, 4, 5, 6>(Key{5}), uniform<T, 4, 3, 3, 2>(Key{6}));
  auto const larger = [](auto const& a, auto const& b) {
    return interpolate<InterpolateOptions{.scale_factor = 2, .mode = InterpolateMode::bilinear}>(a * b);
  };
  check(larger, uniform<T, 1, 2, 4, 5>(Key{7}), uniform<T, 1, 2, 4, 5>(Key{8}));
}

}  // namespace

TEST_CASE("rules of products of Tensors and of Arrays give the same bits", "[tape]") {
  check_all<float>();
  check_all<double>();
  check_all<float16>();
  check_all<bfloat16>();
}

}  // namespace tests::tape_known
