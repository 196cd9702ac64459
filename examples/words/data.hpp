// SPDX-License-Identifier: BSL-1.0
// Words as training examples: some letters in, the next one out. Letters are numbers: a-z are 1-26, 0 ends a word
// and fills the context before its first letter.
#pragma once

#include <dfdx/data/text_lines.hpp>
#include <dfdx/vocabulary/draw.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace words {

using dfdx::dyn, dfdx::Key, dfdx::Tensor;

inline constexpr std::size_t vocabulary = 27;

inline int number_of(char letter) { return letter - 'a' + 1; }
inline char letter_of(int number) { return static_cast<char>('a' + number - 1); }

struct WordList {
  std::vector<std::string> words;
  std::size_t skipped = 0;  // lines of the system's list that are no plain word, or one we have
};

/// The words of a file in lower case. Of the system's list (`sift`) only those of a-z are taken, each once; in a
/// user's file anything else is an error.
inline WordList read_words(std::string const& path, bool sift) {
  WordList list;
  std::set<std::string> seen;
  std::vector<std::string> const lines = dfdx::data::read_lines(path);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string word = lines[i];
    if (word.empty()) continue;
    bool plain = true;
    for (char& c : word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      plain = plain && c >= 'a' && c <= 'z';
    }
    if (!plain && !sift)
      dfdx::raise("data: " + path + ":" + std::to_string(i + 1) + ": '" + lines[i].substr(0, 40) +
                  "' has characters other than the letters a-z; one word per line is needed");
    if (plain && (!sift || seen.insert(word).second)) list.words.push_back(std::move(word));
    else ++list.skipped;
  }
  if (list.words.size() < 10)
    dfdx::raise("data: " + path + " has " + std::to_string(list.words.size()) +
                " words; at least 10 are needed to train on some and test on others");
  return list;
}

template <std::size_t Context>
struct Examples {
  Tensor<std::int32_t, dyn, Context> contexts;
  Tensor<std::int32_t, dyn> labels;
  std::size_t words = 0;
  dfdx::index_t size() const { return labels.size(); }
};

/// The examples of words order[begin], ..., order[end - 1].
template <std::size_t Context>
Examples<Context> examples_of(std::vector<std::string> const& words, dfdx::Array const& order,
                              std::size_t begin, std::size_t end) {
  std::vector<std::int32_t> contexts, labels;
  for (std::size_t w = begin; w < end; ++w) {
    std::array<int, Context> last{};
    std::string const& word = words[static_cast<std::size_t>(order.at<std::int64_t>({static_cast<int>(w)}))];
    for (std::size_t i = 0; i <= word.size(); ++i) {
      int const next = i < word.size() ? number_of(word[i]) : 0;
      contexts.insert(contexts.end(), last.begin(), last.end());
      labels.push_back(next);
      std::copy(last.begin() + 1, last.end(), last.begin());
      last.back() = next;
    }
  }
  Examples<Context> e;
  e.contexts = Tensor<std::int32_t, dyn, Context>::from(contexts, dfdx::make_shape(labels.size(), Context));
  e.labels = Tensor<std::int32_t, dyn>::from(labels, dfdx::make_shape(labels.size()));
  e.words = end - begin;
  return e;
}

template <std::size_t Context>
struct Split {
  Examples<Context> train, dev, test;
};

/// Eight words in ten to train on, one to choose by and one to report, drawn at random.
template <std::size_t Context>
Split<Context> split(std::vector<std::string> const& words, Key key) {
  std::size_t const n = words.size(), a = n * 8 / 10, b = n * 9 / 10;
  auto const order = dfdx::permutation(static_cast<dfdx::index_t>(n), key);
  return {examples_of<Context>(words, order, 0, a), examples_of<Context>(words, order, a, b),
          examples_of<Context>(words, order, b, n)};
}

/// The model to beat: the next letter's frequency after the last one, counted in `train` with one added to each
/// count; mean negative log-likelihood of `of`.
template <std::size_t Context>
double bigram_loss(Examples<Context> const& train, Examples<Context> const& of) {
  std::vector<double> counts(vocabulary * vocabulary, 1.0),
      totals(vocabulary, static_cast<double>(vocabulary));
  auto const pair_at = [](Examples<Context> const& e, dfdx::index_t i) {
    return std::pair(static_cast<std::size_t>(e.contexts(i, Context - 1)),
                     static_cast<std::size_t>(e.labels(i)));
  };
  for (dfdx::index_t i = 0; i < train.size(); ++i) {
    auto const [last, next] = pair_at(train, i);
    counts[last * vocabulary + next] += 1;
    totals[last] += 1;
  }
  double sum = 0;
  for (dfdx::index_t i = 0; i < of.size(); ++i) {
    auto const [last, next] = pair_at(of, i);
    sum -= std::log(counts[last * vocabulary + next] / totals[last]);
  }
  return sum / static_cast<double>(of.size());
}

}  // namespace words
