// SPDX-License-Identifier: BSL-1.0
// Products, normalisations and losses of the reference cases.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/composite.hpp>

namespace refs {

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
  table["mse_loss"] = [](Arguments const& a) { return List{mse_loss(a["x"], a["y"])}; };
}

}  // namespace refs
