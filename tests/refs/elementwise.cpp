// SPDX-License-Identifier: BSL-1.0
// Elementwise functions of the reference cases.
#include "refs/functions.hpp"

#include <dfdx/vocabulary/activation.hpp>
#include <dfdx/vocabulary/mathematics.hpp>

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
  one("exp2", [](A x) { return exp2(x); });
  one("log2", [](A x) { return log2(x); });
  one("log10", [](A x) { return log10(x); });
  one("cbrt", [](A x) { return cbrt(x); });
  one("tan", [](A x) { return tan(x); });
  one("asin", [](A x) { return asin(x); });
  one("acos", [](A x) { return acos(x); });
  one("atan", [](A x) { return atan(x); });
  one("sinh", [](A x) { return sinh(x); });
  one("cosh", [](A x) { return cosh(x); });
  one("asinh", [](A x) { return asinh(x); });
  one("acosh", [](A x) { return acosh(x); });
  one("atanh", [](A x) { return atanh(x); });
  one("erfc", [](A x) { return erfc(x); });
  one("lgamma", [](A x) { return lgamma(x); });
  one("digamma", [](A x) { return digamma(x); });
  one("floor", [](A x) { return floor(x); });
  one("ceil", [](A x) { return ceil(x); });
  one("round", [](A x) { return round(x); });
  one("trunc", [](A x) { return trunc(x); });
  one("reciprocal", [](A x) { return reciprocal(x); });
  one("isnan", [](A x) { return isnan(x); });
  one("isinf", [](A x) { return isinf(x); });
  one("isfinite", [](A x) { return isfinite(x); });
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
    return std::vector<Array>{
        gelu(a["x"], a.attrs().contains("approximate") ? Approximate::tanh : Approximate::none)};
  };
  table["softplus"] = [](Arguments const& a) {
    bool const plain = !a.attrs().contains("beta") && !a.attrs().contains("threshold");
    return std::vector<Array>{plain ? softplus(a["x"])
                                    : softplus(a["x"], a.number("beta", 1), a.number("threshold", 20))};
  };
  two("add", [](A x, A y) { return x + y; });
  two("sub", [](A x, A y) { return x - y; });
  two("mul", [](A x, A y) { return x * y; });
  two("div", [](A x, A y) { return x / y; });
  two("pow", [](A x, A y) { return pow(x, y); });
  two("atan2", [](A x, A y) { return atan2(x, y); });
  two("hypot", [](A x, A y) { return hypot(x, y); });
  two("fmod", [](A x, A y) { return fmod(x, y); });
  two("remainder", [](A x, A y) { return remainder(x, y); });
  two("floor_divide", [](A x, A y) { return floor_divide(x, y); });
  two("logaddexp", [](A x, A y) { return logaddexp(x, y); });
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
    return std::vector<Array>{masked_fill(a["x"], a["mask"], a.number("value"))};
  };
  table["lerp"] = [](Arguments const& a) { return std::vector<Array>{lerp(a["a"], a["b"], a["w"])}; };
}

}  // namespace refs
