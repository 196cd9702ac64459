// SPDX-License-Identifier: BSL-1.0
#include "../common/options.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace tokenize {

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  std::string text;
  bool bos = false, eos = false;
  CLI::App app("The numbers that a model's tokenizer makes of a text, and back.", "tokenize");
  app.add_option("tokenizer", o.tokenizer,
                 "tokenizer.json, tokenizer.model, encoder.json, .tiktoken, vocab.txt, tokenizer.bin, or a "
                 "folder with "
                 "one of them")
      ->required();
  auto* const given = app.add_option("text", text, "The text; without it and --file, standard input");
  auto* const file = app.add_option("--file", o.file, "A file of text")->excludes(given);
  app.add_option(
         "--cases", o.cases,
         "A file of texts, each followed by a line __ggml_vocab_test__ as in llama.cpp's .inp files: the "
         "numbers of each are a line as in its .out files, without a first and a last token")
      ->excludes(given)
      ->excludes(file);
  auto* const with_bos =
      app.add_flag("--bos,!--no-bos", bos, "Put the first token in front; by default as the file says");
  auto* const with_eos =
      app.add_flag("--eos,!--no-eos", eos, "Put the last token behind; by default as the file says");
  app.add_flag("--special", o.special, "Control tokens may be written in the text: <s> is one token");
  app.add_flag("--pieces", o.pieces, "A line for each token: its number and its bytes");
  app.add_flag("--decode", o.decode, "The text is numbers; print what they stand for");
  app.add_option(
      "--pre", o.pre,
      "How text is cut, for byte-level vocabularies: gpt-2, llama-bpe, cl100k_base, qwen2, gpt-4o, clip");
  app.add_option("--count", o.count, "tokenizer.bin: how many tokens the model has, 0 for all in the file");
  if (!common::parse(app, argc, argv)) return {};
  if (given->count() != 0) o.text = text;
  if (with_bos->count() != 0) o.bos = bos;
  if (with_eos->count() != 0) o.eos = eos;
  return o;
}

}  // namespace tokenize
