// SPDX-License-Identifier: BSL-1.0
// Memory of others, and devices: a program runs where its arguments are, and says so where it cannot.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace tests::program_device {

namespace {

using namespace dfdx;

template <class F>
std::string message(F const& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "";
}

// Memory that claims to lie on a GPU.
Array on_gpu(float* data) { return Array::borrow(data, Meta{DType::f32, make_shape(3)}, cuda(1)); }

int given_back = 0;

}  // namespace

TEST_CASE("borrowed memory is read and written where it is", "[program]") {
  std::vector<float> samples = {1, 2, 3, 4, 5, 6};
  auto const x = Tensor<float, 2, 3>::borrow(samples.data());
  REQUIRE(sum(x).item() == 21);
  constexpr auto twice = [](Tensor<float, 2, 3> const& t) { return t * 2.0f; };
  auto f = compile(twice);
  REQUIRE(f(x)(1, 2) == 12);
  samples[5] = 10;
  REQUIRE(f(x)(1, 2) == 20);
  x(0, 0) = -1;
  REQUIRE(samples[0] == -1);
  auto const y = Tensor<float, dyn, 3>::borrow(samples.data(), make_shape(2, 3));
  REQUIRE(y.shape() == make_shape(2, 3));
}

TEST_CASE("borrowed memory is given back after its last view", "[program]") {
  static float numbers[3] = {1, 2, 3};
  given_back = 0;
  {
    Array const x = Array::borrow(numbers, Meta{DType::f32, make_shape(3)}, {},
                                  [](void* p) { given_back += p == static_cast<void*>(numbers) ? 1 : 100; });
    Array const view = x.view(make_shape(1), make_shape(1), 2);
    REQUIRE(view.item<float>() == 3);
    REQUIRE(given_back == 0);
  }
  REQUIRE(given_back == 1);
}

TEST_CASE("values on a device without kernels are refused", "[program]") {
  float numbers[3] = {1, 2, 3};
  auto const there = Tensor<float, 3>(on_gpu(numbers));
  auto const here = Tensor<float, 3>::from({1, 2, 3});
  REQUIRE(there.device() == cuda(1));
  constexpr auto add = [](Tensor<float, 3> const& a, Tensor<float, 3> const& b) { return a + b; };
  auto f = compile(add);
  REQUIRE(message([&] { f(there, there); }) ==
          "program: arguments on cuda:1, this build has kernels for the CPU only");
  REQUIRE(message([&] { f(there, here); }) == "program: arguments on cuda:1 and on cpu");
  REQUIRE(message([&] { f.bind(here, there); }) == "program: arguments on cpu and on cuda:1");
  REQUIRE(message([&] { static_cast<void>(exp(there)); }) ==
          "storage: no memory on a CUDA device in this build");
  REQUIRE(message([&] { static_cast<void>(there(0)); }) ==
          "data: the value of shape [3] lies on cuda:1, not on the CPU");
  REQUIRE(message([&] { static_cast<void>(zeros_like(there)); }) ==
          "storage: no memory on a CUDA device in this build");
  REQUIRE(message([&] { static_cast<void>(Array(Meta{DType::f32, make_shape(3)}, cuda())); }) ==
          "storage: no memory on a CUDA device in this build");
}

}  // namespace tests::program_device
