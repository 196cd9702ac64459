// SPDX-License-Identifier: BSL-1.0
// Random graphs: functions of a few inputs built of random ops of the vocabulary over small shapes. The same seed
// makes the same graph.
#pragma once

#include <dfdx/testing/interpret.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/index.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/scan.hpp>

#include <vector>

namespace random_graph {

using namespace dfdx;

/// Dice - a deterministic source of small integers.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : key_{seed} {}
  int operator()(int n) { return static_cast<int>(integer_at(key_, count_++, n)); }
  bool once_in(int n) { return (*this)(n) == 0; }

 private:
  Key key_;
  std::uint64_t count_ = 0;
};

/// Sample - a graph with inputs for it.
struct Sample {
  Graph graph = testing::new_graph();
  std::vector<Array> inputs;
  int parameters = 0;        // leading floating inputs, that gradients may be asked for
  std::vector<int> stacked;  // nodes that have something of all iterations of a loop
};

/// Loops - whether there are scans, or in their place what they stand for.
enum class Loops { none, scanned, unrolled };

namespace detail {

struct Builder {
  Dice dice;
  DType dtype;
  std::vector<Array> values;
  Array index;  // i64 [4] of positions below 3
  Loops loops = Loops::none;
  bool layers = false;  // also what follows "of layers" below
  int most_depth = 2, depth = 0;
  bool halves = false;           // also values of 16 bits, which are only moved, and values side by side
  std::vector<Array> stacked{};  // what loops make in all iterations

  Array const& any() {
    // Recent values more often than old ones, so that graphs become deep.
    int const n = static_cast<int>(values.size());
    int const back = dice.once_in(3) ? dice(n) : dice(n < 4 ? n : 4);
    return values[static_cast<std::size_t>(n - 1 - back)];
  }
  // Values of bounded size, so that f32 stays comparable through long chains.
  Array bounded(Array const& x) { return dice.once_in(2) ? tanh(x) : x * 0.5; }

  bool broadcast(Array const& x, Array const& y) {
    return op::broadcast_shapes("", x.shape(), y.shape(), nullptr).valid() &&
           op::broadcast_shapes("", x.shape(), y.shape(), nullptr).numel() <= 600;
  }

