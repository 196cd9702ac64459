// SPDX-License-Identifier: BSL-1.0
// A plan executed at run time, number by number: fused loops by interpreting their descriptions, matrix products
// by the reference kernel. What fuse, lower and plan decide is tested with it, for any graph and without compiling
// a program.
#pragma once

#include <cstring>

#include <dfdx/graph/plan.hpp>
#include <dfdx/testing/interpret.hpp>

namespace dfdx::testing {

namespace detail {

/// LoopRun - one fused loop; values are held as doubles, rounded to the dtype of their instruction.
class LoopRun {
 public:
  LoopRun(index_t const* code, Graph const& g, std::byte* const* base) : code_(code), graph_(g), base_(base) {
    values_.assign(static_cast<std::size_t>(instructions()), 0);
    at_.assign(static_cast<std::size_t>(code_[loop_code::operands]), 0);
  }

  void run() {
    for (int k = 0; k < static_cast<int>(at_.size()); ++k) {
      index_t const n = extent::resolve(record(k)[loop_code::fill], nullptr);
      double const first = identity(record(k)[loop_code::combine], memory(k).meta.dtype);
      for (index_t i = 0; i < n; ++i) write_real(memory(k), i, first);
    }
    for (index_t i = 0; i < instructions(); ++i)
      if (field(i, loop_code::code) == loop_code::carry)
        value(i) = read_real(memory(static_cast<int>(field(i, loop_code::a))), 0);
    outer(0);
  }

 private:
  index_t instructions() const { return code_[loop_code::instructions]; }
  int dims() const { return static_cast<int>(code_[loop_code::dims]); }
  index_t extent_of(int d) const { return code_[loop_code::header_size + static_cast<std::size_t>(d)]; }
  index_t const* record(int k) const {
    return code_ + loop_code::header_size + dims() + k * (static_cast<int>(loop_code::operand_size) + dims());
  }
  index_t field(index_t i, loop_code::InstructionField f) const {
    return loop_code::unpack(record(static_cast<int>(code_[loop_code::operands])) +
                                 i * static_cast<index_t>(loop_code::instruction_size),
                             f);
  }
  Operand memory(int k) const {
    return Operand{base_[k], Meta{static_cast<DType>(record(k)[loop_code::dtype]), {}}, {}};
  }
  index_t& place(index_t k) { return at_[static_cast<std::size_t>(k)]; }
  double& value(index_t i) { return values_[static_cast<std::size_t>(i)]; }

  static bool is_reduce(index_t c) { return c >= loop_code::reduce_sum && c <= loop_code::reduce_min; }
  static double identity(index_t c, DType d) {
    if (c == loop_code::reduce_sum || c == loop_code::reduce_prod) return c == loop_code::reduce_prod;
    double const most = is_floating(d)    ? HUGE_VAL
                        : d == DType::i64 ? 0x1p62
                        : d == DType::i32 ? 0x7fffffff
                        : d == DType::i8  ? 127
                                          : 255;
    double const least = d == DType::i8 ? -128 : most == 255 ? 0 : -most;
    return c == loop_code::reduce_min ? most : least;
  }
  static double join(index_t c, double a, double b) {
    if (c == loop_code::reduce_sum) return a + b;
    if (c == loop_code::reduce_prod) return a * b;
    return c == loop_code::reduce_max ? math::maximum(a, b) : math::minimum(a, b);
  }
  static double rounded(DType d, double v) {
    return is_half(d) ? static_cast<float>(v) : math::held_by(d, v);
  }
  OpInfo const& op_numbered(index_t number) const {
    for (Node const& n : graph_.nodes)
      if (static_cast<index_t>(n.op->code) == number) return *n.op;
    raise("run_plan: no op with number ", number);
  }

  void advance(int d, index_t times) {
    for (int k = 0; k < static_cast<int>(at_.size()); ++k)
      place(k) += times * record(k)[loop_code::operand_size + static_cast<std::size_t>(d)];
  }

  void outer(int d) {
    if (d == code_[loop_code::split]) return row();
    bool const backward = d == 0 && code_[loop_code::backward] != 0;
    if (backward) advance(d, extent_of(d) - 1);
    for (index_t i = 0; i < extent_of(d); ++i, advance(d, backward ? -1 : 1)) {
      outer(d + 1);
      hand_on();
    }
    advance(d, backward ? 1 : -extent_of(d));
  }

