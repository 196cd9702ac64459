// SPDX-License-Identifier: BSL-1.0
// Several texts at once: the matrices of a model are read once for the next token of all.
#pragma once

#include <algorithm>

#include <dfdx/models/generate.hpp>

namespace dfdx::models {

/// BatchTake - is handed each token when it is there, with the place of its text; returns whether that text goes on.
using BatchTake = std::function<bool(std::size_t, std::int32_t)>;

/// generate - tokens after each of some prompts of any lengths, each text with a cache of its own. There is one sampler
/// for each, or one that all begin with as it is. What prompts begin with alike is computed once. A text ends by
/// itself, and no longer takes part: the others get faster.
///
///   std::vector<std::vector<std::int32_t>> const texts = models::generate(model, prompts, {sampler}, {.tokens = 100});
///
/// Numerics  what generate(model, prompt, sampler) gives for each alone: to the last bit while fewer than 5 texts take
///           part and none begins as another, else up to the order of sums in products (models/decoder.hpp), 5e-5 of
///           the largest logit in f32
/// Cost      a cache of prompt and tokens for each text, o.capacity positions at most; no allocation for a token, after
///           the first that all choose, but where a text that has outgrown its room is computed anew
/// Errors    "generate: 3 samplers for 2 prompts"; those of generate for one prompt, before any token is handed out
template <language_model M>
std::vector<std::vector<std::int32_t>> generate(M const& model,
                                                std::vector<std::vector<std::int32_t>> const& prompts,
                                                std::vector<Sampler> samplers, GenerateOptions const& o = {},
                                                BatchTake const& take = {}) {
  std::size_t const n = prompts.size();
  bool const alike = samplers.size() == 1;
  while (alike && samplers.size() < n) samplers.push_back(Sampler(samplers[0]));
  if (!alike && samplers.size() != n)
    raise("generate: ", static_cast<index_t>(samplers.size()), " samplers for ", static_cast<index_t>(n),
          " prompts");
  index_t const most = o.capacity > 0 ? o.capacity : model.config.positions();
  std::vector<Context<M>> texts;
  index_t longest = 0;
  for (auto const& prompt : prompts) {
    detail::check_prompt(prompt, most);
    index_t const needed = static_cast<index_t>(prompt.size()) + std::max<index_t>(o.tokens, 1);
    texts.emplace_back(model, std::min(most, std::max<index_t>(needed, 2)), o.cache, o.block);
    longest = std::max(longest, texts.back().cache().capacity);
  }
  std::vector<std::vector<std::int32_t>> r(n);
  for (std::size_t i = 0; i < n; ++i)
    r[i].reserve(static_cast<std::size_t>(std::clamp<index_t>(o.tokens, 0, texts[i].cache().capacity)));
  if (o.tokens <= 0 || n == 0) return r;
  auto const shared = std::make_shared<Decoder>(model, longest);
  std::vector<std::size_t> going;
  // Chooses the next token of a text; whether the text goes on.
  auto const choose = [&](std::size_t i, std::span<float const> logits) {
    std::int32_t const next = samplers[i](logits);
    if (std::find(o.stop.begin(), o.stop.end(), next) != o.stop.end()) return false;
    r[i].push_back(next);
    return (!take || take(i, next)) && static_cast<index_t>(r[i].size()) < o.tokens;
  };
  std::vector<Array> first;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::int32_t t : prompts[i]) samplers[i].accept(t);
    texts[i].share(shared);
    // What an earlier prompt begins with alike is there already.
    std::size_t from = 0, same = 0;
    for (std::size_t k = 0; k < i; ++k)
      if (std::size_t const begin = texts[k].common(prompts[i]); begin > same) from = k, same = begin;
    if (same > 0) texts[i].begin_as(texts[from], static_cast<index_t>(same));
    first.push_back(texts[i].add(std::span(prompts[i]).subspan(same)));
    if (o.read != nullptr) *o.read += static_cast<index_t>(prompts[i].size() - same);
  }
  for (std::size_t i = 0; i < n; ++i)
    if (choose(i, {first[i].template data<float>(), static_cast<std::size_t>(first[i].size())}))
      going.push_back(i);
  std::vector<std::int32_t> tokens;
  std::vector<Context<M>*> some;
  tokens.reserve(n), some.reserve(n);
  while (!going.empty()) {
    tokens.clear(), some.clear();
    for (std::size_t i : going) {
      if (texts[i].full()) texts[i].shift(o.keep);
      tokens.push_back(r[i].back());
      some.push_back(&texts[i]);
    }
    std::span<float const> const rows = step_together<M>(some, tokens);
    std::size_t const row = rows.size() / going.size();
    std::size_t left = 0;
    for (std::size_t k = 0; k < going.size(); ++k)
      if (choose(going[k], rows.subspan(k * row, row))) going[left++] = going[k];
    going.resize(left);
  }
  return r;
}

}  // namespace dfdx::models
