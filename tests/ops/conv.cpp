// SPDX-License-Identifier: BSL-1.0
// Convolutions and their transposes against plain sums; their shapes, refusals, and the fast kernels against the
// plain.
#include "ops/places.hpp"

#include <dfdx/testing/gradcheck.hpp>
#include <dfdx/vocabulary/conv.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_conv {

namespace {

using namespace suite;

// What the options say of each axis, in full.
struct Plain {
  std::vector<index_t> stride, before, dilation;
  index_t groups;
};

// y[n, o, p] for x: [N, C, ..], w: [O, C / G, ..], by the definition; `to` is the shape of y. With `back` y is
// given, and x, of shape `to`, is what is summed.
Array plain_conv(Array const& x, Array const& w, Shape const& to, Plain const& o, bool back) {
  Array const y = doubles(to);
  Shape const big = back ? to : x.shape(), small = back ? x.shape() : to;
  index_t const in = w.shape()[1], out = w.shape()[0] / o.groups;
  int const axes = w.ndim() - 2;
  for_indices(small, [&](index_t const* p) {
    for_indices(w.shape(), [&](index_t const* k) {
      if (k[0] != p[1]) return;
      index_t i[max_rank] = {p[0], k[0] / out * in + k[1]};
      for (int a = 0; a < axes; ++a) {
        auto const at = static_cast<std::size_t>(a);
        i[2 + a] = o.stride[at] * p[2 + a] + o.dilation[at] * k[2 + a] - o.before[at];
        if (i[2 + a] < 0 || i[2 + a] >= big[2 + a]) return;
      }
      if (back) cell(y, i) += value_at(x, p) * value_at(w, k);
      else cell(y, p) += value_at(x, i) * value_at(w, k);
    });
  });
  return y;
}

// The same with a bias.
Array biased(Array const& y, V v) {
  if (v.size() < 3) return y;
  for_indices(y.shape(), [&](index_t const* i) { cell(y, i) += value_at(v[2], i + 1); });
  return y;
}

Array drawn(Extents const& shape, std::uint64_t key) { return draw(shape.shape, {-2, 2}, key, DType::f64); }

}  // namespace

