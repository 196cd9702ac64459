// SPDX-License-Identifier: BSL-1.0
// Reductions of the reference cases.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/composite.hpp>

namespace refs {

namespace {

// f<Axes...>(x) and f<Axes...>(x, keepdim) of the vocabulary, by axes known at run time.
#define REFS_REDUCTION(name)                                                                    \
  table[#name] = [](Arguments const& a) {                                                       \
    return with_axes(a, a["x"].ndim(), [&]<int... I>(dfdx::detail::AxisList<I...>, bool keep) { \
      return keep ? dfdx::name<I...>(a["x"], dfdx::keepdim) : dfdx::name<I...>(a["x"]);         \
    });                                                                                         \
  }

}  // namespace

void add_reductions(std::map<std::string, Function>& table) {
  using namespace dfdx;
  REFS_REDUCTION(sum);
  REFS_REDUCTION(mean);
  REFS_REDUCTION(prod);
  REFS_REDUCTION(max);
  REFS_REDUCTION(min);
  REFS_REDUCTION(logsumexp);
  table["var"] = [](Arguments const& a) {
    return with_axes(a, a["x"].ndim(), [&]<int... I>(dfdx::detail::AxisList<I...>, bool keep) {
      int const c = a.integer("correction");
      return keep ? var<I...>(a["x"], keepdim, c) : var<I...>(a["x"], c);
    });
  };
  table["std"] = [](Arguments const& a) {
    return with_axes(a, a["x"].ndim(), [&]<int... I>(dfdx::detail::AxisList<I...>, bool keep) {
      int const c = a.integer("correction");
      return keep ? sqrt(var<I...>(a["x"], keepdim, c)) : dfdx::std<I...>(a["x"], c);
    });
  };
  // Without an axis the position in the flattened array.
  table["argmax"] = [](Arguments const& a) {
    Array const& x = a["x"];
    if (!a.attrs().contains("axis")) return std::vector<Array>{argmax<0>(reshape(x, {-1}))};
    return with_axis(a.integer("axis"), x.ndim(), [&](auto i) {
      return a.flag("keepdim") ? argmax<decltype(i)::value>(x, keepdim) : argmax<decltype(i)::value>(x);
    });
  };
  table["argmin"] = [](Arguments const& a) {
    Array const& x = a["x"];
    if (!a.attrs().contains("axis")) return std::vector<Array>{argmin<0>(reshape(x, {-1}))};
    return with_axis(a.integer("axis"), x.ndim(), [&](auto i) {
      return a.flag("keepdim") ? argmin<decltype(i)::value>(x, keepdim) : argmin<decltype(i)::value>(x);
    });
  };
  table["softmax"] = [](Arguments const& a) {
    return with_axis(a.integer("axis"), a["x"].ndim(),
                     [&](auto i) { return softmax<decltype(i)::value>(a["x"]); });
  };
  table["log_softmax"] = [](Arguments const& a) {
    return std::vector<Array>{log_softmax(a["x"], a.integer("axis"))};
  };
}

}  // namespace refs
