// SPDX-License-Identifier: BSL-1.0
// Every elementwise op: each record gives the function, plain code in double, and where its operands are drawn
// from.
#include "ops/suite.hpp"

#include <dfdx/vocabulary/in_place.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_elementwise {

namespace {

using namespace suite;

using V = std::span<Array const>;
using N = double const*;

enum class Kind { numbers, choice, comparison, logic };  // a choice has a condition as its first operand

struct Operands {
  Interval in[max_arity];
  std::size_t count = 0;
  constexpr Operands(std::initializer_list<Interval> from) {
    for (Interval const& i : from) in[count++] = i;
  }
};

struct Record {
  std::string_view name;  // an op's own name is its record; others are functions of ops
  Array (*f)(V x);
  double (*reference)(N x);
  Operands from;
  bool integers = false;  // also for integer dtypes
  bool smooth = true;     // has second derivatives worth testing
  Kind kind = Kind::numbers;
  bool rules = true;  // differences say what its derivative is
};

double bounded(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
double relu_of(double x) { return x != x ? x : x > 0 ? x : 0; }

// By recurrence up to large numbers, then asymptotically.
double digamma_of(double x) {
  double sum = 0;
  for (; x < 40; x += 1) sum -= 1 / x;
  double const z = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z / 252));
}
double polygamma2_of(double x) {
  double sum = 0;
  for (; x < 200; x += 1) sum -= 2 / (x * x * x);
  double const z = 1 / (x * x);
  return sum - z * (1 + 1 / x + 0.5 * z - z * z / 6);
}