TEST_CASE("conv", "[ops]") {
  auto const check = [](char const* name, Function const& f, Shape const& to, Plain const& o,
                        std::vector<Array> const& x, bool back = false) {
    check_op(name, f, [&](V v) { return biased(plain_conv(v[0], v[1], to, o, back), v); }, x, true, true);
  };
  check("conv1d", [](V v) { return conv1d(v[0], v[1], v[2], {.stride = 2, .padding = 1}); },
        make_shape(2, 2, 3), {{2}, {1}, {1}, 1}, {drawn({2, 3, 6}, 1), drawn({2, 3, 3}, 2), drawn({2}, 3)});
  check("conv2d",
        [](V v) { return conv2d(v[0], v[1], {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}}); },
        make_shape(2, 3, 2, 5), {{2, 1}, {1, 2}, {1, 2}, 1},
        {drawn({2, 2, 4, 5}, 4), drawn({3, 2, 3, 3}, 5)});
  check("grouped conv2d", [](V v) { return conv2d(v[0], v[1], v[2], {.groups = 2}); }, make_shape(1, 4, 2, 3),
        {{1, 1}, {0, 0}, {1, 1}, 2}, {drawn({1, 4, 3, 4}, 6), drawn({4, 2, 2, 2}, 7), drawn({4}, 8)});
  check("depthwise conv2d",
        [](V v) { return conv2d(v[0], v[1], {.stride = {1, 2}, .padding = 1, .groups = 2}); },
        make_shape(2, 2, 3, 3), {{1, 2}, {1, 1}, {1, 1}, 2},
        {drawn({2, 2, 3, 5}, 6), drawn({2, 1, 3, 3}, 7)});
  check("pointwise depthwise conv2d", [](V v) { return conv2d(v[0], v[1], {.groups = 2}); },
        make_shape(2, 2, 2, 3), {{1, 1}, {0, 0}, {1, 1}, 2},
        {drawn({2, 2, 2, 3}, 6), drawn({2, 1, 1, 1}, 7)});
  check("pointwise conv2d", [](V v) { return conv2d(v[0], v[1]); }, make_shape(2, 3, 2, 3),
        {{1, 1}, {0, 0}, {1, 1}, 1}, {drawn({2, 2, 2, 3}, 6), drawn({3, 2, 1, 1}, 7)});
  check("same conv2d", [](V v) { return conv2d(v[0], v[1], {.padding = "same", .dilation = {1, 2}}); },
        make_shape(1, 1, 3, 4), {{1, 1}, {0, 1}, {1, 2}, 1},
        {drawn({1, 1, 3, 4}, 6), drawn({1, 1, 2, 2}, 7)});
  check("conv3d", [](V v) { return conv3d(v[0], v[1], {.stride = {2, 2, 1}, .padding = {0, 1, 1}}); },
        make_shape(1, 2, 2, 2, 3), {{2, 2, 1}, {0, 1, 1}, {1, 1, 1}, 1},
        {drawn({1, 1, 4, 3, 2}, 9), drawn({2, 1, 2, 3, 2}, 10)});
  // One window, of an input whose numbers it does not use all.
  check("dilated conv1d of one window",
        [](V v) { return conv1d(v[0], v[1], v[2], {.stride = 5, .dilation = 3}); }, make_shape(2, 4, 1),
        {{5}, {0}, {3}, 1}, {drawn({2, 3, 8}, 1), drawn({4, 3, 3}, 2), drawn({4}, 3)});
  check("dilated conv2d of one window",
        [](V v) { return conv2d(v[0], v[1], {.stride = {1, 9}, .dilation = {2, 1}}); },
        make_shape(1, 3, 1, 1), {{1, 9}, {0, 0}, {2, 1}, 1},
        {drawn({1, 2, 5, 4}, 4), drawn({3, 2, 3, 1}, 5)});
  check(
      "conv_transpose1d",
      [](V v) {
        return conv_transpose1d(v[0], v[1], v[2], {.stride = 3, .padding = 1, .output_padding = 2});
      },
      make_shape(2, 2, 8), {{3}, {1}, {1}, 1}, {drawn({2, 3, 3}, 1), drawn({3, 2, 2}, 2), drawn({2}, 3)},
      true);
  check(
      "conv_transpose2d",
      [](V v) { return conv_transpose2d(v[0], v[1], {.stride = {1, 2}, .groups = 2, .dilation = {2, 1}}); },
      make_shape(1, 4, 4, 4), {{1, 2}, {0, 0}, {2, 1}, 2}, {drawn({1, 2, 2, 2}, 1), drawn({2, 2, 2, 2}, 2)},
      true);
  check(
      "conv_transpose3d", [](V v) { return conv_transpose3d(v[0], v[1], {.padding = {0, 0, 1}}); },
      make_shape(1, 1, 2, 3, 2), {{1, 1, 1}, {0, 0, 1}, {1, 1, 1}, 1},
      {drawn({1, 2, 1, 2, 2}, 1), drawn({2, 1, 2, 2, 3}, 2)}, true);
}

