// SPDX-License-Identifier: BSL-1.0
// Attention that is called on the emulated device, and its gradients, beside the CPU's: operands of all strides, dtypes
// and lengths, and which of them the device has kernels for.
#include "called.hpp"

#include <dfdx/vocabulary/attention.hpp>

#include <algorithm>

namespace tests::cuda_emulated_called_attention {

using namespace emulated;

namespace {

// How operands lie in memory: row by row; heads behind places, as models have them; elements far apart; every other row
// of a larger one.
enum class Lie { dense, heads_last, turned, parted };

struct Case {
  index_t batch, heads, shared, queries, keys, size, width;
  op::AttentionOptions o{false, 0, 0.3};
  Lie lie = Lie::dense;

  index_t rows() const { return batch * heads * shared * queries; }
  Array memory(index_t h, index_t n, index_t columns, std::uint64_t key, DType d) const {
    switch (lie) {
      case Lie::heads_last: return drawn(make_shape(batch, n, h, columns), key, d);
      case Lie::turned: return drawn(make_shape(batch, h, columns, n), key, d);
      case Lie::parted: return drawn(make_shape(batch, h, 2 * n + 1, columns), key, d);
      default: return drawn(make_shape(batch, h, n, columns), key, d);
    }
  }
  Array operand(Array const& memory) const {
    switch (lie) {
      case Lie::heads_last: return transpose(memory, 1, 2);
      case Lie::turned: return transpose(memory, 2, 3);
      case Lie::parted: return slice<2, 1, std::numeric_limits<index_t>::max(), 2>(memory);
      default: return memory;
    }
  }
  // How far results are from the CPU's, and gradients.
  double apart(DType d) const {
    Array const q = memory(heads * shared, queries, size, 1, d), k = memory(heads, keys, size, 2, d),
                v = memory(heads, keys, width, 3, d);
    auto const forward = [&](auto const& a, auto const& b, auto const& c) {
      return bind<op::attend>(o.attrs(), operand(a), operand(b), operand(c));
    };
    auto const sums = [&](auto const& a, auto const& b, auto const& c, auto const& y) {
      return bind<op::attend_sums>(o.attrs(), operand(a), operand(b), operand(c), y);
    };
    auto const backward = [&](auto const& a, auto const& b, auto const& c, auto const& ct, auto const& g) {
      return bind<op::attend_back>(o.attrs(), operand(a), operand(b), operand(c), operand(ct),
                                   transpose(g, 0, 1)[0]);
    };
    Array const y = forward(q, k, v), l = sums(q, k, v, y), ct = memory(heads * shared, queries, width, 4, d);
    Array const given =
        concat<0>(reshape(l, Extents(make_shape(rows()))), drawn(make_shape(rows()), 5, l.dtype()));
    Array const column = reshape(given, Extents(make_shape(given.size(), 1)));
    return worse(worse(called(forward, q, k, v), called(sums, q, k, v, y)),
                 called(backward, q, k, v, ct, concat<1>(column, column)));
  }
};

long times(std::vector<std::string> const& names, char const* name) {
  return std::ranges::count(names, name);
}

// Of the gradients of a sum of squares.
template <class F>
auto gradient_of(F const& f, std::size_t which) {
  return [=](auto const&... x) {
    std::vector<Array> leaves{x.detach()...};
    for (Array& one : leaves) one.requires_grad(true);
    return gradients(sum(square(cast_to(f(leaves[0], leaves[1], leaves[2]), DType::f32))),
                     {leaves[which]})[0];
  };
}

}  // namespace

TEST_CASE("attention called on a device: lengths, heads and strides") {
  Missed const missed;
  op::AttentionOptions const causal{true, 0, 0.3}, later{true, 64, 0.2};
  for (Case const& c : {
           Case{1, 1, 1, 1, 1, 1, 1},
           Case{2, 1, 1, 37, 41, 5, 3},
           Case{1, 2, 3, 67, 71, 64, 64, causal, Lie::heads_last},
           Case{2, 2, 2, 33, 97, 65, 17, later, Lie::turned},
           Case{1, 1, 2, 31, 40, 129, 256, {false, 0, 0.1}, Lie::parted},
           Case{1, 3, 1, 70, 33, 16, 128, causal, Lie::heads_last},
       }) {
    INFO(c.queries << " queries, " << c.keys << " keys of " << c.size << " and " << c.width);
    CHECK(c.apart(DType::f32) < 3e-5);
  }
  CHECK(Missed::names() == std::vector<std::string>());
  CHECK(times(Missed::done(), "attend") == 6 * 3);
  CHECK(times(Missed::done(), "attend_sums") == 6 * 3);
  CHECK(times(Missed::done(), "attend_back") == 6 * 3);
}

TEST_CASE("attention called on a device: dtypes, those of 16 bits by tensor cores") {
  Missed const missed;
  for (auto const& c : {Case{1, 2, 1, 19, 35, 24, 40, {true, 17, 0.4}, Lie::heads_last},
                        Case{1, 1, 2, 33, 67, 100, 128, {false, 0, 0.1}, Lie::turned},
                        Case{2, 1, 2, 70, 65, 64, 64, {true, 0, 0.1}, Lie::parted},
                        Case{1, 1, 3, 40, 130, 128, 9, {true, 100, 0.1}, Lie::dense}}) {
    CHECK(c.apart(DType::f64) < 1e-12);
    auto const products = cuda_fake::tensor_products + cuda_fake::warpgroup_products;
    CHECK(c.apart(DType::f16) < 4e-3);
    CHECK(c.apart(DType::bf16) < 3.2e-2);
    CHECK(cuda_fake::tensor_products + cuda_fake::warpgroup_products > products);
  }
  // Rows that are too long for them.
  auto const products = cuda_fake::tensor_products;
  CHECK(Case{1, 1, 1, 9, 20, 130, 3, {false, 0, 0.1}}.apart(DType::bf16) < 3e-5);
  CHECK(cuda_fake::tensor_products == products);
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("attention called on a device: other axes than four") {
  Missed const missed;
  auto const attend = [](auto const& q, auto const& k, auto const& v) {
    return bind<op::attend>(op::AttentionOptions{}.attrs(), q, k, v);
  };
  CHECK(called(attend, drawn(make_shape(9, 4), 1), drawn(make_shape(5, 4), 2), drawn(make_shape(5, 6), 3)) <
        1e-5);
  CHECK(called(attend, drawn(make_shape(4, 9, 4), 1), drawn(make_shape(2, 5, 4), 2),
               drawn(make_shape(2, 5, 6), 3)) < 1e-5);
  // A number of the CPU goes along, and the op with it.
  Array const one = drawn(make_shape(1, 1), 1), five = drawn(make_shape(5, 1), 2);
  CHECK(allclose(to(Device{}, attend(one, there(five), there(five))), attend(one, five, five)));
  CHECK(Missed::names() == std::vector<std::string>{"attend"});
  Missed::names().clear();
  // Batches that no one axis walks.
  auto const of_five = [&](auto const& q, auto const& k, auto const& v) {
    return attend(transpose(q, 0, 1), transpose(k, 0, 1), transpose(v, 0, 1));
  };
  CHECK(called(of_five, drawn(make_shape(2, 3, 4, 9, 4), 1), drawn(make_shape(2, 3, 2, 5, 4), 2),
               drawn(make_shape(2, 3, 2, 5, 6), 3)) < 1e-5);
  CHECK(Missed::names() == std::vector<std::string>());
}

TEST_CASE("attention of rows that are too long for a device's memory of blocks") {
  Missed const missed;
  CHECK(Case{1, 1, 1, 3, 5, 256, 256}.apart(DType::f32) < 3e-5);
  CHECK(Case{1, 1, 1, 3, 5, 128, 128}.apart(DType::f64) < 1e-12);
  CHECK(Missed::names() == std::vector<std::string>());
  CHECK(Case{1, 1, 1, 3, 5, 257, 4}.apart(DType::f32) == 0);
  CHECK(Case{1, 1, 1, 3, 5, 4, 129}.apart(DType::f64) == 0);
  CHECK(times(Missed::names(), "attend") == 2 * 3);
  CHECK(times(Missed::names(), "attend_back") == 2 * 3);
}

namespace {

// How far attention to scores so large that their rounding is by more than 1 is from the CPU's, and its gradients, of
// what they are at most.
double apart_of_large(DType d, index_t size, double by, op::AttentionOptions const& o) {
  auto const of = [&](std::uint64_t key, double factor) {
    return cast_to(drawn(make_shape(1, 2, 70, size), key) * factor, d);
  };
  Array const q = of(1, by), k = of(2, d == DType::f16 ? by : 1), v = of(3, 1), ct = of(4, 1e-3);
  auto const all = [&](auto const& place) {
    Array const x[] = {place(q), place(k), place(v), place(ct)};
    Array const y = bind<op::attend>(o.attrs(), x[0], x[1], x[2]);
    Array const l = flatten(bind<op::attend_sums>(o.attrs(), x[0], x[1], x[2], y));
    Array const sums = concat<0>(l, zeros_like(l));
    return std::vector<Array>{y, l, bind<op::attend_back>(o.attrs(), x[0], x[1], x[2], x[3], sums)};
  };
  auto const far = all([](Array const& x) { return there(x); }), here = all([](Array const& x) { return x; });
  double worst = 0;
  auto const compare = [&](Array const& a, Array const& b) {
    Array const x = cast_to(to({}, a), DType::f64), z = cast_to(b, DType::f64);
    double const apart = max(abs(x - z)).item() / max(abs(z)).item();
    worst = worse(worst, apart);
  };
  compare(far[0], here[0]);
  compare(far[1], here[1]);
  index_t const n = q.size();
  for (index_t i = 0; i < 3; ++i)
    compare(slice(far[2], 0, i * n, (i + 1) * n), slice(here[2], 0, i * n, (i + 1) * n));
  return worst;
}

}  // namespace

TEST_CASE("attention called on a device to large scores looks at one key") {
  auto const before = cuda_options.warpgroup_attention_from;
  for (auto const from : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    cuda_options.warpgroup_attention_from = from;
    for (op::AttentionOptions const& o :
         {op::AttentionOptions{false, 0, 0.3}, op::AttentionOptions{true, 3, 1},
          op::AttentionOptions{true, 0, -0.7}})
      for (index_t size : {16, 64, 128}) {
        INFO("from " << from << ", factor " << o.scale << ", size " << size);
        for (double by : {1e7, 1e9, 1e13, 1e17}) {
          INFO(by);
          CHECK(apart_of_large(DType::f32, size, by, o) < 1e-5);
          CHECK(apart_of_large(DType::bf16, size, by, o) < 2e-2);
        }
        CHECK(apart_of_large(DType::f64, size, 1e30, o) < 1e-12);
        CHECK(apart_of_large(DType::f16, size, 1e4, o) < 4e-3);
      }
  }
  cuda_options.warpgroup_attention_from = before;
}

TEST_CASE("scaled_dot_product_attention on a device has no matrix of weights") {
  auto const attend = [](Attention const& o) {
    return [=](auto const& q, auto const& k, auto const& v) {
      return scaled_dot_product_attention(transpose(q, 1, 2), transpose(k, 1, 2), transpose(v, 1, 2), o);
    };
  };
  auto const causal = attend({.causal = true, .offset = 11});
  // [B, T, H, D]
  Array const q = drawn(make_shape(1, 60, 4, 24), 1), k = drawn(make_shape(1, 71, 2, 24), 2),
              v = drawn(make_shape(1, 71, 2, 20), 3);
  {
    Missed const missed;
    CHECK(called(causal, q, k, v) < 1e-5);
    for (std::size_t i = 0; i < 3; ++i) CHECK(called(gradient_of(causal, i), q, k, v) < 1e-4);
    CHECK(Missed::names() == std::vector<std::string>());
    CHECK(times(Missed::done(), "attend") == 4 * 3);
    CHECK(times(Missed::done(), "attend_back") != 0);
    CHECK(times(Missed::done(), "matmul") == 0);
    for (DType const d : {DType::f64, DType::f16, DType::bf16})
      CHECK(called(attend({}), cast_to(q, d), cast_to(k, d), cast_to(v, d)) <
            (d == DType::f64 ? 1e-12 : 0.01));
  }
  // Of gradients, by products with all weights.
  auto const second = [&](Array const& a, Array const& b, Array const& c) {
    Array x = a.detach();
    x.requires_grad(true);
    Array const g = gradients(sum(square(causal(x, b, c))), {x}, {.create_graph = true})[0];
    return gradients(sum(square(g)), {x})[0];
  };
  CHECK(called(second, q, k, v) < 1e-3);
  Missed const missed;
  // Few weights, rows that are too long, and nothing at all, by products as on the CPU.
  CHECK(called(attend({}), slice(q, 1, 0, 3), k, v) < 1e-5);
  Array const many = drawn(make_shape(1, 300, 1, 4), 5);
  CHECK(called(attend({}), slice(many, 1, 0, 20), many, many) < 1e-5);
  Array const wide = drawn(make_shape(1, 64, 1, 257), 4);
  CHECK(called(attend({}), wide, wide, wide) < 1e-4);
  for (index_t const n : {0, 1})
    CHECK(called(attend({}), slice(q, 1, 0, n), slice(k, 1, 0, 1), slice(v, 1, 0, 1)) < 1e-5);
  CHECK(Missed::names() == std::vector<std::string>());
  CHECK(times(Missed::done(), "attend") == 0);
  CHECK(times(Missed::done(), "matmul") != 0);
}

TEST_CASE("attention on a device without kernels runs on the CPU") {
  NoKernels const none;
  Array const x = drawn(make_shape(2, 70, 8), 1);
  auto const attend = [](Array const& a) { return scaled_dot_product_attention(a, a, a, {.causal = true}); };
  CHECK(called(attend, x) < 1e-6);  // by products there, by blocks of weights here
}

TEST_CASE("gradients of queries, keys and values are made in one go") {
  Missed const missed;
  op::AttentionOptions const plain{false, 0, 0.3};
  std::vector<Array> x;
  for (std::uint64_t key = 1; key < 4; ++key) {
    x.push_back(there(drawn(make_shape(1, 2, 9, 8), key)));
    x.back().requires_grad(true);
  }
  sum(square(bind<op::attend>(plain.attrs(), x[0], x[1], x[2]))).backward();
  CHECK(times(Missed::done(), "attend_sums") == 1);
  CHECK(times(Missed::done(), "attend_back") == 1);
  for (Array const& one : x) CHECK(one.grad().shape() == one.shape());
}

}  // namespace tests::cuda_emulated_called_attention
