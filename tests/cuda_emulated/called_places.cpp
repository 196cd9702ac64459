// SPDX-License-Identifier: BSL-1.0
// Ops that are called on the emulated device and find places along an axis, write to places, or resample it: of all
// dtypes and strides, with their gradients, beside the CPU's.
#include "called.hpp"

#include "support.hpp"

#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/pool.hpp>

#include <functional>

namespace tests::cuda_emulated_called_places {

using namespace emulated;

namespace {

constexpr DType every[] = {DType::f32, DType::f64, DType::f16, DType::bf16,   DType::i32,
                           DType::i64, DType::u8,  DType::i8,  DType::boolean};
constexpr DType floating[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

// Few different numbers, among them equal neighbours.
Array few(Shape const& s, std::uint64_t key, DType d) { return cast_to(round(drawn(s, key) * 3.0), d); }
Array with_nan(Array const& x) { return where(cast_to(x, DType::f32) > 1.7, full_as(x, x.meta(), NAN), x); }
auto gradient_of(std::function<Array(Array const&)> const& f) {
  return [f](Array const& x) {
    Array leaf = x.detach();
    leaf.requires_grad(true);
    Array const y = f(leaf);
    return gradients(sum(square(y) * 0.5), {leaf})[0];
  };
}
auto largest(int axis) {
  return [=](Array const& x) { return std::get<0>(cummax(x, axis)); };
}
auto largest_at(int axis) {
  return [=](Array const& x) { return std::get<1>(cummax(x, axis)); };
}
auto smallest(int axis) {
  return [=](Array const& x) { return std::get<0>(cummin(x, axis)); };
}
auto smallest_at(int axis) {
  return [=](Array const& x) { return std::get<1>(cummin(x, axis)); };
}
double extremes(int axis, Array const& x) {
  return worse(worse(called(largest(axis), x), called(largest_at(axis), x)),
               worse(called(smallest(axis), x), called(smallest_at(axis), x)));
}
// The same, and that zeros have their signs.
template <class F>
bool to_the_bit(F const& f, Array const& x) {
  Array const expected = f(x).contiguous(), found = to(Device{}, f(there(x))).contiguous();
  return found.meta() == expected.meta() &&
         std::memcmp(found.bytes(), expected.bytes(),
                     static_cast<std::size_t>(found.size()) * size_of(found.dtype())) == 0;
}

}  // namespace

TEST_CASE("largest and smallest elements so far, called on a device") {
  Missed const missed;
  for (DType const d : every) {
    CAPTURE(d);
    CHECK(extremes(1, few(make_shape(5, 70), 1, d)) == 0);
    CHECK(extremes(0, few(make_shape(70, 5), 2, d)) == 0);
    CHECK(extremes(-2, few(make_shape(2, 300, 3), 3, d)) == 0);
  }
  for (DType const d : floating) {
    CAPTURE(d);
    CHECK(extremes(1, with_nan(few(make_shape(5, 70), 1, d))) == 0);
    CHECK(extremes(1, full({2, 40}, -INFINITY, d)) == 0);
    CHECK(extremes(1, full({2, 40}, INFINITY, d)) == 0);
  }
  // Lines of a block each, of several pieces; strided, of one element, and of many axes.
  CHECK(extremes(-1, with_nan(drawn(make_shape(9001), 4))) == 0);
  CHECK(extremes(0, drawn(make_shape(2100, 2), 5)) == 0);
  CHECK(extremes(0, drawn(make_shape(3, 1200), 5)) == 0);
  Array const many = drawn(make_shape(2, 3, 1, 4, 2, 3), 6);
  for (int axis = 0; axis < 6; ++axis) CHECK(extremes(axis, many) == 0);
  CHECK(called([](Array const& x) { return std::get<0>(cummax(transpose(x), 1)); },
               drawn(make_shape(50, 7), 7)) == 0);
  CHECK(called([](Array const& x) { return std::get<1>(cummin(flip<1>(slice<0, 1, 7, 2>(x)), 1)); },
               drawn(make_shape(9, 40), 8)) == 0);
  CHECK(called([](Array const& x) { return std::get<1>(cummax(broadcast_to(x, make_shape(40, 7)), 0)); },
               drawn(make_shape(1, 7), 8)) == 0);
  CHECK(extremes(0, full({}, 3.0)) == 0);
  CHECK(extremes(1, full({3, 0}, 3.0)) == 0);
  CHECK(extremes(0, full({3, 0}, 3.0)) == 0);
  // What came up to a place has its gradient there.
  for (DType const d : {DType::f64, DType::bf16}) {
    CHECK(called(gradient_of(largest(1)), few(make_shape(3, 40), 9, d)) == 0);
    CHECK(called(gradient_of(smallest(2)), few(make_shape(2, 1, 30, 2, 3), 9, d)) == 0);
  }
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("places and sums along an axis, of every dtype, called on a device") {
  Missed const missed;
  for (DType const d : every) {
    CAPTURE(d);
    Array const x = few(make_shape(4, 90), 1, d);
    CHECK(called([](Array const& v) { return argsort<1>(v); }, x) == 0);
    CHECK(called([](Array const& v) { return argmax<0>(v); }, x) == 0);
    CHECK(called([](Array const& v) { return cumsum<1>(v); }, x) < 1e-6);
    if (d != DType::boolean)  // backwards, and in its own dtype
      CHECK(called([](Array const& v) { return bind<op::cumsum>(Attrs{{1, 1}}, v); }, x) < 1e-6);
  }
  // Added in f64 and rounded once, as on the CPU.
  for (DType const d : {DType::f16, DType::bf16})
    CHECK(called([](Array const& v) { return cumsum<0>(v); }, drawn(make_shape(900, 3), 2, d)) == 0);
  CHECK(called(gradient_of([](Array const& v) { return cumsum<0>(v); }), drawn(make_shape(40, 3), 2)) < 1e-5);
  // Elements along an axis of many, where the others have fewer too.
  Array const x = drawn(make_shape(3, 2, 6, 2, 4), 3);
  for (Shape const& s : {make_shape(2, 1, 9, 2, 3), make_shape(3, 2, 9, 2, 4), make_shape(2, 1, 0, 2, 3)}) {
    Array const places = randint(Extents(s), Key{4}, 0, 6);
    auto const gathered = [](Array const& v, Array const& i) { return gather(v, 2, i); };
    CHECK(called(gathered, x, places) == 0);
    CHECK(
        called([&](Array const& v,
                   Array const& i) { return gradient_of([&](Array const& u) { return gathered(u, i); })(v); },
               x, places) < 1e-6);
  }
  for (DType const d : every) {
    CHECK(called([](Array const& v) { return sum(v, 1); }, zeros({3, 0}, d)) == 0);
    CHECK(called([](Array const& v) { return prod(v, 1); }, zeros({3, 0}, d)) == 0);
  }
  CHECK(called([](auto const& y, auto const& i, auto const& v) { return index_add(y, 0, i, v); }, x,
               zeros({0}, DType::i64), zeros({0, 2, 6, 2, 4})) == 0);
  // Some of many axes, onto what is there.
  Array const few_places = randint({2, 1, 9, 2, 3}, Key{4}, 0, 6),
              few_parts = drawn(make_shape(2, 1, 9, 2, 3), 5);
  CHECK(called([](auto const& y, auto const& i, auto const& v) { return scatter_add(y, 2, i, v); }, x,
               few_places, few_parts) < 1e-6);
  CHECK(called([](auto const& y, auto const& i, auto const& v) { return scatter(y, 2, i, v); }, x, few_places,
               few_parts) == 0);
  CHECK(called([](auto const& y, auto const& i, auto const& v) { return index_add(y, 2, i, v); }, x,
               randint({9}, Key{5}, 0, 6), drawn(make_shape(3, 2, 9, 2, 4), 6)) < 1e-6);
  // What meets at a place is added up, or the last of it stays.
  Array const at = randint({500, 3}, Key{5}, 0, 4), rows = randint({500}, Key{6}, 0, 4);
  for (DType const d : every) {
    if (d == DType::boolean) continue;
    CAPTURE(d);
    Array const from = few(make_shape(500, 3), 7, d), to = few(make_shape(4, 3), 8, d);
    CHECK(called([](auto const& y, auto const& i, auto const& v) { return scatter_add(y, 0, i, v); }, to, at,
                 from) <= (is_floating(d) && size_of(d) < 8 ? 0.02 : 1e-12));
    CHECK(called([](auto const& y, auto const& i, auto const& v) { return index_add(y, 0, i, v); }, to, rows,
                 from) <= (is_floating(d) && size_of(d) < 8 ? 0.02 : 1e-12));
    CHECK(called([](auto const& y, auto const& i, auto const& v) { return scatter(y, 0, i, v); }, to, at,
                 from) == 0);
  }
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("places in ascending lists, called on a device") {
  auto const before = [](Array const& list, Array const& x) { return searchsorted(list, x); };
  auto const behind = [](Array const& list, Array const& x) { return searchsorted(list, x, true); };
  auto const both = [&](Array const& list, Array const& x) {
    return worse(called(before, list, x), called(behind, list, x));
  };
  Missed const missed;
  for (DType const d : every) {
    CAPTURE(d);
    Array const list = std::get<0>(sort<0>(few(make_shape(33), 1, d)));
    CHECK(both(list, few(make_shape(4, 5, 6), 2, d)) == 0);
    CHECK(both(list, few(make_shape(), 3, d)) == 0);
    CHECK(both(std::get<0>(sort<2>(few(make_shape(2, 3, 17), 4, d))), few(make_shape(2, 3, 5), 5, d)) == 0);
  }
  for (DType const d : floating) {
    Array const list = std::get<0>(sort<0>(with_nan(few(make_shape(20), 6, d))));
    CHECK(both(list, with_nan(few(make_shape(7), 7, d))) == 0);
  }
  Array const values = drawn(make_shape(3, 50), 8), lists = std::get<0>(sort<1>(drawn(make_shape(3, 90), 9)));
  CHECK(called([](Array const& l, Array const& x) { return searchsorted(slice<1, 0, 90, 3>(l), x); }, lists,
               values) == 0);
  CHECK(called([](Array const& l, Array const& x) { return searchsorted(l, transpose(x)); },
               std::get<0>(sort<1>(drawn(make_shape(50, 9), 9))), values) == 0);
  CHECK(called(
            [](Array const& l, Array const& x) {
              return searchsorted(slice<0, 1, 90, 2>(l), slice<1, 3, 40, 4>(transpose(x)));
            },
            std::get<0>(sort<0>(drawn(make_shape(90), 9))), drawn(make_shape(50, 3), 8)) == 0);
  CHECK(called([](Array const& l,
                  Array const& x) { return searchsorted(broadcast_to(l[0], make_shape(3, 90)), x); },
               lists, values) == 0);
  CHECK(both(zeros({0}), values) == 0);
  CHECK(both(lists[0], zeros({3, 0})) == 0);
  CHECK(both(zeros({1}), values) == 0);
  CHECK(both(drawn(make_shape(1), 3), values) == 0);
  // A number of the CPU goes along.
  CHECK(array_equal(searchsorted(there(lists[1]), full({}, 0.2)), searchsorted(lists[1], full({}, 0.2))));
  CHECK(array_equal(searchsorted(full({1}, 0.2), there(values)), searchsorted(full({1}, 0.2), values)));
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("parts replaced at places, called on a device") {
  auto const copied = [](int axis) {
    return [axis](Array const& x, Array const& index, Array const& src) {
      return index_copy(x, axis, index, src);
    };
  };
  Missed const missed;
  // Places that come twice, of every dtype and dtype of indices.
  Array const at = randint({40}, Key{1}, 0, 11);
  for (DType const d : every)
    for (DType const i : {DType::i32, DType::i64, DType::u8}) {
      CAPTURE(d, i);
      CHECK(called(copied(0), few(make_shape(11, 6), 2, d), cast_to(at, i), few(make_shape(40, 6), 3, d)) ==
            0);
    }
  // More places than threads of a block, parts of more elements than that, and of one.
  Array const often = randint({700}, Key{4}, 0, 9);
  CHECK(called(copied(1), drawn(make_shape(3, 9, 2), 5), often, drawn(make_shape(3, 700, 2), 6)) == 0);
  CHECK(called(copied(-1), drawn(make_shape(600, 5), 5), randint({4}, Key{4}, 0, 5),
               drawn(make_shape(600, 4), 6)) == 0);
  CHECK(called(copied(0), drawn(make_shape(9), 5), often, drawn(make_shape(700), 6)) == 0);
  Array const some = randint({3}, Key{7}, 0, 2);
  for (int axis = 0; axis < 5; ++axis) {
    Shape x = make_shape(2, 2, 2, 2, 2), src = x;
    src[axis] = 3;
    CHECK(called(copied(axis), drawn(x, 8), some, drawn(src, 9)) == 0);
  }
  CHECK(called(copied(1), drawn(make_shape(3, 1), 8), zeros({2}, DType::i64), drawn(make_shape(3, 2), 9)) ==
        0);
  CHECK(called(copied(1), drawn(make_shape(3, 4), 8), zeros({0}, DType::i64), zeros({3, 0})) == 0);
  CHECK(called(copied(1), zeros({0, 4}), zeros({2}, DType::i64), zeros({0, 2})) == 0);
  // Whatever lies how.
  CHECK(called(
            [](Array const& x, Array const& i, Array const& src) {
              return index_copy(transpose(x), 0, flip<0>(slice<0, 1, 9, 3>(i)),
                                broadcast_to(src, make_shape(3, 4)));
            },
            drawn(make_shape(4, 5), 8), randint({9}, Key{3}, 0, 5), drawn(make_shape(1, 4), 9)) == 0);
  Array const x = drawn(make_shape(2, 5, 3), 1), src = drawn(make_shape(2, 2, 3), 2), two = from({4, 1});
  for (bool const of_x : {true, false})
    CHECK(called(
              [&](Array const& a, Array const& i, Array const& b) {
                return of_x ? gradient_of([&](Array const& v) { return index_copy(v, 1, i, b); })(a)
                            : gradient_of([&](Array const& v) { return index_copy(a, 1, i, v); })(b);
              },
              x, two, src) == 0);
  // A number of the CPU for a part.
  CHECK(array_equal(index_copy(there(ones({3, 1})), 0, there(from({2})), full({1, 1}, 5)),
                    index_copy(ones({3, 1}), 0, from({2}), full({1, 1}, 5))));
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("a place out of range is said when a result is read, also of parts") {
  Array const x = there(ones({3, 4})), src = there(zeros({2, 4}));
  for (auto const& [at, said] :
       {std::pair(from({1, 3}), "index_copy: index 3 out of range for 3 on cuda:0: "),
        std::pair(from({-1, 1}), "index_copy: index -1 out of range for 3 on cuda:0: ")}) {
    Array const y = index_copy(x, 0, there(at), src);
    CHECK(tests::error_of([&, &y = y] { y.to_vector<float>(); }).starts_with(said));
  }
  CHECK(sum(x).item() == 12);  // and once
}

TEST_CASE("axes are resampled where they lie") {
  using enum InterpolateMode;
  struct Case {
    InterpolateMode mode;
    int axes;
    bool align = false;
  };
  Missed const missed;
  for (Case const c :
       {Case{nearest, 2}, Case{nearest, 3}, Case{nearest_exact, 1}, Case{area, 2}, Case{linear, 1},
        Case{linear, 1, true}, Case{bilinear, 2}, Case{bilinear, 2, true}, Case{bicubic, 2},
        Case{bicubic, 2, true}, Case{trilinear, 3}, Case{trilinear, 3, true}}) {
    CAPTURE(static_cast<int>(c.mode), c.axes, c.align);
    Shape s = make_shape(2, 3), up = make_shape(), down = make_shape();
    index_t const extents[] = {7, 4, 5}, more[] = {16, 9, 11}, fewer[] = {3, 4, 1};
    for (int i = 0; i < c.axes; ++i) s.push_back(extents[i]), up.push_back(more[i]), down.push_back(fewer[i]);
    auto const sized = [&](Shape const& to) {
      return [=](Array const& x) {
        return interpolate(x, {.size = Extents(to), .mode = c.mode, .align_corners = c.align});
      };
    };
    auto const scaled = [&](double by) {
      return [=](Array const& x) {
        return interpolate(x, {.scale_factor = by, .mode = c.mode, .align_corners = c.align});
      };
    };
    for (DType const d : floating) {
      double const near = d == DType::f64 ? 1e-14 : d == DType::f32 ? 2e-6 : 0.02;
      Array const x = drawn(s, 1, d);
      for (auto const& f : std::vector<std::function<Array(Array const&)>>{
               sized(up), sized(down), scaled(2.0), scaled(1.7), scaled(0.6)}) {
        CHECK(called(f, x) <= near);
        CHECK(called(gradient_of(f), x) <= 4 * near);
      }
    }
    CHECK(called([&](Array const& x) { return sized(up)(flip<2>(transpose(x, 0, 1))); }, drawn(s, 2)) <=
          2e-6);
    CHECK(called(sized(s.rank == 3   ? make_shape(1)
                       : s.rank == 4 ? make_shape(1, 1)
                                     : make_shape(1, 1, 1)),
                 drawn(s, 2)) <= 2e-6);
  }
  // Elements that are moved stay what they are, a zero's sign too.
  auto const moved = [](Array const& x) { return interpolate(x, {.size = {9, 3}}); };
  for (DType const d : every)
    if (d != DType::boolean) CHECK(called(moved, few(make_shape(2, 1, 4, 5), 3, d)) == 0);
  CHECK(to_the_bit(moved, few(make_shape(2, 1, 4, 5), 3, DType::f32) * -0.0));
  CHECK(called(moved, zeros({0, 3, 4, 5})) == 0);
  // Twice: the transpose has a transpose.
  CHECK(called(
            [](Array const& x) {
              Array leaf = x.detach();
              leaf.requires_grad(true);
              Array const y = interpolate(leaf, {.size = {9}, .mode = linear});
              return gradients(sum(square(gradients(sum(square(y)), {leaf}, {.create_graph = true})[0])),
                               {leaf})[0];
            },
            drawn(make_shape(1, 2, 4), 3)) <= 1e-5);
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("largest elements of windows, of every dtype and up to three axes, called on a device") {
  Missed const missed;
  for (DType const d : every) {
    if (d == DType::boolean) continue;
    CAPTURE(d);
    auto const in_cubes = [](Array const& v) {
      return max_pool3d(v, {.kernel = {2, 3, 1}, .stride = {2, 1, 3}, .padding = {1, 1, 0}});
    };
    CHECK(called(in_cubes, few(make_shape(2, 3, 5, 7, 9), 1, d)) == 0);
    CHECK(called([](Array const& v) { return max_pool2d(v, {.kernel = 3, .stride = 2, .padding = 1}); },
                 few(make_shape(2, 3, 9, 8), 2, d)) == 0);
    CHECK(called([](Array const& v) { return max_pool1d(v, {.kernel = 3, .dilation = 2}); },
                 few(make_shape(2, 3, 19), 2, d)) == 0);
    if (is_floating(d)) CHECK(called(gradient_of(in_cubes), few(make_shape(1, 2, 5, 4, 9), 1, d)) <= 0.01);
  }
  CHECK(
      called([](Array const& v) { return std::get<1>(max_pool3d_with_indices(transpose(v), {.kernel = 2})); },
             drawn(make_shape(1, 2, 8, 6, 9), 3)) == 0);
  CHECK(called([](Array const& v) { return adaptive_max_pool2d(v, {3, 4}); },
               drawn(make_shape(1, 2, 8, 9), 3)) == 0);
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("means of windows and bins, called on a device") {
  Missed const missed;
  using Function = std::function<Array(Array const&)>;
  for (DType const d : floating) {
    double const near = d == DType::f64 ? 1e-14 : d == DType::f32 ? 2e-6 : 0.02;
    Array const x = drawn(make_shape(2, 3, 9, 8), 1, d);
    for (auto const& f : std::vector<Function>{
             [](Array const& v) {
               return avg_pool2d(v, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}});
             },
             [](Array const& v) {
               return avg_pool2d(
                   v,
                   {.kernel = 4, .stride = 3, .padding = 2, .ceil_mode = true, .count_include_pad = false});
             },
             [](Array const& v) { return avg_pool2d(v, {.kernel = 2, .divisor_override = 3}); },
             [](Array const& v) { return avg_pool2d(v, {.kernel = 1, .stride = 3}); },
             [](Array const& v) { return adaptive_avg_pool2d(v, {1, 1}); },
             [](Array const& v) { return adaptive_avg_pool2d(v, {4, 11}); }}) {
      CHECK(called(f, x) <= near);
      CHECK(called(gradient_of(f), x) <= near);
      CHECK(called([&](Array const& v) { return f(transpose(v)); }, x) <= near);
    }
  }
  // One long bin, and windows that reach beyond both ends.
  Array const line = drawn(make_shape(1, 2, 3000), 2, DType::f64);
  for (auto const& f : std::vector<Function>{
           [](Array const& v) { return adaptive_avg_pool1d(v, {2}); },
           [](Array const& v) { return avg_pool1d(v, {.kernel = 5, .stride = 7, .padding = 2}); }}) {
    CHECK(called(f, line) <= 1e-12);
    CHECK(called(gradient_of(f), line) <= 1e-12);
  }
  CHECK(called([](Array const& v) { return avg_pool3d(v, {.kernel = 2}); },
               drawn(make_shape(1, 2, 4, 3, 5), 3)) <= 1e-6);
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("images are sampled where they lie, and so are the gradients") {
  Missed const missed;
  for (GridMode const mode : {GridMode::bilinear, GridMode::nearest, GridMode::bicubic})
    for (GridPadding const padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection}) {
      GridSampleOptions const o{mode, padding, padding == GridPadding::border};
      CAPTURE(static_cast<int>(mode), static_cast<int>(padding));
      auto const sampled = [&](Array const& x, Array const& grid) { return grid_sample(x, grid, o); };
      for (DType const d : floating) {
        double const near = d == DType::f64 ? 1e-13 : d == DType::f32 ? 2e-5 : 0.05;
        Array const x = drawn(make_shape(2, 5, 6, 7), 1, d), grid = drawn(make_shape(2, 9, 23, 2), 2, d);
        CHECK(called(sampled, x, grid) <= near);
        for (bool const of_x : {true, false})
          CHECK(called(
                    [&](Array const& a, Array const& b) {
                      return of_x ? gradient_of([&](Array const& v) { return grid_sample(v, b, o); })(a)
                                  : gradient_of([&](Array const& v) { return grid_sample(a, v, o); })(b);
                    },
                    x, grid) <= 40 * near);
      }
      CHECK(called(sampled, transpose(drawn(make_shape(2, 7, 6, 1), 1), 1, 3),
                   drawn(make_shape(2, 2, 3, 2), 2)) <= 2e-5);
      CHECK(called(sampled, zeros({0, 2, 3, 4}), zeros({0, 1, 3, 2})) == 0);
      CHECK(called(sampled, ones({1, 2, 3, 4}), full({1, 1, 3, 2}, NAN)) == 0);
    }
  CHECK(Missed::names() == std::vector<std::string>());
}

}  // namespace tests::cuda_emulated_called_places