TEST_CASE("convolutions larger than a block of columns", "[ops]") {
  // 600 positions in blocks of 64, cut within rows of the image; strides; windows that lie outside altogether.
  struct Large {
    Extents x, w;
    ConvOptions o;
  };
  for (
      Large const& c :
      {Large{{2, 70, 21, 33}, {5, 70, 3, 11}, {.stride = {1, 2}, .padding = {2, 9}}},
       Large{{1, 400, 900}, {3, 200, 7}, {.stride = 2, .padding = 6, .dilation = 3, .groups = 1}},
       Large{{2, 6, 21, 33}, {6, 1, 3, 5}, {.stride = {1, 2}, .padding = {2, 3}, .groups = 6}},
       Large{{2, 3, 3, 4}, {4, 3, 2, 2}, {.padding = {4, 5}, .dilation = {3, 2}}},
       // Lanes over positions: few channels and tails of lines and of channels, lines shorter than a lane, strides,
       // groups; single elements, in parts of channels and of positions, with strides and dilations.
       Large{{3, 1, 13, 29}, {7, 1, 5, 5}, {.padding = 2}},
       Large{{2, 2, 40, 3}, {3, 2, 3, 1}, {.padding = {1, 0}}},
       Large{{2, 3, 9, 21}, {5, 3, 3, 3}, {.stride = {1, 2}, .padding = 1, .dilation = {1, 2}}},
       Large{{2, 4, 8, 30}, {6, 2, 3, 3}, {.stride = {2, 1}, .padding = {0, 2}, .groups = 2}},
       Large{{2, 530, 10, 11}, {9, 530, 1, 1}, {}}, Large{{3, 6, 25, 30}, {22, 3, 1, 1}, {.groups = 2}},
       Large{{2, 6, 23, 29}, {8, 3, 1, 1}, {.stride = {2, 1}, .dilation = {3, 3}, .groups = 2}},
       Large{{2, 3, 25, 31}, {5, 3, 1, 1}, {.stride = 2}},
       Large{{2, 3, 25, 31}, {5, 3, 1, 1}, {.stride = 2, .padding = 1}},
       // Several samples together, groups, sums deeper than a panel; single channels, by lanes and their ends.
       Large{{5, 6, 5, 7}, {9, 6, 1, 1}, {}},
       Large{{7, 8, 7, 9}, {12, 4, 3, 3}, {.stride = {2, 1}, .padding = 1, .groups = 2}},
       Large{{2, 80, 6, 6}, {70, 80, 3, 3}, {.padding = 1}},
       Large{
           {3, 36, 7, 9}, {10, 18, 3, 3}, {.stride = {2, 1}, .padding = 1, .dilation = {1, 2}, .groups = 2}},
       Large{{1, 4, 9, 70},
             {4, 1, 3, 5},
             {.stride = {2, 3}, .padding = {1, 4}, .dilation = {1, 2}, .groups = 4}},
       // Sums of lanes of few elements of windows.
       Large{{2, 1, 3, 40}, {3, 1, 1, 2}, {}}, Large{{3, 1, 21}, {8, 1, 5}, {.stride = 2, .padding = 3}},
       Large{{2, 6, 9, 19}, {6, 3, 2, 1}, {.groups = 2}},
       // Three by three: lines in parts, fours and what is left of them, short ones, strides along either axis or both.
       Large{{2, 3, 61, 45}, {3, 1, 3, 3}, {.padding = 1, .groups = 3}},
       Large{{2, 3, 61, 90}, {3, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 3}},
       Large{{2, 2, 70, 33},
             {2, 1, 3, 3},
             {.stride = {2, 1}, .padding = {2, 0}, .dilation = {1, 2}, .groups = 2}},
       Large{{3, 2, 7, 5}, {2, 1, 3, 3}, {.stride = {1, 2}, .padding = 1, .groups = 2}},
       Large{{2, 2, 70, 41}, {2, 1, 5, 4}, {.stride = {1, 3}, .padding = 2, .groups = 2}},
       Large{{2, 3, 4, 37}, {3, 1, 2, 5}, {.padding = {1, 2}, .groups = 3}},
       Large{{2, 3, 4, 5}, {3, 1, 2, 2}, {.padding = 3, .groups = 3}}}) {
    int const axes = c.x.shape.rank - 2;
    Shape xs = c.x.shape;
    xs[1] = c.w.shape[1] * c.o.groups;
    Array const x = draw(xs, {-1, 1}, 1, DType::f64), w = draw(c.w.shape, {-1, 1}, 2, DType::f64);
    auto const f = [&](V v) { return axes == 1 ? conv1d(v[0], v[1], c.o) : conv2d(v[0], v[1], c.o); };
    Array const one[] = {x, w};
    Array const y = f(one);
    Array const ct = draw(y.shape(), {-1, 1}, 3, DType::f64);
    std::vector<Meta> const metas = {x.meta(), w.meta()};
    Graph g = testing::record([&](V v) { return std::vector<Array>{f(v)}; }, metas);
    require_close(y, testing::interpret(g, one)[0], {1e-11, 0}, largest(y));
    int const wrt[] = {0, 1};
    testing::add_vjp(g, wrt);
    Array const inputs[] = {x, w, ct};
    std::vector<Array> const want = testing::interpret(g, inputs);
    Array xt = x.detach(), wt = w.detach();
    xt.requires_grad(true), wt.requires_grad(true);
    Array const tape[] = {xt, wt};
    f(tape).backward(ct);
    require_close(xt.grad(), want[0], {1e-11, 0}, largest(want[0]));
    require_close(wt.grad(), want[1], {1e-11, 0}, largest(want[1]));
  }
}

TEST_CASE("convolutions on the tape", "[ops]") {
  Array const x = drawn({2, 2, 4, 3}, 1), w = drawn({4, 1, 2, 2}, 2), b = drawn({4}, 3);
  auto const f = [](V v) { return conv2d(v[0], v[1], v[2], {.stride = 2, .padding = 1, .groups = 2}); };
  CHECK(testing::gradcheck(f, {x, w, b}));
  CHECK(testing::gradgradcheck(f, {x, w, b}));
  auto const back = [](V v) { return conv_transpose2d(v[0], v[1], {.stride = 2, .output_padding = 1}); };
  CHECK(testing::gradcheck(back, {x, drawn({2, 3, 2, 2}, 2)}));
  CHECK(testing::gradgradcheck(back, {x, drawn({2, 3, 2, 2}, 2)}));
}

