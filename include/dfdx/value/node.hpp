// SPDX-License-Identifier: BSL-1.0
// The graph as data: Node, OpInfo (what a node points at), Graph (a growing array of nodes) and Sym, a handle to a
// node. Not here: what any op means (ops/), and passes over graphs (graph/).
#pragma once

#include <cstdint>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/error.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/core/vec.hpp>

namespace dfdx {

/// Code - numbers of the ops that passes and kernels know by name. Elementwise ops have numbers from
/// `first_elementwise` on; an op with number `opaque` is run through its own kernel and only through that.
enum class Code : std::int32_t {
  opaque,
  input,
  constant,
  iota,
  reshape,
  permute,
  expand,
  slice,
  windows,
  each,
  reduce_sum,
  reduce_prod,
  reduce_max,
  reduce_min,
  matmul,
  cast,
  carry,
  last,
  stack,
  custom_vjp,
  first_elementwise = 32,
  first_user_elementwise = 1024
};

/// Attrs - the numbers an op carries besides its operands; each op says what its own mean.
struct Attrs {
  index_t i[3] = {};
  double f[2] = {};
  constexpr bool operator==(Attrs const&) const = default;
};

/// Meta - dtype and shape: all that a shape rule sees of an operand and says of a result.
struct Meta {
  DType dtype = DType::f32;
  Shape shape{};

  constexpr bool valid() const { return shape.valid(); }
  constexpr bool operator==(Meta const&) const = default;
};

/// refuse - a shape rule's answer to operands it cannot take; the text is only made when someone will read it.
template <class... Parts>
constexpr Meta refuse(Text* why, Parts const&... parts) {
  if (why != nullptr) (why->put(parts), ...);
  return Meta{DType::f32, Shape::none()};
}

/// Operand - one operand or result of a kernel that runs now: memory, and how to walk it.
struct Operand {
  void* data = nullptr;
  Meta meta{};
  Strides strides{};
};

inline constexpr int max_arity = 5;

class Graph;

/// Sym - a value that is only a node of a graph: what rules compute with when a program is being built.
struct Sym {
  Graph* graph = nullptr;
  int id = -1;

  constexpr explicit operator bool() const { return graph != nullptr; }
  constexpr Meta meta() const;
  constexpr Shape shape() const;
  constexpr DType dtype() const;
};

/// PlainNumber - a value that is a number and nothing else: what rules compute with for scalars on the run-time
/// tape. It remembers what it was made of: bit k for operand k of the rule, bit max_arity for the result.
struct PlainNumber {
  static constexpr unsigned nothing = 1u << 31;

  double value = 0;
  unsigned made_of = nothing;

