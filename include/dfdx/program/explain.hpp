// SPDX-License-Identifier: BSL-1.0
// explain and dot: a program as text for people. They print what program/facts.hpp gathers.
#pragma once

#include <charconv>

#include <dfdx/program/facts.hpp>

namespace dfdx {

namespace detail {

/// Explainer - the text of one program.
class Explainer {
 public:
  explicit Explainer(ProgramFacts const& p) : p_(p), offsets_(p.buffers.size() + 1) {
    if (p_.is_static) graph::place_buffers(p_.buffers, nullptr, offsets_);
  }

  std::string explain() {
    put("program: ", p_.nodes.size(), " nodes, ", p_.steps.size(), " kernels (", p_.distinct_kernels,
        " different)");
    if (p_.is_static)
      put(", ", amount(p_.flops, "flop"), ", ", amount(p_.bytes_moved, "B"), " moved, arena ", p_.arena_bytes,
          " bytes");
    else put("; flops, bytes and the arena depend on dyn dims");
    put("\n");
    for (NodeFacts const& n : p_.nodes)
      if (n.code == Code::input)
        put("input ", n.input, ": ", input(n.input), " ", n.meta.dtype, " ", n.meta.shape, "\n");
    for (std::size_t k = 0; k < p_.steps.size(); ++k) {
      for (graph::StepLoop const& l : p_.loops)
        if (l.first == static_cast<int>(k))
          put(l.first, " to ", l.last - 1, ": ", l.count, " times", l.reversed ? ", backwards" : "", "\n");
      put_step(k);
    }
    return std::move(out_);
  }

  /// What kernel k is: its nest or its shapes, and what it computes for each element.
  std::string title(std::size_t k) {
    put_title(p_.steps[k]);
    graph::Step const& s = p_.steps[k];
    for (int at : {s.kind == Kind::loop ? s.code : -1, s.epilogue}) {
      if (at < 0) continue;
      char const* between = at == s.epilogue ? " then " : ": ";
      for (int i = 0; i < instruction_count(at); ++i)
        if (std::string const name = name_of_instruction(at, i); !name.empty()) {
          if (out_.size() > most_of_title) return std::move(out_) + " ...";
          put(between, name);
          between = ", ";
        }
    }
    return std::move(out_);
  }

  std::string dot() {
    put("digraph program {\n  node [shape=box, style=rounded];\n");
    for (std::size_t k = 0; k < p_.steps.size(); ++k) {
      if (p_.steps[k].kind == graph::Step::Kind::move) continue;
      put("  subgraph cluster_", k, " {\n    label=\"", k, "\"; style=filled; fillcolor=\"#eef3fa\";\n");
      for (std::size_t i = 0; i < p_.nodes.size(); ++i)
        if (p_.nodes[i].step == static_cast<int>(k)) put_node(i, "    ", "");
      put("  }\n");
    }
    for (std::size_t i = 0; i < p_.nodes.size(); ++i) {
      NodeFacts const& n = p_.nodes[i];
      if (n.step < 0) put_node(i, "  ", n.code == Code::input ? ", shape=ellipse" : ", style=dotted");
      for (int a = 0; a < n.arity; ++a) put("  n", n.in[static_cast<std::size_t>(a)], " -> n", i, ";\n");
    }
    for (std::size_t k = 0; k < p_.outputs.size(); ++k)
      put("  output", k, " [shape=ellipse];\n  n", p_.outputs[k], " -> output", k, ";\n");
    put("}\n");
    return std::move(out_);
  }

 private:
  using Kind = graph::Step::Kind;

  void put_one(char const* s) { out_ += s; }
  void put_one(std::string const& s) { out_ += s; }
  void put_one(DType d) { out_ += name_of(d); }
  template <std::integral N>
  void put_one(N n) {
    out_ += std::to_string(n);
  }
  void put_one(Shape const& s) {
    put("[");
    for (int i = 0; i < s.rank; ++i) put(i == 0 ? "" : ", ", extent_text(s[i]));
    put("]");
  }
  template <class... T>
  void put(T const&... t) {
    (put_one(t), ...);
  }

