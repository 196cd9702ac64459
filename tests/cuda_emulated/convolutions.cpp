// SPDX-License-Identifier: BSL-1.0
// Convolutions that cuDNN computes, on an emulation of it that does what it is told: programs and ops called one by
// one, with all that a convolution may have; what is asked of it and what is not; and what follows when it refuses.
#include "called.hpp"

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <dfdx/vocabulary/conv.hpp>

namespace tests::cuda_emulated_convolutions {

using namespace emulated;

namespace {

/// Sets from how many multiplications on cuDNN is asked, as long as it lives.
struct CudnnFrom {
  std::int64_t before = cuda_options.cudnn_from;
  explicit CudnnFrom(std::int64_t from) { cuda_options.cudnn_from = from; }
  CudnnFrom(CudnnFrom const&) = delete;
  ~CudnnFrom() {
    cuda_options = {};
    cuda_options.cudnn_from = before;
    cuda_fake::convolutions.refuse = cuda_fake::convolutions.fail = false;
  }
};
auto convolutions() { return cuda_fake::convolutions.convolutions; }

template <int Axes, ConvOptions O>
constexpr auto convolved(auto const& x, auto const& w) {
  if constexpr (Axes == 1) return conv1d<O>(x, w);
  else if constexpr (Axes == 2) return conv2d<O>(x, w);
  else return conv3d<O>(x, w);
}
template <int Axes, ConvOptions O>
struct Convolve {
  constexpr auto operator()(auto const& x, auto const& w) const { return convolved<Axes, O>(x, w); }
};
template <int Axes, ConvOptions O>
struct Loss {
  constexpr auto operator()(auto const& x, auto const& w) const {
    return sum(square(convolved<Axes, O>(x, w)));
  }
};
// A program with a convolution and one with its gradients too, by cuDNN: one and then three of them, in three orders of
// threads, as on the CPU. The third time all is one graph. Only of f32 is an engine refused that rounds.
template <int Axes, ConvOptions O, class X, class W>
void check(X const& x, W const& w, double bound) {
  auto const before = convolutions();
  CHECK(apart(Convolve<Axes, O>{}, x, w) < bound);
  CHECK(convolutions() == before + 2);
  CHECK(apart(grad(Loss<Axes, O>{}, wrt<0, 1>), x, w) < 10 * bound);
  CHECK(convolutions() == before + 2 + 6);
  bool const is_f32 = X::static_meta.dtype == DType::f32;
  CHECK(cuda_fake::convolutions.engine == (is_f32 ? cuda_fake::plain_engine : cuda_fake::rounding_engine));
}

constexpr auto images = [](auto const& x, auto const& w) {
  return conv2d<ConvOptions{.stride = {2, 1}, .padding = 1, .groups = 2}>(x, w);
};

}  // namespace

TEST_CASE("convolutions of programs by cuDNN", "[cuda]") {
  CudnnFrom const from(0);
  check<2, ConvOptions{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}}>(
      filled<Tensor<double, 2, 9, 13, 11>>(1), filled<Tensor<double, 7, 9, 3, 3>>(2), 1e-12);
  check<2, ConvOptions{.padding = 1, .groups = 3}>(filled<Tensor<float, 1, 6, 7, 9>>(1),
                                                   filled<Tensor<float, 12, 2, 3, 3>>(2), 1e-4);
  // Windows that leave a part of the input out, which the gradient fills with zeros.
  check<2, ConvOptions{.stride = 3}>(filled<Tensor<double, 2, 4, 10, 12>>(1),
                                     filled<Tensor<double, 3, 4, 2, 2>>(2), 1e-12);
  check<1, ConvOptions{.stride = 2, .padding = 2}>(filled<Tensor<double, 3, 4, 17>>(1),
                                                   filled<Tensor<double, 5, 4, 4>>(2), 1e-12);
  check<3, ConvOptions{.padding = {0, 1, 1}, .dilation = {1, 2, 1}}>(
      filled<Tensor<double, 2, 3, 4, 6, 5>>(1), filled<Tensor<double, 4, 3, 2, 2, 3>>(2), 1e-12);
  check<2, ConvOptions{.padding = 1}>(filled<Tensor<bfloat16, 1, 8, 6, 6>>(1),
                                      filled<Tensor<bfloat16, 5, 8, 3, 3>>(2), 0.02);
  CHECK(apart(Convolve<2, ConvOptions{.padding = 1}>{}, filled<Tensor<float, dyn, 8, 6, 6>>(1, 3, 8, 6, 6),
              filled<Tensor<float, 9, 8, 3, 3>>(2)) < 1e-4);
}

TEST_CASE("transposed convolutions and views by cuDNN", "[cuda]") {
  CudnnFrom const from(0);
  auto const before = convolutions();
  CHECK(apart(
            [](auto const& x, auto const& w) {
              return conv_transpose2d<ConvTransposeOptions{.stride = 2, .padding = 1, .output_padding = 1}>(
                  x, w);
            },
            filled<Tensor<double, 2, 5, 4, 6>>(1), filled<Tensor<double, 5, 3, 3, 3>>(2)) < 1e-12);
  CHECK(apart([](auto const& x, auto const& w) { return conv2d(permute<0, 3, 1, 2>(x), w); },
              filled<Tensor<double, 2, 7, 9, 5>>(1), filled<Tensor<double, 3, 5, 3, 3>>(2)) < 1e-12);
  CHECK(convolutions() == before + 4);
}