  static constexpr Meta meta() { return {DType::f64, {}}; }
  static constexpr Shape shape() { return {}; }
  static constexpr DType dtype() { return DType::f64; }
};

/// Site - where a rule is applied: the operands, the result and the attributes of one use of an op. In forward mode the
/// tangents of all operands too, for rules that are not a sum over operands (an empty one where nothing flows).
template <class V>
struct Site {
  V const* x = nullptr;
  V y{};
  Attrs attrs{};
  V const* tangents = nullptr;
  /// On the tape, where rules leave what the cotangents of several operands have in common (a program computes what is
  /// equal once anyway); empty when the first is asked for.
  Vec<V>* common = nullptr;
};

/// once - make(), or what it made for the cotangent of an operand before.
template <class V, class Make>
constexpr V once(Site<V> const& s, Make const& make) {
  if (s.common == nullptr) return make();
  if (s.common->empty()) s.common->push_back(make());
  return (*s.common)[0];
}

/// Examples - how an op works on many examples at once: on operands with one more axis in front (graph/batch.hpp).
enum class Examples : std::uint8_t {
  one_by_one,  ///< only in a loop
  same,        ///< as it is: axes in front are gone through one by one, or all elements are
  axis,        ///< its axis, the low bits of attrs.i[0], moves on by one
  axes,        ///< so do its axes, a bit mask in attrs.i[0]
  order,       ///< so does its permutation in attrs.i[0]
  join  ///< the first axis of the first operand and of the result takes them in, if the others are for all
};

/// Moves - whether an op reads elements at places along an axis, attrs.i[0], given by its second operand; or adds them
/// to zeros there.
enum class Moves : std::uint8_t { nothing, gather, scatter };

/// Sized - ops that have a kernel for matrices of known sizes (ops/sized.hpp).
enum class Sized : std::uint8_t {
  none,
  lu,
  solve,
  inverse,
  determinant,
  cofactors,
  solve_triangular,
  cholesky
};

/// OwnRun - the kernel of an op that has one of its own.
using OwnRun = void (*)(Attrs const&, Operand const* in, Operand const& out);

/// OpInfo - the static descriptor of an op: everything that an engine needs and a node does not hold.
struct OpInfo {
  char const* name = "";
  Code code = Code::opaque;
  int arity = 0;
  /// Relative cost of one result element; what is cheap is recomputed rather than stored.
  int cost = 1;
  bool elementwise = false;
  Examples examples = Examples::one_by_one;
  Moves moves = Moves::nothing;
  Sized sized = Sized::none;
  /// The operand in whose memory the result may be made, -1 if in none.
  int takes_over = -1;
  /// Whether jvp, run_for and run_both are there: of pointers it cannot be asked while programs are compiled, see
  /// same_op.
  bool has_jvp = false, has_run_for = false, has_run_both = false;
  /// Shape rule; `why` receives the text of a refusal and may be null.
  Meta (*infer)(Attrs const&, Meta const* in, Text* why) = nullptr;
  /// Cotangent of operand `which`, given the result's; a null Sym where nothing flows.
  Sym (*vjp)(Sym const& ct, Site<Sym> const&, int which) = nullptr;
  /// Contribution of operand `which`'s tangent to the result's, if forward mode has a rule (has_jvp).
  Sym (*jvp)(Sym const& tangent, Site<Sym> const&, int which) = nullptr;
  /// An elementwise op on numbers (booleans as 0 and 1): folds constants, and interprets scalar programs.
  double (*fold)(double const*) = nullptr;
  /// Reference kernel on memory, any dtype.
  OwnRun run = nullptr;
  /// For what is known of a use, its attributes and the metas of the operands and then the result, a kernel that does
  /// no more, which is less to compile.
  OwnRun (*run_for)(Attrs const&, Meta const* metas) = nullptr;
  /// Of an op that costs little beside the one that makes its last operand, from the same others and attributes: makes
  /// that operand as well. Programs then have one step for both.
  OwnRun run_both = nullptr, run_both_as_floats = nullptr;
  /// Notes which extents a call must find equal; operands, then the result.
  void (*require)(Graph&, Attrs const&, Meta const* metas) = nullptr;
};

/// same_op - whether two descriptors are of one op: by number, and by name where ops have none. Their addresses would
/// tell, but under -fsanitize=undefined g++ does not compare these in constant expressions.
constexpr bool same_op(OpInfo const& a, Code code, char const* name) {
  if (a.code != code) return false;
  if (code != Code::opaque) return true;
  char const* x = a.name;
  while (*x != 0 && *x == *name) ++x, ++name;
  return *x == *name;
}
constexpr bool same_op(OpInfo const& a, OpInfo const& b) { return same_op(a, b.code, b.name); }

/// Node - one use of an op: operands are indices of earlier nodes.
struct Node {
  OpInfo const* op = nullptr;
  Attrs attrs{};
  Meta meta{};
  std::int32_t in[max_arity] = {-1, -1, -1, -1, -1};
  /// The region that computes it, -1 for what is computed once.
  std::int32_t region = -1;
};

/// is_exit - whether a node is what a region leaves behind, read outside of it.
constexpr bool is_exit(Node const& n) { return n.op->code == Code::last || n.op->code == Code::stack; }
/// region_behind - the region that an exit belongs to.
constexpr int region_behind(Node const& exit) { return static_cast<int>(exit.attrs.i[0]); }

/// SameExtent - two extents of a program's inputs that must be equal when it is called, or, with `or_less`, of
/// which the second must not be larger.
struct SameExtent {
  char const* op;
  index_t a, b;
  bool or_less = false;

