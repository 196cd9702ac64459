// SPDX-License-Identifier: BSL-1.0
// What nvcc reads of the headers on the host: whatever only the CPU has is guarded, and all that is left gives the same
// numbers. Compiled by the C++ compiler alone, for machines without nvcc.
#include <dfdx/dfdx.hpp>

#include <cassert>

using namespace dfdx;

int main() {
  auto const a = randint<std::int8_t, 3, 4>(Key{1}, -5, 5);
  auto const products = compile([](auto const& x, auto const& y) { return matmul(x, transpose(y)); })(a, a);
  assert(array_equal(products, matmul(a, transpose(a))));
  assert(sum(permutation<std::int64_t, 99>(Key{2})).item() == 99 * 98 / 2);

  auto const x = randn<float, 5, 6>(Key{3});
  auto const w = uniform<float, 7, 6>(Key{4});
  auto const loss = [](auto const& m, auto const& v) { return sum(square(tanh(linear(v, m)))); };
  auto const [value, gradient] = value_and_grad(loss)(w, x);
  Array tape = Array(w).clone();
  tape.requires_grad(true);
  Array const eager = loss(tape, Array(x));
  eager.backward();
  assert(allclose(value, eager, 1e-6, 1e-6) && allclose(gradient, tape.grad(), 1e-5, 1e-6));

  auto const picture = randn<float, 2, 3, 9, 9>(Key{5});
  auto const filters = randn<float, 4, 3, 3, 3>(Key{6});
  auto const convolve = [](auto const& p, auto const& f) { return max(relu(conv2d(p, f))); };
  assert(allclose(compile(convolve)(picture, filters), convolve(picture, filters), 1e-5, 1e-6));
}