TEST_CASE("convolutions of few and of no elements", "[ops]") {
  // Without a batch.
  Array const x = drawn({2, 4, 5}, 1), w = drawn({3, 2, 3, 3}, 2);
  CHECK(array_equal(conv2d(x, w), squeeze(conv2d(unsqueeze(x, 0), w), 0)));
  CHECK(conv_transpose2d(x, drawn({2, 3, 2, 2}, 2)).shape() == make_shape(3, 5, 6));
  CHECK(conv_transpose1d(zeros({1, 1, 4}), zeros({1, 1, 3}), {.output_padding = 1, .dilation = 2}).shape() ==
        make_shape(1, 1, 9));
  CHECK(conv1d(zeros({0, 2, 5}), zeros({3, 2, 2})).shape() == make_shape(0, 3, 4));
  CHECK(array_equal(conv1d(ones({2, 0, 5}), ones({3, 0, 2})), zeros({2, 3, 4})));
  CHECK(conv1d(zeros({2, 1, 5}), zeros({0, 1, 2})).shape() == make_shape(2, 0, 4));
  CHECK(array_equal(conv_transpose1d(ones({2, 0, 5}), ones({0, 3, 2})), zeros({2, 3, 6})));
  CHECK(array_equal(conv_transpose1d(ones({2, 0, 5}), ones({0, 3, 1})), zeros({2, 3, 5})));
  Array unused = ones({16, 16, 1});
  unused.requires_grad(true);
  sum(conv1d(zeros({2, 16, 0}), unused)).backward();
  CHECK(array_equal(unused.grad(), zeros({16, 16, 1})));
}

TEST_CASE("what convolutions refuse", "[ops]") {
  Array const x = zeros({2, 4, 9, 9}), w = zeros({8, 3, 3, 3});
  CHECK_THROWS_WITH(conv2d(x, w), "conv2d: input [2, 4, 9, 9] does not fit weight [8, 3, 3, 3], groups = 1");
  CHECK_THROWS_WITH(conv2d(x, zeros({9, 2, 3, 3}), {.groups = 2}),
                    "conv2d: input [2, 4, 9, 9] does not fit weight [9, 2, 3, 3], groups = 2");
  CHECK_THROWS_WITH(conv1d(x, w),
                    "conv1d: input of 3 axes and weight of 3 required, got [2, 4, 9, 9] x [8, 3, 3, 3]");
  CHECK_THROWS_WITH(conv2d(zeros({2, 3, 2, 9}), w),
                    "conv2d: weight [8, 3, 3, 3] and options do not fit axis 2 of input [2, 3, 2, 9]");
  CHECK_THROWS_WITH(conv2d(zeros({3, 9, 9}), w, {.stride = 2, .padding = "same"}),
                    "conv2d: weight [8, 3, 3, 3] and options do not fit axis 1 of input [3, 9, 9]");
  CHECK_THROWS_WITH(conv2d(zeros({2, 3, 9, 9}), w, zeros({4}), {}),
                    "conv2d: bias [4] does not fit weight [8, 3, 3, 3]");
  CHECK_THROWS_WITH(conv2d(zeros({2, 3, 9, 9}, DType::f64), w),
                    "conv2d: one numeric dtype required, got f64 x f32");
  CHECK_THROWS_WITH(conv2d(x, w, {.stride = 0}),
                    "conv2d: stride, padding, dilation or groups out of range or not for 2 axes");
  CHECK_THROWS_WITH(conv2d(x, w, {.padding = {1, 1, 1}}),
                    "conv2d: stride, padding, dilation or groups out of range or not for 2 axes");
  CHECK_THROWS_WITH(conv2d(x, w, {.padding = "full"}), "padding: \"same\" or \"valid\" required, got full");
  CHECK_THROWS_WITH(conv_transpose2d(x, w),
                    "conv_transpose2d: input [2, 4, 9, 9] does not fit weight [8, 3, 3, 3], groups = 1");
  CHECK_THROWS_WITH(conv_transpose1d(zeros({1, 1, 4}), zeros({1, 1, 3}), {.stride = 2, .output_padding = 2}),
                    "conv_transpose1d: weight [1, 1, 3] and options do not fit axis 2 of input [1, 1, 4]");
}

}  // namespace tests::ops_conv
