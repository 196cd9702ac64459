// SPDX-License-Identifier: BSL-1.0
// summary: a model as a table of its layers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dfdx/nn/sequential.hpp>
#include <dfdx/nn/work.hpp>

namespace dfdx {

namespace nn {

namespace detail {

struct SummaryRow {
  std::string layer, output, parameters;
  index_t count = 0;
  index_t flops = -1, memory = -1;  // -1 for unknown
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

template <int = 0>
void set_output(SummaryRow& r, Meta const& m, index_t times = 1) {
  r.output = words_of(m.shape);
  if (m.shape.is_static()) r.memory = times * m.shape.numel() * static_cast<index_t>(size_of(m.dtype));
}

// Work beside the rows of the tensors it counts for; what counts for none is the last row's. (Row is SummaryRow, here
// and below: a parameter, so that programs without a summary do not compile what it asks of vectors.)
template <class Row>
void add_work(std::span<Row> rows, std::vector<std::size_t> const& row_of, std::span<TensorWork const> work) {
  std::vector<int> last(rows.size(), -1);
  for (Row& r : rows) r.flops = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    std::size_t const at = i < row_of.size() ? row_of[i] : rows.size() - 1;
    Row& r = rows[at];
    r.flops += work[i].flops;
    if (work[i].node <= last[at]) continue;
    last[at] = work[i].node;
    // Blocks of a Repeat have an output each; of other loops it is not known what becomes of theirs.
    if (!work[i].looped || r.layer.find('*') != std::string::npos)
      set_output(r, work[i].output, work[i].times);
    else r.output.clear(), r.memory = -1;
  }
}

// A row for each struct that has tensors of its own; at least one. What is known of the work of a call with these
// arguments is written beside them.
template <class... X, class M, class Row>
void add_rows(std::vector<Row>& rows, M const& model, std::string const& path) {
  std::size_t const first = rows.size();
  std::vector<std::size_t> row_of;  // of each tensor, from `first`
  visit_named(
      model,
      [&](std::string const& name, auto const& leaf) {
        std::size_t const dot = name.rfind('.');
        bool const below = dot != std::string::npos;
        std::string const layer = below ? name.substr(0, dot) : "", own = below ? name.substr(dot + 1) : name;
        if (rows.size() == first || rows.back().layer != layer) rows.push_back({layer, {}, {}});
        row_of.push_back(rows.size() - first - 1);
        Row& r = rows.back();
        r.parameters += (r.parameters.empty() ? "" : ", ") + own + " " + words_of(leaf.shape());
        r.count += leaf.shape().is_static() ? leaf.shape().numel() : 0;
      },
      path);
  if (rows.size() == first) rows.push_back({path, {}, {}});
  if constexpr (countable<M, X...>) {
    constexpr auto work = work_of_call<M, X...>();
    if (work.known) add_work(std::span(rows).subspan(first), row_of, work.tensors);
  }
}

// Of modules in a row it is known what each makes of its input.
template <class X, class M, class Row>
void add_layers(std::vector<Row>& rows, M const& model, std::string const& path);
template <class X, std::size_t I, class... Modules, class Row>
void add_sequence(std::vector<Row>& rows, Sequential<Modules...> const& model, std::string const& path) {
  if constexpr (I < sizeof...(Modules)) {
    auto const& part = std::get<I>(model.layers);
    using Y = std::remove_cvref_t<decltype(part(std::declval<X const&>()))>;
    add_layers<X>(rows, part, dfdx::detail::path_below(path, I));
    if constexpr (typed<Y>) set_output(rows.back(), Y::static_meta);
    add_sequence<Y, I + 1>(rows, model, path);
  }
}
template <class X, class M, class Row>
void add_layers(std::vector<Row>& rows, M const& model, std::string const& path) {
  if constexpr (is_sequential<M>) add_sequence<X, 0>(rows, model, path);
  else add_rows<X>(rows, model, path);
}

template <class Row>
std::string table(std::vector<Row> const& rows) {
  using Cells = std::array<decltype(Row::layer), 6>;
  auto const number = [](index_t n) { return n < 0 ? "?" : with_commas(n); };
  std::vector<Cells> lines{{"layer", "output", "parameters", "number", "flops", "memory"}};
  for (Row const& r : rows)
    lines.push_back({r.layer, r.output, r.parameters, number(r.count), number(r.flops), number(r.memory)});
  std::array<std::size_t, 6> widths{};
  for (Cells const& line : lines)
    for (std::size_t k = 0; k < 6; ++k) widths[k] = std::max(widths[k], line[k].size());
  std::string text;
  for (Cells const& line : lines) {
    for (std::size_t k = 0; k < 6; ++k) {
      std::string const blank(widths[k] - line[k].size(), ' ');
      text += (k == 0 ? "" : "  ") + (k < 3 ? line[k] + blank : blank + line[k]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace detail

}  // namespace nn

/// summary(model, input) - a table: the layers with their tensors and how many numbers these have, what they make of
/// the input, how many operations that takes (nn/work.hpp) and how many bytes these outputs have; "?" is what cannot be
/// known beforehand: without an input all of that. Nothing is computed. Modules of a Sequential are looked at one by
/// one; of other structs layers are what has tensors of its own. Blocks of nn::Repeat are one row, "*".
///
/// Example   tests/nn/summary.cpp
template <tree M, class... X>
std::string summary(M const& model, X const&... input) {
  using Row = std::conditional_t<tree<M>, nn::detail::SummaryRow, M>;
  std::vector<Row> rows;
  if constexpr (sizeof...(X) == 1) nn::detail::add_layers<X...>(rows, model, "");
  else nn::detail::add_rows<X...>(rows, model, "");
  Row total{"total", {}, {}, 0, 0, 0};
  auto const add = [](index_t& sum, index_t n) { sum = sum < 0 || n < 0 ? -1 : sum + n; };
  for (auto const& r : rows) {
    total.count += r.count;
    add(total.flops, r.flops);
    add(total.memory, r.memory);
  }
  if constexpr (sizeof...(X) != 0) {
    using Y = std::remove_cvref_t<decltype(model(input...))>;
    if constexpr (typed<Y>) total.output = nn::detail::words_of(Y::static_shape);
  }
  rows.push_back(total);
  return nn::detail::table(rows);
}

}  // namespace dfdx
