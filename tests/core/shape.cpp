// SPDX-License-Identifier: BSL-1.0
// Symbolic extents: products and what becomes of them when symbols get values.
#include <dfdx/core/shape.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::core_shape {

using namespace dfdx;

TEST_CASE("products of symbolic extents", "[core]") {
  index_t const a = extent::symbol(0), b = extent::symbol(1), values[max_symbols] = {3, 5};
  index_t const product = extent::mul(extent::mul(a, extent::mul(a, b)), 4);
  CHECK(product == extent::mul(4, extent::mul(b, extent::mul(a, a))));
  CHECK(extent::resolve(product, values) == 4 * 3 * 3 * 5);
  CHECK(extent::substitute(extent::substitute(product, 0, 3), 1, 5) == 4 * 3 * 3 * 5);
  CHECK(extent::substitute(product, 1, a) == extent::mul(extent::mul(a, a), extent::mul(a, 4)));
  CHECK(extent::mul(product, 0) == 0);
  CHECK(extent::mul(std::int64_t{1} << 62, 2) == -2);
}

}  // namespace tests::core_shape
