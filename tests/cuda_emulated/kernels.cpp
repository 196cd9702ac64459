// SPDX-License-Identifier: BSL-1.0
// Ops with kernels of their own on the emulated device, of sizes that one block does not do: what they give does not
// depend on the order of threads, and programs of them are captured, so that no step of them is the CPU's.
#include "emulated.hpp"
#include "support.hpp"

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/random.hpp>

namespace tests::cuda_emulated_kernels {

using namespace emulated;

namespace {

// How far the device is from the CPU; infinite if a step of the function has no kernel for devices: its program would
// not be captured, and so not be replayed.
template <class F, class... A>
double on_device(F const& f, A const&... args) {
  auto program = compile(F{});
  std::tuple const there(to(cuda(), args)...);
  int const replays = machine().replays;
  for (int k = 0; k < 3; ++k)
    static_cast<void>(numbers(std::apply([&](auto const&... a) { return program(a...); }, there)));
  return machine().replays > replays ? apart(f, args...) : INFINITY;
}

constexpr auto order = [](auto const& x) { return argsort<1>(x); };
constexpr auto order_down = [](auto const& x) { return argsort<0, true>(x); };
constexpr auto some_in_order = [](auto const& x) {
  return std::tuple(std::get<1>(topk<40>(x)), std::get<1>(topk<2, 0, false>(x)),
                    std::get<1>(kthvalue<30>(x)));
};
constexpr auto sums = [](auto const& x) { return cumsum<1>(x); };
constexpr auto sums_back = [](auto const& x) {
  return dfdx::detail::along_axis<op::cumsum, "cumsum">(x, dfdx::detail::Fixed<1>{}, 1);
};
constexpr auto narrow_sums = [](auto const& x) {
  return dfdx::detail::along_axis<op::cumsum, "cumsum">(x, dfdx::detail::Fixed<1>{});
};
constexpr auto sums_across = [](auto const& x) { return cumsum<0>(x); };
constexpr auto products = [](auto const& x) { return std::tuple(cumprod<0>(x), cumprod<1>(x)); };
constexpr auto products_squared = [](auto const& x) { return sum(square(cumprod<0>(x) + cumprod<1>(x))); };
constexpr auto largest = [](auto const& x) { return std::get<1>(cummax<1>(x)); };
constexpr auto smallest = [](auto const& x) { return std::get<1>(cummin<1>(x)); };
constexpr auto squares = [](auto const& x, auto const& w) { return sum(square(cumsum<1>(x)) * w); };
constexpr auto extremes = [](auto const& x) {
  return std::tuple(argmax<1>(x), argmin<0>(x), argmax(transpose(x)));
};
constexpr auto places = [](auto const& list, auto const& x) { return searchsorted(list, x); };

template <ConvOptions O>
struct Convolve {
  constexpr auto operator()(auto const& x, auto const& w) const { return conv2d<O>(x, w); }
};
template <ConvOptions O>
struct Loss {
  constexpr auto operator()(auto const& x, auto const& w) const { return sum(square(conv2d<O>(x, w))); }
};
template <ConvOptions O, class X, class W>
void check_conv(X const& x, W const& w, double bound) {
  CHECK(on_device(Convolve<O>{}, x, w) < bound);
  CHECK(on_device(grad(Loss<O>{}, wrt<0, 1>), x, w) < 10 * bound);
}

constexpr auto draws = [](auto const& x, auto const& key) {
  return std::pair(uniform_like(x, key, 3), randn_like(transpose(x), key));
};
constexpr auto dropped = [](auto const& x, auto const& key) { return dropout(x, 0.3, key); };
constexpr auto parts = [](auto const& x, auto const& at, auto const& src) {
  return index_copy<1>(x, at, src);
};
constexpr auto pooled = [](auto const& x) {
  return sum(square(avg_pool2d<AvgPoolOptions{{3, 2}, 2, 1, true, false}>(x))) +
         sum(square(max_pool2d<MaxPoolOptions{.kernel = 3, .stride = 1, .padding = 1, .dilation = 2}>(x))) +
         sum(square(adaptive_avg_pool2d<3, 5>(x)));
};
template <InterpolateMode Mode, bool Aligned>
struct Resampled {
  constexpr auto operator()(auto const& x, auto const& w) const {
    return sum(interpolate<InterpolateOptions{.size = {9, 4}, .mode = Mode, .align_corners = Aligned}>(x) *
               w) +
           sum(square(interpolate<InterpolateOptions{.scale_factor = {0.4, 1.7}, .mode = Mode}>(x)));
  }
};
template <GridMode Mode, GridPadding Padding>
struct Sampled {
  constexpr auto operator()(auto const& x, auto const& grid) const {
    return sum(square(grid_sample<GridSampleOptions{Mode, Padding, Mode == GridMode::nearest}>(x, grid)));
  }
};
constexpr auto laid_out = [](auto const& x, auto const& y) {
  return std::tuple(concat<1>(flip<0, 2>(x), y), pad<1, 2, 0, 3>(y, 0.5), flip<1>(concat<0>(y, x)));
};

// A window that moves on in its place.
template <bool ToFront>
struct Slides {
  constexpr auto operator()(auto const& w, auto const& x) const {
    if constexpr (ToFront) return std::pair(sum(w), concat<1>(x, slice<1, 0, 690>(w)));
    else return std::pair(sum(w), concat<1>(slice<1, 10, 700>(w), x));
  }
};
template <bool ToFront>
bool slides() {
  bool same = true;
  for (auto const turns :
       {cuda_fake::Turns::forward, cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    auto here = filled<Tensor<float, 3, 700>>(1);
    auto there = to(cuda(), here);
    auto on_cpu = stateful(Slides<ToFront>{}), on_gpu = stateful(Slides<ToFront>{});
    for (int k = 0; k < 4; ++k) {
      auto const x = filled<Tensor<float, 3, 10>>(2 + k);
      static_cast<void>(on_cpu(here, x));
      static_cast<void>(on_gpu(there, to(cuda(), x)));
      same = same && numbers(here) == numbers(there);
    }
  }
  return same;
}

constexpr auto attention = [](auto const& q, auto const& k, auto const& v) {
  return scaled_dot_product_attention(q, k, v, {.causal = true, .offset = 5});
};
constexpr auto open_attention = [](auto const& q, auto const& k, auto const& v) {
  return scaled_dot_product_attention(q, k, v);
};
template <class T, index_t Size, int Tiles>
constexpr int attention_rows = kernels::cuda::AttentionFacts<
    kernels::Numbers<2, 64, Size, Size, 1, 2, 64, Size, Size, 1, 2, 64, Size, Size, 1>, T, Tiles>::tile;
template <class F>
struct SquaresOf {
  constexpr auto operator()(auto const&... x) const { return sum(square(F{}(x...))); }
};
template <class F, class Q, class K, class V>
void check_attention(F const& f, Q const& q, K const& k, V const& v, double bound) {
  CHECK(on_device(f, q, k, v) < bound);
  CHECK(on_device(grad(SquaresOf<F>{}, wrt<0, 1, 2>), q, k, v) < 10 * bound);
}

}  // namespace

TEST_CASE("sorting lines by merging, and digit by digit", "[cuda]") {
  CHECK(on_device(order, filled<Tensor<float, 3, 5000>>(1)) == 0);
  CHECK(on_device(order_down, filled<Tensor<std::int64_t, 2100, 2>>(1)) == 0);  // many are equal
  CHECK(on_device(order_down, filled<Tensor<std::uint8_t, 1025, 1>>(1)) == 0);
  CHECK(on_device(extremes, filled<Tensor<std::int32_t, 5, 700>>(1)) == 0);  // many are equal
  auto with_nan = filled<Tensor<float, 5, 700>>(1);
  with_nan.data()[3 * 700 + 500] = with_nan.data()[3 * 700 + 400] = NAN;
  CHECK(on_device(extremes, with_nan) == 0);
  auto numbers = filled<Tensor<double, 2, 1024>>(1);
  numbers(0, 7) = NAN, numbers(0, 9) = -INFINITY, numbers(1, 0) = NAN, numbers(1, 5) = -0.0;
  CHECK(on_device(order, numbers) == 0);
  CHECK(on_device(some_in_order, filled<Tensor<float, 3, 1500>>(1)) == 0);
  CHECK(on_device(order, filled<Tensor<float, dyn, dyn>>(1, 2, 3000)) == 0);
  CHECK(on_device(order, filled<Tensor<float, dyn, dyn>>(1, 4, 0)) == 0);
  // Lines about as long as a tile, and of several.
  for (index_t const n : {1024, 1025, 8192, 8193})
    CHECK(on_device(order, filled<Tensor<float, dyn, dyn>>(1, 2, n)) == 0);
  CHECK(on_device(some_in_order, filled<Tensor<float, 2, 9000>>(1)) == 0);
}
// Numbers of all sizes and signs, each several times, with what is special among them.
template <class T>
T mixed() {
  using E = typename T::value_type;
  T x = filled<T>(1);
  auto* const p = reinterpret_cast<E*>(x.bytes());
  for (index_t i = 0; i < x.size(); ++i) {
    Bits const b = philox(Key(2), static_cast<std::uint64_t>(i % (x.size() / 2)));
    std::memcpy(static_cast<void*>(p + i), &b, sizeof(E));
  }
  if constexpr (!std::is_integral_v<E>)
    for (index_t i = 0; i < x.size(); i += 97) {
      float const special[] = {NAN, -NAN, INFINITY, -INFINITY, 0.f, -0.f, 1e-42f};
      p[i] = static_cast<E>(special[i % 7]);
    }
  return x;
}
template <class E>
bool sorts_mixed() {
  return on_device(order, mixed<Tensor<E, 1, 3000>>()) == 0 &&
         on_device(order_down, mixed<Tensor<E, 1100, 2>>()) == 0;
}
TEST_CASE("sorting numbers of all kinds digit by digit", "[cuda]") {
  CHECK(sorts_mixed<float>());
  CHECK(sorts_mixed<double>());
  CHECK(sorts_mixed<float16>());
  CHECK(sorts_mixed<bfloat16>());
  CHECK(sorts_mixed<std::int32_t>());
  CHECK(sorts_mixed<std::int64_t>());
  CHECK(sorts_mixed<std::uint8_t>());
  CHECK(sorts_mixed<std::int8_t>());
  // Of several tiles, equal ones in different tiles.
  CHECK(on_device(order, mixed<Tensor<float, 1, 18000>>()) == 0);
  CHECK(on_device(order_down, mixed<Tensor<double, 5000, 2>>()) == 0);
  CHECK(on_device(order, mixed<Tensor<std::int8_t, 2, 9000>>()) == 0);
}
TEST_CASE("sums along lines, of a block, of a warp and of a thread each", "[cuda]") {
  CHECK(on_device(sums, filled<Tensor<float, 3, 1000>>(1)) < 1e-6);
  CHECK(on_device(sums, filled<Tensor<std::int32_t, 3, 1000>>(1)) == 0);
  CHECK(on_device(sums_across, filled<Tensor<double, 300, 7>>(1)) < 1e-14);
  CHECK(on_device(products, filled<Tensor<double, 9, 300>>(1)) < 1e-14);
  CHECK(on_device(products, filled<Tensor<float, 40, 7>>(1)) == 0);
  CHECK(on_device(grad(products_squared), filled<Tensor<double, 9, 30>>(1)) < 1e-13);
  CHECK(on_device(sums_across, filled<Tensor<float, 70, 1100>>(1)) < 1e-6);
  CHECK(on_device(sums, filled<Tensor<float16, 2, 257>>(1)) < 1e-3);
  // Lines of one piece of a block and of two, some that no words can be read of, and from the other end.
  for (index_t const n : {32, 33, 127, 512, 1024, 1025, 4095, 4096, 4097, 9000}) {
    auto const x = filled<Tensor<float, dyn, dyn>>(1, 3, n);
    CHECK(on_device(sums, x) < 1e-6);
    CHECK(on_device(sums_back, x) < 1e-6);
    CHECK(on_device(sums_back, filled<Tensor<std::int64_t, dyn, dyn>>(1, 2, n)) == 0);
  }
  CHECK(on_device(sums, filled<Tensor<float, 1200, 40>>(1)) < 1e-6);
  CHECK(on_device(sums_back, filled<Tensor<std::uint8_t, 3, 5000>>(1)) == 0);
  CHECK(on_device(narrow_sums, filled<Tensor<std::int8_t, 2, 4100>>(1)) == 0);
  CHECK(on_device(sums_back, filled<Tensor<bfloat16, 2, 4104>>(1)) < 1e-2);
  CHECK(on_device(sums_across, filled<Tensor<double, 4500, 2>>(1)) < 1e-13);
  CHECK(on_device(grad(squares), filled<Tensor<double, 2, 600>>(1), filled<Tensor<double, 2, 600>>(2)) <
        1e-12);
  auto x = filled<Tensor<float, 4, 700>>(1);
  x(1, 300) = NAN, x(2, 0) = NAN, x(3, 0) = -INFINITY;
  CHECK(on_device(largest, x) == 0);
  auto y = filled<Tensor<double, 3, 5003>>(1);
  y(1, 4000) = NAN, y(2, 1) = INFINITY, y(2, 4500) = INFINITY;
  CHECK(on_device(largest, y) == 0);
  CHECK(on_device(smallest, y) == 0);
  CHECK(on_device(smallest, filled<Tensor<std::int32_t, 3, 4096>>(1)) == 0);  // many are equal
  CHECK(on_device(largest, filled<Tensor<std::uint8_t, 2, 2500>>(1)) == 0);
  CHECK(on_device(places, filled<Tensor<float, 1>>(1), filled<Tensor<float, 40>>(2)) == 0);
}
TEST_CASE("convolutions by tiles, by threads and by blocks", "[cuda]") {
  check_conv<ConvOptions{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}}>(
      filled<Tensor<double, 2, 9, 13, 11>>(1), filled<Tensor<double, 70, 9, 3, 3>>(2), 1e-12);
  check_conv<ConvOptions{.padding = 1, .groups = 3}>(filled<Tensor<float, 1, 30, 7, 9>>(1),
                                                     filled<Tensor<float, 24, 10, 3, 3>>(2), 1e-4);
  // One channel in each group, and gradients of few weights that are sums of many.
  check_conv<ConvOptions{.stride = 2, .padding = 1, .groups = 5}>(
      filled<Tensor<double, 2, 5, 50, 50>>(1), filled<Tensor<double, 10, 1, 3, 3>>(2), 1e-12);
  // Gradients of weights in parts.
  check_conv<ConvOptions{}>(filled<Tensor<float, 2, 8, 34, 34>>(1), filled<Tensor<float, 9, 8, 3, 3>>(2),
                            1e-4);
  CHECK(on_device(Convolve<ConvOptions{.padding = 1}>{}, filled<Tensor<bfloat16, 1, 20, 6, 6>>(1),
                  filled<Tensor<bfloat16, 9, 20, 3, 3>>(2)) < 1e-2);
  CHECK(on_device(Convolve<ConvOptions{.padding = 1}>{}, filled<Tensor<float, dyn, 8, 6, 6>>(1, 3, 8, 6, 6),
                  filled<Tensor<float, 9, 8, 3, 3>>(2)) < 1e-5);
  CHECK(on_device(Convolve<ConvOptions{.padding = 1}>{}, filled<Tensor<float, dyn, 8, 6, 6>>(1, 0, 8, 6, 6),
                  filled<Tensor<float, 9, 8, 3, 3>>(2)) == 0);
}
TEST_CASE("attention block by block", "[cuda]") {
  // Heads that share keys; rows and keys that do not fill a tile.
  check_attention(attention, filled<Tensor<double, 2, 4, 70, 9>>(1), filled<Tensor<double, 2, 2, 75, 9>>(2),
                  filled<Tensor<double, 2, 2, 75, 12>>(3), 1e-13);
  check_attention(open_attention, filled<Tensor<float, 1, 2, 65, 64>>(1),
                  filled<Tensor<float, 1, 2, 100, 64>>(2), filled<Tensor<float, 1, 2, 100, 64>>(3), 1e-5);
  // Rows so long that tiles have 16 of them, and 8; longer ones are the CPU's.
  check_attention(open_attention, filled<Tensor<double, 64, 150>>(1), filled<Tensor<double, 64, 150>>(2),
                  filled<Tensor<double, 64, 150>>(3), 1e-13);
  STATIC_REQUIRE(attention_rows<float, 740, 2> == 8);
  STATIC_REQUIRE(attention_rows<float, 741, 2> == 0);
  STATIC_REQUIRE(attention_rows<float, 372, 4> == 8);
  STATIC_REQUIRE(attention_rows<float, 373, 4> == 0);
  using Long = Tensor<double, 64, 400>;
  CHECK(on_device(open_attention, filled<Long>(1), filled<Long>(2), filled<Long>(3)) == INFINITY);
  CHECK(apart(open_attention, filled<Long>(1), filled<Long>(2), filled<Long>(3)) == 0);
  using Squares =
      SquaresOf<std::remove_const_t<decltype(open_attention)>>;  // attend's step has two results there
  CHECK(apart(grad(Squares{}, wrt<0, 1, 2>), filled<Long>(1), filled<Long>(2), filled<Long>(3)) < 1e-12);
}
TEST_CASE("random numbers are the CPU's", "[cuda]") {
  auto const key = filled<Tensor<std::int64_t>>(5);
  CHECK(on_device(draws, filled<Tensor<double, 21, 33>>(1), key) <
        1e-11);  // the CPU's normal numbers: normal_bound
  // Of f32 to the last bit, also where what is computed fast may not be rounded, which one in 300 000 is.
  CHECK(on_device(draws, filled<Tensor<float, 21, 33>>(1), key) == 0);
  CHECK(on_device(draws, filled<Tensor<float, 1000, 1000>>(1), key) == 0);
  CHECK(on_device(draws, filled<Tensor<float, dyn, dyn>>(1, 7, 9), key) == 0);
  CHECK(on_device(dropped, filled<Tensor<float, 1000>>(1), key) < 1e-6);
  CHECK(on_device(grad([](auto const& x, auto const& k) { return sum(dropped(x, k)); }),
                  filled<Tensor<float, 999>>(1), key) < 1e-6);
}
TEST_CASE("what is computed fast of normal numbers is as near as it says", "[cuda]") {
  // Words whose numbers are near 0 and 1, and angles near the quarters of a turn.
  constexpr std::uint32_t words[] = {0u,          1u,          0x7ffu,      0x800u,
                                     0x3fffffffu, 0x40000000u, 0x7fffffffu, 0x80000000u,
                                     0xb504f333u, 0xc0000000u, 0xfffff800u, 0xffffffffu};
  constexpr int many = static_cast<int>(std::size(words));
  double worst = 0;
  for (int k = 0; k < 100000; ++k) {
    Bits b = philox(Key(1), static_cast<std::uint64_t>(k));
    for (int at = k, w = 0; k < many * many * many * many && w < 4; at /= many, ++w)
      b.word[w] = words[at % many];
    NormalPair const exact(b);
    kernels::cuda::FastPair const fast(b);
    if (!fast.is_safe(fast.even) || !fast.is_safe(fast.odd)) continue;
    double const apart = std::fmax(std::fabs(fast.even - exact.even()), std::fabs(fast.odd - exact.odd()));
    worst = tests::worse(worst, apart == 0 ? 0 : apart / fast.bound);
  }
  CHECK(worst < 0.2);
}
TEST_CASE("parts replaced, the last where a place comes twice", "[cuda]") {
  auto const x = filled<Tensor<float, 3, 40, 7>>(1);
  auto const src = filled<Tensor<float, 3, 600, 7>>(2);
  auto at = filled<Tensor<std::int32_t, 600>>(1);
  for (index_t i = 0; i < 600; ++i) at(i) = static_cast<std::int32_t>(i * i % 37);
  CHECK(on_device(parts, x, at, src) == 0);
  at(5) = 40;
  auto f = compile(parts);
  auto const wrong = f(to(cuda(), x), to(cuda(), at), to(cuda(), src));
  CHECK(tests::error_of([&] { static_cast<void>(numbers(wrong)); }) ==
        "index_copy: index 40 out of range for 40 on cuda:0: what was computed since is void");
}
TEST_CASE("lines whose places need more than 32 bits are not sorted", "[cuda]") {
  namespace k = dfdx::kernels::cuda;
  using Sort = k::SortKernel<k::AnyWalks<1, 1>, std::uint8_t, 0, false>;
  k::OwnArguments x;
  for (int i : {0, 2}) x.symbols[i] = index_t{1} << 32, x.symbols[i + 1] = 1;
  CHECK(Sort::start_all(x, nullptr) == cudaErrorInvalidValue);
}
TEST_CASE("windows and images, and their gradients", "[cuda]") {
  CHECK(on_device(grad(pooled), filled<Tensor<double, 2, 3, 13, 10>>(1)) < 1e-13);
  CHECK(on_device(grad(pooled), filled<Tensor<float, dyn, 3, 13, 10>>(1, 2, 3, 13, 10)) < 1e-5);
  auto const x = filled<Tensor<double, 2, 3, 7, 11>>(1);
  auto const w = filled<Tensor<double, 2, 3, 9, 4>>(2);
  using enum InterpolateMode;
  CHECK(on_device(grad(Resampled<bilinear, false>{}), x, w) < 1e-13);
  CHECK(on_device(grad(Resampled<bilinear, true>{}), x, w) < 1e-13);
  CHECK(on_device(grad(Resampled<bicubic, false>{}), x, w) < 1e-13);
  CHECK(on_device(grad(Resampled<nearest, false>{}), x, w) < 1e-13);
  auto const grid = filled<Tensor<double, 2, 5, 9, 2>>(3);
  CHECK(on_device(grad(Sampled<GridMode::bilinear, GridPadding::zeros>{}, wrt<0, 1>), x, grid) < 1e-12);
  CHECK(on_device(grad(Sampled<GridMode::bicubic, GridPadding::reflection>{}, wrt<0, 1>), x, grid) < 1e-12);
  CHECK(on_device(grad(Sampled<GridMode::nearest, GridPadding::border>{}), x, grid) < 1e-12);
  CHECK(on_device(laid_out, filled<Tensor<std::int32_t, 3, 5, 4>>(1),
                  filled<Tensor<std::int32_t, 3, 5, 4>>(2)) == 0);
}
TEST_CASE("a window moves on in its place", "[cuda]") {
  CHECK(slides<false>());
  CHECK(slides<true>());
}

}  // namespace tests::cuda_emulated_kernels
