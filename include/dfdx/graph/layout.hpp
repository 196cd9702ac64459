// SPDX-License-Identifier: BSL-1.0
// What a plan consists of: steps, arguments, buffers and results; and the layout of buffers in an arena, which
// follows from their sizes and lifetimes alone, so that a program with dyn dims can work it out when it is called.
#pragma once

#include <algorithm>

#include <dfdx/core/pool.hpp>
#include <dfdx/graph/views.hpp>

namespace dfdx::graph {

/// Argument - one operand of a kernel: a buffer of the arena or an input, from an element on. `none` has no memory.
struct Argument {
  enum class Kind : unsigned char { none, buffer, input } kind = Kind::none;
  int index = -1;
  index_t offset = 0;
  DType dtype = DType::f32;
  /// How it moves with the loops around the step, an index into the plan's turns; -1 if it does not.
  int turn = -1;
};

/// StepLoop - steps [first, last) that run `count` times: a region. Loops inside of it lie between its steps.
struct StepLoop {
  int first = -1, last = -1;
  int region = -1;
  index_t count = 0;
  bool reversed = false;
};

/// Buffer - a value in the arena, alive from step `first` to step `last`.
struct Buffer {
  index_t elements = 0;
  DType dtype = DType::f32;
  int first = -1, last = -1;
};

/// Step - one kernel: what it is, and its parts of the plan's lists of numbers and arguments. A `move` copies a
/// result onto the input whose memory it takes over, where the kernel itself could not write there.
struct Step {
  enum class Kind : unsigned char { loop, matmul, opaque, move } kind = Kind::loop;
  int node = -1;
  /// Of the node.
  DType dtype = DType::f32;
  int code = 0, code_size = 0;
  int argument = 0, arguments = 0;
  /// A matrix product whose results go through a loop group as they are stored: where the description of that loop
  /// begins in the code, which of its operands is the product, and which is stored by the product's kernel (its
  /// memory is the third argument). The loop's arguments follow the product's three.
  int epilogue = -1, given = -1, stored = -1;
  /// Of an opaque step: which of the plan's own kernels.
  int own_kernel = -1;
  bool epilogue_reads_result = false;
  /// A node of that loop group.
  int epilogue_node = -1;
  /// The region whose loop the kernel runs through (graph/roll.hpp), or -1.
  int rolled = -1;
  /// Which of the plan's kernels it runs (graph/share.hpp).
  int kernel = -1;
};

/// Result - an output of the program: a strided view of an argument.
struct Result {
  Argument memory{};
  Meta meta{};
  Strides strides{};
};

/// OwnKernel - the kernel of an op that has one of its own, and the attributes it is called with; or that of two ops,
/// the `second` of which is made with the first (OpInfo::run_both).
struct OwnKernel {
  OwnRun run = nullptr;
  Attrs attrs{};
  Sized sized = Sized::none;

  constexpr OwnKernel() = default;
  /// Of a node among those that it reads.
  template <class Nodes>
  constexpr OwnKernel(Node const& n, Nodes const& nodes)
      : run(n.op->run), attrs(n.attrs), sized(n.op->sized) {
    if (!n.op->has_run_for) return;
    Meta metas[max_arity + 1];
    for (int i = 0; i < n.op->arity; ++i) metas[i] = nodes[n.in[i]].meta;
    metas[n.op->arity] = n.meta;
    run = n.op->run_for(n.attrs, metas);
  }
  constexpr OwnKernel(Node const& n, OpInfo const& second)
      : run(makes_floats(n) ? second.run_both_as_floats : second.run_both), attrs(n.attrs) {}

