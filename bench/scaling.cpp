// SPDX-License-Identifier: BSL-1.0
// What an operation of a training step costs as networks get deeper and batches larger: residual blocks of two layers
// of 256 units, whose matrix products are counted. The peer is the same network of 4 blocks on 64 rows, by its cost
// per operation.
#include <dfdx/dfdx.hpp>

#include "roof.hpp"

namespace {

using namespace dfdx;

constexpr std::size_t width = 256;

struct Block {
  nn::Linear<width, width> a, b;
  DFDX_FIELDS(a, b)
  constexpr auto operator()(auto const& x) const { return x + b(relu(a(x))); }
};

template <std::size_t Depth>
struct Net {
  nn::Repeat<Block, Depth> blocks;
  nn::Linear<width, 10> out;
  DFDX_FIELDS(blocks, out)
  constexpr auto operator()(auto const& x) const { return out(blocks(x)); }
};

constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return cross_entropy(m(x), y); };

template <std::size_t Depth, std::size_t Batch>
struct Case {
  // Forward, the gradients of weights, and those of what goes in but for the first.
  static constexpr double flops = 2.0 * Batch * (width * width * (2.0 * Depth * 3 - 1) + 3.0 * width * 10);

  Net<Depth> model = init<Net<Depth>>(1);
  Tensor<float, Batch, width> x = randn<float, Batch, width>(Key{2});
  Tensor<std::int32_t, Batch> y = zeros<std::int32_t, Batch>();
  decltype(train_step(loss, optim::SGD{.lr = 1e-4})) step = train_step(loss, optim::SGD{.lr = 1e-4});

  void operator()() { step(model, x, y); }
};

template <class C>
void row(std::string const& name, C& c, Case<4, 64>& plain) {
  double const first = static_cast<double>(c.step(c.model, c.x, c.y));
  if (!(first > 1 && first < 100)) {
    std::fprintf(stderr, "scaling: %s: the loss is %g\n", name.c_str(), first);
    std::exit(1);
  }
  auto const mine = [&] { c(); };
  auto const its = [&] { plain(); };
  long const calls = bench::calls_for(mine, 1e-2), its_calls = bench::calls_for(its, 1e-2);
  std::vector<double> a, b;
  double roof = 0;
  for (int round = 0; round < 15; ++round) {
    a.push_back(bench::time_of(mine, calls));
    b.push_back(bench::time_of(its, its_calls));
    roof = std::max(roof, bench::measure_roof(3));
  }
  bench::Row r{
      .bench = "scaling", .name = name, .ours_ms = bench::median(a) * 1e3, .peer = "4 blocks, 64 rows"};
  r.flops = C::flops;
  r.peer_ms = bench::median(b) * 1e3 * C::flops / Case<4, 64>::flops;
  r.roof = C::flops / bench::median(a) / roof;
  char note[80];
  std::snprintf(note, sizeof note, "%.2f us a MFLOP", bench::median(a) * 1e12 / C::flops);
  r.note = note;
  bench::print(r);
}

template <std::size_t... Depth>
void depths(Case<4, 64>& plain) {
  (
      [&] {
        Case<Depth, 64> c;
        row("training step of " + std::to_string(Depth) + " blocks, 64 rows", c, plain);
      }(),
      ...);
}

template <std::size_t... Batch>
void batches(Case<4, 64>& plain) {
  (
      [&] {
        Case<4, Batch> c;
        row("training step of 4 blocks, " + std::to_string(Batch) + " rows", c, plain);
      }(),
      ...);
}

}  // namespace

int main() {
  Case<4, 64> plain;
  depths<1, 2, 4, 8, 16, 32, 64>(plain);
  batches<1, 8, 32, 128, 512, 4096>(plain);
}