  Array unary(Array const& x) {
    switch (dice(14)) {
      case 0: return -x;
      case 1: return exp(tanh(x));
      case 2: return log1p(square(x));
      case 3: return sqrt(square(x) + 0.5);
      case 4: return rsqrt(square(x) + 0.5);
      case 5: return abs(x);
      case 6: return sin(x);
      case 7: return tanh(x);
      case 8: return sigmoid(x);
      case 9: return relu(x);
      case 10: return x * 1.0 + 0.0;
      case 11: return -(-x);
      case 12: return x * 1.5 - 0.25;
      default: return square(tanh(x));
    }
  }
  Array binary(Array const& x, Array const& y) {
    switch (dice(7)) {
      case 0: return x + y;
      case 1: return x - y;
      case 2: return bounded(x * y);
      case 3: return x / (square(y) + 1.0);
      case 4: return maximum(x, y);
      case 5: return minimum(x, y);
      default: return where(x < y, x, y * 0.5);
    }
  }
  Array reduction(Array const& x) {
    int const rank = x.ndim();
    if (rank == 0) return unary(x);
    index_t const mask = 1 + dice((1 << rank) - 1);
    bool const keep = dice.once_in(2);
    switch (dice(8)) {
      case 0: return dfdx::detail::reduce_mask<op::max, void>(x, mask, keep);
      case 1: return dfdx::detail::reduce_mask<op::min, void>(x, mask, keep);
      case 2: return dfdx::detail::reduce_mask<op::prod, void>(tanh(x), mask, keep);
      case 3: return softmax<-1>(x);
      case 4: return log_softmax<-1>(x);
      case 5:
        return layer_norm(
            x, ones_like(slice_axis(reshape_to(x, make_shape(-1)), 0, 0, x.shape()[rank - 1])),
            full_like(slice_axis(reshape_to(x, make_shape(-1)), 0, 0, x.shape()[rank - 1]), 0.5), 0.1);
      default: return dfdx::detail::reduce_mask<op::sum, void>(x, mask, keep) * 0.25;
    }
  }
  Array permuted(Array const& x) {
    int const rank = x.ndim();
    int axes[max_rank] = {};
    for (int i = 0; i < rank; ++i) axes[i] = i;
    for (int i = rank - 1; i > 0; --i) std::swap(axes[i], axes[dice(i + 1)]);
    return permute_axes(x, op::pack_axes(axes, rank));
  }
  // Rounded to 16 bits somewhere among views, and wide again behind or among others.
  Array rounded(Array const& x) {
    DType const narrow = dice.once_in(2) ? DType::bf16 : DType::f16;
    Array y = x;
    for (int i = dice(3); i > 0; --i) y = moved(y);
    y = cast_to(y, narrow);
    if (y.ndim() > 0 && y.size() <= 200 && dice.once_in(4)) {
      Array const other = any();
      if (other.shape() == y.shape()) y = concat(y, cast_to(other, narrow));
    }
    for (int i = dice(3); i > 0; --i) y = moved(y);
    y = cast_to(y, dtype);
    for (int i = dice(3); i > 0; --i) y = moved(y);
    return y;
  }
  // Behind each other, as they are or on a new axis.
  Array joined(Array const& x) {
    Array y = dice.once_in(3) ? x : any();
    if (x.size() > 100 || y.shape() != x.shape() || x.ndim() > 3) y = unary(x);
    if (x.size() > 100 || x.ndim() > 3) return y;
    Shape s = make_shape(1);
    for (int i = 0; i < x.ndim(); ++i) s.push_back(x.shape()[i]);
    if (x.ndim() > 0 && dice.once_in(2)) s = x.shape();
    Array const part = unary(x);
    if (dice.once_in(2)) values.push_back(part);  // for others to read
    if (dice.once_in(4)) y = part;
    Array const both = dice.once_in(4) ? concat(reshape_to(y, s), reshape_to(part, s))
                                       : concat(reshape_to(part, s), reshape_to(y, s));
    return dice.once_in(3) ? concat(both, reshape_to(x, s)) : both;
  }
  // The rows of a window but its first or last, and a new one.
  Array window(Array const& x, Array const& z) {
    Array const first = slice_axis(x, 0, 0, 1), kept = slice_axis(x, 0, dice(2), x.shape()[0] - 1);
    Array const total =
        dfdx::detail::reduce_mask<op::sum, void>(tanh(z), (index_t{1} << z.ndim()) - 1, false);
    Array const fresh = dice.once_in(2) ? bounded(first + total) : unary(first);
    Array const rest = dice.once_in(2) ? kept : unary(kept);
    if (dice.once_in(2)) values.push_back(rest), values.push_back(fresh);
    return dice.once_in(2) ? concat(rest, fresh) : concat(fresh, rest);
  }
  // Of a rounded value and an early one: what a backward pass wants of it can be computed again from 16 bits.
  Array curved(Array const& x) {
    Array const y = cast_to(cast_to(x, DType::bf16), dtype);
    Array const w = values[static_cast<std::size_t>(dice(2))];
    if (!broadcast(y, w)) return sin(dice.once_in(2) ? y - 0.5 : 0.5 - y);
    return sin(dice.once_in(2) ? y - w : w - y);
  }
  Array view(Array const& x) {
    if (halves && dice.once_in(4)) return joined(x);
    if (halves && dice.once_in(3)) return curved(x);
    return halves && dice.once_in(2) ? rounded(x) : moved(x);
  }
  Array moved(Array const& x) {
    int const rank = x.ndim();
    switch (dice(7)) {
      case 0: return permuted(x);
      case 1: {  // join two neighbours
        if (rank < 2) return x;
        int const at = dice(rank - 1);
        Shape s;
        for (int i = 0; i < rank; ++i)
          if (i == at) s.push_back(x.shape()[i] * x.shape()[i + 1]), ++i;
          else s.push_back(x.shape()[i]);
        return reshape_to(x, s);
      }
      case 2: {  // a new axis
        if (rank > 3) return x;
        int const at = dice(rank + 1);
        Shape s;
        for (int i = 0; i <= rank; ++i) s.push_back(i == at ? 1 : x.shape()[i < at ? i : i - 1]);
        Array const y = reshape_to(x, s);
        if (!dice.once_in(2) || x.size() > 100) return y;
        s[at] = 3;
        return broadcast_to(y, s);
      }
      case 3: {  // part of an axis
        if (rank == 0) return x;
        int const axis = dice(rank);
        index_t const n = x.shape()[axis];
        if (n < 2) return x;
        index_t const step = 1 + dice(2), start = dice(static_cast<int>(n));
        return slice_axis(x, axis, start, (n - start + step - 1) / step, step);
      }
      case 4: {  // split an axis in two
        if (rank == 0 || rank > 3) return x;
        int const axis = dice(rank);
        if (x.shape()[axis] % 2 != 0) return x;
        Shape s;
        for (int i = 0; i < rank; ++i)
          if (i == axis) s.push_back(2), s.push_back(x.shape()[i] / 2);
          else s.push_back(x.shape()[i]);
        return reshape_to(x, s);
      }
      case 5: return rank > 0 && rank < 4 && x.shape()[0] >= 3 ? take(x, index) : x;
      default:
        return rank > 0 && dice.once_in(2) ? pad_axis(x, dice(rank), 1, dice(2), 0, halves ? 0.1 : 0.25) : x;
    }
  }
  Array product(Array const& x, Array const& y) {
    if (x.ndim() == 0 || y.ndim() == 0 || x.ndim() > 3 || y.ndim() > 3) return binary_or_first(x, y);
    Array a = x;
    if (a.shape()[a.ndim() - 1] != y.shape()[y.ndim() == 1 ? 0 : y.ndim() - 2]) {
      if (a.ndim() == 2 && a.shape()[0] == y.shape()[y.ndim() == 1 ? 0 : y.ndim() - 2]) a = transpose(a);
      else if (x.ndim() == 2) return tanh(matmul(x, transpose(x)));
      else return binary_or_first(x, y);
    }
    if (a.ndim() == 3 && y.ndim() == 3 && a.shape()[0] != y.shape()[0]) return binary_or_first(x, y);
    return tanh(matmul(a, y));
  }
  Array binary_or_first(Array const& x, Array const& y) { return broadcast(x, y) ? binary(x, y) : unary(x); }

