// SPDX-License-Identifier: BSL-1.0
// Reductions of the reference cases.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/order.hpp>

namespace refs {

namespace {

// f(x, axes, keepdim) of the vocabulary.
#define REFS_REDUCTION(name)                                                      \
  table[#name] = [](Arguments const& a) {                                         \
    return std::vector<Array>{dfdx::name(a["x"], axes_of(a), a.flag("keepdim"))}; \
  }

}  // namespace

void add_reductions(std::map<std::string, Function>& table) {
  using namespace dfdx;
  using List = std::vector<Array>;
  REFS_REDUCTION(sum);
  REFS_REDUCTION(mean);
  REFS_REDUCTION(prod);
  REFS_REDUCTION(max);
  REFS_REDUCTION(min);
  REFS_REDUCTION(logsumexp);
  REFS_REDUCTION(argmax);
  REFS_REDUCTION(argmin);
  table["var"] = [](Arguments const& a) {
    return List{var(a["x"], axes_of(a), a.integer("correction"), a.flag("keepdim"))};
  };
  table["std"] = [](Arguments const& a) {
    return List{dfdx::std(a["x"], axes_of(a), a.integer("correction"), a.flag("keepdim"))};
  };
  table["norm2"] = [](Arguments const& a) { return List{norm(a["x"], 2, axes_of(a), a.flag("keepdim"))}; };
  table["normalize"] = [](Arguments const& a) {
    return List{normalize(a["x"], 2, a.integer("axis"), a.number("eps"))};
  };
  table["cumsum"] = [](Arguments const& a) { return List{cumsum(a["x"], a.integer("axis"))}; };
  table["cumprod"] = [](Arguments const& a) { return List{cumprod(a["x"], a.integer("axis"))}; };
  table["sort"] = [](Arguments const& a) {
    auto const [values, index] = sort(a["x"], a.integer("axis"), a.flag("descending"));
    return List{values, index};
  };
  table["topk"] = [](Arguments const& a) {
    auto const [values, index] = topk(a["x"], a.integer("k"), a.integer("axis"));
    return List{values, index};
  };
  table["softmax"] = [](Arguments const& a) { return List{softmax(a["x"], a.integer("axis"))}; };
  table["log_softmax"] = [](Arguments const& a) { return List{log_softmax(a["x"], a.integer("axis"))}; };
}

}  // namespace refs
