// SPDX-License-Identifier: BSL-1.0
// simplify, rule by rule: each graph is recorded at run time, and the same passes run in constant expressions
// below.
#include <dfdx/graph/prepare.hpp>
#include <dfdx/graph/verify.hpp>
#include <dfdx/program/trace.hpp>
#include <dfdx/testing/interpret.hpp>
#include <dfdx/vocabulary/indexing.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/pool.hpp>

#include <catch2/catch_test_macros.hpp>

#include <functional>

namespace tests::graph_simplify {

namespace {

using namespace dfdx;

using V = std::span<Array const>;
using F = std::function<Array(V)>;

Graph simplified(F const& f, std::vector<Shape> const& shapes = {make_shape(3, 4), make_shape(3, 4)},
                 DType dtype = DType::f32) {
  std::vector<Meta> metas;
  for (Shape const& s : shapes) metas.push_back(Meta{dtype, s});
  Graph const g = testing::record([&](V v) { return std::vector<Array>{f(v)}; }, metas);
  REQUIRE(std::string(graph::verify(g).c_str()).empty());
  Graph const r = graph::simplify(g);
  REQUIRE(std::string(graph::verify(r).c_str()).empty());
  return r;
}

// Names of the nodes that are not inputs.
std::string ops(Graph const& g) {
  std::string r;
  for (Node const& n : g.nodes)
    if (n.op->code != Code::input) r += (r.empty() ? "" : " ") + std::string(n.op->name);
  return r;
}
std::string ops(F const& f, std::vector<Shape> const& shapes = {make_shape(3, 4), make_shape(3, 4)}) {
  return ops(simplified(f, shapes));
}

}  // namespace

TEST_CASE("equal nodes become one", "[graph]") {
  CHECK(ops([](V v) { return exp(v[0]) + exp(v[0]); }) == "exp add");
  CHECK(ops([](V v) { return exp(v[0] * v[1]) * (v[0] * v[1]); }) == "mul exp mul");
  CHECK(ops([](V v) { return exp(v[0]) + exp(v[1]); }) == "exp exp add");
  // Not equal: other attributes, other dtypes, other shapes, other numbers.
  CHECK(ops([](V v) { return slice<0, 0, 2>(v[0]) + slice<0, 1, 3>(v[0]); }) == "slice slice add");
  CHECK(ops([](V v) { return concat<0>(v[0] * 2.0, v[0] * 3.0); }) == "constant mul constant mul concat");
  CHECK(ops([](V v) {
          return cast_to(cast_to(v[0], DType::f16), DType::f64) +
                 cast_to(cast_to(v[0], DType::bf16), DType::f64);
        }) == "cast cast cast cast add");
  CHECK(ops([](V v) { return v[0] / (zeros_like(v[0]) * -1.0) + v[0] / zeros_like(v[0]); }).find("div") !=
        std::string::npos);
}

TEST_CASE("what no output needs is dropped, inputs keep their positions", "[graph]") {
  Graph const g = simplified([](V v) { return static_cast<void>(exp(v[0])), sin(v[1]); });
  CHECK(ops(g) == "sin");
  CHECK(g.inputs == 2);
  CHECK(g.size() == 2);
  CHECK(g[0].attrs.i[0] == 1);
}

TEST_CASE("numbers are folded", "[graph]") {
  auto const value = [](F const& f) {
    Graph const g = simplified(f);
    REQUIRE(ops(g) == "constant");
    return g[g.outputs[0]].attrs.f[0];
  };
  CHECK(value([](V v) { return full_like(v[0], 2) * 3.0 + 1.0; }) == 7);
  CHECK(value([](V v) { return sum(full_like(v[0], 2)); }) == 24);
  CHECK(value([](V v) { return sum<0>(full_like(v[0], 2)); }) == 6);
  // Of no elements it is 0, and what a double does not hold of an integer is left to the program.
  Graph const none = simplified([](V v) { return sum(full_like(v[0], HUGE_VAL)); }, {make_shape(0, 4)});
  CHECK(none[none.outputs[0]].attrs.f[0] == 0);
  CHECK(ops(simplified([](V v) { return sum(full_like(v[0], std::int64_t{9007199254740991})); },
                       {make_shape(3)}, DType::i64)) != "constant");
  CHECK(value([](V v) { return transpose(full_like(v[0], 2)); }) == 2);
  CHECK(value([](V v) { return reshape(full_like(v[0], 2), {12}); }) == 2);
  CHECK(value([](V v) { return slice<0, 0, 2>(full_like(v[0], 2)); }) == 2);
  CHECK(value([](V v) { return cast_to(full_like(v[0], 2.75), DType::i32); }) == 2);
  CHECK(value([](V v) { return where(full_like(v[0], 2) > 1.0, full_like(v[0], 5), full_like(v[0], 6)); }) ==
        5);
  CHECK(value([](V v) { return full_like(v[0], 0.1); }) == 0.1);
  CHECK(value([](V v) { return full_like(v[0], 0.1) + 0.0; }) == static_cast<double>(0.1f + 0.0f));
}

TEST_CASE("neutral elements go away, and only those that are exact", "[graph]") {
  for (auto const& f : std::vector<F>{
           [](V v) { return v[0] + -0.0; }, [](V v) { return -0.0 + v[0]; }, [](V v) { return v[0] - 0.0; },
           [](V v) { return v[0] * 1.0; }, [](V v) { return 1.0 * v[0]; }, [](V v) { return v[0] / 1.0; },
           [](V v) { return -(-v[0]); }, [](V v) { return where(v[1] > 0.0, v[0], v[0]); },
           [](V v) { return stop_gradient(v[0]); }, [](V v) { return cast_to(v[0], DType::f32); },
           [](V v) { return transpose(transpose(v[0])); },
           [](V v) { return reshape(reshape(v[0], {12}), {3, 4}); },
           [](V v) { return slice<0, 0, 3>(v[0]); }})
    CHECK(ops(f).empty());
  // -0.0 + 0.0 is 0.0. Integers have one zero.
  CHECK(ops([](V v) { return v[0] + 0.0; }) == "constant add");
  CHECK(ops([](V v) { return 0.0 + v[0]; }) == "constant add");
  CHECK(ops([](V v) { return v[0] - -0.0; }) == "constant sub");
  CHECK(ops([](V v) { return cast_to(v[0], DType::i32) + 0; }) ==
        ops([](V v) { return cast_to(v[0], DType::i32); }));
  // 0 * x is not 0 where x is infinite or NaN.
  CHECK(ops([](V v) { return v[0] * 0.0; }).find("mul") != std::string::npos);
  CHECK(ops([](V v) { return v[0] - v[0]; }) == "sub");
  CHECK(ops([](V v) { return v[0] / v[0]; }) == "div");
}

TEST_CASE("views of views", "[graph]") {
  std::vector<Shape> const cube = {make_shape(2, 3, 4)};
  CHECK(ops([](V v) { return permute<2, 0, 1>(permute<1, 0, 2>(v[0])); }, cube) == "permute");
  CHECK(ops([](V v) { return permute<1, 2, 0>(permute<2, 0, 1>(v[0])); }, cube).empty());
  CHECK(ops([](V v) { return reshape(reshape(v[0], {6, 4}), {24}); }, cube) == "reshape");
  CHECK(ops([](V v) { return transpose(v[0]); }, {make_shape(1, 4)}) == "reshape");
  CHECK(ops([](V v) { return sum<0>(sum<1>(v[0], keepdim), keepdim); }) == "sum");
}

TEST_CASE("a product that is only wanted transposed is computed that way", "[graph]") {
  CHECK(ops([](V v) { return transpose(matmul(v[0], transpose(v[1]))); }) == "permute matmul");
  CHECK(ops([](V v) {
          Array const y = matmul(v[0], transpose(v[1]));
          return y + transpose(y);
        }) == "permute matmul permute add");
  // In another dtype too, unless somebody else wants the product as it is.
  CHECK(ops([](V v) { return transpose(cast<double>(matmul(v[0], transpose(v[1])))); }) ==
        "permute matmul cast");
  CHECK(ops([](V v) {
          Array const y = matmul(v[0], transpose(v[1]));
          return transpose(cast<double>(y)) + cast<double>(y);
        }) == "permute matmul cast permute add");
  Graph const g = simplified([](V v) { return transpose(cast<double>(matmul(v[0], transpose(v[1])))); },
                             {make_shape(2, 3), make_shape(4, 3)});
  std::vector<Array> const in = {cast_to(arange(6).reshape({2, 3}), DType::f32),
                                 cast_to(arange(12).reshape({4, 3}) - 5.0, DType::f32)};
  CHECK(array_equal(testing::interpret(g, in)[0],
                    transpose(cast_to(matmul(in[0], transpose(in[1])), DType::f64))));
}

TEST_CASE("what lies side by side in zeros is joined", "[graph]") {
  auto const at = [](Array const& x, int axis, index_t before, index_t after, double fill = 0) {
    return bind<op::pad>(Attrs{{axis, before, after}, {fill}}, x);
  };
  // As the gradients of the parts of one value are added, in any order.
  CHECK(ops([&](V v) { return at(v[0], 0, 0, 3) + at(v[1], 0, 3, 0); }) == "concat");
  CHECK(ops([&](V v) { return at(v[0], 0, 3, 0) + at(v[1], 0, 0, 3); }) == "concat");
  CHECK(ops([&](V v) { return at(v[0], 1, 1, 4) + at(v[1], 1, 5, 0); }) == "concat pad");
  std::vector<Shape> const three(3, make_shape(2, 3));
  for (int const order : {0, 1, 2, 3, 4, 5}) {
    int const a = order / 2, b = order % 2 == 0 ? (a + 1) % 3 : (a + 2) % 3, c = 3 - a - b;
    auto const sum_of = [&](V v) {
      auto const part = [&](int k) { return at(v[static_cast<std::size_t>(k)], 1, 3 * k, 6 - 3 * k); };
      return part(a) + part(b) + part(c);
    };
    Graph const g = simplified(sum_of, three);
    CHECK(ops(g) == "concat concat");
    std::vector<Array> in;
    for (int k = 0; k < 3; ++k) in.push_back(arange(6).reshape({2, 3}) + 10.0 * (k + 1));
    for (Array& x : in) x = cast_to(x, DType::f32);
    CHECK(array_equal(testing::interpret(g, in)[0], concat<1>(concat<1>(in[0], in[1]), in[2])));
  }
  // Not where they overlap, leave a gap, lie along other axes, or are not in zeros.
  CHECK(ops([&](V v) { return at(v[0], 0, 0, 2) + at(v[1], 0, 2, 0); }) == "pad pad add");
  CHECK(ops([&](V v) { return at(v[0], 0, 0, 4) + at(v[1], 0, 4, 0); }) == "pad pad add");
  CHECK(ops([&](V v) { return at(v[0], 0, 0, 3, 1) + at(v[1], 0, 3, 0); }) == "pad pad add");
  CHECK(ops([&](V v) { return at(v[0], 0, 2, 2) + at(v[1], 0, 2, 2); },
            {make_shape(0, 4), make_shape(0, 4)}) == "pad pad add");  // before one another, both of them
  CHECK(ops([&](V v) { return at(v[0], 0, 0, 4) + at(v[1], 1, 4, 0); },
            {make_shape(4, 4), make_shape(8, 0)}) == "pad pad add");
}

TEST_CASE("a part of what was joined or padded is a part of one of its parts", "[graph]") {
  auto const part = [](Array const& x, int axis, index_t first, index_t count) {
    return slice_axis(x, axis, first, count);
  };
  CHECK(ops([&](V v) { return part(concat(v[0], v[1]), 0, 0, 3); }) == "");
  CHECK(ops([&](V v) { return part(concat(v[0], v[1]), 0, 4, 2); }) == "slice");
  CHECK(ops([&](V v) { return part(pad_axis(v[0], 0, 2, 1, 0, 0.5), 0, 2, 3); }) == "");
  CHECK(ops([&](V v) { return part(pad_axis(v[0], 0, 2, 1, 0, 0.5), 0, 5, 1); }) == "constant");
  std::vector<Array> const in = {arange(12).reshape({3, 4}).to(DType::f32),
                                 arange(12).reshape({3, 4}).to(DType::f32) + 20.0};
  for (int first = 0; first < 6; ++first)
    for (int count = 1; first + count <= 6; ++count) {
      F const joined = [&](V v) { return part(concat(v[0], v[1]), 0, first, count); };
      F const padded = [&](V v) { return part(pad_axis(v[0], 0, 2, 1, 0, 0.5), 0, first, count); };
      CHECK(array_equal(testing::interpret(simplified(joined), in)[0], joined(in)));
      CHECK(array_equal(testing::interpret(simplified(padded), in)[0], padded(in)));
    }
  // Not across both, every second, along another axis, or with gaps.
  CHECK(ops([&](V v) { return part(concat(v[0], v[1]), 0, 2, 2); }) == "concat slice");
  CHECK(ops([&](V v) { return slice_axis(concat(v[0], v[1]), 0, 0, 2, 2); }) == "concat slice");
  CHECK(ops([&](V v) { return part(concat(v[0], v[1]), 1, 0, 2); }) == "concat slice");
  CHECK(ops([&](V v) { return part(pad_axis(v[0], 0, 2, 1, 0, 0), 0, 1, 2); }) == "pad slice");
  CHECK(ops([&](V v) { return part(pad_axis(v[0], 0, 2, 1, 1, 0), 0, 2, 3); }) == "pad slice");
}

TEST_CASE("what was widened and is narrow again", "[graph]") {
  auto const there_and_back = [](DType through, DType to) {
    return [=](V v) { return cast_to(cast_to(v[0], through), to); };
  };
  std::vector<Shape> const one = {make_shape(3, 4)};
  CHECK(ops(simplified(there_and_back(DType::f32, DType::bf16), one, DType::bf16)) == "");
  CHECK(ops(simplified(there_and_back(DType::f64, DType::f16), one, DType::f16)) == "");
  CHECK(ops(simplified(there_and_back(DType::bf16, DType::f32), one, DType::f32)) == "cast cast");
  CHECK(ops(simplified(there_and_back(DType::f16, DType::bf16), one, DType::bf16)) == "cast cast");
  CHECK(ops(simplified(there_and_back(DType::i64, DType::f32), one, DType::f32)) == "cast cast");
}

TEST_CASE("simplify is idempotent and keeps values", "[graph]") {
  F const f = [](V v) {
    Array const z = matmul(v[0], transpose(v[1])) * 1.0;
    return sum(square(softmax<1>(z + 0.0)) - exp(z) * 2.0) + sum(v[0] * v[0]) / 3.0;
  };
  Graph const once = simplified(f), twice = graph::simplify(once);
  CHECK(ops(once) == ops(twice));
  CHECK(once.size() == twice.size());
}

TEST_CASE("prepare gives memory to what needs it", "[graph]") {
  auto const prepared = [](F const& f, graph::Aliases const& aliases = {}) {
    return ops(graph::prepare(simplified(f), aliases));
  };
  CHECK(prepared([](V v) { return v[0]; }) == "copy");
  CHECK(prepared([](V v) { return transpose(v[0]); }) == "permute copy");
  CHECK(prepared([](V v) { return full_like(v[0], 3); }) == "constant copy");
  CHECK(prepared([](V v) { return matmul(v[0], full_like(transpose(v[1]), 2)); }) == "constant copy matmul");
  CHECK(prepared([](V v) { return v[0] + v[1]; }) == "add");
}

// --- the same passes in constant expressions
// ------------------------------------------------------------------------
namespace {
constexpr auto traced = [](Tensor<float, 3, 4> const& x) { return sum(exp(x) * exp(x) + 0.0); };
static_assert(graph::verify(trace<decltype(traced), Tensor<float, 3, 4>>()).size() == 0);
static_assert(graph::verify(graph::simplify(trace<decltype(traced), Tensor<float, 3, 4>>())).size() == 0);
static_assert(graph::simplify(trace<decltype(traced), Tensor<float, 3, 4>>()).size() <
              trace<decltype(traced), Tensor<float, 3, 4>>().size());
}  // namespace

TEST_CASE("trace makes one input for each leaf and one output for each result", "[graph]") {
  constexpr auto f = [](std::array<Tensor<float, 2>, 2> const& pair, Tensor<double> const& x) {
    return std::tuple(pair[0] + pair[1], x * 2.0);
  };
  Graph const g = trace<decltype(f), std::array<Tensor<float, 2>, 2>, Tensor<double>>(testing::new_graph());
  CHECK(g.inputs == 3);
  CHECK(g.outputs.size() == 2);
  CHECK(g[g.outputs[0]].meta == Meta{DType::f32, make_shape(2)});
  CHECK(g[g.outputs[1]].meta == Meta{DType::f64, Shape{}});
  Graph const d = trace<decltype(traced), Tensor<float, 3, 4>>(testing::new_graph());
  CHECK(std::string(graph::verify(d).c_str()).empty());
}

TEST_CASE("verify finds what is wrong", "[graph]") {
  std::vector<Meta> const metas = {Meta{DType::f32, make_shape(2)}, Meta{DType::f32, make_shape(2)}};
  auto const broken = [&](auto const& damage) {
    Graph g = testing::record([](V v) { return std::vector<Array>{exp(v[0] + v[1])}; }, metas);
    REQUIRE(graph::verify(g).size() == 0);
    damage(g);
    return graph::verify(g).size() != 0;
  };
  CHECK(broken([](Graph& g) { g[2].in[0] = 3; }));
  CHECK(broken([](Graph& g) { g[2].in[1] = -1; }));
  CHECK(broken([](Graph& g) { g[2].meta.shape = make_shape(3); }));
  CHECK(broken([](Graph& g) { g[3].meta.dtype = DType::f64; }));
  CHECK(broken([](Graph& g) { g[1].attrs.i[0] = 0; }));
  CHECK(broken([](Graph& g) { g[0].attrs.i[0] = 7; }));
  CHECK(broken([](Graph& g) { g.outputs[0] = 4; }));
}

TEST_CASE("what a pooled relu pulls back is masked before it is scattered", "[graph]") {
  std::vector<Shape> const shapes = {make_shape(2, 3, 4, 4), make_shape(2, 3, 4, 4)};
  auto const pulled = [](auto const& f) {
    return [f](V v) {
      Array const loss = sum(square(f(v[0])));
      Graph& g = *loss.sym().graph;
      std::vector<Sym> const ends = {loss.sym()}, cts = {full_as(loss.sym(), loss.meta(), 1)};
      std::vector<int> const wrt = {v[0].sym().id};
      return Array(graph::pull_back(g, ends, cts, wrt)[0]);
    };
  };
  auto const masked_at = [&](F const& f) {  // elements of the mask
    Graph const g = simplified(f, shapes);
    std::string r;
    for (Node const& n : g.nodes)
      if (n.op->code == op::where::code) r += std::to_string(n.meta.shape.numel()) + " ";
    Array const x = randn(shapes[0], Key{3});
    Graph const plain = testing::record([&](V v) { return std::vector<Array>{f(v)}; },
                                        std::vector<Meta>(2, Meta{DType::f32, shapes[0]}));
    std::vector<Array> const inputs = {x, x};
    CHECK(array_equal(testing::interpret(g, inputs)[0], testing::interpret(plain, inputs)[0]));
    return r;
  };
  CHECK(masked_at(pulled([](Array const& x) { return max_pool2d(relu(x), {2}); })) == "24 ");
  // Windows that overlap: an element may be the largest of several.
  CHECK(masked_at(pulled([](Array const& x) { return max_pool2d(relu(x), {3, 1}); })) == "24 ");
  CHECK(masked_at(pulled([](Array const& x) { return max_pool2d(relu(x), {2, 1}); })) == "54 ");
  CHECK(masked_at(pulled([](Array const& x) { return gather<2>(relu(x), cast_to(x * 0.0, DType::i32)); })) ==
        "96 ");
  // Of two gathers at the same places that of the same matrix is looked for.
  CHECK(masked_at(pulled([](Array const& x) {
          Array const y = relu(x),
                      at = cast_to(reshape(slice<2, 0, 1>(x), make_shape(6, 4)) * 0.0, DType::i32);
          Array const other = stop_gradient(gather<1>(reshape(y, make_shape(6, 16)), at));
          return (gather<1>(reshape(y, make_shape(8, 12)), at) + 1.0) * (other + 1.0);
        })) == "24 ");
  // The elements there are of something else, and nothing else has them.
  CHECK(masked_at(pulled([](Array const& x) { return relu(x) * max_pool2d(x * x, {1}); })) == "96 ");
}

TEST_CASE("a constant is what its dtype makes of it", "[graph]") {
  for (DType d : {DType::u8, DType::i32, DType::i64, DType::f32}) {
    Graph const g = testing::record(
        [](V v) {
          Array const low = full_like(v[0], -1.0), high = full_like(v[0], 4294967299.0);
          return std::vector<Array>{low > 0.0, low + 2.0, high < 10.0, low + v[0]};
        },
        std::vector<Meta>{Meta{d, make_shape(3)}});
    Array const x = full({3}, 5.0, d);
    std::vector<Array> const in = {x};
    std::vector<Array> const got = testing::interpret(graph::simplify(g), in),
                             want = testing::interpret(g, in);
    for (std::size_t k = 0; k < got.size(); ++k) CHECK(array_equal(got[k], want[k]));
  }
}

}  // namespace tests::graph_simplify