  // A symbolic extent as a product: 64*n0 for 64 times the first dyn dim.
  static std::string extent_text(index_t e) {
    if (e >= 0) return std::to_string(e);
    std::string r;
    if ((e & extent::factor_mask) != 1) r = std::to_string(e & extent::factor_mask);
    for (int k = 0; k < max_symbols; ++k)
      for (index_t n = e >> (extent::factor_bits + 4 * k) & 15; n > 0; --n)
        r += (r.empty() ? "n" : "*n") + std::to_string(k);
    return r;
  }
  static std::string amount(index_t n, char const* unit) {
    char const* const prefix[] = {"", "k", "M", "G", "T"};
    double v = static_cast<double>(n);
    int k = 0;
    for (; v >= 1000 && k < 4; ++k) v /= 1000;
    return figure(v) + " " + prefix[k] + unit;
  }
  static std::string figure(double v) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, v, std::chars_format::general, 3).ptr);
  }
  std::string input(index_t k) const { return p_.inputs[static_cast<std::size_t>(k)]; }

  void put_node(std::size_t i, char const* indent, char const* style) {
    NodeFacts const& n = p_.nodes[i];
    put(indent, "n", i, " [label=\"", n.code == Code::input ? input(n.input) : n.name, "\\n", n.meta.dtype,
        " ", n.meta.shape, "\"", style, "];\n");
  }

  // --- steps ---
  index_t const& code(int i) const { return p_.code[static_cast<std::size_t>(i)]; }
  graph::Argument const& argument(graph::Step const& s, int k) const {
    return p_.arguments[static_cast<std::size_t>(s.argument + k)];
  }

  static constexpr std::size_t most_of_title = 70;
  void put_title(graph::Step const& s) {
    if (s.kind == Kind::loop) put_space(s.code);
    else if (s.kind == Kind::move) put("move");
    else put(p_.nodes[static_cast<std::size_t>(s.node)].name);
    if (s.kind == Kind::matmul)
      put(" ", graph::walk_of(p_, s, 0).shape, " x ", graph::walk_of(p_, s, 1).shape);
  }

  void put_step(std::size_t k) {
    graph::Step const& s = p_.steps[k];
    put(k, ": ");
    put_title(s);
    if (p_.is_static) {
      StepFacts const& cost = p_.costs[k];
      put("; ", amount(cost.flops, "flop"), ", ", amount(cost.bytes, "B"));
      if (cost.flops > 0 && cost.bytes > 0)
        put(", ", figure(static_cast<double>(cost.flops) / static_cast<double>(cost.bytes)), " flop/B");
    }
    if (p_.costs[k].same_as >= 0) put("; the kernel of ", p_.costs[k].same_as);
    put("\n");
    if (s.kind == Kind::loop) put_phases(s.code, "     ");
    if (s.epilogue >= 0) put_phases(s.epilogue, "     then ");
    put_operands(s, false);
    put_operands(s, true);
  }

  // "loop over [32 | 27]": rows, and what phases go over.
  void put_space(int at) {
    int const dims = static_cast<int>(code(at + loop_code::dims)),
              split = static_cast<int>(code(at + loop_code::split));
    bool carries = false;
    for (int i = 0; i < instruction_count(at); ++i)
      carries = carries || field(at, i, loop_code::code) == loop_code::carry;
    put(code(at + static_cast<int>(loop_code::backward)) != 0 ? "loop backwards over ["
        : carries                                             ? "loop in order over ["
                                                              : "loop over [");
    for (int d = 0; d < dims; ++d)
      put(d == 0       ? ""
          : d == split ? " | "
                       : ", ",
          extent_text(code(at + static_cast<int>(loop_code::header_size) + d)));
    put("]");
  }

  void put_operands(graph::Step const& s, bool written) {
    bool first = true;
    for (int k = 0; k < s.arguments; ++k) {
      graph::Argument const& a = argument(s, k);
      if (a.kind == graph::Argument::Kind::none || is_written(s, k) != written || graph::is_scratch(p_, a))
        continue;
      if (s.epilogue >= 0 && k == 3 + s.stored) continue;
      put(first ? written ? "     writes " : "     reads " : "; ", where(a), " ", a.dtype, " ",
          touched(s, k));
      first = false;
    }
    if (!first) put("\n");
  }
  bool is_written(graph::Step const& s, int k) const {
    if (s.kind == Kind::loop) return stores_to(s.code, k);
    if (s.epilogue >= 0 && k >= 3) return stores_to(s.epilogue, k - 3);
    if (s.kind == Kind::matmul) return k == 2;
    return k >= (s.kind == Kind::opaque ? p_.nodes[static_cast<std::size_t>(s.node)].arity : s.arguments - 1);
  }
  std::string where(graph::Argument const& a) const {
    std::string r = a.kind == graph::Argument::Kind::input ? input(a.index) : "arena";
    if (a.kind == graph::Argument::Kind::buffer)
      r += (p_.is_static ? "@" : " buffer ") +
           std::to_string(p_.is_static ? offsets_[static_cast<std::size_t>(a.index)] : a.index);
    if (a.offset != 0) r += "+" + extent_text(a.offset);
    bool turns = false;
    for (int t = a.turn; t >= 0; t = p_.turns[static_cast<std::size_t>(t)].next) {
      graph::Turn const& now = p_.turns[static_cast<std::size_t>(t)];
      if (now.region >= 0) turns = true;
      else r += "+" + extent_text(extent::mul(now.shift, now.step));
    }
    return turns ? r + "[i]" : r;
  }
  // The walk without the axes that repeat.
  Shape touched(graph::Step const& s, int k) const {
    graph::Walk const w = graph::walk_of(p_, s, k);
    Shape r;
    for (int d = 0; d < w.shape.rank; ++d)
      if (w.strides[d] != 0) r.push_back(w.shape[d]);
    return r;
  }

  // --- instructions of a loop ---
  int instructions_at(int at) const {
    int const dims = static_cast<int>(code(at + loop_code::dims)),
              operands = static_cast<int>(code(at + loop_code::operands));
    return at + static_cast<int>(loop_code::header_size) + dims +
           operands * (static_cast<int>(loop_code::operand_size) + dims);
  }
  index_t field(int at, int i, loop_code::InstructionField f) const {
    return loop_code::unpack(&code(instructions_at(at) + i * static_cast<int>(loop_code::instruction_size)),
                             f);
  }
  int instruction_count(int at) const { return static_cast<int>(code(at + loop_code::instructions)); }
  bool stores_to(int at, int operand) const {
    for (int i = 0; i < instruction_count(at); ++i) {
      index_t const c = field(at, i, loop_code::code);
      if ((c == loop_code::store || c == loop_code::accumulate) && field(at, i, loop_code::a) == operand)
        return true;
    }
    return false;
  }

  // What an instruction is called; "" for what operands say already.
  std::string name_of_instruction(int at, int i) const {
    static char const* const reductions[] = {"sum", "prod", "max", "min"};
    index_t const c = field(at, i, loop_code::code);
    if (c == loop_code::iota) return "iota";
    if (c == loop_code::cast) return "cast";
    if (c >= loop_code::reduce_sum && c <= loop_code::reduce_min)
      return reductions[c - loop_code::reduce_sum];
    if (c == loop_code::accumulate) return "accumulate";
    for (NodeFacts const& n : p_.nodes)
      if (static_cast<index_t>(n.code) == c && c >= static_cast<index_t>(Code::first_elementwise))
        return n.name;
    return "";
  }

  void put_phases(int at, char const* title) {
    int const phases = static_cast<int>(code(at + loop_code::phases));
    for (int p = 0; p <= phases; ++p) {
      put_instructions(at, "     for each row: ", [&](int i) {
        return field(at, i, loop_code::level) == loop_code::row_level &&
               field(at, i, loop_code::phase) == p && !is_reduction(at, i);
      });
      put_instructions(at, title, [&](int i) {
        bool const kept = field(at, i, loop_code::stash) >= 0 && p > field(at, i, loop_code::phase);
        return (field(at, i, loop_code::level) == loop_code::element_level || is_reduction(at, i)) && !kept &&
               (field(at, i, loop_code::mask) >> p & 1) != 0;
      });
    }
  }
  bool is_reduction(int at, int i) const {
    index_t const c = field(at, i, loop_code::code);
    return c >= loop_code::reduce_sum && c <= loop_code::reduce_min;
  }
  template <class Wanted>
  void put_instructions(int at, char const* title, Wanted wanted) {
    bool first = true;
    for (int i = 0; i < instruction_count(at); ++i) {
      std::string const name = wanted(i) ? name_of_instruction(at, i) : "";
      if (name.empty()) continue;
      put(first ? title : ", ", name);
      first = false;
    }
    if (!first) put("\n");
  }

  ProgramFacts const& p_;
  std::vector<index_t> offsets_;
  std::string out_;
};