constexpr Record records[] = {
    {"neg", [](V v) { return -v[0]; }, [](N x) { return -x[0]; }, {{}}, true},
    {"exp", [](V v) { return exp(v[0]); }, [](N x) { return std::exp(x[0]); }, {{}}},
    {"expm1", [](V v) { return expm1(v[0]); }, [](N x) { return std::expm1(x[0]); }, {{}}},
    {"log", [](V v) { return log(v[0]); }, [](N x) { return std::log(x[0]); }, {{0.5, 3}}},
    {"log1p", [](V v) { return log1p(v[0]); }, [](N x) { return std::log1p(x[0]); }, {{-0.5, 3}}},
    {"sqrt", [](V v) { return sqrt(v[0]); }, [](N x) { return std::sqrt(x[0]); }, {{0.5, 3}}},
    {"rsqrt", [](V v) { return rsqrt(v[0]); }, [](N x) { return 1 / std::sqrt(x[0]); }, {{0.5, 3}}},
    {"square", [](V v) { return square(v[0]); }, [](N x) { return x[0] * x[0]; }, {{-3, 3}}, true},
    {"abs", [](V v) { return abs(v[0]); }, [](N x) { return std::fabs(x[0]); }, {{}}, true, false},
    {"sign",
     [](V v) { return sign(v[0]); },
     [](N x) { return double((x[0] > 0) - (x[0] < 0)); },
     {{}},
     true,
     false},
    {"sin", [](V v) { return sin(v[0]); }, [](N x) { return std::sin(x[0]); }, {{}}},
    {"cos", [](V v) { return cos(v[0]); }, [](N x) { return std::cos(x[0]); }, {{}}},
    {"tanh", [](V v) { return tanh(v[0]); }, [](N x) { return std::tanh(x[0]); }, {{}}},
    {"sigmoid", [](V v) { return sigmoid(v[0]); }, [](N x) { return 1 / (1 + std::exp(-x[0])); }, {{}}},
    {"erf", [](V v) { return erf(v[0]); }, [](N x) { return std::erf(x[0]); }, {{}}},
    {"relu", [](V v) { return relu(v[0]); }, [](N x) { return relu_of(x[0]); }, {{}}, true, false},
    {"exp2", [](V v) { return exp2(v[0]); }, [](N x) { return std::exp2(x[0]); }, {{-2, 2}}},
    {"log2", [](V v) { return log2(v[0]); }, [](N x) { return std::log2(x[0]); }, {{0.5, 3}}},
    {"log10", [](V v) { return log10(v[0]); }, [](N x) { return std::log10(x[0]); }, {{0.5, 3}}},
    {"cbrt", [](V v) { return cbrt(v[0]); }, [](N x) { return std::cbrt(x[0]); }, {{0.5, 3}}},
    {"tan", [](V v) { return tan(v[0]); }, [](N x) { return std::tan(x[0]); }, {{-1.2, 1.2}}},
    {"asin", [](V v) { return asin(v[0]); }, [](N x) { return std::asin(x[0]); }, {{-0.8, 0.8}}},
    {"acos", [](V v) { return acos(v[0]); }, [](N x) { return std::acos(x[0]); }, {{-0.8, 0.8}}},
    {"atan", [](V v) { return atan(v[0]); }, [](N x) { return std::atan(x[0]); }, {{-2, 2}}},
    {"sinh", [](V v) { return sinh(v[0]); }, [](N x) { return std::sinh(x[0]); }, {{-2, 2}}},
    {"cosh", [](V v) { return cosh(v[0]); }, [](N x) { return std::cosh(x[0]); }, {{-2, 2}}},
    {"asinh", [](V v) { return asinh(v[0]); }, [](N x) { return std::asinh(x[0]); }, {{-2, 2}}},
    {"acosh", [](V v) { return acosh(v[0]); }, [](N x) { return std::acosh(x[0]); }, {{1.5, 3}}},
    {"atanh", [](V v) { return atanh(v[0]); }, [](N x) { return std::atanh(x[0]); }, {{-0.8, 0.8}}},
    {"erfc", [](V v) { return erfc(v[0]); }, [](N x) { return std::erfc(x[0]); }, {{-2, 2}}},
    {"lgamma", [](V v) { return lgamma(v[0]); }, [](N x) { return std::lgamma(x[0]); }, {{0.5, 4}}},
    {"digamma", [](V v) { return digamma(v[0]); }, [](N x) { return digamma_of(x[0]); }, {{0.5, 4}}},
    {"polygamma",
     [](V v) { return polygamma(2.0, v[0]); },
     [](N x) { return polygamma2_of(x[0]); },
     {{0.75, 4}}},
    {"floor", [](V v) { return floor(v[0]); }, [](N x) { return std::floor(x[0]); }, {{-3, 3}}, true, false},
    {"ceil", [](V v) { return ceil(v[0]); }, [](N x) { return std::ceil(x[0]); }, {{-3, 3}}, true, false},
    {"round",
     [](V v) { return round(v[0]); },
     [](N x) { return std::nearbyint(x[0]); },
     {{-3, 3}},
     true,
     false},
    {"trunc", [](V v) { return trunc(v[0]); }, [](N x) { return std::trunc(x[0]); }, {{-3, 3}}, true, false},
    {"reciprocal", [](V v) { return reciprocal(v[0]); }, [](N x) { return 1 / x[0]; }, {{0.5, 3}}},
    {"atan2",
     [](V v) { return atan2(v[0], v[1]); },
     [](N x) { return std::atan2(x[0], x[1]); },
     {{-2, 2}, {0.5, 2}}},
    {"hypot",
     [](V v) { return hypot(v[0], v[1]); },
     [](N x) { return std::hypot(x[0], x[1]); },
     {{-2, 2}, {0.5, 2}}},
    {"fmod",
     [](V v) { return fmod(v[0], v[1]); },
     [](N x) { return std::fmod(x[0], x[1]); },
     {{-1.9, 1.9}, {2, 3}},
     true,
     false},
    {"remainder",
     [](V v) { return remainder(v[0], v[1]); },
     [](N x) { return x[0] - x[1] * std::floor(x[0] / x[1]); },
     {{0.1, 1.9}, {2, 3}},
     true,
     false},
    {"floor_divide",
     [](V v) { return floor_divide(v[0], v[1]); },
     [](N x) { return std::floor(x[0] / x[1]); },
     {{-9, 9}, {1, 4}},
     true,
     false},
    {"logit", [](V v) { return logit(v[0]); }, [](N x) { return std::log(x[0] / (1 - x[0])); }, {{0.1, 0.9}}},
    {"logit of what is clamped",
     [](V v) { return logit(v[0], 0.25); },
     [](N x) { return std::log(std::clamp(x[0], 0.25, 0.75) / (1 - std::clamp(x[0], 0.25, 0.75))); },
     {{0.1, 0.9}},
     false,
     false},
    {"nan_to_num", [](V v) { return nan_to_num(v[0]); }, [](N x) { return x[0]; }, {{}}, true},
    {"logaddexp",
     [](V v) { return logaddexp(v[0], v[1]); },
     [](N x) { return std::log(std::exp(x[0]) + std::exp(x[1])); },
     {{}, {}}},
    {"lerp",
     [](V v) { return lerp(v[0], v[1], v[2]); },
     [](N x) { return x[0] + x[2] * (x[1] - x[0]); },
     {{}, {}, {-0.4, 0.4}}},
    {"lerp by a number",
     [](V v) { return lerp(v[0], v[1], 0.75); },
     [](N x) { return 0.25 * x[0] + 0.75 * x[1]; },
     {{}, {}}},
    {"add", [](V v) { return v[0] + v[1]; }, [](N x) { return x[0] + x[1]; }, {{}, {}}, true},
    {"sub", [](V v) { return v[0] - v[1]; }, [](N x) { return x[0] - x[1]; }, {{}, {}}, true},
    {"mul", [](V v) { return v[0] * v[1]; }, [](N x) { return x[0] * x[1]; }, {{-3, 3}, {-3, 3}}, true},
    {"div", [](V v) { return v[0] / v[1]; }, [](N x) { return x[0] / x[1]; }, {{-9, 9}, {1, 4}}},
    {"pow",
     [](V v) { return pow(v[0], v[1]); },
     [](N x) { return std::pow(x[0], x[1]); },
     {{1, 2}, {}},
     true},
    {"maximum",
     [](V v) { return max(v[0], v[1]); },
     [](N x) { return x[0] > x[1] ? x[0] : x[1]; },
     {{}, {}},
     true,
     false},
    {"minimum",
     [](V v) { return min(v[0], v[1]); },
     [](N x) { return x[0] < x[1] ? x[0] : x[1]; },
     {{}, {}},
     true,
     false},
    {"where",
     [](V v) { return where(v[0], v[1], v[2]); },
     [](N x) { return x[0] != 0 ? x[1] : x[2]; },
     {{}, {}, {}},
     true,
     false,
     Kind::choice},
    {"gelu",
     [](V v) { return gelu(v[0]); },
     [](N x) { return x[0] * 0.5 * (1 + std::erf(x[0] / std::sqrt(2.0))); },
     {{}}},
    {"gelu_tanh",
     [](V v) { return gelu_tanh(v[0]); },
     [](N x) {
       return x[0] * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x[0] + 0.044715 * x[0] * x[0] * x[0])));
     },
     {{}}},
    {"silu", [](V v) { return silu(v[0]); }, [](N x) { return x[0] / (1 + std::exp(-x[0])); }, {{}}},
    {"softplus", [](V v) { return softplus(v[0]); }, [](N x) { return std::log1p(std::exp(x[0])); }, {{}}},
    {"relu6",
     [](V v) { return relu6(v[0] * 3.0); },
     [](N x) { return bounded(3 * x[0], 0, 6); },
     {{}},
     false,
     false},
    {"clamp",
     [](V v) { return clamp(v[0], -0.5, 1.5); },
     [](N x) { return bounded(x[0], -0.5, 1.5); },
     {{}},
     false,
     false},
    {"clamp_min",
     [](V v) { return clamp_min(v[0], -0.5); },
     [](N x) { return bounded(x[0], -0.5, 99); },
     {{}},
     false,
     false},
    {"clamp",
     [](V v) { return clamp(v[0], v[1], v[2]); },
     [](N x) { return std::min(std::max(x[0], x[1]), x[2]); },
     {{}, {}, {}},
     false,
     false},
    {"clamp_max",
     [](V v) { return clamp_max(v[0], 0.5); },
     [](N x) { return bounded(x[0], -99, 0.5); },
     {{}},
     false,
     false},
    {"hardtanh",
     [](V v) { return hardtanh(v[0]); },
     [](N x) { return bounded(x[0], -1, 1); },
     {{}},
     false,
     false},
    {"leaky_relu",
     [](V v) { return leaky_relu(v[0], 0.1); },
     [](N x) { return x[0] > 0 ? x[0] : 0.1 * x[0]; },
     {{}},
     false,
     false},
    {"threshold",
     [](V v) { return threshold(v[0], 0.25, -2.0); },
     [](N x) { return x[0] > 0.25 ? x[0] : -2.0; },
     {{}},
     false,
     false},
    {"elu",
     [](V v) { return elu(v[0], 1.5); },
     [](N x) { return x[0] > 0 ? x[0] : 1.5 * std::expm1(x[0]); },
     {{}},
     false,
     false},
    {"celu",
     [](V v) { return celu(v[0], 1.5); },
     [](N x) { return x[0] > 0 ? x[0] : 1.5 * std::expm1(x[0] / 1.5); },
     {{}},
     false,
     false},
    {"selu",
     [](V v) { return selu(v[0]); },
     [](N x) { return 1.0507009873554805 * (x[0] > 0 ? x[0] : 1.6732632423543772 * std::expm1(x[0])); },
     {{}},
     false,
     false},
    {"log_sigmoid",
     [](V v) { return log_sigmoid(v[0]); },
     [](N x) { return -std::log1p(std::exp(-x[0])); },
     {{}}},
    {"mish",
     [](V v) { return mish(v[0]); },
     [](N x) { return x[0] * std::tanh(std::log1p(std::exp(x[0]))); },
     {{}}},
    {"quick_gelu",
     [](V v) { return quick_gelu(v[0]); },
     [](N x) { return x[0] / (1 + std::exp(-1.702 * x[0])); },
     {{}}},
    {"softsign",
     [](V v) { return softsign(v[0]); },
     [](N x) { return x[0] / (1 + std::fabs(x[0])); },
     {{}},
     false,
     false},
    {"tanhshrink", [](V v) { return tanhshrink(v[0]); }, [](N x) { return x[0] - std::tanh(x[0]); }, {{}}},
    {"hardsigmoid",
     [](V v) { return hardsigmoid(v[0] * 2.0); },
     [](N x) { return bounded(x[0] / 3 + 0.5, 0, 1); },
     {{}},
     false,
     false},
    {"hardswish",
     [](V v) { return hardswish(v[0] * 2.0); },
     [](N x) { return 2 * x[0] * bounded(x[0] / 3 + 0.5, 0, 1); },
     {{}},
     false,
     false},
    {"softshrink",
     [](V v) { return softshrink(v[0], 0.75); },
     [](N x) { return x[0] - bounded(x[0], -0.75, 0.75); },
     {{}},
     false,
     false},
    {"hardshrink",
     [](V v) { return hardshrink(v[0]); },
     [](N x) { return std::fabs(x[0]) > 0.5 ? x[0] : 0.0; },
     {{}},
     false,
     false},
    {"huber_loss",
     [](V v) { return huber_loss<Reduction::none>(v[0], v[1], 0.75); },
     [](N x) {
       double const d = std::fabs(x[0] - x[1]);
       return d <= 0.75 ? 0.5 * d * d : 0.75 * (d - 0.375);
     },
     {{}, {}},
     false,
     false},
    {"smooth_l1_loss",
     [](V v) { return smooth_l1_loss<Reduction::none>(v[0], v[1], 0.75); },
     [](N x) {
       double const d = std::fabs(x[0] - x[1]);
       return d < 0.75 ? 0.5 * d * d / 0.75 : d - 0.375;
     },
     {{}, {}},
     false,
     false},
    {"bce_loss",
     [](V v) { return bce_loss<Reduction::none>(v[0], v[1]); },
     [](N x) { return -(x[1] * std::log(x[0]) + (1 - x[1]) * std::log1p(-x[0])); },
     {{0.1, 0.9}, {0, 1}}},
    {"bce_with_logits",
     [](V v) { return bce_with_logits<Reduction::none>(v[0], v[1]); },
     [](N x) { return std::log1p(std::exp(x[0])) - x[1] * x[0]; },
     {{}, {0, 1}}},
    {"kl_div",
     [](V v) { return kl_div<Reduction::none>(v[0], v[1]); },
     [](N x) { return x[1] * (std::log(x[1]) - x[0]); },
     {{}, {0.1, 0.9}}},
    {"stop_gradient",
     [](V v) { return stop_gradient(v[0]) * v[0]; },
     [](N x) { return x[0] * x[0]; },
     {{}},
     true,
     false,
     Kind::numbers,
     false},
    {"vanishing",
     [](V v) { return bind<op::vanishing>(Attrs{}, v[0]); },
     [](N) { return 0.0; },
     {{}},
     false,
     false,
     Kind::numbers,
     false},
    {"copy", [](V v) { return bind<op::copy>(Attrs{}, v[0]); }, [](N x) { return x[0]; }, {{}}, true},
    {"equal",
     [](V v) { return v[0] == v[1]; },
     [](N x) { return double(x[0] == x[1]); },
     {{}, {}},
     true,
     false,
     Kind::comparison},
    {"not_equal",
     [](V v) { return v[0] != v[1]; },
     [](N x) { return double(x[0] != x[1]); },
     {{}, {}},
     true,
     false,
     Kind::comparison},
    {"less",
     [](V v) { return v[0] < v[1]; },
     [](N x) { return double(x[0] < x[1]); },
     {{}, {}},
     true,
     false,
     Kind::comparison},
    {"less_equal",
     [](V v) { return v[0] <= v[1]; },
     [](N x) { return double(x[0] <= x[1]); },
     {{}, {}},
     true,
     false,
     Kind::comparison},
    {"greater",
     [](V v) { return v[0] > v[1]; },
     [](N x) { return double(x[0] > x[1]); },
     {{}, {}},
     true,
     false,
     Kind::comparison},
    {"greater_equal",
     [](V v) { return v[0] >= v[1]; },
     [](N x) { return double(x[0] >= x[1]); },
     {{}, {}},
     true,
     false,
     Kind::comparison},
    {"logical_and",
     [](V v) { return v[0] && v[1]; },
     [](N x) { return double(x[0] != 0 && x[1] != 0); },
     {{}, {}},
     false,
     false,
     Kind::logic},
    {"logical_or",
     [](V v) { return v[0] || v[1]; },
     [](N x) { return double(x[0] != 0 || x[1] != 0); },
     {{}, {}},
     false,
     false,
     Kind::logic},
    {"logical_not",
     [](V v) { return !v[0]; },
     [](N x) { return double(x[0] == 0); },
     {{}},
     false,
     false,
     Kind::logic},
    {"number",
     [](V v) { return 2.0 / (1.5 + v[0]) - v[0] * 3.0; },
     [](N x) { return 2 / (1.5 + x[0]) - 3 * x[0]; },
     {{0, 2}}},
};

