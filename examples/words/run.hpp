// SPDX-License-Identifier: BSL-1.0
// A whole run: trains a model with one compiled program, saves it, reads it back and draws how it went.
#pragma once

#include <dfdx/report/progress.hpp>
#include <dfdx/report/svg.hpp>

#include <cmath>
#include <cstdio>

#include "../common/output.hpp"
#include "figures.hpp"
#include "options.hpp"
#include "train_model.hpp"

namespace words {

/// Words that nobody wrote.
template <class Model>
void print_words(Model const& model, Key key) {
  std::printf("twenty new words\n");
  for (std::uint64_t i = 0; i < 20; ++i)
    std::printf("%s%-14s%s", i % 5 == 0 ? "  " : "", sample(model, dfdx::fold_in(key, i)).c_str(),
                i % 5 == 4 ? "\n" : " ");
}

/// What the program does when its options are read, with a model that options.model names.
template <class Model>
void run(Options const& o) {
  using dfdx::report::formatted;
  Key const key{o.seed};
  if (!o.load.empty()) {
    Model model;
    dfdx::load_safetensors(o.load, model);
    return print_words(model, dfdx::fold_in(key, 3));
  }
  common::prepare_folder(o.output);
  common::RunLog log(o.log);
  WordList const list = read_words(o.data, !o.own_data);
  Split<Model::context> const data = split<Model::context>(list.words, dfdx::fold_in(key, 1));
  std::printf("data     %s: %zu words", o.data.c_str(), list.words.size());
  if (list.skipped > 0)
    std::printf(", %zu lines skipped (other characters than letters, or repeated)", list.skipped);
  std::printf("\n");
  for (auto const& [name, part] : {std::pair("train", &data.train), {"dev", &data.dev}, {"test", &data.test}})
    std::printf("  %-6s %zu words, %lld examples\n", name, part->words, static_cast<long long>(part->size()));

  double const bigram = bigram_loss(data.train, data.dev);
  auto model = dfdx::init<Model>(o.seed);
  std::printf("model    %s, %lld parameters\n", o.model.c_str(),
              static_cast<long long>(dfdx::parameter_count<Model>));
  std::fflush(stdout);
  Activations const before = activations(model, data.train);

  History const history = [&] {
    dfdx::report::Progress progress(o.settings.steps);
    return common::or_keep(model, o.output, {{"model", o.model}}, [&] {
      return train(
          model, data, o.settings, dfdx::fold_in(key, 2),
          [&](std::int64_t done, double recent) { progress.show(done, {{"loss", recent}}); }, log);
    });
  }();
  std::printf("trained  %lld steps in %.1f s, %.0f steps/s\n", static_cast<long long>(o.settings.steps),
              history.seconds, static_cast<double>(o.settings.steps) / history.seconds);

  double const dev = evaluate(model, data.dev);
  std::printf("\nloss (nats per letter)   train     dev    test\n");
  std::printf("  bigram model          %6.4f  %6.4f  %6.4f\n", bigram_loss(data.train, data.train), bigram,
              bigram_loss(data.train, data.test));
  std::printf("  this model            %6.4f  %6.4f  %6.4f\n\n", evaluate(model, data.train), dev,
              evaluate(model, data.test));

  print_words(model, dfdx::fold_in(key, 3));

  std::string const file = o.output + "/model.safetensors";
  common::save(file, model,
               {{"model", o.model},
                {"steps", std::to_string(o.settings.steps)},
                {"dev_loss", formatted("%.4f", dev)}});
  draw_loss(o.output + "/loss.svg", history, o.settings, {std::log(static_cast<double>(vocabulary)), bigram},
            formatted("%s, %zu words of %s, seed %llu, %.0f steps/s", o.model.c_str(), list.words.size(),
                      o.data.substr(0, 80).c_str(), static_cast<unsigned long long>(o.seed),
                      static_cast<double>(o.settings.steps) / history.seconds));
  draw_activations(o.output + "/activations.svg", before, activations(model, data.train));
  std::printf("\nwrote %s (read back: equal), %s/loss.svg, %s/activations.svg\n", file.c_str(),
              o.output.c_str(), o.output.c_str());
}

}  // namespace words