 private:
  static constexpr bool makes_floats(Node const& n) {
    return is_floating(n.meta.dtype) && n.meta.dtype != DType::f64;
  }
};

struct Plan {
  Vec<Step> steps;
  Vec<index_t> code;
  /// For each kernel the first step that runs it.
  Vec<int> kernels;
  Vec<Argument> arguments;
  Vec<Buffer> buffers;
  Vec<Result> results;
  /// Kernels of opaque steps, in order.
  Vec<OwnKernel> own_kernels;
  /// By their first steps; of those that begin together the outer one first.
  Vec<StepLoop> loops;
  Vec<Turn> turns;
  Vec<SameExtent> requirements;
  int inputs = 0, nodes = 0;
  LiteralInputs literal_inputs{};
  /// Whether every size is known. All sizes follow from those of the inputs.
  bool is_static = true;
};

/// run_steps - calls run(step) for steps [first, last), as often as the loops around them say. `position[r]` is
/// where region r is. `loop` is the first loop that does not begin before `first`.
template <class Loops, class Run>
constexpr void run_steps(Loops const& loops, std::size_t loop, int first, int last, index_t* position,
                         Run const& run) {
  for (int s = first; s < last;) {
    if (loop == loops.size() || loops[loop].first != s) {
      run(s++);
      continue;
    }
    StepLoop const& l = loops[loop++];
    for (index_t i = 0; i < l.count; ++i) {
      position[l.region] = l.reversed ? l.count - 1 - i : i;
      run_steps(loops, loop, l.first, l.last, position, run);
    }
    s = l.last;
    while (loop < loops.size() && loops[loop].first < s) ++loop;
  }
}

/// steps_of - how many of a turn's steps lie before what a loop reads or writes at its position.
constexpr index_t steps_of(Turn const& t, index_t const* position) {
  index_t const at = (t.region < 0 ? 0 : position[t.region]) + t.shift;
  return t.wrap != 0 ? at % t.wrap : at;
}

/// turned - elements from where an argument starts to where it is in the present iterations.
template <class Turns>
constexpr index_t turned(Turns const& turns, int turn, index_t const* position, index_t const* symbols) {
  index_t r = 0;
  for (; turn >= 0; turn = turns[turn].next) {
    Turn const& t = turns[turn];
    r += steps_of(t, position) * extent::resolve(t.step, symbols);
  }
  return r;
}

namespace detail {

/// whole - bytes up to a multiple of what a buffer of so many is aligned to. Large ones begin where pages do, as large
/// tensors do (core/pool.hpp): processors compare addresses by their last 12 bits first, and where what is read lies up
/// to some hundred bytes behind what was just stored they take the one for the other, and wait. Loops took up to three
/// times as long.
constexpr index_t whole(index_t bytes, index_t of) {
  constexpr auto page = static_cast<index_t>(dfdx::detail::page),
                 paged = static_cast<index_t>(dfdx::detail::paged_block);
  index_t const unit = of >= paged ? page : 64;
  return (bytes + unit - 1) / unit * unit;
}

/// bytes_of - what a buffer takes in an arena.
constexpr index_t bytes_of(Buffer const& b, index_t const* symbols) {
  index_t const bytes = extent::resolve(b.elements, symbols) * static_cast<index_t>(size_of(b.dtype));
  return bytes == 0 ? 64 : whole(bytes, bytes);
}

/// first_fit - offsets for buffers in the order of `order`, each at the first place that is free: those before it whose
/// lifetimes touch its own must be all that are alive when it comes, so they go by their first step, or backwards in
/// time by their last. The size of the arena.
template <class Buffers, class Offsets>
constexpr index_t first_fit(Buffers const& buffers, Vec<index_t> const& sizes, Vec<int> const& order,
                            bool backwards, Offsets& offsets) {
  // Those before it that are alive, sorted by offset, and those that still are with it.
  Vec<int> before(buffers.size() + 1), after(buffers.size() + 1);
  int *used = before.data(), *alive = after.data(), *end = used;
  auto const* const all = buffers.data();
  index_t const* const bytes = sizes.data();
  index_t* const offset = offsets.data();
  index_t total = 0;
  for (int const k : order) {
    int const first = all[k].first, last = all[k].last;
    index_t const size = bytes[k];
    int* next = alive;
    index_t at = 0;
    bool placed = false;
    for (int const* u = used; u != end; ++u) {
      int const other = *u;
      if (backwards ? all[other].first > last : all[other].last < first) continue;
      if (!placed) {
        index_t const begin = offset[other];
        if (begin - at >= size) {
          *next++ = k;
          placed = true;
        } else if (begin + bytes[other] > at) {
          at = whole(begin + bytes[other], size);
        }
      }
      *next++ = other;
    }
    if (!placed) *next++ = k;
    offset[k] = at;
    total = at + size > total ? at + size : total;
    end = next;
    next = used;
    used = alive;
    alive = next;
  }
  return total;
}

/// Placing the largest first compares buffers by pairs, which a constant expression pays for: not done for more.
inline constexpr std::size_t most_compared = 128;

/// largest_first - offsets for buffers, the largest first, each at the first place that is free for all of its
/// lifetime. The size of the arena.
template <class Buffers, class Offsets>
constexpr index_t largest_first(Buffers const& buffers, Vec<index_t> const& size, Offsets& offsets) {
  struct Block {
    int first, last;
    index_t begin, end;
  };
  auto const n = static_cast<int>(size.size());
  Vec<int> order;
  for (int i = 0; i < n; ++i) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [s = size.data()](int a, int b) { return s[a] != s[b] ? s[a] > s[b] : a < b; });
  Vec<Block> placed(size.size());  // sorted by begin
  Block* const start = placed.data();
  Block* end = start;
  index_t total = 0;
  for (int const i : order) {
    auto const& b = buffers[static_cast<std::size_t>(i)];
    int const first = b.first, last = b.last;
    index_t const bytes = size[i];
    index_t at = 0;
    for (Block const* p = start; p != end; ++p) {
      if (p->last < first || p->first > last) continue;
      if (p->begin - at >= bytes) break;
      at = p->end > at ? p->end : at;  // where a page begins for large ones, for those before are larger
    }
    offsets[static_cast<std::size_t>(i)] = at;
    total = at + bytes > total ? at + bytes : total;
    Block* p = end++;
    for (; p != start && p[-1].begin > at; --p) *p = p[-1];
    *p = Block{first, last, at, at + bytes};
  }
  return total;
}

}  // namespace detail