  // A scan whose body is a few random ops on the carries, the slices and what is outside.
  Array loop(Array const& x) {
    Array const xs = any(), other = any();
    if (xs.ndim() == 0 || xs.shape()[0] > 4) return unary(x);
    ++depth;
    std::size_t const outside = values.size();
    auto const body = [&](std::pair<Array, Array> const& carry, Array const& slice) {
      values.push_back(carry.second);
      values.push_back(slice);
      values.push_back(carry.first);
      for (int i = 1 + dice(4); i > 0; --i) add();
      Array y = any();
      Array const z = any();
      if (halves && dice.once_in(3)) y = joined(y);
      if (halves && dice.once_in(2) && slice.ndim() > 0 && slice.shape()[0] > 1) y = window(slice, z);
      bool const swaps = dice.once_in(4) && carry.first.meta() == carry.second.meta();
      auto const become = [&](Array const& c) {
        if (dice.once_in(5)) return c;
        if (z.shape() == c.shape()) return tanh(c * 0.5 + z);
        return tanh(c -
                    dfdx::detail::reduce_mask<op::sum, void>(z, (index_t{1} << z.ndim()) - 1, false) * 0.125);
      };
      std::pair next(become(carry.first), dice.once_in(3) ? carry.second : become(carry.second));
      if (swaps) std::swap(next.first, next.second);
      return std::pair(next, halves && dice.once_in(2) ? cast_to(y, DType::bf16) : y);
    };
    std::pair const init(halves && dice.once_in(2) ? joined(x) : x, dice.once_in(2) ? other : x);
    Order const order = dice.once_in(2) ? Order::forward : Order::backward;
    auto const r = loops == Loops::scanned ? scan(body, init, xs, order) : unroll(body, init, xs, order);
    --depth;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(outside), values.end());
    if (dice.once_in(2)) values.push_back(r.first.first);
    if (dice.once_in(2)) values.push_back(r.first.second);
    stacked.push_back(r.second);
    return r.second.ndim() <= 3 ? cast_to(r.second, dtype) : r.first.first;
  }