constexpr bool has_record(std::string_view name) {
  for (Record const& r : records)
    if (r.name == name) return true;
  return false;
}
template <class Op>
struct RecordOf {
  static_assert(!Op::elementwise || has_record(Op::name), "this op of LibraryOps has no record");
};
template <class... Op>
constexpr bool complete(std::type_identity<testing::KnownOps<Op...>>) {
  return ((sizeof(RecordOf<Op>) > 0) && ...);
}
static_assert(complete(std::type_identity<testing::LibraryOps>{}));

// Shapes for one, two or three operands: broadcasting, empty, rank 0, size 1, prime extents.
std::vector<std::vector<Shape>> shapes_for(std::size_t operands) {
  Shape const number, one = make_shape(1), seven = make_shape(7), empty = make_shape(0),
                      hollow = make_shape(3, 0);
  Shape const matrix = make_shape(3, 5), cube = make_shape(2, 3, 4), column = make_shape(3, 1),
              row = make_shape(1, 5);
  std::vector<std::vector<Shape>> r;
  for (Shape const& s : {number, one, seven, empty, hollow, matrix, cube, make_shape(13, 17)})
    r.push_back(std::vector<Shape>(operands, s));
  if (operands == 2)
    r.insert(r.end(), {{column, row},
                       {number, matrix},
                       {cube, make_shape(4)},
                       {one, empty},
                       {make_shape(2, 1, 4), column}});
  if (operands == 3)
    r.insert(r.end(), {{column, row, number}, {matrix, make_shape(5), column}, {one, hollow, hollow}});
  return r;
}

