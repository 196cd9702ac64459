// SPDX-License-Identifier: BSL-1.0
// gpt: learns to write like a text, character by character. Trains the transformer of model.hpp with one compiled
// program, saves it, reads it back and writes with it.
#include "../common/output.hpp"
#include "../common/run_log.hpp"
#include "options.hpp"

#include <dfdx/report/progress.hpp>

#include <algorithm>
#include <cstdio>

namespace gpt {

namespace {

void check_beginning(Alphabet const& alphabet, Options const& o, std::string const& of) {
  for (char c : o.beginning)
    if (alphabet.number(c) < 0)
      throw dfdx::error("--begin: the character '" + std::string(1, c) + "' is not in " + of);
}

void write(Model const& model, Alphabet const& alphabet, Options const& o) {
  std::string const text =
      sample(model, alphabet, o.beginning, o.length, o.temperature, dfdx::fold_in(Key{o.seed}, 3));
  std::printf("\n%s%s\n", o.beginning == "\n" ? "" : o.beginning.c_str(), text.c_str());
}

void load_and_write(Options const& o) {
  Model model;
  auto const facts = dfdx::load_safetensors(o.load, model);
  auto const characters = facts.find("characters");
  Alphabet const alphabet =
      characters == facts.end() ? Alphabet::of("") : Alphabet::from_hex(characters->second);
  if (alphabet.size() == 0 || alphabet.size() > vocabulary)
    throw dfdx::error("load: " + o.load + " does not say which characters its numbers are");
  check_beginning(alphabet, o, o.load);
  write(model, alphabet, o);
}

void run(Options const& o) {
  Key const key{o.seed};
  common::prepare_folder(o.output);
  if (!o.settings.checkpoint.empty()) common::prepare_file(o.settings.checkpoint);
  common::RunLog log(o.log);
  // The loss on the text to test on is known at the end only.
  auto const write_row = [&](std::int64_t done, double train_loss, double val_loss) {
    log.row({{"step", done}, {"train_loss", train_loss}, {"val_loss", val_loss}});
  };
  Text const text = read_text(o.data);
  check_beginning(text.alphabet, o, o.data);
  std::printf("data     %s: %zu characters, %zu different; %zu to train on, %zu to test on\n", o.data.c_str(),
              text.train.size() + text.val.size(), text.alphabet.size(), text.train.size(), text.val.size());
  auto model = dfdx::init<Model>(o.seed);
  std::printf("model    %lld parameters\n", static_cast<long long>(dfdx::parameter_count<Model>));
  std::fflush(stdout);

  common::Run const times = [&] {
    dfdx::report::Progress progress(o.settings.steps);
    auto const learn = [&] {
      return train(model, text, o.settings, dfdx::fold_in(key, 2), [&](std::int64_t done, double loss) {
        progress.show(done, {{"loss", loss}});
        if (done % 50 == 0 && done != o.settings.steps) write_row(done, loss, std::nan(""));
      });
    };
    // A checkpoint has the model.
    if (!o.settings.checkpoint.empty()) return learn();
    return common::or_keep(model, o.output, {{"characters", text.alphabet.hex()}}, learn);
  }();
  if (!o.settings.resume.empty())
    std::printf("resumed  %s: %lld steps done\n", o.settings.resume.c_str(),
                static_cast<long long>(times.first));
  std::printf("trained  %lld steps in %.1f s, %.1f ms per step\n",
              static_cast<long long>(std::max<std::int64_t>(o.settings.steps - times.first, 0)),
              times.seconds, times.step * 1e3);
  double const val = evaluate(model, text.val);
  write_row(o.settings.steps, times.recent, val);
  std::printf("loss     %.4f nats per character on the text to test on\n", val);

  std::string const file = o.output + "/model.safetensors";
  common::save(file, model,
               {{"characters", text.alphabet.hex()},
                {"steps", std::to_string(o.settings.steps)},
                {"val_loss", std::to_string(val)}});
  std::printf("wrote    %s (read back: equal)\n", file.c_str());
  write(model, text.alphabet, o);
}

}  // namespace

}  // namespace gpt

int main(int argc, char** argv) {
  return common::guarded("gpt", [&] {
    if (auto const options = gpt::parse_options(argc, argv))
      options->load.empty() ? gpt::run(*options) : gpt::load_and_write(*options);
  });
}