  constexpr bool holds(index_t x, index_t y) const { return or_less ? y <= x : x == y; }
};

/// Region - a part of a graph that runs `count` times, written down once. A node is of the innermost region that one
/// of its operands is of; the ops in ops/region.hpp lead into a region and out of it.
struct Region {
  /// The region around it, -1 for none.
  int parent = -1;
  index_t count = 0;
  /// Whether the iterations go from the last position to the first.
  bool reversed = false;
  /// All its nodes are later than this many.
  int first = 0;
  int carries = 0;
  /// Whether a backward pass computes its values again, from what goes into it, rather than have them kept.
  bool recomputed = false;
};

/// LiteralInputs - how many inputs of a graph are literals, numbers that a function brings along itself, and their
/// memory.
struct LiteralInputs {
  int count = 0;
  std::size_t bytes = 0;
};

/// Graph - nodes in an order in which every operand comes before its users.
class Graph {
 public:
  Vec<Node> nodes;
  Vec<int> outputs;
  Vec<SameExtent> requirements;
  Vec<Region> regions;
  /// How many inputs there are, and which of them are literals: the last of a function that has been recorded.
  int inputs = 0;
  LiteralInputs literal_inputs{};
  /// The literals (value/literal.hpp), and the bits of their elements, one element a word: in the graph that was
  /// recorded, not in those that passes make of it.
  Vec<Node> literals;
  Vec<std::uint64_t> words;
  /// Of a graph of literals alone how many values of it there are, which own it; -1 of others.
  int holders = -1;
  /// The region whose body is being recorded, -1 for none.
  int inside = -1;
  /// Where the nodes begin that the first function made which was given Tensors and returned an Array, for it had
  /// parameters that no type knows; -1 if none did.
  int first_untyped = -1;
  /// The dtype that products of f32 are computed in while an autocast is being recorded; f32 for none.
  DType products = DType::f32;
  /// Finds the descriptor of an op by its name, for what is recorded at run time. Programs record in constant
  /// expressions; if eager calls named descriptors, all rules of all ops in use would become machine code.
  OpInfo const* (*find_op)(char const* name) = nullptr;

  constexpr Sym push(Node const& n) {
    nodes.push_back(n);
    if (regions.size_ != 0) nodes.back().region = region_of(n);
    return {this, static_cast<int>(nodes.size_) - 1};
  }
  /// take_frame - the inputs, requirements and regions of a graph that this one is to be made of.
  constexpr void take_frame(Graph const& o) {
    inputs = o.inputs;
    literal_inputs = o.literal_inputs;
    requirements = o.requirements;
    regions = o.regions;
  }
  /// open - a new region; nodes enter it through op::carry and op::each.
  constexpr int open(int parent, index_t count, bool reversed) {
    regions.push_back(Region{parent, count, reversed, size()});
    return static_cast<int>(regions.size()) - 1;
  }
  /// encloses - whether region `inner` is `outer` or lies inside of it.
  constexpr bool encloses(int outer, int inner) const {
    while (inner > outer) inner = regions[inner].parent;
    return inner == outer;
  }
  constexpr int size() const { return static_cast<int>(nodes.size_); }
  constexpr Node const& operator[](int i) const { return nodes.data_[i]; }
  constexpr Node& operator[](int i) { return nodes.data_[i]; }

 private:
  constexpr int region_of(Node const& n) const {
    auto const own = static_cast<int>(n.attrs.i[0]);
    if (n.op->code == Code::carry || n.op->code == Code::each) return own;
    if (is_exit(n)) return regions[own].parent;
    int r = -1;  // of nested regions the inner one has the larger number
    for (int k = 0; k < n.op->arity; ++k) r = (*this)[n.in[k]].region > r ? (*this)[n.in[k]].region : r;
    for (int k = 0; k < n.op->arity; ++k) {
      Node const& x = (*this)[n.in[k]];
      if (!encloses(x.region, r) || (is_exit(x) && encloses(region_behind(x), r)))
        raise(n.op->name, ": a value of a loop is used outside of it");
    }
    return r;
  }
};

constexpr Meta Sym::meta() const { return (*graph)[id].meta; }
constexpr Shape Sym::shape() const { return (*graph)[id].meta.shape; }
constexpr DType Sym::dtype() const { return (*graph)[id].meta.dtype; }

}  // namespace dfdx
