// SPDX-License-Identifier: BSL-1.0
#include "../common/options.hpp"
#include "../common/device.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>

namespace llama {

namespace {

constexpr char const* where =
    "llama runs language models of the Llama family: Llama 1 to 3.2, Mistral, Qwen 2 and 3, Phi-3; and "
    "GPT-2.\n"
    "Small ones to begin with, on huggingface.co:\n"
    "  karpathy/tinyllamas                 stories15M.bin, with tokenizer.bin of "
    "github.com/karpathy/llama2.c\n"
    "  openai-community/gpt2               a folder: config.json, model.safetensors, tokenizer.json\n"
    "  TinyLlama/TinyLlama-1.1B-Chat-v1.0  a folder: config.json, model.safetensors, tokenizer.json\n"
    "  Qwen/Qwen2.5-0.5B-Instruct-GGUF     one file, tokenizer included\n"
    "Then: llama MODEL --prompt 'Once upon a time', llama MODEL --chat; all options: llama --help\n";

// "13=-2.5"
std::pair<std::int32_t, float> bias_of(std::string const& given) {
  std::int32_t token = -1;
  float by = 0;
  std::size_t const sign = given.find('=');
  bool good = sign != std::string::npos;
  if (good) {
    char const *const begin = given.data(), *const middle = begin + sign, *const end = begin + given.size();
    char const* const number = middle + 1 + (middle + 1 < end && middle[1] == '+');
    good = std::from_chars(begin, middle, token).ptr == middle && std::from_chars(number, end, by).ptr == end;
  }
  if (!good || token < 0 || std::isnan(by))
    throw dfdx::error("--logit-bias: '" + given + "' is not of the form TOKEN=NUMBER");
  return {token, by};
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  std::vector<std::string> biases;
  if (argc < 2) {
    std::fputs(where, stdout);
    return {};
  }
  CLI::App app("Runs, scores and talks with language models of the Llama family.", "llama");
  app.add_option("model", o.model,
                 "A .gguf, a .bin of llama2.c, a folder of Hugging Face with config.json and safetensors")
      ->required();
  app.add_option("--lora", o.lora,
                 "What was trained on top of the model: a folder of PEFT, or the file in it");
  app.add_option("--tokenizer", o.tokenizer,
                 "A file or folder of a tokenizer; by default the model's own, or tokenizer.bin beside it");
  auto* const given = app.add_option("--prompt", o.prompts,
                                     "What the text begins with; given again, another text, and all are "
                                     "generated at once, each as it would be alone")
                          ->allow_extra_args(false);
  auto* const file = app.add_option("--file", o.file, "A file with the prompt")->excludes(given);
  auto* const chat = app.add_flag("--chat", o.chat, "A conversation: a line of standard input is a message")
                         ->excludes(given)
                         ->excludes(file);
  app.add_option("--system", o.system, "What the system says before a conversation")->needs(chat);
  app.add_option("--perplexity", o.perplexity, "Do not generate, tell how well the model foresees this file")
      ->excludes(given)
      ->excludes(file)
      ->excludes(chat);
  app.add_option("--tokens", o.tokens, "At most so many tokens")->check(common::at_least(1));
  app.add_option("--ctx", o.context, "Positions to keep; 0 for as many as the model has")
      ->check(common::at_least(0));
  app.add_option(
         "--dtype", o.dtype,
         "Numbers to compute with; q8_0 and q4_0 quantize, stored leaves matrices as the file has them")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "q8_0", "q4_0", "stored"}));
  app.add_option("--cache", o.cache, "Numbers in which keys and values are kept")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  app.add_option(
      "--session", o.session,
      "Keys and values of the text so far: read from this file if it is there, and written to it at "
      "the end; what the new text begins with alike is not computed again");
  app.add_option("--keep", o.keep, "So many of the first tokens stay when the text outgrows --ctx")
      ->check(common::at_least(0));
  app.add_option("--stop", o.stop, "A text that ends what is said, and is not shown; may be given again")
      ->allow_extra_args(false);
  common::add_device_option(app, o.device);
  app.add_option("--threads", o.threads, "Threads of OpenMP; 0 for as many as there are cores")
      ->check(common::at_least(0));
  auto& s = o.sampling;
  app.add_option("--temperature", s.temperature, "0 takes the likeliest token each time");
  app.add_option("--top-k", s.top_k, "Only the k likeliest tokens; 0 for all");
  app.add_option("--top-p", s.top_p, "Only the likeliest, up to this probability together");
  app.add_option("--min-p", s.min_p, "Only those this share as likely as the likeliest");
  app.add_option("--typical-p", s.typical_p, "Only those of typical surprise, up to this probability");
  app.add_option("--repeat-penalty", s.repeat, "Above 1: what was said is less likely to be said again");
  app.add_option("--repeat-last", s.last_n, "Of the last so many tokens; 0 for none")
      ->check(common::at_least(0));
  app.add_option("--frequency-penalty", s.frequency, "Taken off for each time a token was said");
  app.add_option("--presence-penalty", s.presence, "Taken off once for a token that was said");
  app.add_option("--logit-bias", biases,
                 "TOKEN=NUMBER, or TOKEN=-inf: added to a token's number; may be given again")
      ->allow_extra_args(false);
  app.add_option("--seed", s.seed, "The same seed gives the same text");
  app.add_flag("--stats", o.stats, "Times, tokens per second and memory, on standard error");
  if (!common::parse(app, argc, argv)) return {};
  if (o.prompts.size() > 1 && !o.session.empty())
    throw dfdx::error("--session is of one text, and " + std::to_string(o.prompts.size()) +
                      " prompts are given");
  for (std::string const& b : biases) s.bias.push_back(bias_of(b));
  return o;
}

}  // namespace llama