  void hand_on() {
    std::vector<double> const now = values_;
    for (index_t i = 0; i < instructions(); ++i) {
      index_t const b = field(i, loop_code::b);
      if (field(i, loop_code::code) != loop_code::carry || b < 0) continue;
      value(i) =
          field(b, loop_code::code) == loop_code::constant ? operand(b) : now[static_cast<std::size_t>(b)];
    }
  }

  void row() {
    for (int phase = 0;; ++phase) {
      for (index_t i = 0; i < instructions(); ++i)
        if (field(i, loop_code::level) == loop_code::row_level && !is_reduce(field(i, loop_code::code)) &&
            field(i, loop_code::phase) == phase)
          execute(i, phase);
      if (phase >= code_[loop_code::phases]) return;
      for (index_t i = 0; i < instructions(); ++i)
        if (is_reduce(field(i, loop_code::code)) && runs_in(i, phase))
          value(i) = identity(field(i, loop_code::code), static_cast<DType>(field(i, loop_code::type)));
      inner(static_cast<int>(code_[loop_code::split]), phase);
      for (index_t i = 0; i < instructions(); ++i)
        if (is_reduce(field(i, loop_code::code)) && runs_in(i, phase))
          value(i) = rounded(static_cast<DType>(field(i, loop_code::type)), value(i));
    }
  }
  bool runs_in(index_t i, int phase) const { return (field(i, loop_code::mask) >> phase & 1) != 0; }

  void inner(int d, int phase) {
    if (d == dims()) {
      for (index_t i = 0; i < instructions(); ++i)
        if (runs_in(i, phase) &&
            (is_reduce(field(i, loop_code::code)) || field(i, loop_code::level) == loop_code::element_level))
          execute(i, phase);
      return;
    }
    for (index_t i = 0; i < extent_of(d); ++i, advance(d, 1)) inner(d + 1, phase);
    advance(d, -extent_of(d));
  }

  double operand(index_t i) {
    if (field(i, loop_code::code) == loop_code::constant)
      return std::bit_cast<double>(field(i, loop_code::immediate));
    return value(i);
  }

  void execute(index_t i, int phase) {
    index_t const what = field(i, loop_code::code), a = field(i, loop_code::a), b = field(i, loop_code::b),
                  c = field(i, loop_code::c), stash = field(i, loop_code::stash);
    auto const type = static_cast<DType>(field(i, loop_code::type));
    if (what == loop_code::constant || what == loop_code::carry) return;
    if (stash >= 0 && phase > field(i, loop_code::phase))
      value(i) = read_real(memory(static_cast<int>(stash)), place(stash));
    else if (what == loop_code::load) value(i) = read_real(memory(static_cast<int>(a)), place(a));
    else if (what == loop_code::iota) value(i) = static_cast<double>(place(a));
    else if (what == loop_code::cast)
      value(i) = static_cast<DType>(field(a, loop_code::type)) == type ? math::held_by(type, operand(a))
                                                                       : rounded(type, operand(a));
    else if (what == loop_code::store) write_real(memory(static_cast<int>(a)), place(a), operand(b));
    else if (is_reduce(what)) value(i) = join(what, value(i), operand(a));
    else if (what == loop_code::accumulate) {
      Operand const to = memory(static_cast<int>(a));
      write_real(to, place(a),
                 join(record(static_cast<int>(a))[loop_code::combine], read_real(to, place(a)), operand(b)));
    } else {
      double const x[3] = {operand(a), b < 0 ? 0 : operand(b), c < 0 ? 0 : operand(c)};
      value(i) = rounded(type, op_numbered(what).fold(x));
    }
  }