TEST_CASE("which engines of cuDNN are taken, and what is planned once", "[cuda][emulated]") {
  CudnnFrom const from(0);
  auto const x = filled<Tensor<float, 2, 4, 11, 9>>(1);
  auto const w = filled<Tensor<float, 3, 4, 3, 3>>(2);
  auto f = compile(Convolve<2, ConvOptions{}>{});
  auto const there_x = to(cuda(), x);
  auto const there_w = to(cuda(), w);
  static_cast<void>(f(there_x, there_w));
  CHECK(cuda_fake::convolutions.engine == cuda_fake::plain_engine);
  int const choices = cuda_fake::convolutions.choices, parts = cuda_fake::convolutions.parts;
  for (int i = 0; i < 5; ++i) static_cast<void>(f(there_x, there_w));
  CHECK(cuda_fake::convolutions.choices == choices);
  CHECK(cuda_fake::convolutions.parts == parts);
  cuda_options.tf32 = true;
  auto g = compile(Convolve<2, ConvOptions{}>{});
  static_cast<void>(g(there_x, there_w));
  CHECK(cuda_fake::convolutions.engine == cuda_fake::rounding_engine);
  CHECK(cuda_fake::convolutions.choices == choices + 1);
}

TEST_CASE("convolutions that cuDNN is not asked for, or refuses", "[cuda][emulated]") {
  auto const x = filled<Tensor<float, 2, 4, 12, 9>>(1);
  auto const w = filled<Tensor<float, 3, 4, 3, 3>>(2);
  using F = Convolve<2, ConvOptions{.padding = 1}>;
  auto const before = convolutions();
  CHECK(apart(F{}, x, w) < 1e-4);  // of few multiplications
  {
    CudnnFrom const from(2 * 12 * 9 * 3 * 36 + 1);
    CHECK(apart(F{}, x, w) < 1e-4);
    CHECK(convolutions() == before);
    cuda_options.cudnn_from -= 1;  // what was captured before is computed anew
    CHECK(apart(F{}, x, w) < 1e-4);
    CHECK(convolutions() == before + 2);
  }
  CudnnFrom const from(0);
  cuda_fake::convolutions.refuse = true;
  auto const other = filled<Tensor<float, 2, 4, 11, 10>>(1);
  CHECK(apart(F{}, other, w) < 1e-4);
  // Of an operand whose elements are read twice it is not even asked.
  CHECK(apart([](auto const& v, auto const& u) { return conv2d(expand<2, 4, 5, 5>(v), u); },
              filled<Tensor<float, 4, 5, 5>>(1), w) < 1e-4);
  CHECK(convolutions() == before + 2);
  cuda_fake::convolutions.refuse = false;
  cuda_fake::convolutions.fail = true;
  auto f = compile(F{});
  auto const last = filled<Tensor<float, 2, 4, 11, 8>>(1);
  CHECK_THROWS_WITH(f(to(cuda(), last), to(cuda(), w)),
                    Catch::Matchers::StartsWith("cuda: cuDNN, convolution: CUDNN_STATUS_EXECUTION_FAILED"));
}

TEST_CASE("convolutions called on a device by cuDNN", "[cuda]") {
  CudnnFrom const from(0);
  Missed const missed;
  Array const x = drawn(make_shape(2, 4, 9, 8), 5), w = drawn(make_shape(6, 2, 3, 2), 6);
  auto const gradient_of = [](auto const& f, std::size_t which) {
    return [=](Array const& v, Array const& u) {
      Array a[2] = {v.detach(), u.detach()};
      for (Array& one : a) one.requires_grad(true);
      return gradients(sum(square(f(a[0], a[1]))), {a[which]})[0];
    };
  };
  auto const before = convolutions();
  CHECK(called(images, x, w) < 1e-4);
  CHECK(called(images, cast_to(x, DType::bf16), cast_to(w, DType::bf16)) < 1e-2);
  CHECK(called(images, x, transpose(drawn(make_shape(6, 2, 2, 3), 7), 2, 3)) < 1e-4);
  // Of places that are multiples of 2 bytes alone.
  CHECK(called([](auto const& a, auto const& b) { return images(slice<3, 1, 8>(a), b); },
               cast_to(x, DType::bf16), cast_to(w, DType::bf16)) < 1e-2);
  CHECK(convolutions() == before + 12);
  CHECK(called(gradient_of(images, 0), x, w) < 1e-4);
  CHECK(called(gradient_of(images, 1), x, w) < 1e-4);
  CHECK(called([](auto const& a, auto const& b) { return conv1d(a, transpose(b)); },
               drawn(make_shape(2, 3, 20), 7), drawn(make_shape(5, 4, 3), 8)) < 1e-4);
  CHECK(called([](auto const& a) { return conv3d<ConvOptions{.padding = 1}>(a, a); },
               drawn(make_shape(2, 2, 3, 3, 3), 5)) < 1e-4);
  CHECK(Missed::names() == std::vector<std::string>());
}

}  // namespace tests::cuda_emulated_convolutions
