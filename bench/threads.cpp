// SPDX-License-Identifier: BSL-1.0
// The same work of ours on several threads of OpenMP and on one, in turns: results compared first. So many threads as
// DFDX_BENCH_THREADS says, or two.
#include "../examples/gpt/model.hpp"
#include "row.hpp"

#include <omp.h>

#include <cstdlib>

namespace {

using namespace dfdx;

int threads() {
  char const* const given = std::getenv("DFDX_BENCH_THREADS");
  return given == nullptr ? 2 : std::max(1, std::atoi(given));
}

template <class T>
std::vector<float> numbers_of(T const& tree) {
  std::vector<float> all;
  visit(tree, [&](auto const& leaf) {
    auto const v = leaf.template to_vector<float>();
    all.insert(all.end(), v.begin(), v.end());
  });
  return all;
}

double difference(std::vector<float> const& a, std::vector<float> const& b) {
  double most = 1e-30, off = a.size() == b.size() ? 0 : 1e30;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i])));
    off = std::max(off, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return off / most;
}

/// A row of f(args...), compiled; `make` gives it anew, so that each number of threads has memory of its own.
template <class Make, class... A>
void compare(char const* name, Make const& make, A const&... args) {
  auto several = make(), one = make();
  auto const run = [&](auto& f, int n) {
    omp_set_num_threads(n);
    return f(args...);
  };
  bench::Row row{.bench = "threads", .name = name, .peer = "one thread"};
  row.error = difference(numbers_of(run(one, 1)), numbers_of(run(several, threads())));
  row.note = std::to_string(threads()) + " threads";
  if (!(row.error <= 1e-4)) {
    std::fprintf(stderr, "threads: %s: results differ by %g\n", name, row.error);
    std::exit(1);
  }
  std::vector<double> mine, alone;
  for (int round = 0; round < 15; ++round) {
    mine.push_back(bench::time_of([&] { run(several, threads()); }, 3));
    alone.push_back(bench::time_of([&] { run(one, 1); }, 3));
  }
  row.ours_ms = bench::median(mine) * 1e3, row.peer_ms = bench::median(alone) * 1e3;
  bench::print(row);
}

constexpr auto product = [](auto const& a, auto const& b) { return matmul(a, b); };
constexpr auto fused = [](auto const& a, auto const& x, auto const& b, auto const& r) {
  return gelu(a * x + b) + r;
};
constexpr auto softmax_of_rows = [](auto const& x) { return softmax<1>(x); };
constexpr auto norm_of_rows = [](auto const& x, auto const& w, auto const& b) { return layer_norm(x, w, b); };
constexpr auto loss_of_rows = [](auto const& x, auto const& y) { return cross_entropy(x, y); };
constexpr auto convolution = [](auto const& x, auto const& w) {
  return conv2d<ConvOptions{.padding = 1}>(x, w);
};
constexpr auto attention = [](auto const& q, auto const& k, auto const& v) {
  return scaled_dot_product_attention(q, k, v, {.causal = true});
};

// A block of GPT-2 small.
constexpr std::size_t width = 768, heads = 12, length = 256;
struct Attention {
  nn::Linear<width, 3 * width> c_attn;
  nn::Linear<width, width> c_proj;
  DFDX_FIELDS(c_attn, c_proj)
  constexpr auto operator()(auto const& x) const {
    auto const qkv = permute<1, 2, 0, 3>(reshape<length, 3, heads, width / heads>(c_attn(x)));
    auto const y = scaled_dot_product_attention(select<0, 0>(qkv), select<0, 1>(qkv), select<0, 2>(qkv),
                                                {.causal = true});
    return c_proj(reshape<length, width>(permute<1, 0, 2>(y)));
  }
};
struct Block {
  nn::LayerNorm<width> ln_1, ln_2;
  Attention attn;
  nn::Linear<width, 4 * width> up;
  nn::Linear<4 * width, width> down;
  DFDX_FIELDS(ln_1, ln_2, attn, up, down)
  constexpr auto operator()(auto const& x) const {
    auto const h = x + attn(ln_1(x));
    return h + down(gelu(up(ln_2(h))));
  }
};
constexpr auto block = [](auto const& m, auto const& x) { return m(x); };

constexpr auto gpt_loss = [](auto const& m, auto const& x, auto const& y) {
  return cross_entropy(reshape<-1, gpt::vocabulary>(m(x)), reshape<-1>(y));
};

}  // namespace

int main() {
  auto const a = randn<float, 1024, 1024>(Key{1}), b = randn<float, 1024, 1024>(Key{2}),
             c = randn<float, 1024, 1024>(Key{3});
  compare("product 1024^3", [] { return compile(product); }, a, b);
  compare("gelu(a x + b) + r, 10^6, vjp", [] { return vjp(fused); }, a, b, c, c, a);
  compare("softmax 1024x1024, vjp", [] { return vjp(softmax_of_rows); }, a, b);
  compare(
      "layer norm 1024x1024, vjp", [] { return vjp(norm_of_rows); }, a, randn<float, 1024>(Key{4}),
      randn<float, 1024>(Key{5}), b);
  compare(
      "cross entropy 1024x32000, value and grad", [] { return value_and_grad(loss_of_rows); },
      randn<float, 1024, 32000>(Key{6}), randint<std::int32_t, 1024>(Key{7}, 0, 32000));
  compare(
      "conv 3x3, 8x64x56x56, vjp", [] { return vjp(convolution); }, randn<float, 8, 64, 56, 56>(Key{8}),
      randn<float, 64, 64, 3, 3>(Key{9}), randn<float, 8, 64, 56, 56>(Key{10}));
  compare(
      "attention 12x1024x64, causal, vjp", [] { return vjp(attention); }, randn<float, 12, 1024, 64>(Key{11}),
      randn<float, 12, 1024, 64>(Key{12}), randn<float, 12, 1024, 64>(Key{13}),
      randn<float, 12, 1024, 64>(Key{14}));
  compare(
      "block of GPT-2, 256 tokens, vjp", [] { return vjp(block); }, init<Block>(1),
      randn<float, 256, 768>(Key{15}), randn<float, 256, 768>(Key{16}));
  compare(
      "char GPT 12x64, value and grad", [] { return value_and_grad(gpt_loss); }, init<gpt::Model>(1),
      randint<std::int32_t, 12, 64>(Key{17}, 0, 128), randint<std::int32_t, 12, 64>(Key{18}, 0, 128));
}