  index_t const* code_;
  Graph const& graph_;
  std::byte* const* base_;
  std::vector<double> values_;
  std::vector<index_t> at_;
};

// A walk (rank, extents, strides) as an operand.
inline Operand read_walk(index_t const*& code, std::byte* data, DType dtype) {
  Operand r;
  r.data = data;
  r.meta.dtype = dtype;
  r.meta.shape.rank = r.strides.rank = static_cast<int>(*code++);
  for (int d = 0; d < r.meta.shape.rank; ++d) r.meta.shape[d] = *code++;
  for (int d = 0; d < r.strides.rank; ++d) r.strides[d] = *code++;
  return r;
}

}  // namespace detail

/// PlanRun - what a run of a plan leaves: its results, and its inputs, some of which may have been written over.
struct PlanRun {
  std::vector<Array> results, inputs;
  index_t arena_bytes = 0;
};

/// run_plan - makes the plan of a prepared graph of static shapes and executes it on copies of the inputs. The
/// arena begins as garbage, so that what is read before it is written shows.
inline PlanRun run_plan(Graph const& g, std::span<Array const> inputs, graph::Aliases const& aliases = {}) {
  graph::Plan const plan = graph::make_plan(g, aliases);
  PlanRun r;
  for (Array const& x : inputs) {
    Array copy(x.meta());
    copy_elements(x.operand(), copy.operand());
    r.inputs.push_back(copy);
  }
  std::vector<index_t> offsets(plan.buffers.size() + 1);
  r.arena_bytes = graph::place_buffers(plan.buffers, nullptr, offsets);
  Array const arena(Meta{DType::u8, make_shape(r.arena_bytes)});
  std::memset(arena.bytes(), 0xfb, static_cast<std::size_t>(r.arena_bytes));
  std::vector<index_t> position(g.regions.size() + 1);
  auto const address = [&](graph::Argument const& a) -> std::byte* {
    if (a.kind == graph::Argument::Kind::none) return nullptr;
    auto const k = static_cast<std::size_t>(a.index);
    std::byte* const base =
        a.kind == graph::Argument::Kind::input ? r.inputs[k].bytes() : arena.bytes() + offsets[k];
    index_t const at = a.offset + graph::turned(plan.turns, a.turn, position.data(), nullptr);
    return base + at * static_cast<index_t>(size_of(a.dtype));
  };
  auto const run_step = [&](int k) {
    graph::Step const& s = plan.steps[static_cast<std::size_t>(k)];
    std::vector<std::byte*> base;
    std::vector<DType> types;
    for (int i = 0; i < s.arguments; ++i) {
      graph::Argument const& a = plan.arguments[static_cast<std::size_t>(s.argument + i)];
      base.push_back(address(a));
      types.push_back(a.dtype);
    }
    index_t const* code = plan.code.data() + s.code;
    if (s.kind == graph::Step::Kind::loop) {
      detail::LoopRun(code, g, base.data()).run();
    } else if (s.kind == graph::Step::Kind::move) {
      std::memcpy(base[1], base[0], static_cast<std::size_t>(*code) * size_of(types[0]));
    } else {
      std::vector<Operand> operands;
      bool const opaque = s.kind == graph::Step::Kind::opaque;
      for (std::size_t i = 0; i < (opaque ? base.size() : 3); ++i)
        operands.push_back(detail::read_walk(code, base[i], types[i]));
      if (opaque) {
        graph::OwnKernel const& own = plan.own_kernels[static_cast<std::size_t>(s.own_kernel)];
        return own.run(own.attrs, operands.data(), operands.back());
      }
      // Products read views of views; Arrays around the same memory let the eager kernel do it.
      auto const view = [](Operand const& o) {
        return Array(nullptr, static_cast<std::byte*>(o.data), o.meta, o.strides);
      };
      Array const product = bind<op::matmul>(Attrs{}, view(operands[0]), view(operands[1]));
      if (s.epilogue < 0) {
        copy_elements(product.operand(), operands[2]);
        return;
      }
      std::vector<std::byte*> loop(base.begin() + 3, base.end());
      loop[static_cast<std::size_t>(s.given)] = product.bytes();
      loop[static_cast<std::size_t>(s.stored)] = base[2];
      detail::LoopRun(plan.code.data() + s.epilogue, g, loop.data()).run();
    }
  };
  graph::run_steps(plan.loops, 0, 0, static_cast<int>(plan.steps.size()), position.data(), run_step);
  for (graph::Result const& x : plan.results) {
    Array const view(arena.storage(), address(x.memory), x.meta, x.strides);
    Array copy(x.meta);
    copy_elements(view.operand(), copy.operand());
    r.results.push_back(copy);
  }
  return r;
}

}  // namespace dfdx::testing