/// place_buffers - offsets in bytes for buffers that live at overlapping times, aligned to 64 bytes or to a page;
/// returns the size of the arena. First fit backwards in time, which for a training step is nearly always best, for its
/// large values live long; or forwards, or the largest first, whichever takes least, where that leaves gaps. Symbolic
/// sizes are resolved with `symbols`.
template <class Buffers, class Offsets>
constexpr index_t place_buffers(Buffers const& buffers, index_t const* symbols, Offsets& offsets) {
  int steps = 0;
  for (auto const& b : buffers) steps = b.last + 1 > steps ? b.last + 1 : steps;
  Vec<int> forwards, start(static_cast<std::size_t>(steps) + 2, 0), backwards(buffers.size(), 0);
  Vec<index_t> size, change(static_cast<std::size_t>(steps) + 1, 0);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    auto const& b = buffers[i];
    size.push_back(detail::bytes_of(b, symbols));
    change[b.first] += size[i];
    change[b.last + 1] -= size[i];
    forwards.push_back(static_cast<int>(i));
    ++start[steps - b.last];
  }
  for (std::size_t s = 1; s < start.size(); ++s) start[s] += start[s - 1];
  for (std::size_t i = buffers.size(); i-- > 0;)
    backwards[--start[steps - buffers[i].last]] = static_cast<int>(i);
  index_t alive = 0, least = 0;  // what is alive at one time is the least that any placing takes
  for (index_t c : change) {
    alive += c;
    least = alive > least ? alive : least;
  }
  index_t best = detail::first_fit(buffers, size, backwards, true, offsets);
  auto const improve = [&](auto const& place) {
    if (best == least) return;
    Vec<index_t> other(buffers.size(), 0);
    index_t const total = place(other);
    if (total >= best) return;
    best = total;
    for (std::size_t i = 0; i < buffers.size(); ++i) offsets[i] = other[i];
  };
  improve([&](auto& other) { return detail::first_fit(buffers, size, forwards, false, other); });
  if (buffers.size() <= detail::most_compared)
    improve([&](auto& other) { return detail::largest_first(buffers, size, other); });
  return best;
}

}  // namespace dfdx::graph
