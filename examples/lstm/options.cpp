// SPDX-License-Identifier: BSL-1.0
#include "../common/options.hpp"
#include "models.hpp"

#include "../common/run_log.hpp"

#include <CLI/CLI.hpp>

namespace lstm {

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Learns where words may be broken at the end of a line, letter by letter.", "lstm");
  auto* data = app.add_option("--data", o.data,
                              "Text file with one word per line, its breaks as hyphens (hy-phen-ation); by "
                              "default those of --list by --patterns");
  auto* list = app.add_option("--list", o.list,
                              "Text file with one word per line; lines with other things are skipped")
                   ->excludes(data)
                   ->capture_default_str();
  auto* patterns = app.add_option("--patterns", o.patterns,
                                  "Patterns of libhyphen; Debian's package hyphen-en-us has those of English")
                       ->excludes(data)
                       ->capture_default_str();
  app.add_option("--model", o.model,
                 "bidirectional: an LSTM from the beginning and one from the end, 64 numbers each; forward: "
                 "one of 128, which does not know what follows")
      ->check(common::one_of(choices))
      ->capture_default_str();
  app.add_option("--output", o.output, "Folder for the model and the pictures")->capture_default_str();
  common::add_log_option(app, o.log);
  app.add_option("--load", o.load, "A model.safetensors to break the words with; nothing is trained")
      ->excludes(data)
      ->excludes(list)
      ->excludes(patterns);
  app.add_option("words", o.words, "Words to break in the end");
  app.add_option("--seed", o.seed, "Seed of everything random")->capture_default_str();
  app.add_option("--steps", o.settings.steps, "Training steps of " + std::to_string(batch) + " words each")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000000}))
      ->capture_default_str();
  app.add_option("--lr", o.settings.lr, "Highest learning rate")
      ->check(common::rate())
      ->capture_default_str();
  if (!common::parse(app, argc, argv)) return {};
  if (!o.load.empty() && o.words.empty()) throw dfdx::error("--load: which words are to be broken?");
  return o;
}

}  // namespace lstm