Shape common(std::vector<Shape> const& shapes) {
  Shape r = shapes[0];
  for (Shape const& s : shapes) r = op::broadcast_shapes("", r, s, nullptr);
  return r;
}

DType dtype_of_operand(Record const& r, std::size_t k, DType d) {
  return r.kind == Kind::choice && k == 0 ? DType::boolean : d;
}
DType dtype_of_result(Record const& r, DType d) { return r.kind == Kind::comparison ? DType::boolean : d; }
std::vector<DType> dtypes(Record const& r) {
  if (r.kind == Kind::logic) return {DType::boolean};
  if (!r.integers) return {DType::f32, DType::f64, DType::f16, DType::bf16};
  return {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::i8};
}

std::vector<Array> operands(Record const& r, std::vector<Shape> const& shapes, DType d, Layout layout) {
  std::vector<Array> x;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    Interval from = r.from.in[k];
    if (d == DType::u8) from = {1, 9};
    else if (!is_floating(d)) from = {from.low > 0 ? from.low : -9, 9};
    DType const own = dtype_of_operand(r, k, d);
    // Whole numbers, so that some are equal, for comparisons.
    x.push_back(laid_out(r.kind == Kind::comparison ? cast_to(draw(shapes[k], {0, 3}, 5 + k, DType::i32), own)
                                                    : draw(shapes[k], from, 5 + k, own),
                         layout));
  }
  return x;
}

// What the reference says, in the dtype's arithmetic (integers truncate and wrap).
double settled(double v, DType d) {
  if (is_floating(d)) return v;
  auto const i = static_cast<std::int64_t>(v);
  return static_cast<double>(d == DType::u8 ? i & 255 : d == DType::i8 ? static_cast<std::int8_t>(i) : i);
}

void check_values(Record const& r, std::vector<Shape> const& shapes, DType d, Layout layout) {
  std::vector<Array> const x = operands(r, shapes, d, layout);
  Array const got = r.f(x);
  Shape const shape = common(shapes);
  REQUIRE(got.shape() == shape);
  DType const to = dtype_of_result(r, d);
  REQUIRE(got.dtype() == to);
  Array want(Meta{DType::f64, shape});
  std::vector<Array> spread;
  for (Array const& a : x) spread.push_back(broadcast_to(a, shape));
  for (index_t i = 0; i < want.size(); ++i) {
    double v[3] = {};
    for (std::size_t k = 0; k < x.size(); ++k) v[k] = at(spread[k], i);
    write_real(want.operand(), i, settled(r.reference(v), to));
  }
  Tolerance const t = is_floating(to) ? tolerance(to) : Tolerance{0, 0};
  require_close(got, want, {t.rtol, t.atol + 1e-300}, to == DType::bf16 ? largest(want) : 0);
  check_regimes(r.f, x, got);
}

}  // namespace

TEST_CASE("elementwise values", "[ops]") {
  for (Record const& r : records)
    for (DType d : dtypes(r))
      for (auto const& shapes : shapes_for(r.from.count))
        for (Layout layout : {Layout::dense, Layout::turned, Layout::sparse}) {
          INFO(r.name << " " << name_of(d) << " rank " << shapes[0].rank);
          check_values(r, shapes, d, layout);
        }
}

TEST_CASE("functions with fractions take integers and truths as f32", "[ops]") {
  for (Record const& r : records) {
    bool const stays =
        r.name == "vanishing" || r.name == "hardtanh" || (r.name == "clamp" && r.from.count == 3);
    if (r.integers || r.kind != Kind::numbers || stays || r.name.ends_with("loss") ||
        r.name == "bce_with_logits" || r.name == "kl_div")
      continue;
    for (DType d : {DType::i32, DType::i64, DType::u8, DType::i8, DType::boolean})
      for (auto const& shapes : shapes_for(r.from.count)) {
        INFO(r.name << " " << name_of(d) << " rank " << shapes[0].rank);
        std::vector<Array> const x = operands(r, shapes, d, Layout::dense);
        std::vector<Array> as_numbers;
        for (Array const& v : x) as_numbers.push_back(cast_to(v, DType::f32));
        Array const got = r.f(x);
        REQUIRE(got.dtype() == DType::f32);
        REQUIRE(allclose(got, r.f(as_numbers), 1e-6, 1e-6, true));
        check_regimes(r.f, x, got);
      }
  }
}

