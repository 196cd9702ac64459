// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"
#include "../common/device.hpp"
#include "../common/output.hpp"
#include "cause.hpp"

#include <dfdx/io/checkpoint.hpp>

namespace gpt {

common::Run train(Model& model, Text const& text, Settings const& settings, Key key, Report const& report) {
  namespace optim = dfdx::optim;
  std::int64_t const warmup = settings.steps / 20;
  optim::WarmupSchedule const rate{
      warmup,
      optim::CosineSchedule{.lr = settings.lr, .steps = settings.steps - warmup, .lr_end = settings.lr_end}};
  auto step = dfdx::train_step(
      loss, optim::ClipNorm{optim::AdamW{.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1}, 1.0});

  common::Run run;
  dfdx::Device const device = settings.device;
  Model there = common::on(device, model);
  // What a run is: all that is not the same in each, and what it must find again.
  auto const state = [&](auto const& save_or_load) {
    save_or_load("model", there, "optimizer", step, "key", key, "recent", run.recent, "characters",
                 dfdx::must_equal(text.alphabet.hex()), "length", dfdx::must_equal(text.train.size()));
  };
  if (!settings.resume.empty())
    state([&](auto&&... parts) { dfdx::load_checkpoint(settings.resume, parts...); });
  run.first = step.steps();
  std::string kept = settings.resume;  // where the last good state is
  std::int64_t kept_at = run.first;

  std::vector<std::int32_t> const sample_of_text(text.train.begin(), text.train.begin() + 2 * context + 1);
  Batch b;
  auto const places = static_cast<dfdx::index_t>(text.train.size() - context);
  auto const prepare = [&](std::int64_t i) {
    for (std::size_t row = 0; row < batch; ++row)
      b.set(row, text.train,
            static_cast<std::size_t>(
                dfdx::integer_at(key, static_cast<std::uint64_t>(i) * batch + row, places)));
    step.optimizer().inner.lr = static_cast<double>(rate(i));
  };
  auto const keep = [&] {
    state([&](auto const&... parts) { dfdx::save_checkpoint(settings.checkpoint, parts...); });
    kept = settings.checkpoint;
    kept_at = step.steps();
  };
  auto const after = [&](std::int64_t done, double recent) {
    report(done, recent);
    if (settings.checkpoint.empty() || (done % settings.every != 0 && done != settings.steps)) return;
    // What the step has made is not yet known to be good: its loss was that of the parameters before.
    if (!dfdx::all_finite(step.state_for(there)) || !(evaluate(common::on({}, there), sample_of_text) < 1e4))
      throw dfdx::error("train: the model is no longer of use after " + std::to_string(done) +
                        " steps; a smaller --lr may help");
    keep();
  };
  auto watched = dfdx::watch(step, there, [](auto const&... x) { return cause(common::on({}, x)...); });
  auto const one = [&] {
    try {
      return watched(common::on(device, b.tokens), common::on(device, b.next));
    } catch (dfdx::error const&) {
      // The model is again what it was before this step.
      if (!settings.checkpoint.empty()) keep();
      throw;
    }
  };
  try {
    common::train_loop(run, settings.steps, 50, prepare, one, after);
  } catch (dfdx::error const& e) {
    common::bring_back(model, there);
    if (kept.empty()) throw;
    throw dfdx::error(std::string(e.what()) + "; the state after " + std::to_string(kept_at) +
                      " steps is in " + kept);
  }
  model = common::on({}, there);
  return run;
}

}  // namespace gpt
