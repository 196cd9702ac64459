// SPDX-License-Identifier: BSL-1.0
// The CUDA kernels of fused loops against those of the CPU.
#include "emulated.hpp"

#include <limits>

namespace tests::cuda_emulated_loops {

using namespace emulated;

namespace {

struct Activate {
  constexpr auto operator()(auto const& x, auto const& y) const { return gelu(x) * 2.0f + y; }
};
struct Softmax {
  constexpr auto operator()(auto const& x) const { return softmax(x); }
};
struct Normalise {
  constexpr auto operator()(auto const& x, auto const& weight, auto const& bias) const {
    return layer_norm(x, weight, bias, 1e-5f);
  }
};

// Extents that are known when it is called, and memory of 16 bits.
struct Halves {
  constexpr auto operator()(auto const& x) const { return softmax(x) * x; }
};
struct RowSums {
  constexpr auto operator()(auto const& x) const { return sum<-1>(exp(x)); }
};
// Rows add to memory that they share: elements, single numbers, and both with what is found in rows.
struct ColumnSums {
  constexpr auto operator()(auto const& x) const { return sum<0>(square(x)); }
};
struct OuterSums {
  constexpr auto operator()(auto const& x) const { return std::pair(sum<0>(x), sum<-1>(x)); }
};
struct Everything {
  constexpr auto operator()(auto const& x) const { return sum(exp(x)); }
};
// One row of two dims, as what is added repeats along the first.
struct Biased {
  constexpr auto operator()(auto const& x, auto const& b) const { return sum(square(x + b)); }
};
struct Largest {
  constexpr auto operator()(auto const& x) const { return std::tuple(max<0>(x), min<0>(x), prod<0>(x)); }
};
struct Mean {
  constexpr auto operator()(auto const& x) const { return mean<1>(x); }
};
constexpr auto norm_loss = [](auto const& weight, auto const& bias, auto const& x) {
  return sum(square(layer_norm(x, weight, bias, 1e-5f)));
};
struct Choose {
  constexpr auto operator()(auto const& x, auto const& y) const { return where(x > y, x, y * 3); }
};
struct Counts {
  constexpr auto operator()(auto const& x) const { return sum<-1>(x) + 1; }
};
// An oscillator of two numbers, pushed and damped.
struct Oscillator {
  constexpr auto operator()(auto const& start, auto const& pushes) const {
    return scan(
        [](auto const& u, auto const& push) {
          auto const [x, v] = unbind(u);
          auto const next = u + 0.1f * stack(v, push - x - 0.2f * v);
          return std::pair(next, sum(next * next));
        },
        start, pushes);
  }
};
struct Directions {
  constexpr auto operator()(auto const& x) const { return x / sqrt(sum<-1>(square(x), keepdim) + 0.1f); }
};
struct Pairs {
  constexpr auto operator()(auto const& x, auto const& y) const {
    return sum(exp(-0.5f * sum<2>(square(unsqueeze<1>(x) - unsqueeze<0>(y)))));
  }
};
// One value from the row before: a scan over single numbers is one kernel.
struct Running {
  constexpr auto operator()(auto const& first, auto const& x) const {
    return scan(
        [](auto const& carry, auto const& v) {
          auto const next = carry * 0.5f + v;
          return std::pair(next, next * carry);
        },
        first, x);
  }
};

// Single numbers of several phases, all of which are stored.
struct Spread {
  constexpr auto operator()(auto const& x) const {
    auto const m = mean(x), v = mean(square(x - m));
    return std::tuple(m, v, max(abs(x - m)), (x - m) / sqrt(v));
  }
};
struct Both {
  constexpr auto operator()(auto const& x) const { return std::pair(sum(x), sum<0>(x)); }
};
struct Scaled {
  constexpr auto operator()(auto const& x, auto const& rows) const { return x * cast<float>(rows); }
};
// Of operands of several sizes, one that repeats, one across, and truths.
struct Mixed {
  constexpr auto operator()(auto const& x, auto const& row, auto const& half, auto const& turned) const {
    auto const y = x * row + cast<float>(half) + transpose(turned);
    return std::tuple(y, y > 0.5f, cast<double>(y), cast<float16>(where(y > x, y, x)));
  }
};
template <class F, class... A>
constexpr int pack_of = kernels::cuda::MapKernel<step_code_t<program<F, A...>, 0>>::pack;
template <class F, class... A>
constexpr int row_pack_of = kernels::cuda::detail::row_pack<step_code_t<program<F, A...>, 0>>();
template <class F, class... A>
constexpr int stages_of = kernels::cuda::StagedPlan<step_code_t<program<F, A...>, 0>>::stages;
// Rows of which none begins where 16 bytes do, and some do.
template <index_t From>
struct SoftmaxOfPart {
  constexpr auto operator()(auto const& x) const { return softmax(slice<1, From, From + 1024>(x)); }
};
template <class F, class... A>
constexpr bool is_shared = kernels::cuda::WholeLoop<step_code_t<program<F, A...>, 0>>::pays();
template <class F, class... A>
constexpr index_t shares_of = kernels::cuda::WholeLoop<step_code_t<program<F, A...>, 0>>::parts(nullptr);

}  // namespace

TEST_CASE("maps of several elements a thread", "[cuda]") {
  using Large = Tensor<float, 160, 256>;
  STATIC_REQUIRE(pack_of<Activate, Large, Tensor<float, 256>> == 4);
  STATIC_REQUIRE(pack_of<Activate, Tensor<float, 160, 254>, Tensor<float, 254>> == 2);
  STATIC_REQUIRE(pack_of<Activate, Tensor<float, 7, 39>, Tensor<float, 39>> == 1);
  REQUIRE(apart(Activate{}, filled<Large>(1), filled<Tensor<float, 256>>(2)) < 1e-6);
  REQUIRE(apart(Activate{}, filled<Tensor<float, 160, 254>>(1), filled<Tensor<float, 254>>(2)) < 1e-6);
  REQUIRE(apart(Activate{}, filled<Tensor<double, 40003>>(1), filled<Tensor<double, 40003>>(2)) < 1e-12);
  REQUIRE(apart(Activate{}, filled<Tensor<float16, dyn>>(1, 1003), filled<Tensor<float16, dyn>>(2, 1003)) <
          2e-3);
  REQUIRE(apart(Activate{}, filled<Tensor<float, dyn>>(1, 0), filled<Tensor<float, dyn>>(2, 0)) == 0);
  REQUIRE(apart(Mixed{}, filled<Large>(1), filled<Tensor<float, 256>>(2),
                filled<Tensor<float16, 160, 256>>(3), filled<Tensor<float, 256, 160>>(4)) < 1e-3);
}
TEST_CASE("norms of numbers that are all alike are 0", "[cuda]") {
  Tensor<float, 100> const weight = filled<Tensor<float, 100>>(1), none(zeros({100}, DType::f32));
  for (float alike : {2024.3f, -99999.9f, 0.1f}) {
    Tensor<float, 9, 100> const x(full({9, 100}, alike, DType::f32));
    auto f = compile(Normalise{});
    for (double y : numbers(f(to(cuda(), x), to(cuda(), weight), to(cuda(), none)))) REQUIRE(y == 0);
  }
}
TEST_CASE("an operand that repeats may have wider numbers", "[cuda]") {
  REQUIRE(apart(Scaled{}, filled<Tensor<float, 160, 256>>(1), filled<Tensor<double, 160, 1>>(2)) < 1e-6);
}
TEST_CASE("rows of several elements a thread", "[cuda]") {
  STATIC_REQUIRE(row_pack_of<Softmax, Tensor<float, 3, 1024>> == 4);
  STATIC_REQUIRE(row_pack_of<Softmax, Tensor<float, 3, 514>> == 2);
  STATIC_REQUIRE(row_pack_of<Softmax, Tensor<double, 3, 4000>> == 2);
  STATIC_REQUIRE(row_pack_of<Softmax, Tensor<float, 3, 1001>> == 1);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 3, 1024>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 3, 514>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 2, 20000>>(1)) < 1e-6);  // more than shared memory holds
  REQUIRE(apart(Halves{}, filled<Tensor<float16, 3, 1160>>(1)) < 2e-3);
  REQUIRE(apart(Largest{}, filled<Tensor<float, 20, 1028>>(2)) < 1e-6);
  REQUIRE(apart(grad(norm_loss, wrt<0, 1, 2>), filled<Tensor<double, 1028>>(1),
                filled<Tensor<double, 1028>>(2), filled<Tensor<double, 9, 1028>>(3)) < 1e-12);
  REQUIRE(apart(grad(norm_loss, wrt<0, 1, 2>), filled<Tensor<float, 1028>>(1), filled<Tensor<float, 1028>>(2),
                filled<Tensor<float, 9, 1028>>(3)) < 1e-4);
}
TEST_CASE("rows that blocks bring into memory of their own", "[cuda]") {
  using Norm = std::remove_const_t<decltype(grad(norm_loss, wrt<0, 1, 2>))>;
  using Row = Tensor<float, 4096>;
  STATIC_REQUIRE(stages_of<Softmax, Tensor<float, 70, 1024>> == 2);
  STATIC_REQUIRE(stages_of<Norm, Row, Row, Tensor<float, 40, 4096>> == 2);
  STATIC_REQUIRE(stages_of<Softmax, Tensor<float, 5, 28000>> == 1);
  STATIC_REQUIRE(stages_of<Softmax, Tensor<float, 5, 60000>> == 0);
  STATIC_REQUIRE(stages_of<Softmax, Tensor<float, 5, 1026>> == 2);  // rows that are no multiple of 16 bytes
  STATIC_REQUIRE(stages_of<Softmax, Tensor<float, dyn, 1024>> == 2 &&
                 stages_of<Softmax, Tensor<float, 5, dyn>> == 0);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 70, 1024>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, dyn, 1024>>(1, 37, 1024)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, dyn, 1024>>(1, 0, 1024)) == 0);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 1, 1024>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 5, 28000>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 30, 1026>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<double, 30, 515>>(1)) < 1e-12);
  REQUIRE(apart(Halves{}, filled<Tensor<bfloat16, 30, 2047>>(1)) < 1e-2);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 3, 4, 5, 1024>>(1)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 2, 60000>>(1)) < 1e-6);
  REQUIRE(apart(Halves{}, filled<Tensor<bfloat16, 30, 2048>>(1)) < 1e-2);
  REQUIRE(apart(SoftmaxOfPart<1>{}, filled<Tensor<float, 30, 1028>>(1)) < 1e-6);
  REQUIRE(apart(SoftmaxOfPart<4>{}, filled<Tensor<float, 30, 1030>>(1)) < 1e-6);
  REQUIRE(apart(Norm{}, filled<Row>(1), filled<Row>(2), filled<Tensor<float, 40, 4096>>(3)) < 1e-4);
  REQUIRE(apart(Norm{}, filled<Tensor<double, 512>>(1), filled<Tensor<double, 512>>(2),
                filled<Tensor<double, 700, 512>>(3)) < 1e-12);
}
TEST_CASE("rows that a device has no room for are read where they lie", "[cuda][emulated]") {
  using Norm = std::remove_const_t<decltype(grad(norm_loss, wrt<0, 1, 2>))>;
  using Row = Tensor<float, 2044>;
  auto const limit = machine().dynamic_limit;
  machine().dynamic_limit = 1000;
  // (Of programs that no other test has: whether a kernel fits is asked once.)
  double const softmax_apart = apart(Softmax{}, filled<Tensor<float, 11, 2044>>(1)),
               norm_apart = apart(Norm{}, filled<Row>(1), filled<Row>(2), filled<Tensor<float, 40, 2044>>(3));
  machine().dynamic_limit = limit;
  REQUIRE(softmax_apart < 1e-6);
  REQUIRE(norm_apart < 1e-4);
}
TEST_CASE("a long row is shared by blocks", "[cuda]") {
  STATIC_REQUIRE(shares_of<Everything, Tensor<float, 150001>> == 18);
  STATIC_REQUIRE(shares_of<Softmax, Tensor<float, 200000>> == 24);
  STATIC_REQUIRE(!is_shared<Activate, Tensor<float, 100000>, Tensor<float, 100000>>);  // a map is none
  STATIC_REQUIRE(is_shared<Everything, Tensor<float, dyn>> &&
                 !is_shared<Activate, Tensor<float, dyn>, Tensor<float, dyn>>);
  STATIC_REQUIRE(shares_of<Spread, Tensor<double, 100000>> == 12);
  REQUIRE(apart(Everything{}, filled<Tensor<float, 150001>>(2)) < 1e-4);
  REQUIRE(apart(Everything{}, filled<Tensor<double, 3, 5, 7001>>(2)) < 1e-12);
  REQUIRE(apart(Everything{}, filled<Tensor<double, dyn>>(2, 140002)) < 1e-12);
  REQUIRE(apart(Everything{}, filled<Tensor<double, dyn>>(2, 5)) < 1e-12);
  REQUIRE(apart(Everything{}, filled<Tensor<double, dyn>>(2, 0)) == 0);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 200000>>(3)) < 1e-6);  // three phases, and a row of scratch
  REQUIRE(apart(Spread{}, filled<Tensor<double, 100000>>(3)) < 1e-12);
  REQUIRE(apart(Both{}, filled<Tensor<double, 9, 30000>>(3)) < 1e-12);
}
TEST_CASE("maps of odd sizes", "[cuda]") {
  REQUIRE(apart(Activate{}, filled<Tensor<float, 7, 39>>(1), filled<Tensor<float, 39>>(2)) < 1e-6);
  REQUIRE(apart(Activate{}, filled<Tensor<float, 1, 1>>(1), filled<Tensor<float, 1>>(2)) < 1e-6);
  REQUIRE(apart(Activate{}, filled<Tensor<float, 31, 257>>(1), filled<Tensor<float, 257>>(2)) < 1e-6);
}
TEST_CASE("rows of odd sizes", "[cuda]") {
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 5, 200>>(3)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 5, 1>>(3)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 3, 33>>(3)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 3, 300>>(3)) < 1e-6);
  REQUIRE(apart(Softmax{}, filled<Tensor<float, 300>>(3)) < 1e-6);
}
TEST_CASE("norms", "[cuda]") {
  REQUIRE(apart(Normalise{}, filled<Tensor<float, 9, 100>>(1), filled<Tensor<float, 100>>(2),
                filled<Tensor<float, 100>>(3)) < 1e-5);
}
TEST_CASE("extents that are known when it runs", "[cuda]") {
  using Half = Tensor<float16, dyn, dyn>;
  using Brain = Tensor<bfloat16, dyn, dyn>;
  REQUIRE(apart(Halves{}, filled<Half>(1, 3, 300)) < 2e-3);
  REQUIRE(apart(Halves{}, filled<Half>(1, 4, 7)) < 2e-3);
  REQUIRE(apart(Halves{}, filled<Half>(1, 1, 1)) < 2e-3);
  REQUIRE(apart(Halves{}, filled<Half>(1, 0, 5)) == 0);
  REQUIRE(apart(Halves{}, filled<Brain>(1, 5, 257)) < 1e-2);
  REQUIRE(apart(RowSums{}, filled<Tensor<double, dyn, 3, dyn>>(1, 5, 3, 31)) < 1e-12);
  REQUIRE(apart(Biased{}, filled<Tensor<double, dyn, 9>>(1, 40, 9), filled<Tensor<double, 9>>(2)) < 1e-12);
}
TEST_CASE("sums over rows are combined in order", "[cuda]") {
  REQUIRE(apart(ColumnSums{}, filled<Tensor<float, 67, 45>>(1)) < 1e-5);
  REQUIRE(apart(ColumnSums{}, filled<Tensor<float, 3, 700>>(1)) < 1e-5);
  REQUIRE(apart(ColumnSums{}, filled<Tensor<double, 600, 3>>(1)) < 1e-12);
  REQUIRE(apart(ColumnSums{}, filled<Tensor<float, dyn, dyn>>(1, 65, 33)) < 1e-5);
  REQUIRE(apart(ColumnSums{}, filled<Tensor<float, dyn, dyn>>(1, 0, 33)) == 0);
  REQUIRE(apart(OuterSums{}, filled<Tensor<float, 40, 70>>(2)) < 1e-5);
  REQUIRE(apart(OuterSums{}, filled<Tensor<float, 6, 5, 70>>(2)) < 1e-5);
  REQUIRE(apart(Everything{}, filled<Tensor<float, 50, 60>>(2)) < 1e-5);
  REQUIRE(apart(Everything{}, filled<Tensor<double, dyn, dyn, dyn>>(2, 5, 6, 7)) < 1e-12);
  REQUIRE(apart(Largest{}, filled<Tensor<float, 20, 37>>(2)) < 1e-6);
  REQUIRE(apart(Mean{}, filled<Tensor<float, 4, 20, 37>>(2)) < 1e-6);
  REQUIRE(apart(grad(norm_loss, wrt<0, 1, 2>), filled<Tensor<float, 100>>(1), filled<Tensor<float, 100>>(2),
                filled<Tensor<float, 9, 100>>(3)) < 1e-4);
}
TEST_CASE("integers, truths, and numbers that are none", "[cuda]") {
  REQUIRE(apart(Choose{}, filled<Tensor<std::int32_t, 5, 41>>(1), filled<Tensor<std::int32_t, 5, 41>>(2)) ==
          0);
  REQUIRE(apart(Counts{}, filled<Tensor<std::int64_t, 5, 41>>(1)) == 0);
  auto x = filled<Tensor<float, 6, 40>>(4);
  x(2, 3) = std::numeric_limits<float>::quiet_NaN();
  x(4, 39) = std::numeric_limits<float>::infinity();
  x(5, 0) = -std::numeric_limits<float>::infinity();
  REQUIRE(apart(Softmax{}, x) < 1e-6);
  REQUIRE(apart(Largest{}, x) == 0);
  REQUIRE(apart(ColumnSums{}, x) < 1e-6);
}
TEST_CASE("values handed from row to row", "[cuda]") {
  REQUIRE(apart(Running{}, filled<Tensor<float>>(1), filled<Tensor<float, 23>>(4)) < 1e-6);
  REQUIRE(apart(Oscillator{}, filled<Tensor<float, 2>>(1), filled<Tensor<float, 23>>(4)) < 1e-6);
}
TEST_CASE("vectors between pairs of points", "[cuda]") {
  REQUIRE(apart(grad(Pairs{}, wrt<0, 1>), filled<Tensor<float, 40, 3>>(1), filled<Tensor<float, 33, 3>>(2)) <
          1e-4);
}
TEST_CASE("many vectors of a few numbers", "[cuda]") {
  auto const sum_of = [](auto const& x) { return sum(cos(Directions{}(x)*x)); };
  REQUIRE(apart(Directions{}, filled<Tensor<float, 300, 3>>(1)) < 1e-6);
  REQUIRE(apart(Directions{}, filled<Tensor<double, dyn, 4>>(2, 517, 4)) < 1e-14);
  REQUIRE(apart(grad(sum_of), filled<Tensor<float, 300, 3>>(3)) < 1e-5);
}
TEST_CASE("a barrier that is missing shows", "[cuda][emulated]") {
  auto const x = filled<Tensor<float, 5, 200>>(3);
  machine().fibers.drop_barriers = true;
  double const wrong = apart(Softmax{}, x);
  machine().fibers.drop_barriers = false;
  REQUIRE(!(wrong < 1e-6));
  REQUIRE(apart(Softmax{}, x) < 1e-6);
}

}  // namespace tests::cuda_emulated_loops
