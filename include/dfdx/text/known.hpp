// SPDX-License-Identifier: BSL-1.0
// What files leave to the reader to know: the control tokens of published vocabularies, by which the vocabularies are
// also recognised, and how text is split for them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <dfdx/text/parts.hpp>

namespace dfdx::text {

/// SpecialToken - a control token that is not in the vocabulary's file.
struct SpecialToken {
  std::string text;
  std::int32_t id = 0;
};

namespace detail {

inline std::int32_t position(TokenizerParts const& p, std::string_view token) {
  auto const found = std::find(p.tokens.begin(), p.tokens.end(), token);
  return found == p.tokens.end() ? -1 : static_cast<std::int32_t>(found - p.tokens.begin());
}

inline std::int32_t first_of(TokenizerParts const& p, std::initializer_list<char const*> names) {
  for (char const* name : names)
    if (std::int32_t const id = position(p, name); id >= 0) return id;
  return -1;
}

// Where no file says which tokens begin and end a text, their names do.
inline void guess_ends(TokenizerParts& p) {
  if (p.bos < 0)
    p.bos = first_of(p, {"<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>", "[CLS]", "<|endoftext|>"});
  if (p.eos < 0)
    p.eos = first_of(
        p, {"</s>", "<|end_of_text|>", "<eos>", "[SEP]", "<|endoftext|>", "<|im_end|>", "<|eot_id|>"});
}

inline void split_by(TokenizerParts& p, Pattern pattern) { p.split = {{SplitStep::Kind::pattern, pattern}}; }

// The control tokens behind a vocabulary of so many.
inline std::vector<SpecialToken> known_specials(std::size_t count) {
  auto const id = [&](std::size_t i) { return static_cast<std::int32_t>(count + i); };
  if (count == 128000) {  // Llama 3.1 and later; Llama 3 calls two of them reserved_special_token
    std::vector<SpecialToken> r;
    char const* const first[] = {"begin_of_text",
                                 "end_of_text",
                                 "reserved_special_token_0",
                                 "reserved_special_token_1",
                                 "finetune_right_pad_id",
                                 "reserved_special_token_2",
                                 "start_header_id",
                                 "end_header_id",
                                 "eom_id",
                                 "eot_id",
                                 "python_tag"};
    for (char const* text : first) r.push_back({std::string("<|") + text + "|>", id(r.size())});
    for (int k = 3; r.size() < 256; ++k)
      r.push_back({"<|reserved_special_token_" + std::to_string(k) + "|>", id(r.size())});
    return r;
  }
  if (count == 100256)
    return {{"<|endoftext|>", 100257},
            {"<|fim_prefix|>", 100258},
            {"<|fim_middle|>", 100259},
            {"<|fim_suffix|>", 100260},
            {"<|endofprompt|>", 100276}};
  if (count == 199998) return {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}};
  if (count == 50256) return {{"<|endoftext|>", 50256}};
  if (count == 151643) return {{"<|endoftext|>", id(0)}, {"<|im_start|>", id(1)}, {"<|im_end|>", id(2)}};
  return {};
}

inline std::optional<Pattern> known_pattern(std::size_t count) {
  if (count == 128000 || count == 128256 || count == 100256) return Pattern::llama3;
  if (count >= 151643 && count <= 152064) return Pattern::qwen2;
  if (count == 199998) return Pattern::o200k;
  if (count == 50256 || count == 50257) return Pattern::gpt2;
  return {};
}

}  // namespace detail

}  // namespace dfdx::text
