// SPDX-License-Identifier: BSL-1.0
// checkpoint: the gradients of the plain function from less memory.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstring>

namespace tests::program_checkpoint {

namespace {

using namespace dfdx;

constexpr std::size_t width = 16, rows = 128, depth = 16;

struct Block {
  nn::Linear<width, 2 * width> up;
  nn::Linear<2 * width, width> down;
  DFDX_FIELDS(up, down)
  constexpr auto operator()(auto const& x) const { return x + down(tanh(up(x))); }
};

struct Checkpointed {
  Block block;
  DFDX_FIELDS(block)
  constexpr auto operator()(auto const& x) const { return checkpoint(block)(x); }
};

struct Net {
  nn::Repeat<Block, depth> blocks;
  DFDX_FIELDS(blocks)
};

using X = Tensor<float, rows, width>;
constexpr auto plain = [](Net const& net, X const& x) { return mean(square(net.blocks(x))); };
constexpr auto in_segments = [](Net const& net, X const& x) {
  return mean(square(checkpoint_sequential<4>(net.blocks, x)));
};
constexpr auto six = [](std::array<Block, 6> const& blocks, X const& x) {
  X h = x;
  for (Block const& b : blocks) h = b(h);
  return mean(square(h));
};
constexpr auto six_again = [](std::array<Block, 6> const& blocks, X const& x) {
  X h = x;
  for (Block const& b : blocks) h = checkpoint(b)(h);
  return mean(square(h));
};
// Two arguments, two results, one of them an argument as it came, and loops inside.
constexpr auto core = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  auto const [last, all] = scan(
      [](auto const& c, auto const& x) {
        auto const next = tanh(c * x);
        return std::pair(next, exp(next) * x);
      },
      a, xs);
  return std::pair(last * sum(all), xs);
};
constexpr auto whole = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  auto const [y, same] = core(sin(a), xs);
  return sum(y * y) + sum(same * 2.0);
};
constexpr auto whole_again = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  auto const [y, same] = checkpoint(core)(sin(a), xs);
  return sum(y * y) + sum(same * 2.0);
};

// What is computed again has a part that is, by itself, and loops are in both.
constexpr auto around_core = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  auto const [y, same] = core(sin(a), xs);
  auto const more = scan([](auto const& c, auto const& x) { return sin(c + x * c); }, y, same);
  return std::pair(more * y, same);
};
constexpr auto around_core_again = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  auto const [y, same] = checkpoint(core)(sin(a), xs);
  auto const more = scan([](auto const& c, auto const& x) { return sin(c + x * c); }, y, same);
  return std::pair(more * y, same);
};
constexpr auto deep = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  return sum(square(scan([&](auto const& c, auto const& x) { return around_core(c * x, xs).first; }, a, xs)));
};
constexpr auto deep_again = [](Tensor<double, 3> const& a, Tensor<double, 4, 3> const& xs) {
  return sum(square(scan(
      [&](auto const& c, auto const& x) { return checkpoint(around_core_again)(c * x, xs).first; }, a, xs)));
};

template <class T>
bool same_bits(T const& a, T const& b) {
  std::vector<Array> left, right;
  visit(a, [&](auto const& leaf) { left.push_back(leaf); });
  visit(b, [&](auto const& leaf) { right.push_back(leaf); });
  bool same = left.size() == right.size();
  for (std::size_t k = 0; same && k < left.size(); ++k)
    same = left[k].meta() == right[k].meta() &&
           std::memcmp(left[k].bytes(), right[k].bytes(),
                       static_cast<std::size_t>(left[k].size()) * size_of(left[k].dtype())) == 0;
  return same;
}

template <class F, class... A>
constexpr index_t arena = decltype(value_and_grad(F{}))::template program_for<A...>::arena_bytes;

}  // namespace

TEST_CASE("checkpoint: the same gradients, bit for bit", "[program][checkpoint]") {
  auto const net = init<Net>(1);
  auto const x = randn<float, rows, width>(Key{2});
  auto const [y, d] = value_and_grad(plain)(net, x);
  auto const [z, e] = value_and_grad(in_segments)(net, x);
  CHECK(y.item() == z.item());
  CHECK(same_bits(d, e));
  auto const blocks = init<std::array<Block, 6>>(3);
  auto const [u, f] = value_and_grad(six)(blocks, x);
  auto const [v, g] = value_and_grad(six_again)(blocks, x);
  // The loss's sum is fused with the last block in one of them: unless a row is one vector, in another order.
  CHECK(std::abs(u.item() - v.item()) <= 5e-7f * std::abs(u.item()));
  if (kernels::lane_size<float> == width) CHECK(u.item() == v.item());
  CHECK(same_bits(f, g));
  CHECK(same_bits(six(blocks, x), six_again(blocks, x)));  // eagerly it is the function itself
}