template <class P>
inline constexpr bool is_program = false;
template <class F, class... A>
inline constexpr bool is_program<program<F, A...>> = true;

}  // namespace detail

/// explain - the plan of a program as text: its totals, its inputs, and for each kernel what it computes (a line
/// for each phase over the rows of a fused loop), what it reads and writes and where ("arena@256": at byte 256 of
/// the arena). Kernels of a loop (scan, nn::Repeat) come after a line that says how often they run, costs being those
/// of one time; "[i]" marks what is at another place each time.
///
/// Example   examples/06_explain.cpp
template <class P>
  requires detail::is_program<P>
std::string explain(P const& = {}) {
  detail::ProgramFacts const facts = detail::facts_of(P{});
  return detail::Explainer(facts).explain();
}
/// explain(f, args...) - of the program that a compiled function runs for these arguments.
template <class Function, class... A>
  requires(!detail::is_program<Function>)
std::string explain(Function const&, A const&...) {
  return explain<typename Function::template program_for<A...>>();
}

/// dot - the graph of a program in Graphviz's language: a cluster for each kernel, numbered as explain numbers
/// them.
template <class P>
  requires detail::is_program<P>
std::string dot(P const& = {}) {
  detail::ProgramFacts const facts = detail::facts_of(P{});
  return detail::Explainer(facts).dot();
}
template <class Function, class... A>
  requires(!detail::is_program<Function>)
std::string dot(Function const&, A const&...) {
  return dot<typename Function::template program_for<A...>>();
}

}  // namespace dfdx
