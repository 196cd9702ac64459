// SPDX-License-Identifier: BSL-1.0
#include "../common/options.hpp"
#include "../common/device.hpp"
#include "../common/run_log.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace gpt {

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Learns to write like a text, character by character.", "gpt");
  auto* data = app.add_option("--data", o.data, "Text file to learn from")->capture_default_str();
  app.add_option("--output", o.output, "Folder for the model")->capture_default_str();
  common::add_log_option(app, o.log);
  auto* checkpoint = app.add_option("--checkpoint", o.settings.checkpoint,
                                    "File for the state of the run, written now and then and at the end");
  auto* resume = app.add_option("--resume", o.settings.resume,
                                "Go on from such a file, with the same --data, --steps and rates");
  app.add_option("--load", o.load, "A model.safetensors to write with; nothing is trained")
      ->excludes(data)
      ->excludes(checkpoint)
      ->excludes(resume);
  app.add_option("--seed", o.seed, "Seed of everything random; a run that is resumed draws on as it did")
      ->capture_default_str();
  auto const count = CLI::Range(std::int64_t{1}, std::int64_t{1000000000});
  app.add_option("--every", o.settings.every, "Steps from one --checkpoint to the next")
      ->check(count)
      ->needs(checkpoint)
      ->capture_default_str();
  app.add_option("--steps", o.settings.steps, "Training steps of 12 pieces of 64 characters each")
      ->check(count)
      ->capture_default_str();
  auto const rate = common::rate();
  common::add_device_option(app, o.settings.device);
  app.add_option("--lr", o.settings.lr, "Highest learning rate")->check(rate)->capture_default_str();
  app.add_option("--lr-end", o.settings.lr_end, "Learning rate at the end")
      ->check(rate)
      ->capture_default_str();
  app.add_option("--begin", o.beginning, "What the text written begins with, by default a line");
  app.add_option("--length", o.length, "Characters to write")->check(count)->capture_default_str();
  app.add_option("--temperature", o.temperature, "How daring: low keeps to what is likely")
      ->check(CLI::Range(1e-3, 1e3))
      ->capture_default_str();
  if (!common::parse(app, argc, argv)) return {};
  if (o.beginning.empty()) throw dfdx::error("--begin: at least one character is needed");
  return o;
}

}  // namespace gpt
