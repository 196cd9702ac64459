// SPDX-License-Identifier: BSL-1.0
// A whole run: trains a model, compares it, saves it, reads it back and draws what it does; or loads one.
#pragma once

#include "../common/output.hpp"
#include "../common/run_log.hpp"
#include "baseline.hpp"
#include "figures.hpp"
#include "train.hpp"

#include <dfdx/data/split.hpp>
#include <dfdx/report/progress.hpp>

#include <cstdio>

namespace lstm {

/// Breaks words of the command line.
///
/// Errors    "words: the letter '!' of 'hey!' is not among those the model knows"
template <class Model>
void break_words(Model const& model, Alphabet const& alphabet, std::vector<std::string> const& texts) {
  std::vector<Word> words;
  for (std::string const& text : texts) {
    Word w{letters_of(text), {}};
    w.breaks.assign(w.letters.size(), false);
    if (w.letters.empty() || w.letters.size() > longest)
      throw dfdx::error("words: '" + text.substr(0, 60) + "' is no word of 1 to " + std::to_string(longest) +
                        " letters");
    for (char32_t c : w.letters)
      if (alphabet.number(c) == 0)
        throw dfdx::error("words: the letter '" + text_of(std::u32string(1, c)) + "' of '" + text +
                          "' is not among those the model knows");
    words.push_back(std::move(w));
  }
  auto const p = probabilities(model, words, alphabet);
  for (std::size_t i = 0; i < words.size(); ++i) std::printf("%s\n", text_of(broken(words[i], p[i])).c_str());
}

template <class Model>
void load_and_break(Options const& o) {
  Model model;
  auto const facts = dfdx::load_safetensors(o.load, model);
  auto const letters = facts.find("letters");
  Alphabet const alphabet = Alphabet::from(letters == facts.end() ? "" : letters->second);
  if (alphabet.size() == 0 || alphabet.size() >= vocabulary)
    throw dfdx::error("load: " + o.load + " does not say which letters its numbers are");
  break_words(model, alphabet, o.words);
}

/// A row of the table of results.
inline void print(char const* name, Score const& s) {
  auto const breaks = s.letters.of(1);
  std::printf("  %-14s  %9.4f  %6.4f  %6.4f  %14.4f\n", name, breaks.precision, breaks.recall, breaks.f1,
              s.word_accuracy());
}

/// What the program does when its options are read, with a model that options.model names.
template <class Model>
void run(Options const& o) {
  using dfdx::report::formatted;
  if (!o.load.empty()) return load_and_break<Model>(o);
  dfdx::Key const key{o.seed};
  common::prepare_folder(o.output);
  common::RunLog log(o.log);
  auto const list = o.data.empty() ? hyphenate_list(o.list, o.patterns) : read_hyphenated(o.data);
  std::string const source = o.data.empty() ? o.list + " by " + o.patterns : o.data;
  Alphabet const alphabet = Alphabet::of(list.words);

  // Eight words in ten to train on, one to choose by and one to report, drawn at random.
  std::vector<Word> words;
  auto const n = static_cast<dfdx::index_t>(list.words.size());
  for (dfdx::index_t i : dfdx::data::permutation(dfdx::fold_in(key, 1), n))
    words.push_back(list.words[static_cast<std::size_t>(i)]);
  std::span<Word const> const all = words;
  std::size_t const a = all.size() * 8 / 10, b = all.size() * 9 / 10;
  auto const training = all.first(a), dev = all.subspan(a, b - a), test = all.subspan(b);
  std::printf("data     %s: %zu words, %zu different letters", source.c_str(), all.size(), alphabet.size());
  if (list.skipped > 0) std::printf(", %zu lines skipped", list.skipped);
  std::printf("; %zu words to train on, %zu to choose by, %zu to test on\n", training.size(), dev.size(),
              test.size());
  auto model = dfdx::init<Model>(o.seed);
  std::printf("model    %s, %lld parameters\n", o.model.c_str(),
              static_cast<long long>(dfdx::parameter_count<Model>));
  std::fflush(stdout);

  // Looked at now and then, on some of the words to choose by.
  std::vector<dfdx::report::Point> dev_loss;
  auto const some_dev = dev.first(std::min<std::size_t>(dev.size(), 1024));
  std::int64_t const between = std::max<std::int64_t>(o.settings.steps / 20, 1);
  common::Run const times = [&] {
    dfdx::report::Progress progress(o.settings.steps);
    return common::or_keep(model, o.output, {{"letters", alphabet.letters()}}, [&] {
      return train(model, examples_of(training, alphabet), o.settings, dfdx::fold_in(key, 2),
                   [&](std::int64_t done, double recent) {
                     progress.show(done, {{"loss", recent}});
                     if (done % between != 0 && done != o.settings.steps) return;
                     Score const s = score_of(some_dev, probabilities(model, some_dev, alphabet));
                     dev_loss.emplace_back(static_cast<double>(done), s.mean_loss());
                     log.row({{"step", done},
                              {"train_loss", recent},
                              {"dev_loss", s.mean_loss()},
                              {"dev_f1", s.letters.of(1).f1},
                              {"dev_words", s.word_accuracy()}});
                   });
    });
  }();
  std::printf("trained  %lld steps in %.1f s, %.1f ms per step\n", static_cast<long long>(o.settings.steps),
              times.seconds, times.step * 1e3);

  Baseline const neighbours(training);
  Score other;
  for (Word const& w : test) other.add(w, neighbours.broken(w));
  auto const p = probabilities(model, test, alphabet);
  Score const score = score_of(test, p);
  std::printf("\nwords to test on  precision  recall      f1  words all right\n");
  print("four letters", other);
  print("this model", score);

  std::printf("\ntwenty of them, and where it is wrong the truth\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(20, test.size()); ++i) {
    Word const said = broken(test[i], p[i]);
    std::printf("  %-32s %s\n", text_of(said).c_str(),
                said.breaks == test[i].breaks ? "" : text_of(test[i]).c_str());
  }

  std::string const file = o.output + "/model.safetensors";
  common::save(file, model,
               {{"letters", alphabet.letters()},
                {"steps", std::to_string(o.settings.steps)},
                {"test_f1", formatted("%.4f", score.letters.of(1).f1)}});
  draw_loss(o.output + "/loss.svg", times.loss, dev_loss,
            formatted("%s, %zu words, seed %llu, test F1 %.4f", o.model.c_str(), all.size(),
                      static_cast<unsigned long long>(o.seed), score.letters.of(1).f1));
  // Words with something to see.
  std::vector<Word> some;
  for (Word const& w : test)
    if (w.letters.size() >= 8 && some.size() < 12) some.push_back(w);
  draw_breaks(o.output + "/breaks.svg", some, probabilities(model, some, alphabet));
  std::printf("\nwrote    %s (read back: equal), loss.svg, breaks.svg\n", file.c_str());
  if (!o.words.empty()) std::printf("\n");
  break_words(model, alphabet, o.words);
}

}  // namespace lstm
