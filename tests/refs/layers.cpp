// SPDX-License-Identifier: BSL-1.0
// Normalisations, attention and recurrent layers of the reference cases.
#include "refs/functions.hpp"

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/channel_norm.hpp>
#include <dfdx/vocabulary/recurrent.hpp>

namespace refs {

namespace {

// All layers, each on the outputs of the one before: f(x, state of the layer, weights...) -> (outputs, states...).
template <class F>
std::vector<Array> stacked_layers(Arguments const& a, std::vector<std::string> const& states, F const& f) {
  Array x = a["x"];
  std::vector<std::vector<Array>> last(states.size());
  for (int l = 0; l < a.integer("layers"); ++l) {
    std::string const suffix = "_l" + std::to_string(l);
    std::vector<Array> before;
    for (std::string const& s : states) before.push_back(dfdx::select(a[s], 0, l));
    std::vector<Array> const r =
        f(x, before, a["w_ih" + suffix], a["w_hh" + suffix], a["b_ih" + suffix], a["b_hh" + suffix]);
    x = r[0];
    for (std::size_t k = 0; k < states.size(); ++k) last[k].push_back(r[k + 1]);
  }
  std::vector<Array> r = {x};
  for (auto const& s : last) r.push_back(dfdx::stack(s));
  return r;
}

}  // namespace

void add_layers(std::map<std::string, Function>& table) {
  using namespace dfdx;
  using List = std::vector<Array>;
  table["layer_norm"] = [](Arguments const& a) {
    Shape const last = shape_of(a.attrs()["normalized_shape"]);
    double const eps = a.number("eps");
    return List{a.flag("affine") ? layer_norm(a["x"], last, a["w"], a["b"], eps)
                                 : layer_norm(a["x"], last, eps)};
  };
  table["rms_norm"] = [](Arguments const& a) {
    Shape const last = shape_of(a.attrs()["normalized_shape"]);
    double const eps = a.number("eps");
    return List{a.flag("affine") ? rms_norm(a["x"], last, a["w"], eps) : rms_norm(a["x"], last, eps)};
  };
  table["batch_norm"] = [](Arguments const& a) {
    auto const [y, mean, var] = batch_norm(
        a["x"], a["running_mean"], a["running_var"], a["w"], a["b"],
        {.training = a.flag("training"), .momentum = a.number("momentum"), .eps = a.number("eps")});
    return a.flag("training") ? List{y, mean, var} : List{y};
  };
  table["group_norm"] = [](Arguments const& a) {
    return List{group_norm(a["x"], a.integer("groups"), a["w"], a["b"], a.number("eps"))};
  };
  table["instance_norm"] = [](Arguments const& a) {
    return List{instance_norm(a["x"], a["w"], a["b"], a.number("eps"))};
  };
  table["sdpa"] = [](Arguments const& a) {
    Attention const o{.causal = a.flag("causal"), .scale = a.number("scale", 0)};
    return List{a.has("mask") ? scaled_dot_product_attention(a["q"], a["k"], a["v"], a["mask"], o)
                              : scaled_dot_product_attention(a["q"], a["k"], a["v"], o)};
  };
  table["rope"] = [](Arguments const& a) {
    return List{rope(a["x"], {.base = a.number("base"),
                              .offset = a.integer("offset"),
                              .interleaved = a.attrs()["style"] == "interleaved"})};
  };
  table["rnn_tanh"] = [](Arguments const& a) {
    return stacked_layers(a, {"h0"}, [](Array const& x, List const& s, auto const&... w) {
      auto const [y, h] = rnn_tanh(x, s[0], w...);
      return List{y, h};
    });
  };
  table["gru"] = [](Arguments const& a) {
    return stacked_layers(a, {"h0"}, [](Array const& x, List const& s, auto const&... w) {
      auto const [y, h] = gru(x, s[0], w...);
      return List{y, h};
    });
  };
  table["lstm"] = [](Arguments const& a) {
    return stacked_layers(a, {"h0", "c0"}, [](Array const& x, List const& s, auto const&... w) {
      auto const [y, h, c] = lstm(x, s[0], s[1], w...);
      return List{y, h, c};
    });
  };
}

}  // namespace refs
