// SPDX-License-Identifier: BSL-1.0
// few_lines MODEL: a text from a published model, and how well the model foresees a sentence.
#include <dfdx/models.hpp>
#include <dfdx/text.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::filesystem::path const file = argv[1];
  // [readme:llama]
  using namespace dfdx;
  models::Llama const model = models::load_llama(file);  // .gguf, .bin, a folder of Hugging Face
  text::Tokenizer const tokenizer = text::load_tokenizer(file);
  text::StreamDecoder words(tokenizer);
  models::generate(model, tokenizer.encode("Once upon a time"), models::Sampler({.temperature = 0.8}),
                   {.tokens = 100}, [&](std::int32_t token) {
                     std::fputs(words.push(token).c_str(), stdout);
                     return true;  // go on
                   });
  models::Score const s = models::score(model, tokenizer.encode("Lily went to the park."));
  // [/readme:llama]
  std::printf("\nloss of a sentence: %.4f\n", s.loss);
}
