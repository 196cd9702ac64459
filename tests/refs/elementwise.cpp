// SPDX-License-Identifier: BSL-1.0
// Elementwise functions of the reference cases.
#include "refs/functions.hpp"

#include <dfdx/vocabulary/activation.hpp>

namespace refs {

void add_elementwise(std::map<std::string, Function>& table) {
  using namespace dfdx;
  auto const one = [&](char const* name, Array (*f)(Array const&)) {
    table[name] = [f](Arguments const& a) { return std::vector<Array>{f(a["x"])}; };
  };
  auto const two = [&](char const* name, Array (*f)(Array const&, Array const&)) {
    table[name] = [f](Arguments const& a) { return std::vector<Array>{f(a["a"], a["b"])}; };
  };
  auto const with_number = [&](char const* name, char const* key, Array (*f)(Array const&, double)) {
    table[name] = [f, key](Arguments const& a) { return std::vector<Array>{f(a["x"], a.number(key))}; };
  };
  using A = Array const&;
  one("neg", [](A x) { return -x; });
  one("exp", [](A x) { return exp(x); });
  one("log", [](A x) { return log(x); });
  one("log1p", [](A x) { return log1p(x); });
  one("expm1", [](A x) { return expm1(x); });
  one("sqrt", [](A x) { return sqrt(x); });
  one("rsqrt", [](A x) { return rsqrt(x); });
  one("square", [](A x) { return square(x); });
  one("abs", [](A x) { return abs(x); });
  one("sign", [](A x) { return sign(x); });
  one("sin", [](A x) { return sin(x); });
  one("cos", [](A x) { return cos(x); });
  one("tanh", [](A x) { return tanh(x); });
  one("sigmoid", [](A x) { return sigmoid(x); });
  one("erf", [](A x) { return erf(x); });
  one("relu", [](A x) { return relu(x); });
  one("silu", [](A x) { return silu(x); });
  one("reciprocal", [](A x) { return 1.0 / x; });
  one("relu6", [](A x) { return relu6(x); });
  one("selu", [](A x) { return selu(x); });
  one("mish", [](A x) { return mish(x); });
  one("softsign", [](A x) { return softsign(x); });
  one("logsigmoid", [](A x) { return log_sigmoid(x); });
  one("hardswish", [](A x) { return hardswish(x); });
  one("hardsigmoid", [](A x) { return hardsigmoid(x); });
  one("tanhshrink", [](A x) { return tanhshrink(x); });
  with_number("leaky_relu", "slope", [](A x, double c) { return leaky_relu(x, c); });
  with_number("celu", "alpha", [](A x, double c) { return celu(x, c); });
  with_number("softshrink", "lambda", [](A x, double c) { return softshrink(x, c); });
  with_number("hardshrink", "lambda", [](A x, double c) { return hardshrink(x, c); });
  table["elu"] = [](Arguments const& a) { return std::vector<Array>{elu(a["x"], a.number("alpha", 1))}; };
  table["hardtanh"] = [](Arguments const& a) {
    return std::vector<Array>{hardtanh(a["x"], a.number("min", -1), a.number("max", 1))};
  };
  table["clamp"] = [](Arguments const& a) {
    bool const low = a.attrs().contains("min"), high = a.attrs().contains("max");
    if (low && high) return std::vector<Array>{clamp(a["x"], a.number("min"), a.number("max"))};
    return std::vector<Array>{low ? clamp_min(a["x"], a.number("min")) : clamp_max(a["x"], a.number("max"))};
  };
  table["prelu"] = [](Arguments const& a) { return std::vector<Array>{prelu(a["x"], a["w"])}; };
  table["gelu"] = [](Arguments const& a) {
    return std::vector<Array>{a.attrs().contains("approximate") ? gelu_tanh(a["x"]) : gelu(a["x"])};
  };
  table["softplus"] = [](Arguments const& a) {
    double const beta = a.number("beta", 1);
    return std::vector<Array>{beta == 1 ? softplus(a["x"]) : softplus(a["x"] * beta) / beta};
  };
  two("add", [](A x, A y) { return x + y; });
  two("sub", [](A x, A y) { return x - y; });
  two("mul", [](A x, A y) { return x * y; });
  two("div", [](A x, A y) { return x / y; });
  two("pow", [](A x, A y) { return pow(x, y); });
  two("maximum", [](A x, A y) { return maximum(x, y); });
  two("minimum", [](A x, A y) { return minimum(x, y); });
  two("eq", [](A x, A y) { return x == y; });
  two("lt", [](A x, A y) { return x < y; });
  two("ge", [](A x, A y) { return x >= y; });
  with_number("add_scalar", "c", [](A x, double c) { return x + c; });
  with_number("mul_scalar", "c", [](A x, double c) { return x * c; });
  with_number("rsub_scalar", "c", [](A x, double c) { return c - x; });
  with_number("rdiv_scalar", "c", [](A x, double c) { return c / x; });
  with_number("pow_scalar", "exponent", [](A x, double c) { return pow(x, c); });
  table["where"] = [](Arguments const& a) { return std::vector<Array>{where(a["cond"], a["a"], a["b"])}; };
  table["masked_fill"] = [](Arguments const& a) {
    return std::vector<Array>{where(a["mask"], a.number("value"), a["x"])};
  };
  table["lerp"] = [](Arguments const& a) { return std::vector<Array>{a["a"] + a["w"] * (a["b"] - a["a"])}; };
}

}  // namespace refs
