// SPDX-License-Identifier: BSL-1.0
// Functions of the reference cases that move elements.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/one_hot.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace refs {

namespace {

using List = std::vector<Array>;

// x0, x1, ...
List listed(Arguments const& a) {
  List r;
  for (int i = 0; a.has("x" + std::to_string(i)); ++i) r.push_back(a["x" + std::to_string(i)]);
  return r;
}

dfdx::PadMode pad_mode(std::string const& name) {
  if (name == "reflect") return dfdx::PadMode::reflect;
  if (name == "replicate") return dfdx::PadMode::replicate;
  if (name == "circular") return dfdx::PadMode::circular;
  return dfdx::PadMode::constant;
}

void add_views(std::map<std::string, Function>& table) {
  using namespace dfdx;
  table["reshape"] = [](Arguments const& a) { return List{reshape(a["x"], shape_of(a.attrs()["shape"]))}; };
  table["permute"] = [](Arguments const& a) {
    std::vector<int> const dims = a.attrs()["dims"];
    return List{permute(a["x"], dims)};
  };
  table["expand"] = [](Arguments const& a) { return List{expand(a["x"], shape_of(a.attrs()["shape"]))}; };
  table["transpose"] = [](Arguments const& a) {
    return List{transpose(a["x"], a.integer("a"), a.integer("b"))};
  };
  table["unsqueeze"] = [](Arguments const& a) { return List{unsqueeze(a["x"], a.integer("axis"))}; };
  table["slice"] = [](Arguments const& a) {
    Array r = a["x"];
    for (auto const& range : a.attrs()["ranges"])
      r = slice(r, range[0].get<int>(), range[1].get<index_t>(), range[2].get<index_t>(),
                range[3].get<index_t>());
    return List{r};
  };
  table["select"] = [](Arguments const& a) {
    return List{select(a["x"], a.integer("axis"), a.integer("index"))};
  };
  table["tril"] = [](Arguments const& a) { return List{tril(a["x"], a.integer("k"))}; };
  table["triu"] = [](Arguments const& a) { return List{triu(a["x"], a.integer("k"))}; };
}

void add_layouts(std::map<std::string, Function>& table) {
  using namespace dfdx;
  table["pad"] = [](Arguments const& a) {
    std::vector<index_t> widths;
    for (auto const& p : a.attrs()["pad"])
      widths.insert(widths.begin(), {p[0].get<index_t>(), p[1].get<index_t>()});
    return List{pad(a["x"], widths, pad_mode(a.attrs()["mode"]), a.number("value", 0))};
  };
  table["flip"] = [](Arguments const& a) { return List{flip(a["x"], axes_of(a))}; };
  table["roll"] = [](Arguments const& a) { return List{roll(a["x"], a.integer("shift"), axes_of(a))}; };
  table["tile"] = [](Arguments const& a) { return List{tile(a["x"], shape_of(a.attrs()["reps"]))}; };
  table["repeat_interleave"] = [](Arguments const& a) {
    return List{repeat_interleave(a["x"], a.integer("repeats"), axes_of(a))};
  };
  table["pixel_shuffle"] = [](Arguments const& a) {
    return List{pixel_shuffle(a["x"], a.integer("factor"))};
  };
  table["unfold"] = [](Arguments const& a) {
    auto const pair = [&](char const* key) { return Extents(shape_of(a.attrs()[key])); };
    return List{unfold(a["x"], Patches{pair("kernel"), pair("dilation"), pair("padding"), pair("stride")})};
  };
  table["cat"] = [](Arguments const& a) { return List{concat(listed(a), a.integer("axis"))}; };
  table["stack"] = [](Arguments const& a) { return List{stack(listed(a), a.integer("axis"))}; };
}

}  // namespace

void add_shapes(std::map<std::string, Function>& table) {
  using namespace dfdx;
  add_views(table);
  add_layouts(table);
  table["gather"] = [](Arguments const& a) { return List{gather(a["x"], a.integer("axis"), a["index"])}; };
  table["scatter_add"] = [](Arguments const& a) {
    return List{scatter_add(a["x"], a.integer("axis"), a["index"], a["src"])};
  };
  table["embedding"] = [](Arguments const& a) {
    if (!a.attrs().contains("padding_idx")) return List{embedding(a["index"], a["weight"])};
    return List{embedding(a["index"], a["weight"], a.integer("padding_idx"))};
  };
  table["index_select"] = [](Arguments const& a) {
    return List{index_select(a["x"], a.integer("axis"), a["index"])};
  };
  table["one_hot"] = [](Arguments const& a) {
    return List{one_hot(a["index"], a.integer("classes"), DType::i64)};
  };
}

}  // namespace refs
