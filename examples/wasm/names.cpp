// SPDX-License-Identifier: BSL-1.0
// names MODEL SEED NUMBER: reads a model that examples/words has trained (--model mlp) and prints words that nobody
// wrote, as many as asked for; without a number the probabilities of the first letter, exactly. For WebAssembly, where
// there are no exceptions: what is wrong is written to the standard error output, and the program aborts.
#include <dfdx/io.hpp>

#include <cstdio>
#include <cstdlib>

#include "../words/draw.hpp"
#include "../words/mlp.hpp"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: names MODEL.safetensors SEED [NUMBER]\n");
    return 2;
  }
  words::Mlp model;
  dfdx::load_safetensors(argv[1], model);
  dfdx::Key const key = dfdx::fold_in(dfdx::Key{std::strtoull(argv[2], nullptr, 10)}, 3);  // as in words

  // One program from letters to probabilities; its memory is part of it.
  auto probabilities =
      dfdx::compile([](auto const& m, dfdx::Tensor<std::int32_t, 1, words::Mlp::context> const& x) {
        return softmax(m(x));
      });
  auto const next = [&](auto const& letters) { return probabilities(model, letters); };

  if (argc == 3) {
    auto const p = next(dfdx::zeros<std::int32_t, 1, words::Mlp::context>());
    std::printf("%d numbers at a time\n", dfdx::kernels::lane_size<float>);
    for (dfdx::index_t i = 0; i < p.size(); ++i) std::printf("%.9g\n", static_cast<double>(p(0, i)));
    return 0;
  }
  int const number = std::atoi(argv[3]);
  for (int i = 0; i < number; ++i)
    std::printf(
        "%s\n",
        words::draw<words::Mlp::context>(next, dfdx::fold_in(key, static_cast<std::uint64_t>(i))).c_str());
}
