// SPDX-License-Identifier: BSL-1.0
// Functions of the reference cases that move elements.
#include "refs/axes.hpp"

#include <dfdx/vocabulary/contract.hpp>

namespace refs {

namespace {

// x0, x1, ... joined by f(axis, left, right) one after another.
template <class F>
Array fold_left(Arguments const& a, F const& f) {
  Array r = a["x0"];
  for (int i = 1; a.has("x" + std::to_string(i)); ++i) r = f(r, a["x" + std::to_string(i)]);
  return r;
}

Array unsqueezed(Array const& x, int axis) {
  dfdx::Shape s;
  int const at = axis < 0 ? axis + x.ndim() + 1 : axis;
  for (int i = 0; i <= x.ndim(); ++i) s.push_back(i == at ? 1 : x.shape()[i < at ? i : i - 1]);
  return dfdx::reshape(x, s);
}

}  // namespace

void add_shapes(std::map<std::string, Function>& table) {
  using namespace dfdx;
  using List = std::vector<Array>;
  table["reshape"] = [](Arguments const& a) { return List{reshape(a["x"], shape_of(a.attrs()["shape"]))}; };
  table["permute"] = [](Arguments const& a) {
    std::vector<int> const dims = a.attrs()["dims"];
    return List{permute_axes(a["x"], op::pack_axes(dims.data(), static_cast<int>(dims.size())))};
  };
  table["expand"] = [](Arguments const& a) {
    return List{broadcast_to(a["x"], shape_of(a.attrs()["shape"]))};
  };
  table["transpose"] = [](Arguments const& a) {
    return List{transpose(a["x"], a.integer("a"), a.integer("b"))};
  };
  table["unsqueeze"] = [](Arguments const& a) {
    Array const& x = a["x"];
    int const axis = a.integer("axis");
    // Through the template where there is one, so that both spellings are seen.
    if (axis == -2) return List{unsqueeze<-2>(x)};
    if (axis == 1) return List{unsqueeze<1>(x)};
    return List{unsqueezed(x, axis)};
  };
  table["slice"] = [](Arguments const& a) {
    Array r = a["x"];
    for (auto const& range : a.attrs()["ranges"]) {
      index_t const start = range[1], stop = range[2], step = range[3];
      r = slice_axis(r, range[0].get<int>(), start, stop > start ? (stop - start + step - 1) / step : 0,
                     step);
    }
    return List{r};
  };
  table["select"] = [](Arguments const& a) {
    Array const& x = a["x"];
    int const axis = a.integer("axis") < 0 ? a.integer("axis") + x.ndim() : a.integer("axis");
    return List{reshape(slice_axis(x, axis, a.integer("index"), 1),
                        dfdx::detail::dropped(x.shape(), index_t{1} << axis))};
  };
  table["pad"] = [](Arguments const& a) {
    Array r = a["x"];
    int axis = 0;
    for (auto const& p : a.attrs()["pad"])
      r = pad_axis(r, axis++, p[0].get<index_t>(), p[1].get<index_t>(), 0, a.number("value"));
    return List{r};
  };
  table["cat"] = [](Arguments const& a) {
    return with_axis(a.integer("axis"), a["x0"].ndim(), [&](auto i) {
      return fold_left(a, [](Array const& x, Array const& y) { return concat<decltype(i)::value>(x, y); });
    });
  };
  table["stack"] = [](Arguments const& a) {
    int const axis = a.integer("axis"), rank = a["x0"].ndim() + 1;
    return with_axis(axis, rank, [&](auto i) {
      constexpr int at = decltype(i)::value;
      if (a.has("x1") && !a.has("x2")) return stack<at>(a["x0"], a["x1"]);
      Array r = unsqueezed(a["x0"], at);
      for (int k = 1; a.has("x" + std::to_string(k)); ++k)
        r = concat<at>(r, unsqueezed(a["x" + std::to_string(k)], at));
      return r;
    });
  };
  table["gather"] = [](Arguments const& a) {
    return with_axis(a.integer("axis"), a["x"].ndim(),
                     [&](auto i) { return gather<decltype(i)::value>(a["x"], a["index"]); });
  };
  table["scatter_add"] = [](Arguments const& a) {
    return with_axis(a.integer("axis"), a["x"].ndim(),
                     [&](auto i) { return scatter_add<decltype(i)::value>(a["x"], a["index"], a["src"]); });
  };
  table["embedding"] = [](Arguments const& a) { return List{take(a["weight"], a["index"])}; };
  table["index_select"] = [](Arguments const& a) {
    int const axis = a.integer("axis");
    return List{transpose(take(transpose(a["x"], axis, 0), a["index"]), axis, 0)};
  };
  table["one_hot"] = [](Arguments const& a) {
    Array const y = one_hot<7, std::int64_t>(a["index"]);
    return List{y};
  };
}

}  // namespace refs