  // What scan stands for; every iteration takes the same random decisions.
  template <class Body>
  std::pair<std::pair<Array, Array>, Array> unroll(Body const& body, std::pair<Array, Array> carry,
                                                   Array const& xs, Order order) {
    auto const count = static_cast<int>(xs.shape()[0]);
    std::vector<Array> rows(static_cast<std::size_t>(count));
    std::size_t const outside = values.size();
    Dice const decisions = dice;
    for (int i = 0; i < count; ++i) {
      int const at = order == Order::forward ? i : count - 1 - i;
      dice = decisions;
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(outside), values.end());
      Shape part, row = make_shape(1);
      for (int d = 1; d < xs.ndim(); ++d) part.push_back(xs.shape()[d]);
      auto const [next, y] = body(carry, reshape_to(slice_axis(xs, 0, at, 1), part));
      for (int d = 0; d < y.ndim(); ++d) row.push_back(y.shape()[d]);
      rows[static_cast<std::size_t>(at)] = reshape_to(y, row);
      carry = next;
    }
    Array all = rows[0];
    for (std::size_t i = 1; i < rows.size(); ++i) all = concat(all, rows[i]);
    return {carry, all};
  }

  void add() {
    try {
      values.push_back(next());
    } catch (error const&) {  // the largest of nothing, and the like
      values.push_back(unary(any()));
    }
  }

  // --- of layers: products of joined axes, loops beside them, masks, elements at places ---------------------------
  // With another, the axes of which may stand in another order.
  Array met(Array const& x) {
    for (int tries = 0; tries < 6; ++tries) {
      Array const y = dice.once_in(3) ? permuted(any()) : any();
      if (broadcast(x, y)) return binary(x, dice.once_in(3) ? exp(sin(y)) * 0.3 : y);
    }
    return unary(x);
  }
  // All rows of x times one of the first inputs, which are matrices.
  Array layer(Array const& x) {
    index_t const k = x.ndim() == 0 ? 0 : x.shape()[x.ndim() - 1];
    Array w = values[static_cast<std::size_t>(1 + dice(2))];
    if (w.shape()[0] != k) w = transpose(w);
    if (w.shape()[0] != k || x.size() == 0) return unary(x);
    Shape to = x.shape();
    to[to.rank - 1] = w.shape()[1];
    return reshape_to(matmul(reshape_to(x, make_shape(x.size() / k, k)), w), to);
  }
  // Places along an axis of x, which depend on numbers.
  Array places(Array const& x, Array const& from, int axis) {
    auto const last = static_cast<double>(x.shape()[axis] - 1);
    return cast_to(abs(sin(from * 7.0)) * (last + 0.999), dice.once_in(2) ? DType::i32 : DType::i64);
  }
  Array at_places(Array const& x) {
    if (x.ndim() == 0 || x.size() == 0) return unary(x);
    Array const y = dice.once_in(3) ? where(x > 0.0, x * 2.0, zeros_like(x)) : relu(x);
    values.push_back(y);
    if (y.ndim() > 2 && y.ndim() < 5 && y.shape()[y.ndim() - 1] > 1 && y.shape()[y.ndim() - 2] > 1 &&
        dice.once_in(2))
      return max_pool2d(y, {2, dice.once_in(2) ? 1 : 2});
    int const axis = dice(y.ndim());
    Array const from = dice.once_in(2) ? y : slice_axis(y, dice(y.ndim()), 0, 1), at = places(y, from, axis);
    if (dice.once_in(3)) {
      values.push_back(gather(y, axis, at));
      Array part = unary(x);
      for (int i = 0; i < x.ndim(); ++i) part = slice_axis(part, i, 0, at.shape()[i]);
      return where(y > 0.1, scatter_add(zeros_like(x), axis, at, part), zeros_like(x));
    }
    return gather(y, axis, at);
  }

  Array next() {
    Array const x = any();
    if (layers && x.size() <= 200 && dice.once_in(2)) {
      switch (dice(4)) {
        case 0: return layer(x);
        case 1: return at_places(x);
        default: return met(x);
      }
    }
    if (loops != Loops::none && depth < most_depth && dice.once_in(depth == 0 ? 3 : 6)) return loop(x);
    if (x.size() > 200) return dfdx::detail::reduce_mask<op::sum, void>(x, 1, false) * 0.25;
    switch (dice(10)) {
      case 0:
      case 1: return unary(x);
      case 2:
      case 3:
      case 4: return binary_or_first(x, any());
      case 5:
      case 6: return reduction(x);
      case 7: return product(x, any());
      default: return view(x);
    }
  }
};

}  // namespace detail

