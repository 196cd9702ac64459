// SPDX-License-Identifier: BSL-1.0
#include "options.hpp"
#include "../common/options.hpp"
#include "../common/run_log.hpp"

#include <CLI/CLI.hpp>

namespace finetune {

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  Settings& s = o.settings;
  CLI::App app(
      "Trains a language model of the Llama family on a text: all of it, or small factors beside it.",
      "finetune");
  app.add_option("model", o.model,
                 "A .gguf, a .bin of llama2.c, a folder of Hugging Face with config.json and safetensors")
      ->required();
  app.add_option("--data", o.data, "Text to learn from; its last tenth is kept to validate on")->required();
  app.add_option("--tokenizer", o.tokenizer,
                 "A file or folder of a tokenizer; by default the model's own, or tokenizer.bin beside it");
  app.add_option("--output", o.output, "Folder for the model or the adapter, and loss.svg")
      ->capture_default_str();
  common::add_log_option(app, o.log);
  auto const count = CLI::Range(std::int64_t{1}, std::int64_t{1000000000});
  auto* const lora =
      app.add_option("--lora", o.lora.rank, "Train factors of this rank alone, and save an adapter")
          ->check(CLI::Range(1, 65536));
  app.add_option("--lora-alpha", o.lora.alpha, "How much the factors count, as a multiple of 1 / rank")
      ->check(CLI::Range(1e-9, 1e9))
      ->needs(lora)
      ->capture_default_str();
  app.add_option("--lora-targets", o.lora.targets, "Which projections have factors, as q_proj,v_proj")
      ->delimiter(',')
      ->needs(lora)
      ->capture_default_str();
  app.add_option("--steps", s.steps, "Training steps")->check(count)->capture_default_str();
  app.add_option("--batch", s.batch, "Pieces of text in a step")->check(count)->capture_default_str();
  app.add_option("--length", s.length, "Tokens of a piece; 0 for 256, or what the model has positions for")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1000000}))
      ->capture_default_str();
  auto const rate = CLI::Range(1e-9, 1e9);
  app.add_option("--lr", s.lr, "Highest learning rate")->check(rate)->capture_default_str();
  app.add_option("--warmup", s.warmup, "Part of the steps in which the rate climbs")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--weight-decay", s.weight_decay, "AdamW's")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  app.add_option("--clip", s.clip, "Largest norm of the gradients")->check(rate)->capture_default_str();
  app.add_option("--validation", o.validation, "Tokens to validate on, at most")
      ->check(count)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Seed of everything random")->capture_default_str();
  if (!common::parse(app, argc, argv)) return {};
  return o;
}

}  // namespace finetune
