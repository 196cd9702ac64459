// SPDX-License-Identifier: BSL-1.0
// The ways into and out of a region, a part of a graph that runs several times (value/node.hpp). Their gradients
// are those of the whole loop and are found by graph/differentiate.hpp: a region of which iteration i needs the
// values of iteration i, in reverse order.
//
// attrs.i[0] is the region. Iteration i of n is at position i, or n - 1 - i in a reversed region.
#pragma once

#include <dfdx/ops/op.hpp>

namespace dfdx::op {

/// carry - inside the region: the operand (outside) in the first iteration, later what `last` takes from the
/// iteration before. attrs.i[1] tells the carries of a region apart.
///
/// Math      c_0 = x, c_{i + 1} = next_i
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct carry : operation {
  static constexpr char const* name = "carry";
  static constexpr Code code = Code::carry;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
};

/// each - inside the region: the operand (outside) at the iteration's position of its first axis.
///
/// Math      y_i = x[i]
/// Shapes    x: [N, S...] -> y: [S...]
/// Dtypes    any
/// Errors    "scan: axis 0 of [3, 2] must have the extent of the loop, 4" (vocabulary/scan.hpp)
/// Source    elementary
struct each : operation {
  static constexpr char const* name = "each";
  static constexpr Code code = Code::each;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) {
    Meta m = in[0];
    m.shape.rank = 0;
    for (int i = 1; i < in[0].shape.rank; ++i) m.shape.push_back(in[0].shape[i]);
    return m;
  }
};

/// last - outside the region: what a carry (operand 0) is after the last iteration, given what it becomes in each
/// (operand 1).
///
/// Math      y = c_N
/// Shapes    c: [S...], next: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    "scan: the carry becomes f32 [3], it was f32 [2]" (vocabulary/scan.hpp)
/// Source    elementary
struct last : operation {
  static constexpr char const* name = "last";
  static constexpr Code code = Code::last;
  static constexpr int arity = 2;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    if (!(in[0] == in[1]))
      return refuse(why, "scan: the carry becomes ", in[1].dtype, " ", in[1].shape, ", it was ", in[0].dtype,
                    " ", in[0].shape);
    return in[0];
  }
};

/// stack - outside the region: the values of all iterations, each at its position of a new first axis. Its extent
/// is the region's count, so it is bound with its meta.
///
/// Math      y[i] = x_i
/// Shapes    x: [S...] -> y: [N, S...]
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct stack : operation {
  static constexpr char const* name = "stack";
  static constexpr Code code = Code::stack;
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
};

}  // namespace dfdx::op

namespace dfdx {

/// carry_in, each_of, last_of, stack_of - the uses of these ops, for who builds a loop.
constexpr Sym carry_in(int region, Sym const& init) {
  index_t const number = init.graph->regions[static_cast<std::size_t>(region)].carries++;
  return bind<op::carry>(Attrs{{region, number}}, init);
}
constexpr Sym each_of(int region, Sym const& x) { return bind<op::each>(Attrs{{region}}, x); }
constexpr Sym last_of(int region, Sym const& carry, Sym const& next) {
  return bind<op::last>(Attrs{{region}}, carry, next);
}
constexpr Sym stack_of(int region, Sym const& x) {
  if (x.shape().rank == max_rank) raise("scan: no room for another axis beside those of ", x.shape());
  index_t const count = x.graph->regions[static_cast<std::size_t>(region)].count;
  return bind_as<op::stack>(Meta{x.dtype(), with_first_axis(count, x.shape())}, Attrs{{region}}, x);
}

}  // namespace dfdx
