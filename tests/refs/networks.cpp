// SPDX-License-Identifier: BSL-1.0
// Products, normalisations and losses of the reference cases.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/loss.hpp>
#include <dfdx/vocabulary/margin_loss.hpp>
#include <dfdx/vocabulary/pool.hpp>

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

dfdx::Extents extents_of(Arguments const& a, char const* key) {
  json const& v = a.attrs().at(key);
  return v.is_array() ? dfdx::Extents(shape_of(v)) : dfdx::Extents(v.get<dfdx::index_t>());
}
dfdx::ConvOptions conv_options(Arguments const& a) {
  return {extents_of(a, "stride"), extents_of(a, "padding"), extents_of(a, "dilation"), a.integer("groups")};
}
dfdx::MaxPoolOptions max_pool_options(Arguments const& a) {
  dfdx::MaxPoolOptions o{extents_of(a, "kernel"), extents_of(a, "stride"), extents_of(a, "padding")};
  if (a.attrs().contains("dilation")) o.dilation = extents_of(a, "dilation");
  o.ceil_mode = a.flag("ceil_mode");
  return o;
}
dfdx::AvgPoolOptions avg_pool_options(Arguments const& a) {
  return {extents_of(a, "kernel"), extents_of(a, "stride"), extents_of(a, "padding"), a.flag("ceil_mode"),
          a.flag("count_include_pad")};
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
  table["conv1d"] = [](Arguments const& a) {
    return List{a.flag("bias") ? conv1d(a["x"], a["w"], a["b"], conv_options(a))
                               : conv1d(a["x"], a["w"], conv_options(a))};
  };
  table["conv2d"] = [](Arguments const& a) {
    return List{a.flag("bias") ? conv2d(a["x"], a["w"], a["b"], conv_options(a))
                               : conv2d(a["x"], a["w"], conv_options(a))};
  };
  table["conv3d"] = [](Arguments const& a) {
    return List{a.flag("bias") ? conv3d(a["x"], a["w"], a["b"], conv_options(a))
                               : conv3d(a["x"], a["w"], conv_options(a))};
  };
  table["conv_transpose2d"] = [](Arguments const& a) {
    ConvTransposeOptions const o{extents_of(a, "stride"), extents_of(a, "padding"),
                                 extents_of(a, "output_padding"), a.integer("groups"),
                                 extents_of(a, "dilation")};
    return List{a.flag("bias") ? conv_transpose2d(a["x"], a["w"], a["b"], o)
                               : conv_transpose2d(a["x"], a["w"], o)};
  };
  table["max_pool1d"] = [](Arguments const& a) { return List{max_pool1d(a["x"], max_pool_options(a))}; };
  table["max_pool2d"] = [](Arguments const& a) { return List{max_pool2d(a["x"], max_pool_options(a))}; };
  table["avg_pool1d"] = [](Arguments const& a) { return List{avg_pool1d(a["x"], avg_pool_options(a))}; };
  table["avg_pool2d"] = [](Arguments const& a) { return List{avg_pool2d(a["x"], avg_pool_options(a))}; };
  table["adaptive_avg_pool2d"] = [](Arguments const& a) {
    return List{adaptive_avg_pool2d(a["x"], extents_of(a, "output"))};
  };
  table["adaptive_max_pool2d"] = [](Arguments const& a) {
    return List{adaptive_max_pool2d(a["x"], extents_of(a, "output"))};
  };
  table["interpolate"] = [](Arguments const& a) {
    InterpolateOptions o{.size = extents_of(a, "size"), .align_corners = a.flag("align_corners")};
    if (a.attrs()["mode"] == "bilinear") o.mode = InterpolateMode::bilinear;
    return List{interpolate(a["x"], o)};
  };
  table["addmm"] = [](Arguments const& a) {
    return List{addmm(a["c"], a["a"], a["b"], a.number("beta"), a.number("alpha"))};
  };
  table["einsum"] = [](Arguments const& a) {
    List x;
    for (int i = 0; a.has("x" + std::to_string(i)); ++i) x.push_back(a["x" + std::to_string(i)]);
    return List{einsum(a.attrs()["equation"].get<std::string>().c_str(), x)};
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
