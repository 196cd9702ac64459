// SPDX-License-Identifier: BSL-1.0
// finetune: trains a published language model on a text, the whole of it or factors beside it (LoRA), and saves what
// other programs read: a folder of Hugging Face, or an adapter of PEFT.
#include "../common/output.hpp"
#include "../common/run_log.hpp"
#include "../common/tokenizer.hpp"
#include "options.hpp"

#include <dfdx/models.hpp>
#include <dfdx/report.hpp>

#include <cstdio>

namespace finetune {

namespace {

namespace models = dfdx::models;
namespace report = dfdx::report;

struct Split {
  Ids train, validation;
};

// The last tenth, at most so many tokens, is not trained on.
Split split(Ids all, Options const& o, std::int64_t length) {
  auto const n = static_cast<std::int64_t>(all.size());
  std::int64_t const kept = std::min(n / 10, o.validation);
  if (kept < 2 || n - kept < length + 1)
    throw dfdx::error("data: " + o.data + " has " + std::to_string(n) + " tokens; pieces of " +
                      std::to_string(length) + " need more");
  return {all.first(static_cast<std::size_t>(n - kept)), all.last(static_cast<std::size_t>(kept))};
}

std::int64_t parameters(models::Llama const& m, bool trained) {
  std::int64_t n = 0;
  dfdx::visit(m, [&](dfdx::Array const& leaf) { n += !trained || leaf.requires_grad() ? leaf.size() : 0; });
  return n;
}

void draw(std::string const& path, Options const& o, std::vector<float> const& losses,
          report::Curve validation) {
  report::LineChart chart{.title = "Loss while training",
                          .subtitle = "nats per token; " +
                                      (o.lora.rank > 0 ? "factors of rank " + std::to_string(o.lora.rank)
                                                       : std::string("the whole model")) +
                                      "; seed " + std::to_string(o.seed),
                          .x_label = "steps of " + std::to_string(o.settings.batch) + " pieces of " +
                                     std::to_string(o.settings.length) + " tokens",
                          .steps = static_cast<double>(losses.size())};
  chart.y_format = "%.2f";
  chart.end_format = "%.2f";  // "validation" leaves room for no more
  chart.curves = {report::Curve::of("train", report::blue, losses), std::move(validation)};
  chart.save(path);
}

// Saves what was trained to a folder, and gives what is read back.
models::Llama save(models::Llama const& model, Options const& o, std::string const& folder) {
  if (o.lora.rank == 0) {
    models::save_llama(folder, model);
    auto const tokenizer = common::tokenizer_path(o.tokenizer, o.model);
    if (!common::copy_tokenizer(tokenizer, folder))
      std::printf("note     the tokenizer is a part of %s: give it with --tokenizer\n", tokenizer.c_str());
    return models::load_llama(std::filesystem::path(folder));
  }
  models::save_lora(folder, model, o.lora, o.model);
  models::Llama again = models::load_llama(std::filesystem::path(o.model));
  models::load_lora(folder, again);
  return again;
}

void run(Options o) {
  dfdx::Key const key{o.seed};
  Settings& s = o.settings;
  models::Llama model = models::load_llama(std::filesystem::path(o.model));
  if (s.length == 0) s.length = std::min<std::int64_t>(256, model.config.context);
  if (s.length > model.config.context)
    throw dfdx::error("--length: " + std::to_string(s.length) + " tokens, the model has " +
                      std::to_string(model.config.context) + " positions");
  auto const tokenizer = common::load_tokenizer(o.tokenizer, o.model, model.config.vocabulary);
  std::vector<std::int32_t> const all = tokenizer.encode(common::read_text(o.data));
  Split const text = split(all, o, s.length);
  if (o.lora.rank > 0) {
    models::add_lora(model, o.lora, fold_in(key, 0));
    models::watch_lora(model);
  } else {
    dfdx::visit(model, [](dfdx::Array& leaf) { leaf.requires_grad(true); });
  }
  common::prepare_folder(o.output);
  common::RunLog log(o.log);
  std::printf("data     %s: %zu tokens to train on, %zu to validate on\n", o.data.c_str(), text.train.size(),
              text.validation.size());
  std::printf("model    %s parameters, %s of them trained\n",
              report::thousands(parameters(model, false)).c_str(),
              report::thousands(parameters(model, true)).c_str());
  report::Curve validation{.name = "validation", .color = report::orange, .circles = true};
  auto const validate = [&](std::int64_t done, double train_loss) {
    double const loss = evaluate(model, text.validation, s.length);
    validation.points.emplace_back(static_cast<double>(done), loss);
    log.row({{"step", done}, {"train_loss", train_loss}, {"validation_loss", loss}});
    return loss;
  };
  double const before = validate(0, std::nan(""));
  std::printf("before   validation loss %.4f\n", before);
  std::fflush(stdout);

  double rate = 0;
  common::Run const times = [&] {
    report::Progress progress(s.steps);
    auto const keep = [&] {
      std::string const folder = o.output + "/last";
      std::filesystem::create_directories(folder);
      save(model, o, folder);
      return folder;
    };
    return common::or_keep(keep, [&] {
      return train(model, text.train, s, fold_in(key, 1), [&](std::int64_t done, double loss, double tokens) {
        rate = tokens;
        progress.show(done, {{"loss", loss}, {"tokens/s", tokens}});
        if (done % std::max<std::int64_t>(s.steps / 5, 1) == 0 && done != s.steps) validate(done, loss);
      });
    });
  }();
  double const after = validate(s.steps, times.recent);
  std::printf("trained  %lld steps in %.1f s, %.1f ms per step, %.0f tokens per second\n",
              static_cast<long long>(s.steps), times.seconds, times.step * 1e3, rate);
  std::printf("after    validation loss %.4f\n", after);
  draw(o.output + "/loss.svg", o, times.loss, validation);
  double const again = evaluate(save(model, o, o.output), text.validation, s.length);
  if (std::abs(again - after) > 1e-5)
    throw dfdx::error("output: " + o.output +
                      " does not read back as the model it was written from: its loss is " +
                      report::formatted("%.6f", again));
  std::printf("wrote    %s (read back: validation loss %.4f)\n", o.output.c_str(), again);
}

}  // namespace

}  // namespace finetune

int main(int argc, char** argv) {
  return common::guarded("finetune", [&] {
    if (auto const options = finetune::parse_options(argc, argv)) finetune::run(*options);
  });
}