/// make - a graph of about `size` calls of the vocabulary, with one to three outputs. With `empties` some inputs
/// have no elements; loops are at most `deep` deep. With `layers` there are products of the rows of values of three
/// axes, masks, and elements at places; with `halves` values of 16 bits that are moved, and values side by side.
inline Sample make(std::uint64_t seed, int size, DType dtype, bool empties = false, Loops loops = Loops::none,
                   bool layers = false, int deep = 2, bool halves = false) {
  Sample s;
  detail::Builder b{Dice(seed), dtype, {}, {}, loops, layers, deep, 0, halves};
  Shape const hollow[] = {make_shape(3, 0), make_shape(0, 4), make_shape(2, 0, 4), make_shape(0),
                          make_shape(1, 4)};
  Shape const shapes[] = {make_shape(3, 4),    make_shape(4),    make_shape(4, 3), make_shape(2, 3, 4),
                          make_shape(1, 4),    make_shape(3, 1), make_shape(),     make_shape(5, 7),
                          make_shape(2, 1, 4), make_shape(6)};
  Shape const first[] = {make_shape(2, 3, 4), make_shape(4, 6), make_shape(6, 4), make_shape(3, 2, 4),
                         make_shape(2, 3, 4)};
  s.parameters = layers ? 5 : 2 + b.dice(3);
  for (int i = 0; i < s.parameters; ++i) {
    Shape const shape = layers                         ? first[i]
                        : empties && b.dice.once_in(2) ? hollow[b.dice(5)]
                                                       : shapes[b.dice(10)];
    s.inputs.push_back(randn(shape, Key{seed * 16 + static_cast<std::uint64_t>(i)}, dtype));
    b.values.push_back(testing::add_input(s.graph, Meta{dtype, shape}));
  }
  s.inputs.push_back(from<std::int64_t>({2, 0, 2, 1}, {4}));
  b.index = testing::add_input(s.graph, s.inputs.back().meta());
  for (int i = 0; i < size; ++i) b.add();
  int const outputs = 1 + b.dice(3);
  for (int k = 0; k < outputs; ++k) s.graph.outputs.push_back(b.any().id());
  for (Array const& x : b.stacked) s.stacked.push_back(x.id());
  return s;
}

}  // namespace random_graph
