// SPDX-License-Identifier: BSL-1.0
// Products, normalisations and losses of the reference cases.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/loss.hpp>
#include <dfdx/vocabulary/margin_loss.hpp>

namespace refs {

namespace {

dfdx::Reduction how(Arguments const& a) {
  using dfdx::Reduction;
  std::string const r = a.attrs()["reduction"];
  return r == "sum"         ? Reduction::sum
         : r == "none"      ? Reduction::none
         : r == "batchmean" ? Reduction::batchmean
                            : Reduction::mean;
}

}  // namespace

void add_networks(std::map<std::string, Function>& table) {
  using namespace dfdx;
  using List = std::vector<Array>;
  table["matmul"] = [](Arguments const& a) { return List{matmul(a["a"], a["b"])}; };
  table["dot"] = [](Arguments const& a) { return List{dot(a["a"], a["b"])}; };
  table["outer"] = [](Arguments const& a) { return List{outer(a["a"], a["b"])}; };
  table["linear"] = [](Arguments const& a) {
    return List{a.flag("bias") ? linear(a["x"], a["w"], a["b"]) : linear(a["x"], a["w"])};
  };
  table["addmm"] = [](Arguments const& a) {
    return List{addmm(a["c"], a["a"], a["b"], a.number("beta"), a.number("alpha"))};
  };
  table["einsum"] = [](Arguments const& a) {
    List x;
    for (int i = 0; a.has("x" + std::to_string(i)); ++i) x.push_back(a["x" + std::to_string(i)]);
    return List{einsum(a.attrs()["equation"].get<std::string>().c_str(), x)};
  };
  table["layer_norm"] = [](Arguments const& a) {
    // Over several trailing axes as over one that joins them.
    Array const& x = a["x"];
    Shape const over = shape_of(a.attrs()["normalized_shape"]);
    Shape joined;
    for (int i = 0; i < x.ndim() - over.rank; ++i) joined.push_back(x.shape()[i]);
    joined.push_back(over.numel());
    Array const flat = reshape(x, joined);
    Array const w = a.flag("affine") ? reshape(a["w"], {-1})
                                     : ones_like(slice_axis(reshape(x, {-1}), 0, 0, over.numel()));
    Array const b = a.flag("affine") ? reshape(a["b"], {-1}) : zeros_like(w);
    return List{reshape(layer_norm(flat, w, b, a.number("eps")), x.shape())};
  };
  auto const cross_entropy_case = [](Arguments const& a) {
    CrossEntropy o{.label_smoothing = a.number("label_smoothing", 0), .reduction = how(a)};
    if (a.attrs().contains("ignore_index")) o.ignore_index = a.integer("ignore_index");
    return List{a.flag("weight") ? cross_entropy(a["x"], a["y"], a["weight"], o)
                                 : cross_entropy(a["x"], a["y"], o)};
  };
  table["cross_entropy"] = cross_entropy_case;
  table["cross_entropy_prob"] = cross_entropy_case;
  table["nll_loss"] = [](Arguments const& a) {
    NllLoss o{.reduction = how(a)};
    if (a.attrs().contains("ignore_index")) o.ignore_index = a.integer("ignore_index");
    return List{a.flag("weight") ? nll_loss(a["x"], a["y"], a["weight"], o) : nll_loss(a["x"], a["y"], o)};
  };
  table["mse_loss"] = [](Arguments const& a) { return List{mse_loss(a["x"], a["y"], how(a))}; };
  table["l1_loss"] = [](Arguments const& a) { return List{l1_loss(a["x"], a["y"], how(a))}; };
  table["huber_loss"] = [](Arguments const& a) {
    return List{huber_loss(a["x"], a["y"], a.number("delta"), how(a))};
  };
  table["smooth_l1_loss"] = [](Arguments const& a) {
    return List{smooth_l1_loss(a["x"], a["y"], a.number("beta"), how(a))};
  };
  table["bce_loss"] = [](Arguments const& a) { return List{bce_loss(a["x"], a["y"], how(a))}; };
  table["bce_with_logits"] = [](Arguments const& a) {
    return List{a.flag("pos_weight") ? bce_with_logits(a["x"], a["y"], a["pos_weight"], how(a))
                                     : bce_with_logits(a["x"], a["y"], how(a))};
  };
  table["kl_div"] = [](Arguments const& a) {
    return List{kl_div(a["x"], a["y"], {.log_target = a.flag("log_target"), .reduction = how(a)})};
  };
  table["cosine_similarity"] = [](Arguments const& a) {
    return List{cosine_similarity(a["a"], a["b"], a.integer("axis"), a.number("eps"))};
  };
  table["glu"] = [](Arguments const& a) { return List{glu(a["x"], a.integer("axis"))}; };
}

}  // namespace refs
