// SPDX-License-Identifier: BSL-1.0
// static_sizes MODEL: stories260K with sizes that the compiler knows. Its text is written by one compiled program that
// takes no memory for a token, and whose memory is a constant.
#include <dfdx/models.hpp>
#include <dfdx/text.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::filesystem::path const file = argv[1];
  // [readme:llama-static]
  using namespace dfdx;
  constexpr models::LlamaSizes stories260K{.vocabulary = 512,
                                           .width = 64,
                                           .hidden = 172,
                                           .layers = 5,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .head_size = 8,
                                           .context = 512,
                                           .tied = true};
  auto const model = models::load_llama<stories260K>(file);  // every size that the file has otherwise is told
  auto cache = models::LlamaCache<stories260K, 256>::empty();
  models::LlamaStep step;  // from a token to the numbers for the next: one program, no allocation
  using Program = models::LlamaStep::program_for<decltype(model), decltype(cache)>;
  std::printf("%td bytes for a token\n", Program::arena_bytes);
  text::Tokenizer const tokenizer = text::load_tokenizer(file);
  text::StreamDecoder words(tokenizer);
  for (std::int32_t token = 1; cache.length.item() < 100;) {
    auto const logits = step(model, token, cache);
    token = static_cast<std::int32_t>(argmax<0>(logits).item());
    std::fputs(words.push(token).c_str(), stdout);
  }
  // [/readme:llama-static]
  std::puts("");
}
