// SPDX-License-Identifier: BSL-1.0
// Lesson 1: values. A Tensor is an n-dimensional array whose element type and shape are part of its C++ type. Ops
// on values that hold memory run at once; views share memory and never copy.
#include <cassert>
#include <cmath>
#include <iostream>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

int main() {
  // Making values: from numbers, filled, counted, random. A random value is settled by its key, on every machine.
  Tensor<float, 2, 3> a{{1, 2, 3}, {4, 5, 6}};
  auto b = ones<float, 2, 3>();
  auto c = arange<double, 4>();
  auto r = randn<float, 2, 3>(Key{42});
  std::cout << "a =\n" << a << "\nr =\n" << r << "\n";
  assert(array_equal(r, randn<float, 2, 3>(Key{42})));

  // Elements by reference, rows as views.
  a(0, 2) = 30;
  auto row = a[0];  // Tensor<float, 3>
  row(0) = 10;
  assert(a(0, 0) == 10 && a(0, 2) == 30);

  // Ops are PyTorch's, elementwise ones broadcast: [2, 3] and [3], or a number.
  auto d = (a + b) * 0.5f - row;
  auto e = sqrt(abs(d)) + maximum(a, 3.0f);
  assert(std::fabs(e(1, 0) - (std::sqrt(std::fabs((4 + 1) * 0.5f - 10)) + 4)) < 1e-6f);
  std::cout << "e =\n" << e << "\n";

  // Reductions over all axes, or over those named; keepdim leaves an axis of extent 1 behind.
  assert(sum(c).item() == 6);
  auto mean_of_rows = mean<1>(a);          // Tensor<float, 2>
  auto centred = a - mean<1>(a, keepdim);  // [2, 3] - [2, 1]
  assert(std::fabs(sum(centred).item()) < 1e-5f && mean_of_rows(1) == 5);

  // Views: reshape, transpose, slices and expand walk the same memory in another way.
  auto t = transpose(a);            // Tensor<float, 3, 2>
  auto middle = slice<1, 1, 2>(a);  // a[:, 1:2], Tensor<float, 2, 1>
  auto flat = reshape<-1>(a);       // Tensor<float, 6>
  t(1, 0) = -2;
  assert(middle(0, 0) == -2 && flat(1) == -2);

  // An Array is the untyped value: dtype and shape are known when the program runs, errors are exceptions.
  Array x = a;
  Array y = matmul(x, transpose(x, 0, 1));
  std::cout << "a a' =\n" << y << "\n";
  assert(y.ndim() == 2 && y.shape()[0] == 2 && y.dtype() == DType::f32);
  auto typed_again = Tensor<float, 2, 2>(y);  // checked
  assert(allclose(typed_again, matmul(a, t)));
  try {
    static_cast<void>(matmul(x, x));
    assert(!"a wrong shape was not refused");
  } catch (error const& refusal) {
    std::cout << refusal.what() << "\n";
    assert(std::string(refusal.what()) == "matmul: inner dimensions differ: [2, 3] x [2, 3]");
  }
}