TEST_CASE("checkpoint: less memory", "[program][checkpoint]") {
  // What is left are the gradients, the ends of the segments and one segment's insides.
  constexpr index_t gradients = parameter_count<Net> * 4;
  constexpr index_t kept = arena<decltype(plain), Net, X> - gradients;
  constexpr index_t again = arena<decltype(in_segments), Net, X> - gradients;
  INFO("bytes beside the gradients: " << kept << ", in segments " << again);
  CHECK(again * 2 < kept);
  // Without loops too: what a block computes is not kept.
  CHECK(arena<decltype(six_again), std::array<Block, 6>, X> < arena<decltype(six), std::array<Block, 6>, X>);
}

TEST_CASE("checkpoint: several arguments and results, loops inside, two orders", "[program][checkpoint]") {
  auto const a = randn<double, 3>(Key{1});
  auto const xs = randn<double, 4, 3>(Key{2});
  auto const [da, dxs] = grad(whole, wrt<0, 1>)(a, xs);
  auto const [ea, exs] = grad(whole_again, wrt<0, 1>)(a, xs);
  CHECK(allclose(ea, da, 1e-14, 1e-15));
  CHECK(allclose(exs, dxs, 1e-14, 1e-15));
  CHECK(allclose(hessian(whole_again)(a, xs), hessian(whole)(a, xs), 1e-12, 1e-12));
  auto const v = randn<double, 3>(Key{3});
  auto const w = randn<double, 4, 3>(Key{4});
  CHECK(allclose(jvp(whole_again)(a, xs, v, w).second, jvp(whole)(a, xs, v, w).second, 1e-13, 1e-13));
  auto const many = randn<double, 5, 3>(Key{5});
  CHECK(allclose(vmap(grad(whole_again), in_axes<0, unmapped>)(many, xs),
                 vmap(grad(whole), in_axes<0, unmapped>)(many, xs), 1e-13, 1e-13));
}

TEST_CASE("checkpoint: in a checkpoint, in a loop, around loops", "[program][checkpoint]") {
  auto const a = randn<double, 3>(Key{1}) * 0.5;
  auto const xs = randn<double, 4, 3>(Key{2}) * 0.5;
  auto const [da, dxs] = grad(deep, wrt<0, 1>)(a, xs);
  auto const [ea, exs] = grad(deep_again, wrt<0, 1>)(a, xs);
  CHECK(allclose(ea, da, 1e-12, 1e-13));
  CHECK(allclose(exs, dxs, 1e-12, 1e-13));
}

namespace {

constexpr auto sine = custom_vjp([](auto const& x) { return sin(x); },
                                 [](auto const& ct, auto const&, auto const& x) { return ct * cos(x); });
constexpr auto rolled = [](auto const& w, auto const& xs) {
  auto const step = [&](auto const& c, auto const& x) { return sine(tanh(w * c + x * c)); };
  return sum(square(scan(step, select<0, 0>(xs) * 0.5, xs)));
};
constexpr auto slopes = [](auto const& w, auto const& xs) {
  return vmap(grad(rolled), in_axes<unmapped, 1>)(w, xs);
};
constexpr auto of_slopes = [](auto const& w, auto const& xs) { return sum(sin(slopes(w, xs))); };
constexpr auto of_slopes_again = [](auto const& w, auto const& xs) {
  return sum(sin(checkpoint(slopes)(w, xs)));
};

}  // namespace

TEST_CASE("checkpoint: gradients of examples, of loops with a rule of their own", "[program][checkpoint]") {
  auto const w = randn<double, 3>(Key{1});
  auto const xs = randn<double, 4, 2, 3>(Key{2});
  CHECK(allclose(grad(of_slopes_again)(w, xs), grad(of_slopes)(w, xs), 1e-13, 1e-13));
}

}  // namespace tests::program_checkpoint
