// SPDX-License-Identifier: BSL-1.0
// summary: a model as a table of its layers.
#pragma once

#include <string>
#include <vector>

#include <dfdx/nn/sequential.hpp>

namespace dfdx {

namespace nn {

namespace detail {

struct SummaryRow {
  std::string layer, output, parameters;
  index_t count = 0;
};

template <class T>
std::string words_of(T const& x) {
  Text const t = make_text(x);
  return std::string(t.data(), t.size());
}
template <int = 0>
std::string with_commas(index_t n) {
  std::string r = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(r.size()) - 3; at > 0; at -= 3)
    r.insert(static_cast<std::size_t>(at), ",");
  return r;
}

template <class M>
inline constexpr bool is_sequential = false;
template <class... Modules>
inline constexpr bool is_sequential<Sequential<Modules...>> = true;

// A row for each struct that has tensors of its own; at least one.
template <class M>
void add_rows(std::vector<SummaryRow>& rows, M const& model, std::string const& path) {
  std::size_t const first = rows.size();
  visit_named(
      model,
      [&](std::string const& name, auto const& leaf) {
        std::size_t const dot = name.rfind('.');
        bool const below = dot != std::string::npos;
        std::string const layer = below ? name.substr(0, dot) : "", own = below ? name.substr(dot + 1) : name;
        if (rows.size() == first || rows.back().layer != layer) rows.push_back({layer, {}, {}, 0});
        SummaryRow& r = rows.back();
        r.parameters += (r.parameters.empty() ? "" : ", ") + own + " " + words_of(leaf.shape());
        r.count += leaf.shape().is_static() ? leaf.shape().numel() : 0;
      },
      path);
  if (rows.size() == first) rows.push_back({path, {}, {}, 0});
}

// Of modules in a row it is known what each makes of its input.
template <class X, class M>
void add_layers(std::vector<SummaryRow>& rows, M const& model, std::string const& path);
template <class X, std::size_t I, class... Modules>
void add_sequence(std::vector<SummaryRow>& rows, Sequential<Modules...> const& model,
                  std::string const& path) {
  if constexpr (I < sizeof...(Modules)) {
    auto const& part = std::get<I>(model.layers);
    using Y = std::remove_cvref_t<decltype(part(std::declval<X const&>()))>;
    add_layers<X>(rows, part, dfdx::detail::path_below(path, I));
    if constexpr (typed<Y>) rows.back().output = words_of(Y::static_shape);
    add_sequence<Y, I + 1>(rows, model, path);
  }
}
template <class X, class M>
void add_layers(std::vector<SummaryRow>& rows, M const& model, std::string const& path) {
  if constexpr (is_sequential<M>) add_sequence<X, 0>(rows, model, path);
  else add_rows(rows, model, path);
}

template <int = 0>
std::string table(std::vector<SummaryRow> const& rows) {
  std::size_t widths[3] = {};
  auto const cells = [](SummaryRow const& r) {
    return std::array<std::string const*, 3>{&r.layer, &r.output, &r.parameters};
  };
  for (SummaryRow const& r : rows)
    for (std::size_t k = 0; k < 3; ++k) widths[k] = std::max(widths[k], cells(r)[k]->size());
  std::string text;
  for (SummaryRow const& r : rows) {
    for (std::size_t k = 0; k < 3; ++k)
      text += *cells(r)[k] + std::string(widths[k] - cells(r)[k]->size() + 2, ' ');
    std::string const count = r.count < 0 ? "number" : with_commas(r.count);
    text += std::string(count.size() < 12 ? 12 - count.size() : 0, ' ') + count + "\n";
  }
  return text;
}

}  // namespace detail

}  // namespace nn

/// summary(model, input) - a table: the layers with their tensors and how many numbers these have; what the modules of
/// a Sequential, and the whole model, make of the input. Nothing is computed. Blocks of nn::Repeat are one row, "*".
///
/// Example   tests/nn/summary.cpp
template <tree M, class... X>
std::string summary(M const& model, X const&... input) {
  std::vector<nn::detail::SummaryRow> rows;
  rows.push_back({"layer", "output", "parameters", -1});
  if constexpr (sizeof...(X) == 1) nn::detail::add_layers<X...>(rows, model, "");
  else nn::detail::add_rows(rows, model, "");
  index_t total = 0;
  for (auto const& r : rows) total += r.count < 0 ? 0 : r.count;
  rows.push_back({"total", {}, {}, total});
  using Y = std::remove_cvref_t<decltype(model(input...))>;
  if constexpr (typed<Y>) rows.back().output = nn::detail::words_of(Y::static_shape);
  return nn::detail::table(rows);
}

}  // namespace dfdx
