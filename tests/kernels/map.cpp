// SPDX-License-Identifier: BSL-1.0
// Elementwise ops and reductions over rows of all lengths, dense, repeated and strided, against loops over single
// elements.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace tests::kernels_map {

namespace {

using namespace dfdx;

// Small integers, which every dtype holds, and whose sums are exact in those that count.
Array numbers(Shape const& s, DType d, int seed) {
  std::vector<double> v(static_cast<std::size_t>(s.numel()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(seed)) % 11);
  return cast_to(from(std::span<double const>(v), s), d);
}

double at(Array const& x, std::vector<index_t> const& index) {
  index_t offset = 0;
  for (int a = 0; a < x.ndim(); ++a) offset += index[static_cast<std::size_t>(a)] * x.strides()[a];
  return read_real(x.operand(), offset);
}

template <class F>
void each_index(Shape const& s, F const& f) {
  std::vector<index_t> index(static_cast<std::size_t>(s.rank));
  for (index_t n = s.numel(), i = 0; i < n; ++i) {
    index_t rest = i;
    for (int a = s.rank - 1; a >= 0; --a) {
      index[static_cast<std::size_t>(a)] = rest % s[a];
      rest /= s[a];
    }
    f(index);
  }
}

bool sums_agree(Array const& x, Array const& y, Shape const& s) {
  Array const z = x + y, a = broadcast_to(x, s), b = broadcast_to(y, s);
  bool agree = z.shape() == s;
  if (agree) each_index(s, [&](auto const& i) { agree = agree && at(z, i) == at(a, i) + at(b, i); });
  return agree;
}

TEST_CASE("operands repeated along some axes, with rows of any length") {
  for (DType d : {DType::f32, DType::f64, DType::f16, DType::i32})
    for (index_t n : {1, 2, 3, 7, 32, 100, 255, 256, 257, 600})
      for (index_t rows : {1, 2, 5, 70}) {
        Shape const s = make_shape(3, rows, n);
        Array const x = numbers(s, d, 1);
        INFO(name_of(d) << " rows " << rows << " of " << n);
        CHECK(sums_agree(x, numbers(make_shape(n), d, 2), s));
        CHECK(sums_agree(x, numbers(make_shape(rows, 1), d, 3), s));
        CHECK(sums_agree(x, numbers(make_shape(3, 1, 1), d, 4), s));
        CHECK(sums_agree(x, numbers(make_shape(3, 1, n), d, 5), s));
        CHECK(sums_agree(numbers(make_shape(3, rows, 1), d, 6), numbers(make_shape(1, 1, n), d, 7), s));
        CHECK(sums_agree(x, transpose(numbers(make_shape(n, rows), d, 8)), s));
        CHECK(sums_agree(transpose(numbers(make_shape(3, n, rows), d, 9)),
                         slice(numbers(make_shape(rows, 2 * n), d, 1), 1, 0, 2 * n, 2), s));
      }
}

TEST_CASE("views that overlap themselves") {
  // The second row begins where a shorter block of the first one did.
  Array const x = numbers(make_shape(4000), DType::f64, 1).view(make_shape(2, 600), make_shape(1024, 2));
  CHECK(sums_agree(x, numbers(make_shape(600), DType::f64, 2), make_shape(2, 600)));
}

TEST_CASE("results of another dtype, and of rows of no elements") {
  Array const x = numbers(make_shape(70, 5), DType::f64, 1), y = numbers(make_shape(5), DType::f64, 2);
  Array const less = x < y;
  bool agree = true;
  each_index(x.shape(), [&](auto const& i) {
    agree = agree && (at(less, i) != 0) == (at(x, i) < y.data<double>()[i[1]]);
  });
  CHECK(agree);
  CHECK((numbers(make_shape(4, 0), DType::f32, 1) + numbers(make_shape(4, 1), DType::f32, 1)).size() == 0);
  CHECK((numbers(make_shape(0, 4), DType::f32, 1) + numbers(make_shape(4), DType::f32, 1)).size() == 0);
}

TEST_CASE("sums, products and extrema of rows of any length") {
  for (DType d : {DType::f32, DType::f64})
    for (index_t n = 1; n < 150; ++n) {
      Array const x = numbers(make_shape(3, n), d, static_cast<int>(n));
      Array const sums = sum(x, {1}), large = max(x, {1}), small = min(-x, {1}), all = sum(x);
      Array const products = prod(where(x > 9.0, full_like(x, -1), full_like(x, 1)), {1});
      double total = 0;
      for (index_t r = 0; r < 3; ++r) {
        double s = 0, m = 0, p = 1;
        for (index_t i = 0; i < n; ++i) {
          double const v = at(x, {r, i});
          s += v, m = v > m ? v : m, p *= v > 9 ? -1 : 1;
        }
        CHECK(at(sums, {r}) == s);
        CHECK(at(large, {r}) == m);
        CHECK(at(small, {r}) == -m);
        CHECK(at(products, {r}) == p);
        total += s;
      }
      CHECK(all.item() == total);
    }
}

TEST_CASE("gather by an index that is the same for a row") {
  Array const x = numbers(make_shape(9, 5), DType::f32, 1), i = from({8, 0, 3, 3});
  Array const wide = expand(reshape(i, {4, 1}), {4, 5});
  for (bool dense : {true, false}) {
    Array const from_x = dense ? x : transpose(transpose(x).clone());
    Array const y = gather(from_x, 0, wide);
    bool agree = y.shape() == make_shape(4, 5);
    each_index(y.shape(), [&](auto const& at_y) {
      agree = agree && at(y, at_y) == at(x, {read_index(i.operand(), at_y[0]), at_y[1]});
    });
    CHECK(agree);
  }
}

TEST_CASE("operands that lie across each other are walked in tiles") {
  for (DType const d :
       {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (auto const& [rows, columns] : {std::pair{16, 17}, {17, 16}, {33, 48}, {40, 100}, {130, 70}}) {
      // A batch between the axes, so that neither is next to the other.
      Array const x = numbers(make_shape(rows, 2, columns), d, 1),
                  y = numbers(make_shape(columns, 2, rows), d, 4);
      bool const adds = is_floating(d) || d == DType::i64;
      Array const across = transpose(x, 0, 2), copy = across.contiguous(), sum = adds ? across + y : copy;
      bool agree = copy.contiguous_memory() && copy.shape() == y.shape();
      each_index(y.shape(), [&](auto const& i) {
        double const v = at(x, {i[2], i[1], i[0]});
        agree = agree && at(copy, i) == v && (!adds || at(sum, i) == v + at(y, i));
      });
      CHECK(agree);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("truths in lanes", "[kernels]", float, double) {
  using T = TestType;
  for (index_t n = 0; n < 70; ++n) {
    // A byte more on both sides, to be left alone.
    std::vector<char> mask(static_cast<std::size_t>(n) + 2, 7), less(mask);
    std::vector<T> x, y, chosen(static_cast<std::size_t>(n), T(9));
    for (index_t i = 0; i < n; ++i) {
      mask[static_cast<std::size_t>(i) + 1] = i % 3 == 0 || i % 7 == 2;
      x.push_back(i % 5 == 4 ? std::numeric_limits<T>::quiet_NaN() : T(i % 11));
      y.push_back(T((3 * i) % 13));
    }
    void const* const of_choice[] = {mask.data() + 1, x.data(), y.data()};
    kernels::map_block<op::where, T, bool, T, T>(chosen.data(), of_choice, n);
    void const* const of_less[] = {x.data(), y.data()};
    kernels::map_block<op::less, bool, T, T>(less.data() + 1, of_less, n);
    CHECK(less.front() == 7);
    CHECK(less.back() == 7);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      T const expected = mask[i + 1] != 0 ? x[i] : y[i];
      if (!(chosen[i] == expected || (chosen[i] != chosen[i] && expected != expected)) ||
          (less[i + 1] != 0) != (x[i] < y[i]))
        FAIL("element " << i << " of " << n);
    }
  }
}

TEST_CASE("integers and truths in rows of every length", "[kernels]") {
  for (DType const d : {DType::i64, DType::i32, DType::u8, DType::i8})
    for (index_t n : {1, 63, 64, 65, 127, 128, 200}) {
      // Also the ends of the dtype, beside which sums wrap.
      double const least = d == DType::u8 ? 0 : d == DType::i8 ? -128 : -2147483648.0, most = -least - 1;
      Array const draws =
          floor(cast_to(uniform({2, n}, Key{static_cast<std::uint64_t>(n)}), DType::f64) * 100.0);
      Array const x =
          cast_to(where(draws < 5.0, least, where(draws > 95.0, d == DType::u8 ? 255 : most, draws)), d);
      Array const y = cast_to(floor(draws * 0.37), d), c = draws > 50.0, b = draws < 70.0;
      Array const sum = x + y, product = x * y, less = x < y, both = logical_and(c, b),
                  chosen = where(c, x, y), negative = -y, high = maximum(x, y), not_c = logical_not(c),
                  wide = cast_to(x, DType::i64), narrow = cast_to(wide, d),
                  truth = cast_to(y, DType::boolean);
      auto const wrapped = [d](double v) {
        return read_real(cast_to(full({}, v, DType::i64), d).operand(), 0);
      };
      bool good = true;
      each_index(x.shape(), [&](std::vector<index_t> const& i) {
        double const p = at(x, i), q = at(y, i);
        bool const k = at(c, i) != 0, l = at(b, i) != 0;
        good = good && at(sum, i) == wrapped(p + q) && at(product, i) == wrapped(p * q);
        good = good && (at(less, i) != 0) == (p < q) && (at(both, i) != 0) == (k && l);
        good = good && at(chosen, i) == (k ? p : q) && at(negative, i) == wrapped(-q);
        good = good && at(high, i) == std::max(p, q) && (at(not_c, i) != 0) == !k;
        good = good && at(wide, i) == p && at(narrow, i) == p && (at(truth, i) != 0) == (q != 0);
      });
      INFO(d << " " << n);
      CHECK(good);
    }
}

}  // namespace tests::kernels_map
