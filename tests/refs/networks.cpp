// SPDX-License-Identifier: BSL-1.0
// Products, normalisations and losses of the reference cases.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/loss.hpp>

namespace refs {

namespace {

// f(reduction) with the reduction of a case as a constant.
template <class F>
std::vector<dfdx::Array> reduced(Arguments const& a, F const& f) {
  using dfdx::Reduction;
  std::string const r = a.attrs()["reduction"];
  if (r == "sum") return {f(std::integral_constant<Reduction, Reduction::sum>{})};
  if (r == "none") return {f(std::integral_constant<Reduction, Reduction::none>{})};
  if (r == "batchmean") return {f(std::integral_constant<Reduction, Reduction::batchmean>{})};
  return {f(std::integral_constant<Reduction, Reduction::mean>{})};
}

}  // namespace

void add_networks(std::map<std::string, Function>& table) {
  using namespace dfdx;
  using List = std::vector<Array>;
  table["matmul"] = [](Arguments const& a) { return List{matmul(a["a"], a["b"])}; };
  table["dot"] = [](Arguments const& a) { return List{matmul(a["a"], a["b"])}; };
  table["outer"] = [](Arguments const& a) { return List{unsqueeze<1>(a["a"]) * a["b"]}; };
  table["linear"] = [](Arguments const& a) {
    Array const y = matmul(a["x"], transpose(a["w"]));
    return List{a.flag("bias") ? y + a["b"] : y};
  };
  table["addmm"] = [](Arguments const& a) {
    return List{a["c"] * a.number("beta") + matmul(a["a"], a["b"]) * a.number("alpha")};
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
  table["cross_entropy"] = [](Arguments const& a) { return List{cross_entropy(a["x"], a["y"])}; };
  table["nll_loss"] = [](Arguments const& a) { return List{nll_loss(a["x"], a["y"])}; };
  table["mse_loss"] = [](Arguments const& a) {
    return reduced(a, [&](auto r) { return mse_loss<decltype(r)::value>(a["x"], a["y"]); });
  };
  table["l1_loss"] = [](Arguments const& a) {
    return reduced(a, [&](auto r) { return l1_loss<decltype(r)::value>(a["x"], a["y"]); });
  };
  table["huber_loss"] = [](Arguments const& a) {
    return reduced(a,
                   [&](auto r) { return huber_loss<decltype(r)::value>(a["x"], a["y"], a.number("delta")); });
  };
  table["smooth_l1_loss"] = [](Arguments const& a) {
    return reduced(
        a, [&](auto r) { return smooth_l1_loss<decltype(r)::value>(a["x"], a["y"], a.number("beta")); });
  };
  table["bce_loss"] = [](Arguments const& a) {
    return reduced(a, [&](auto r) { return bce_loss<decltype(r)::value>(a["x"], a["y"]); });
  };
  table["bce_with_logits"] = [](Arguments const& a) {
    return reduced(a, [&](auto r) {
      constexpr Reduction how = decltype(r)::value;
      return a.flag("pos_weight") ? bce_with_logits<how>(a["x"], a["y"], a["pos_weight"])
                                  : bce_with_logits<how>(a["x"], a["y"]);
    });
  };
  table["kl_div"] = [](Arguments const& a) {
    return reduced(a, [&](auto r) {
      constexpr Reduction how = decltype(r)::value;
      return a.flag("log_target") ? kl_div_log<how>(a["x"], a["y"]) : kl_div<how>(a["x"], a["y"]);
    });
  };
}

}  // namespace refs
