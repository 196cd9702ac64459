// SPDX-License-Identifier: BSL-1.0
// A whole program that trains the words network on a text with one word per line; with -DSAMPLE it also evaluates the
// loss by a second program, and says a word eagerly.
#include "../training/words_model.hpp"

#include <dfdx/data/loader.hpp>
#include <dfdx/data/text_lines.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace words;
using dfdx::dyn, dfdx::Tensor;

int main(int argc, char** argv) try {
  // Three letters in, the next one out; 0 stands for the end, and for what is before the beginning.
  std::vector<std::int32_t> contexts, labels;
  for (std::string const& word : dfdx::data::read_lines(argc > 1 ? argv[1] : "/usr/share/dict/words")) {
    if (word.empty() || word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos) continue;
    std::int32_t last[context] = {};
    for (std::size_t i = 0; i <= word.size(); ++i) {
      std::int32_t const next = i < word.size() ? word[i] - 'a' + 1 : 0;
      contexts.insert(contexts.end(), last, last + context);
      labels.push_back(next);
      last[0] = last[1], last[1] = last[2], last[2] = next;
    }
  }
  auto const n = labels.size();
  auto const x = Tensor<std::int32_t, dyn, context>::from(contexts, dfdx::make_shape(n, context));
  auto const y = Tensor<std::int32_t, dyn>::from(labels, dfdx::make_shape(n));

  auto model = dfdx::init<Model>(1);
  auto step = dfdx::train_step(loss, dfdx::optim::SGD{.lr = 0.1f});
#ifdef SAMPLE
  auto mean_loss = dfdx::compile(loss);
#endif
  auto loader = dfdx::data::loader<batch>(dfdx::Key{2}, x, y);
  for (int i = 0; i < 10000; ++i) {
    auto const& [letters_in, letter_out] = loader.next();
    step.optimizer().lr = i < 5000 ? 0.1 : 0.01;
    float now = step(model, letters_in, letter_out);
#ifdef SAMPLE
    now = mean_loss(model, letters_in, letter_out).item();
#endif
    if (i % 1000 == 0) std::printf("%6d  loss %.4f\n", i, static_cast<double>(now));
  }

#ifdef SAMPLE
  auto so_far = dfdx::zeros<std::int32_t, batch, context>();
  for (int i = 0; i < 30; ++i) {
    auto const p = softmax(model(so_far));  // eagerly: the model is a function like any other
    double u = dfdx::uniform_at(dfdx::Key{3}, static_cast<std::uint64_t>(i));
    int next = 0;
    while (next + 1 < letters && (u -= static_cast<double>(p(0, next))) >= 0) ++next;
    if (next == 0) break;
    std::putchar('a' + next - 1);
    for (int k = 0; k < 2; ++k) so_far(0, k) = so_far(0, k + 1);
    so_far(0, 2) = next;
  }
  std::putchar('\n');
#endif
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
