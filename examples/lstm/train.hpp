// SPDX-License-Identifier: BSL-1.0
// Words as batches, training and testing: what happens to a model.
#pragma once

#include "../common/loop.hpp"
#include "cause.hpp"

#include <dfdx/data/loader.hpp>
#include <dfdx/metrics/classification.hpp>

#include <cmath>
#include <functional>
#include <span>

namespace lstm {

/// Words as numbers: letters with zeros behind them, and labels, of which those behind a word do not count.
struct Examples {
  dfdx::Tensor<std::int32_t, dfdx::dyn, longest> letters, labels;
};
inline Examples examples_of(std::span<Word const> words, Alphabet const& alphabet) {
  auto const shape = dfdx::make_shape(words.size(), longest);
  using Rows = dfdx::Tensor<std::int32_t, dfdx::dyn, longest>;
  Examples r{Rows::uninitialized(shape), Rows::uninitialized(shape)};
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::size_t t = 0; t < longest; ++t) {
      bool const inside = t < words[i].letters.size();
      r.letters.data()[i * longest + t] = inside ? alphabet.number(words[i].letters[t]) : 0;
      r.labels.data()[i * longest + t] =
          inside ? words[i].breaks[t] ? 1 : 0 : static_cast<std::int32_t>(dfdx::ignored_index);
    }
  return r;
}

template <class Model>
std::vector<Probabilities> probabilities(Model const& model, std::span<Word const> words,
                                         Alphabet const& alphabet) {
  static auto program = dfdx::compile([](auto const& m, auto const& letters) {
    return dfdx::transpose(dfdx::select<-1, 1>(softmax(m(letters))));
  });
  std::vector<Probabilities> r(words.size());
  auto letters = dfdx::zeros<std::int32_t, batch, longest>();
  for (std::size_t begin = 0; begin < words.size(); begin += batch) {
    std::size_t const n = std::min(batch, words.size() - begin);
    auto const some = examples_of(words.subspan(begin, n), alphabet);
    std::copy_n(some.letters.data(), n * longest, letters.data());
    dfdx::Array const p = program(model, letters).clone();
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(p.data<float>() + i * longest, longest, r[begin + i].data());
  }
  return r;
}

/// The word as the model would break it.
inline Word broken(Word const& word, Probabilities const& p) {
  Word r = word;
  for (std::size_t t = 0; t < word.letters.size(); ++t) r.breaks[t] = p[t] > 0.5f;
  return r;
}

/// What was said of the letters of words: whether a break follows.
struct Score {
  dfdx::metrics::Confusion letters{2};
  std::size_t words = 0, right = 0;  // right: all letters
  double loss = 0;                   // sum over letters, in nats

  void add(Word const& truth, Word const& said) {
    for (std::size_t t = 0; t < truth.letters.size(); ++t) letters.add(truth.breaks[t], said.breaks[t]);
    ++words;
    right += truth.breaks == said.breaks;
  }
  double word_accuracy() const { return static_cast<double>(right) / static_cast<double>(words); }
  double mean_loss() const { return loss / static_cast<double>(letters.total()); }
};

inline Score score_of(std::span<Word const> words, std::vector<Probabilities> const& p) {
  Score r;
  for (std::size_t i = 0; i < words.size(); ++i) {
    r.add(words[i], broken(words[i], p[i]));
    for (std::size_t t = 0; t < words[i].letters.size(); ++t) {
      double const q = static_cast<double>(words[i].breaks[t] ? p[i][t] : 1 - p[i][t]);
      r.loss -= std::log(std::max(q, 1e-12));
    }
  }
  return r;
}

/// Called after each step with the number of steps done and the mean loss of late.
using Report = std::function<void(std::int64_t, double)>;

/// Trains in place with AdamW; the rate climbs to lr in the first twentieth of the steps and falls to 0 along half a
/// cosine. A step that would make NaN is undone.
///
/// Errors    "train_step: step 13: matmul: made NaN of numbers, in a result of shape [64, 24, 256]; the model is as it
///           was after 12 steps; a smaller --lr may help"; "train: the loss is 20000 after 12 steps; a smaller --lr may
///           help"
template <class Model>
common::Run train(Model& model, Examples const& examples, Settings const& s, dfdx::Key key,
                  Report const& report) {
  namespace optim = dfdx::optim;
  auto loader = dfdx::data::loader<batch>(key, examples.letters, examples.labels);
  std::int64_t const warmup = s.steps / 20;
  optim::WarmupSchedule const rate{warmup, optim::CosineSchedule{.lr = s.lr, .steps = s.steps - warmup}};
  auto step = dfdx::train_step(loss, optim::ClipNorm{optim::AdamW{}, 1.0});
  auto watched = dfdx::watch(step, model, cause<Model>);
  common::Run run;
  auto const one = [&] {
    auto const& [letters, labels] = loader.next();
    return watched(letters, labels);
  };
  common::train_loop(
      run, s.steps, 100, [&](std::int64_t i) { step.optimizer().inner.lr = rate(i); }, one, report);
  return run;
}

}  // namespace lstm
