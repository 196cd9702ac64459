// SPDX-License-Identifier: BSL-1.0
// Operands of more elements than kernels take at a time, in all layouts and dtypes; whole numbers, so that every result
// is exact.
#include "ops/places.hpp"

#include <dfdx/vocabulary/methods.hpp>

namespace tests::ops_large {

namespace {

using namespace suite;

constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,
                            DType::i32, DType::i64, DType::u8,  DType::i8};
constexpr Layout layouts[] = {Layout::dense, Layout::turned, Layout::sparse};

// Small whole numbers in no simple order.
Array whole(Shape const& s, DType d, int low = 0, int high = 3) {
  return cast_to(draw(s, {static_cast<double>(low), static_cast<double>(high)}, 5 + s.rank, DType::i32), d);
}

// The elements of x in row-major order, by index.
std::vector<double> elements(Array const& x) {
  std::vector<double> r;
  for_indices(x.shape(), [&](index_t const* i) { r.push_back(value_at(x, i)); });
  return r;
}

}  // namespace

TEST_CASE("elementwise ops of long rows", "[ops]") {
  struct Pair {
    Shape x, y;
  };
  for (Pair const& p :
       {Pair{make_shape(1300), make_shape(1300)}, Pair{make_shape(3, 1300), make_shape(1300)},
        Pair{make_shape(3, 1300), make_shape(3, 1)}, Pair{make_shape(2, 700), make_shape()},
        Pair{make_shape(1300, 3), make_shape(3)}, Pair{make_shape(2, 1, 600), make_shape(2, 3, 1)},
        Pair{make_shape(1, 1300), make_shape(2, 1)}})
    for (DType d : dtypes)
      for (Layout a : layouts)
        for (Layout b : layouts) {
          Array const x = laid_out(whole(p.x, d), a), y = laid_out(whole(p.y, d, 1, 4), b);
          Shape const s = op::broadcast_shapes("", p.x, p.y, nullptr);
          std::vector<double> const u = elements(broadcast_to(x, s)), v = elements(broadcast_to(y, s));
          std::vector<double> const sums = elements(x + y), larger = elements(maximum(y, x)),
                                    less = elements(x < y), chosen = elements(where(x < y, x, y));
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < u.size(); ++i)
            wrong += sums[i] != u[i] + v[i] || larger[i] != std::fmax(u[i], v[i]) ||
                     less[i] != double(u[i] < v[i]) || chosen[i] != std::fmin(u[i], v[i]);
          INFO(name_of(d) << ", layouts " << static_cast<int>(a) << " and " << static_cast<int>(b)
                          << ", ranks " << p.x.rank << " and " << p.y.rank);
          REQUIRE(wrong == 0);
          // Two repeated operands that change from row to row at the same places of the first buffer.
          REQUIRE(elements(y - y) == std::vector<double>(static_cast<std::size_t>(y.size())));
        }
}

TEST_CASE("casts of long rows", "[ops]") {
  for (Shape const& s : {make_shape(1300), make_shape(2, 1100), make_shape(1100, 2)})
    for (DType a : dtypes)
      for (DType b : dtypes)
        for (Layout layout : layouts) {
          Array const x = laid_out(whole(s, a), layout);
          INFO(name_of(a) << " to " << name_of(b) << ", layout " << static_cast<int>(layout));
          REQUIRE(elements(cast_to(x, b)) == elements(x));
          // Into memory with gaps.
          Array const room = full({s.numel(), 2}, 9, b), gaps = slice_axis(room, 1, 0, 1);
          Array target = reshape_to(slice_axis(room, 1, 1, 1), make_shape(s.numel()));
          kernels::convert(reshape_to(x, make_shape(s.numel())).operand(), target.operand());
          REQUIRE(elements(target) == elements(x));
          REQUIRE(elements(gaps) == std::vector<double>(static_cast<std::size_t>(s.numel()), 9));
          kernels::convert(broadcast_to(full({}, 3, a), target.shape()).operand(),
                           target.operand());  // one number, again and again
          REQUIRE(elements(target) == std::vector<double>(static_cast<std::size_t>(s.numel()), 3));
          REQUIRE(elements(gaps) == std::vector<double>(static_cast<std::size_t>(s.numel()), 9));
        }
}

TEST_CASE("reductions of many elements", "[ops]") {
  struct Case {
    Shape s;
    index_t mask;
  };
  for (Case const& c :
       {Case{make_shape(9001), 1}, Case{make_shape(3, 5003), 2}, Case{make_shape(5003, 3), 1},
        Case{make_shape(100, 131), 1}, Case{make_shape(100, 131), 2}, Case{make_shape(7, 9, 80), 5},
        Case{make_shape(7, 9, 80), 2}, Case{make_shape(4, 33), 2}, Case{make_shape(5, 1300), 1},
        Case{make_shape(3, 4, 15), 2}, Case{make_shape(3, 4, 7), 2}, Case{make_shape(4, 32), 2},
        Case{make_shape(33, 40), 1}})
    for (DType d : dtypes)
      for (Layout layout : layouts) {
        Array const x = laid_out(whole(c.s, d, -1, 1), layout), up = laid_out(whole(c.s, d, 2, 9), layout),
                    down = laid_out(whole(c.s, d, -9, -2), layout);
        INFO(name_of(d) << " rank " << c.s.rank << " mask " << c.mask << ", layout "
                        << static_cast<int>(layout));
        auto const is = [&](Array const& got, Array const& of, double first, double (*join)(double, double)) {
          REQUIRE(got.dtype() == d);
          Array const want = reduced(of, c.mask, true, first, join);
          REQUIRE(elements(got) == elements(cast_to(want, d)));
        };
        if (d == DType::u8) continue;  // has no -1, and wraps: below
        is(dfdx::detail::reduce_mask<op::sum, void>(x, c.mask, true), x, 0,
           [](double a, double b) { return a + b; });
        Array const ones_and_minus = where(x < 0, x, ones_like(x));
        is(dfdx::detail::reduce_mask<op::prod, void>(ones_and_minus, c.mask, true), ones_and_minus, 1,
           [](double a, double b) { return a * b; });
        // Neither all above nor all below the elements that a wrong first one would be.
        for (Array const& v : {up, down}) {
          is(dfdx::detail::reduce_mask<op::max, void>(v, c.mask, true), v, -HUGE_VAL,
             [](double a, double b) { return a > b ? a : b; });
          is(dfdx::detail::reduce_mask<op::min, void>(v, c.mask, true), v, HUGE_VAL,
             [](double a, double b) { return a < b ? a : b; });
        }
      }
  CHECK(sum(ones({1000}, DType::u8)).item<std::int64_t>() == 1000);
  // Each element counts, whichever lane it falls in.
  for (DType d : {DType::f64, DType::f32, DType::i32})
    for (index_t n : {15, 16, 31, 32, 33, 63, 64, 65, 100, 128, 200})
      for (index_t i = 0; i < n; ++i) {
        Array const x = zeros({n}, d);
        write_real(x.operand(), i, 1);
        REQUIRE(at(sum(x), 0) == 1);
        REQUIRE(at(max(x), 0) == 1);
        REQUIRE(at(min(-x), 0) == -1);
      }
  // Sums of floats do not lose what is small beside what came before: blocks are added in double.
  Array const many = full({1 << 20}, 0.1f).contiguous();
  CHECK(std::fabs(at(sum(many), 0) - 0.1f * double(1 << 20)) < 0.5);
}

}  // namespace tests::ops_large
