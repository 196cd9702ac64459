// SPDX-License-Identifier: BSL-1.0
#include "picture_options.hpp"
#include "device.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace common {

std::optional<PictureOptions> parse_options(int argc, char** argv, char const* name, char const* what,
                                            PictureOptions o) {
  CLI::App app(what, name);
  app.add_option(
         "--data", o.data,
         o.other_data +
             "Folder of train-images-idx3-ubyte, train-labels-idx1-ubyte and the same of t10k, plain or .gz, "
             "such as that of Debian's package dataset-fashion-mnist, /usr/share/datasets/fashion-mnist")
      ->capture_default_str();
  app.add_option("--output", o.output, "Folder for the model, the logs and the pictures")
      ->capture_default_str();
  app.add_option("--load", o.load, "A model.safetensors to use, instead of training one");
  app.add_option("--seed", o.seed, "Seed of everything random")->capture_default_str();
  auto const count = CLI::Range(std::int64_t{1}, std::int64_t{1000000});
  auto* const epochs =
      app.add_option("--epochs", o.epochs, "How often to go through the training examples, 64 at a time")
          ->check(count)
          ->capture_default_str();
  if (o.epochs == 0)
    epochs->default_str("for about " + std::to_string(PictureOptions::usual_steps) + " steps");
  app.add_option("--lr", o.lr, "Highest learning rate")->check(CLI::Range(1e-9, 1e9))->capture_default_str();
  app.add_option("--limit", o.limit, "Use the first so many training and test examples only")->check(count);
  if (o.precision) add_precision_option(app, *o.precision);
  if (o.device) add_device_option(app, *o.device);
  if (!parse(app, argc, argv)) return {};
  return o;
}

}  // namespace common
