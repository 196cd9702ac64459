// SPDX-License-Identifier: BSL-1.0
// error: scatter_add: index \[2, 3\] is larger than source \[2, 2\]
// error[clang]: scatter_add: index \[2, 3\] is .*larger than source \[2, 2\]
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
using Source = Tensor<float, 2, 2>;
#else
using Source = Tensor<float, 2, 3>;
#endif

using Index = Tensor<std::int64_t, 2, 3>;

constexpr auto total = [](auto const& x, auto const& index, auto const& src) {
  return sum(scatter_add<1>(x, index, src));
};

auto slope(Tensor<float, 2, 5> const& x, Index const& index, Source const& src) {
  return grad(total)(x, index, src);
}
