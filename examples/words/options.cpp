// SPDX-License-Identifier: BSL-1.0
#include "../common/options.hpp"
#include "../common/device.hpp"
#include "../common/precision.hpp"
#include "../common/run_log.hpp"
#include "models.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace words {

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Learns what words look like, letter by letter, and makes up new ones.", "words");
  auto const* data =
      app.add_option("--data", o.data,
                     "Text file with one word of the letters a-z per line; by default the system's "
                     "word list, of which other lines are skipped")
          ->capture_default_str();
  app.add_option(
         "--model", o.model,
         "mlp: two hidden layers on the last three letters; batchnorm: the same with batch normalization; "
         "wavenet: joins the last eight letters two by two, with batch normalization")
      ->check(common::one_of(choices))
      ->capture_default_str();
  app.add_option("--output", o.output, "Folder for the model and the pictures")->capture_default_str();
  app.add_option("--load", o.load,
                 "A model.safetensors of --model to make up words with; nothing is trained");
  common::add_log_option(app, o.log);
  common::add_precision_option(app, o.settings.precision);
  common::add_device_option(app, o.settings.device);
  app.add_option("--seed", o.seed, "Seed of everything random")->capture_default_str();
  app.add_option("--steps", o.settings.steps, "Training steps of 32 examples each")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000000}))
      ->capture_default_str();
  app.add_option("--lr", o.settings.lr, "Learning rate of the first half")
      ->check(common::rate())
      ->capture_default_str();
  app.add_option("--lr-end", o.settings.lr_end, "Learning rate at the end")
      ->check(common::rate())
      ->capture_default_str();
  if (!common::parse(app, argc, argv)) return {};
  o.own_data = data->count() > 0;
  return o;
}

}  // namespace words