TEST_CASE("elementwise gradients", "[ops]") {
  for (Record const& r : records) {
    if (r.kind == Kind::comparison || r.kind == Kind::logic || !r.rules) continue;
    for (DType d : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (auto const& shapes : shapes_for(r.from.count)) {
        if (common(shapes).numel() > 60) continue;
        INFO(r.name << " " << name_of(d) << " rank " << shapes[0].rank);
        check_rules(r.f, operands(r, shapes, d, Layout::dense), d, r.smooth && d == DType::f64);
      }
  }
}

TEST_CASE("special values follow IEEE and PyTorch", "[ops]") {
  double const inf = HUGE_VAL, nan = std::nan("");
  for (DType d : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    Array const x = cast_to(from<double>({0, -0.0, inf, -inf, nan}), d);
    auto const is = [&](Array const& got, std::initializer_list<double> want) {
      index_t i = 0;
      for (double w : want) {
        INFO(name_of(d) << " element " << i << ": " << at(got, i));
        CHECK((at(got, i) == w || (w != w && at(got, i) != at(got, i))));
        ++i;
      }
    };
    is(exp(x), {1, 1, inf, 0, nan});
    is(log(x), {-inf, -inf, inf, nan, nan});
    is(log1p(x), {0, 0, inf, nan, nan});
    is(expm1(x), {0, 0, inf, -1, nan});
    is(sqrt(x), {0, 0, inf, nan, nan});
    is(rsqrt(x), {inf, -inf, 0, nan, nan});
    is(tanh(x), {0, 0, 1, -1, nan});
    is(sigmoid(x), {0.5, 0.5, 1, 0, nan});
    is(erf(x), {0, 0, 1, -1, nan});
    is(relu(x), {0, 0, inf, 0, nan});
    is(abs(x), {0, 0, inf, inf, nan});
    is(sign(x), {0, 0, 1, -1, 0});
    is(exp2(x), {1, 1, inf, 0, nan});
    is(log2(x), {-inf, -inf, inf, nan, nan});
    is(acosh(x), {nan, nan, inf, nan, nan});
    is(atanh(x + 1.0), {inf, inf, nan, nan, nan});
    is(erfc(x), {1, 1, 0, 2, nan});
    is(lgamma(x), {inf, inf, inf, inf, nan});
    is(digamma(x), {-inf, inf, inf, nan, nan});
    is(hypot(x, x), {0, 0, inf, inf, nan});
    is(logaddexp(x, -inf), {0, 0, inf, -inf, nan});
    is(floor(x), {0, 0, inf, -inf, nan});
    is(floor_divide(1.0, x), {inf, -inf, 0, -1, nan});
    is(remainder(-1.0, x), {nan, nan, inf, -1, nan});
    is(cast_to(isnan(x), d), {0, 0, 0, 0, 1});
    is(cast_to(isinf(x), d), {0, 0, 1, 1, 0});
    is(cast_to(isfinite(x), d), {1, 1, 0, 0, 0});
    double const most = largest_finite(d);
    is(nan_to_num(x), {0, 0, most, -most, 0});
    is(nan_to_num(x, inf, 4, -5), {0, 0, 4, -5, most});
    is(cast_to(isclose(x, x), d), {1, 1, 1, 1, 0});
    is(cast_to(isclose(x, -x), d), {1, 1, 0, 0, 0});
    is(cast_to(isclose(x, zeros_like(x), 1, 1, true), d), {1, 1, 0, 0, 0});
    is(cast_to(isclose(zeros_like(x), x, 1, 1), d), {1, 1, 0, 0, 0});
    is(cast_to(isclose(x, x, 0, 0, true), d), {1, 1, 1, 1, 1});
    is(logit(x), {-inf, -inf, nan, nan, nan});
    is(maximum(x, zeros_like(x)), {0, 0, inf, 0, nan});
    is(minimum(zeros_like(x), x), {0, 0, 0, -inf, nan});
    is(softplus(x), {at(softplus(x), 0), at(softplus(x), 0), inf, 0, nan});
    is(1.0 / x, {inf, -inf, 0, 0, nan});
    is(max(x), {nan});
    is(min(x), {nan});
    is(pow(x, 2.0), {0, 0, inf, inf, nan});
    is(pow(x, 0.0), {1, 1, 1, 1, 1});
    is(clamp(x, -1.0, 2.0), {0, 0, 2, -1, nan});
    for (Array const& bounded :
         {clamp(x, nan, 2.0), clamp(x, -1.0, nan), clamp_min(x, nan), clamp_max(x, nan)})
      is(bounded, {nan, nan, nan, nan, nan});
    is(logsumexp(slice_axis(x, 0, 2, 1)), {inf});
    is(logsumexp(slice_axis(x, 0, 3, 1)), {-inf});
  }
}

TEST_CASE("quotients of integers are f32, and whole ones by zero are zero, and wrap", "[ops]") {
  std::int32_t const least = std::numeric_limits<std::int32_t>::min();
  Array const x = from<std::int32_t>({7, 0, -7, least}), y = from<std::int32_t>({0, 0, 2, -1});
  CHECK(array_equal(div(x, y, Rounding::trunc), from<std::int32_t>({0, 0, -3, least})));
  CHECK(array_equal(floor_divide(x, y), from<std::int32_t>({0, 0, -4, least})));
  CHECK(allclose(x / y, from({HUGE_VALF, NAN, -3.5f, 2147483648.0f}), 0, 0, true));
  CHECK((x / 2).dtype() == DType::f32);
  CHECK((1 / x).dtype() == DType::f32);
  CHECK((from<bool>({true}) / from<bool>({true})).dtype() == DType::f32);
  CHECK(reciprocal(y).dtype() == DType::f32);
  CHECK_THROWS_WITH(div(x, y, Rounding::none),
                    "div: a quotient of integers that is not rounded is none: div(x, y)");
  Array z = x;
  CHECK_THROWS_WITH(z /= y, "div_: a result of f32 does not fit the target of i32");
  CHECK(array_equal(z, from<std::int32_t>({7, 0, -7, least})));
  Tensor<std::int32_t, 2> const a = Tensor<std::int32_t, 2>::from({7, -7});
  static_assert(std::is_same_v<decltype(a / a), Tensor<float, 2>>);
  static_assert(std::is_same_v<decltype(sqrt(a > 0)), Tensor<float, 2>>);
  static_assert(std::is_same_v<decltype(div(a, 2, Rounding::trunc)), Tensor<std::int32_t, 2>>);
  CHECK(array_equal(div(a, 2, Rounding::trunc), from<std::int32_t>({3, -3})));
}

TEST_CASE("powers of integers are exact", "[ops]") {
  std::int64_t const large = 3037000499;
  Array const x = from<std::int64_t>({large, -3, 0, 1, -1, 2});
  CHECK(array_equal(pow(x, 2), from<std::int64_t>({large * large, 9, 0, 1, 1, 4})));
  CHECK(array_equal(pow(x, from<std::int64_t>({1, -1, -2, -5, -3, 62})),
                    from<std::int64_t>({large, 0, 0, 1, -1, std::int64_t{1} << 62})));
  CHECK(pow(x, 2.0).dtype() == DType::f32);
  CHECK(pow(2, cast_to(x, DType::i32)).dtype() == DType::i32);
  CHECK_THROWS_WITH(pow(x, -1), "pow: integers to a negative power, -1");
  static_assert(std::is_same_v<decltype(pow(Tensor<std::uint8_t, 2>{}, 3)), Tensor<std::uint8_t, 2>>);
}

TEST_CASE("division with remainder rounds towards zero or down, and by an integer 0 keeps the dividend",
          "[ops]") {
  Array const x = from<std::int32_t>({7, -7, 7, -7, 5}), y = from<std::int32_t>({3, 3, -3, -3, 0});
  CHECK(array_equal(fmod(x, y), from<std::int32_t>({1, -1, 1, -1, 5})));
  CHECK(array_equal(remainder(x, y), from<std::int32_t>({1, 2, -2, -1, 5})));
  CHECK(array_equal(floor_divide(x, y), from<std::int32_t>({2, -3, -3, 2, 0})));
  std::int32_t const least = std::numeric_limits<std::int32_t>::min();
  CHECK(array_equal(remainder(from<std::int32_t>({least}), -1), from<std::int32_t>({0})));
  CHECK(array_equal(floor_divide(from<double>({0.5, -7, 1, 6}), from<double>({0.1, 2, 3, -4})),
                    from<double>({4, -4, 0, -2})));
  CHECK(array_equal(round(from<double>({0.5, 1.5, 2.5, -0.5, -1.5})), from<double>({0, 2, 2, 0, -2})));
  CHECK(array_equal(div(x, y, Rounding::trunc), from<std::int32_t>({2, -2, -2, 2, 0})));
  CHECK(array_equal(div(x, y, Rounding::floor), from<std::int32_t>({2, -3, -3, 2, 0})));
  Array const third = from<double>({7, -7, 5.5});
  CHECK(array_equal(div(third, from<double>({2, 2, -2}), Rounding::trunc), from<double>({3, -3, -2})));
  CHECK(array_equal(div(third, from<double>({2, 2, -2}), Rounding::floor), from<double>({3, -4, -3})));
  CHECK(allclose(div(third, 2, Rounding::none), from<double>({3.5, -3.5, 2.75})));
  // A rounded quotient by 0 leaves the gradient of what stands beside it alone, as in PyTorch 2.11.
  Array const by = from<double>({0, 0, 2});
  for (Rounding const how : {Rounding::trunc, Rounding::floor}) {
    Array a = third.clone(), b = by.clone();
    a.requires_grad(true);
    b.requires_grad(true);
    auto const g = gradients(sum(div(a, b, how) + 2.0 * a + b), {a, b});
    CHECK(array_equal(g[0], full_like(a, 2)));
    CHECK(array_equal(g[1], full_like(b, 1)));
  }
  CHECK(array_equal(lerp(from<double>({0.1}), from<double>({0.7}), 1.0), from<double>({0.7})));
  CHECK(array_equal(masked_fill(x, x > 0, 9), from<std::int32_t>({9, -7, 9, -7, 9})));
  CHECK(array_equal(nan_to_num(x, 1, 2, 3), x));
  CHECK(masked_fill(ones({2}, DType::f16), from<bool>({true, false}), 2.5).dtype() == DType::f16);
}

TEST_CASE("conventions at kinks and ties", "[ops]") {
  auto const gradient = [](Function const& f, std::vector<Array> const& x) {
    Graph g = suite::detail::recorded([&](V v) { return sum(f(v)); }, x, DType::f64);
    testing::add_vjp(g, suite::detail::floating_inputs(x));
    std::vector<Array> in = x;
    in.push_back(full({}, 1, DType::f64));
    return testing::interpret(graph::simplify(g), in);
  };
  Array const zero = full({1}, 0, DType::f64), ties = from<double>({1, 3, 3, 2, 3});
  CHECK(at(gradient([](V v) { return abs(v[0]); }, {zero})[0], 0) == 0);
  CHECK(at(gradient([](V v) { return relu(v[0]); }, {zero})[0], 0) == 0);
  CHECK(at(gradient([](V v) { return softplus(v[0]); }, {zero})[0], 0) == 0.5);
  auto const both = gradient([](V v) { return maximum(v[0], v[1]); }, {zero, zero});
  CHECK(at(both[0], 0) == 0.5);
  CHECK(at(both[1], 0) == 0.5);
  CHECK(at(gradient([](V v) { return minimum(v[0], v[1]); }, {zero, zero})[1], 0) == 0.5);
  Array const shares = gradient([](V v) { return max(v[0]); }, {ties})[0];
  double const third = 1.0 / 3;
  for (index_t i = 0; i < 5; ++i) CHECK(at(shares, i) == (at(ties, i) == 3 ? third : 0));
  // Products with zeros among the factors.
  auto const of_product = [&](std::initializer_list<double> x) {
    return gradient([](V v) { return prod(v[0]); }, {from<double>(x)})[0];
  };
  CHECK(array_equal(of_product({2, 0, 3}), from<double>({0, 6, 0})));
  CHECK(array_equal(of_product({0, 0, 3}), from<double>({0, 0, 0})));
  // Powers where the formula meets 0 times infinity.
  auto const powers =
      gradient([](V v) { return pow(v[0], v[1]); }, {from<double>({0, 0, 2}), from<double>({0, 2, 0})});
  CHECK(array_equal(powers[0], from<double>({0, 0, 0})));
  CHECK(at(powers[1], 0) == 0);
  CHECK(at(powers[1], 1) == 0);
  // Of two equal infinities each has half; divisions round as their op does.
  Array const infinities = from<double>({HUGE_VAL, -HUGE_VAL}), low = from<double>({-5}),
              three = from<double>({3});
  CHECK(array_equal(gradient([](V v) { return logaddexp(v[0], v[1]); }, {infinities, infinities})[0],
                    from<double>({0.5, 0.5})));
  CHECK(at(gradient([](V v) { return remainder(v[0], v[1]); }, {low, three})[1], 0) == 2);
  CHECK(at(gradient([](V v) { return fmod(v[0], v[1]); }, {low, three})[1], 0) == 1);
  // By the exact quotient, as the remainder itself: 0.1 goes into 0.5 four times and a bit.
  CHECK(at(gradient([](V v) { return remainder(v[0], v[1]); }, {from<double>({0.5}), from<double>({0.1})})[1],
           0) == -4);
  for (Array const& slope : gradient([](V v) { return atan2(v[0], v[1]); }, {zero, zero}))
    CHECK(at(slope, 0) == 0);
  CHECK(at(gradient([](V v) { return stop_gradient(v[0]) * v[0]; }, {from<double>({3})})[0], 0) == 3);
}

TEST_CASE("with a guard gradients are finite at poles, and values the same", "[ops]") {
  double const e = 1e-10;
  struct Case {
    Function f, plain;
    double (*gradient)(double x, double eps);  // of operand 0
    double pole;
  };
  std::vector<Case> const cases = {
      {[](V v) { return log(v[0], {.eps = 1e-10}); }, [](V v) { return log(v[0]); },
       [](double x, double eps) { return 1 / (x + eps); }, 0},
      {[](V v) { return log2(v[0], {.eps = 1e-10}); }, [](V v) { return log2(v[0]); },
       [](double x, double eps) { return 1 / ((x + eps) * std::log(2.0)); }, 0},
      {[](V v) { return log10(v[0], {.eps = 1e-10}); }, [](V v) { return log10(v[0]); },
       [](double x, double eps) { return 1 / ((x + eps) * std::log(10.0)); }, 0},
      {[](V v) { return log1p(v[0], {.eps = 1e-10}); }, [](V v) { return log1p(v[0]); },
       [](double x, double eps) { return 1 / (1 + x + eps); }, -1},
      {[](V v) { return sqrt(v[0], {.eps = 1e-10}); }, [](V v) { return sqrt(v[0]); },
       [](double x, double eps) { return 1 / (2 * std::sqrt(x) + eps); }, 0},
      {[](V v) { return rsqrt(v[0], {.eps = 1e-10}); }, [](V v) { return rsqrt(v[0]); },
       [](double x, double eps) { return -1 / (2 * x * std::sqrt(x) + eps); }, 0},
      {[](V v) { return cbrt(v[0], {.eps = 1e-10}); }, [](V v) { return cbrt(v[0]); },
       [](double x, double eps) { return 1 / (3 * std::cbrt(x) * std::cbrt(x) + eps); }, 0},
      {[](V v) { return reciprocal(v[0], {.eps = 1e-10}); }, [](V v) { return reciprocal(v[0]); },
       [](double x, double eps) { return -1 / (x * x + eps); }, 0},
      {[](V v) { return div(3.0, v[0], {.eps = 1e-10}); }, [](V v) { return 3.0 / v[0]; },
       [](double x, double eps) { return -3 / (x * x + eps); }, 0},
      {[](V v) { return pow(v[0], 0.5, {.eps = 1e-10}); }, [](V v) { return pow(v[0], 0.5); },
       [](double x, double eps) { return 0.5 / std::sqrt(x + eps); }, 0},
  };
  for (Case const& c : cases)
    for (double at_x : {c.pole, 0.75, 2.0}) {
      std::vector<Array> const x = {full({3}, at_x, DType::f64)};
      Array const value = c.f(x), plain = c.plain(x);
      CHECK(at(value, 0) == at(plain, 0));
      Graph g = suite::detail::recorded([&](V v) { return sum(c.f(v)); }, x, DType::f64);
      testing::add_vjp(g, suite::detail::floating_inputs(x));
      std::vector<Array> const in = {x[0], full({}, 1, DType::f64)};
      for (Graph const& way : {g, graph::simplify(g)}) {
        double const got = at(testing::interpret(way, in)[0], 0), want = c.gradient(at_x, e);
        CAPTURE(at_x, got, want);
        CHECK(std::fabs(got - want) <= 1e-14 * std::fabs(want));
      }
    }
}

TEST_CASE("dtypes promote as in PyTorch and numbers follow their operand", "[ops]") {
  Array const half = ones({2}, DType::f16), single = ones({2}), wide = ones({2}, DType::f64);
  Array const i32 = ones({2}, DType::i32), i64 = ones({2}, DType::i64), u8 = ones({2}, DType::u8);
  Array const truth = ones({2}, DType::boolean);
  CHECK((half + single).dtype() == DType::f32);
  CHECK((half + ones({2}, DType::bf16)).dtype() == DType::f32);
  CHECK((single * wide).dtype() == DType::f64);
  CHECK((i32 + half).dtype() == DType::f16);
  CHECK((i32 + i64).dtype() == DType::i64);
  CHECK((u8 + i32).dtype() == DType::i32);
  CHECK((truth + u8).dtype() == DType::u8);
  CHECK((half * 2.5).dtype() == DType::f16);
  CHECK((i32 + 1).dtype() == DType::i32);
  CHECK((i32 * 0.5).dtype() == DType::f32);
  CHECK((truth + 1).dtype() == DType::i64);
  CHECK_THROWS_AS(truth + truth, error);
  CHECK(exp(i32).dtype() == DType::f32);
  CHECK((i64 / i32).dtype() == DType::f32);
  CHECK((i64 / half).dtype() == DType::f16);
  CHECK(atan2(truth, wide).dtype() == DType::f64);
  CHECK_THROWS_AS(where(single, single, single), error);
}

TEST_CASE("plain integers beside i64 are exact", "[ops]") {
  std::int64_t const odd = 9007199254740993, least = std::numeric_limits<std::int64_t>::min(),
                     most = std::numeric_limits<std::int64_t>::max();
  Array const x = from<std::int64_t>({0, 1, -1});
  CHECK(array_equal(x + odd, from<std::int64_t>({odd, odd + 1, odd - 1})));
  CHECK(array_equal(x - odd, from<std::int64_t>({-odd, 1 - odd, -1 - odd})));
  CHECK(array_equal(maximum(x, most), from<std::int64_t>({most, most, most})));
  CHECK(array_equal(x + least, from<std::int64_t>({least, least + 1, most})));
  CHECK(array_equal(x + odd == odd + 1, from<bool>({false, true, false})));
  CHECK(array_equal(where(x > 0, x, odd), from<std::int64_t>({odd, 1, odd})));
  CHECK(array_equal(masked_fill(x, x > 0, odd), from<std::int64_t>({0, odd, -1})));
  CHECK(array_equal(isclose(x + odd, full_like(x, 0) + odd, 0, 0), from<bool>({true, false, false})));
  CHECK(
      array_equal(isclose(x * 100 + odd, full_like(x, 0) + odd, 1e-15, 0), from<bool>({true, false, false})));
  CHECK(array_equal(isclose(x * 100 + odd, full_like(x, 0) + odd, 1e-12, 0), from<bool>({true, true, true})));
  Array y = x.detach() + 0;
  y.fill_(odd);
  y[0] += odd;
  CHECK(array_equal(y, from<std::int64_t>({2 * odd, odd, odd})));
  CHECK_THROWS_WITH(ones({2}, DType::i32) + odd, "add: 9007199254740993 does not fit i32");
  check_regimes([](V v) { return (v[0] + 9007199254740993) * 3 - 9007199254740993 * (v[0] != v[0] + 1); },
                {x}, x * 3 + 2 * odd);
  // Beside real numbers they have no sign that they have not been given.
  auto const top = std::numeric_limits<std::uint64_t>::max();
  CHECK((zeros({1}, DType::f64) + top).item() == 0x1p64);
  CHECK(maximum(zeros({1}, DType::f64), top).item() == 0x1p64);
  CHECK((zeros({1}, DType::f64) + (std::uint64_t{1} << 63)).item() == 0x1p63);
  CHECK((zeros({1}, DType::f64) - std::numeric_limits<std::int64_t>::min()).item() == 0x1p63);
}

TEST_CASE("casts", "[ops]") {
  std::vector<DType> const all = {DType::f32, DType::f64, DType::f16, DType::bf16,   DType::i32,
                                  DType::i64, DType::u8,  DType::i8,  DType::boolean};
  Array const x = from<double>({0, 1, 2.5, 7.75, 100});
  for (DType a : all)
    for (DType b : all) {
      Array const y = cast_to(cast_to(x, a), b);
      REQUIRE(y.dtype() == b);
      for (index_t i = 0; i < x.size(); ++i) {
        double v = at(x, i);
        for (DType d : {a, b}) v = d == DType::boolean ? double(v != 0) : is_floating(d) ? v : std::trunc(v);
        REQUIRE(at(y, i) == v);
      }
    }
  // Through a dtype and back; integers and truths carry no gradient.
  check_rules([](V v) { return cast_to(square(cast_to(v[0], DType::f64)), DType::f32); },
              {from<float>({1.5f, -2})}, DType::f32, false);
  check_rules([](V v) { return cast_to(cast_to(v[0], DType::i32), v[0].dtype()) * v[0]; },
              {from<float>({1.5f, -2.5f})}, DType::f32, false);
}

TEST_CASE("activations of 16 bits are rounded once", "[ops]") {
  auto const check = [](char const* name, auto const& f, double low = -6, double high = 6) {
    for (DType const d : {DType::bf16, DType::f16}) {
      Array const x = uniform({400}, Key{1}, low, high, DType::f64).to(d), y = f(x);
      CHECK(y.dtype() == d);
      auto const got = y.to_vector<double>(), wanted = f(x.to(DType::f64)).template to_vector<double>();
      double const unit = d == DType::bf16 ? 0x1p-8 : 0x1p-11;
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        worst = std::max(worst, std::fabs(got[i] - wanted[i]) / std::max(std::fabs(wanted[i]) * unit, 1e-6));
      INFO(name << " " << name_of(d));
      CHECK(worst < 1.02);  // half a unit of a number just above a power of two, and what f32 is off
    }
  };
  check("gelu", [](Array const& x) { return gelu(x); });
  check("gelu_tanh", [](Array const& x) { return gelu_tanh(x); });
  check("quick_gelu", [](Array const& x) { return quick_gelu(x); });
  check("silu", [](Array const& x) { return silu(x); });
  check("mish", [](Array const& x) { return mish(x); });
  check("softplus", [](Array const& x) { return softplus(x); });
  check("softplus 2", [](Array const& x) { return softplus(x, 2); });
  check("log_sigmoid", [](Array const& x) { return log_sigmoid(x); });
  check("elu", [](Array const& x) { return elu(x, 0.7); });
  check("celu", [](Array const& x) { return celu(x, 0.7); });
  check("selu", [](Array const& x) { return selu(x); });
  check("softsign", [](Array const& x) { return softsign(x); });
  check("hardswish", [](Array const& x) { return hardswish(x); });
  check("hardsigmoid", [](Array const& x) { return hardsigmoid(x); });
  check("logit", [](Array const& x) { return logit(x); }, 0.1, 0.9);
  check("logit, clamped", [](Array const& x) { return logit(x, 0.2); }, 0.1, 0.9);
  check("glu", [](Array const& x) { return glu(x, 0); });
  check("geglu", [](Array const& x) { return geglu(x, 0); });
  check("swiglu", [](Array const& x) { return swiglu(x, 0); });
}

TEST_CASE("the negative of zero has a sign, of many numbers as of few", "[ops]") {
  for (DType const d : {DType::f64, DType::f32, DType::bf16})
    for (index_t const n : {1, 5, 16, 67}) {
      INFO(name_of(d) << " " << n);
      CHECK(array_equal(1.0 / (-zeros({n}, d)), full({n}, -std::numeric_limits<double>::infinity(), d)));
    }
}

TEST_CASE("integers are computed modulo their range", "[ops]") {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max(), least = -most - 1;
  // In a constant expression an overflow that is not defined does not compile.
  STATIC_REQUIRE(op::add::eval(most, 1) == least);
  STATIC_REQUIRE(op::sub::eval(least, 1) == most);
  STATIC_REQUIRE(op::mul::eval(most, 2) == -2);
  STATIC_REQUIRE(op::neg::eval(least) == least);
  STATIC_REQUIRE(op::square::eval(most) == 1);
  STATIC_REQUIRE(math::abs(least) == least);
  STATIC_REQUIRE(math::plus(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
                 std::numeric_limits<std::int64_t>::max());
}

}  // namespace tests::ops_elementwise
