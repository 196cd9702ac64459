// SPDX-License-Identifier: BSL-1.0
// fashion: learns to tell kinds of clothes apart by their pictures. Trains the convolutional network of model.hpp with
// one compiled program, tests it after each epoch, saves it, reads it back, and draws how it went and what it learnt.
#include <dfdx/report.hpp>

#include <cstdio>

#include "../common/output.hpp"
#include "train.hpp"

namespace fashion {

namespace {

namespace report = dfdx::report;
using report::formatted;

std::vector<std::string> const names{"T-shirt", "trouser", "pullover", "dress", "coat",
                                     "sandal",  "shirt",   "sneaker",  "bag",   "boot"};

void print(Figures const& f) {
  auto const& c = f.confusion;
  std::printf("\n%-10s", "is / said");
  for (auto const& name : names) std::printf(" %8s", name.c_str());
  std::printf("  precision  recall     f1\n");
  for (std::size_t i = 0; i < classes; ++i) {
    auto const k = static_cast<dfdx::index_t>(i);
    std::printf("%-10s", names[i].c_str());
    for (dfdx::index_t j = 0; j < c.classes(); ++j) std::printf(" %8lld", static_cast<long long>(c(k, j)));
    auto const s = c.of(k);
    std::printf("     %.4f  %.4f  %.4f\n", s.precision, s.recall, s.f1);
  }
  auto const s = c.macro();
  std::printf("%-10s%90s     %.4f  %.4f  %.4f\n\n", "mean", "", s.precision, s.recall, s.f1);
  std::printf("test     accuracy %.4f, loss %.4f, %lld of %lld right\n", c.accuracy(), f.loss,
              static_cast<long long>(std::llround(c.accuracy() * static_cast<double>(c.total()))),
              static_cast<long long>(c.total()));
}

// The weights of the first layer, 3 x 3 each, from the least to the largest of each as black to white.
std::vector<report::Image> filters(Model const& model) {
  std::vector<report::Image> r;
  auto const& w = model.conv1.weight;
  auto const size = static_cast<std::size_t>(w.shape()[2] * w.shape()[3]);
  for (dfdx::index_t f = 0; f < w.shape()[0]; ++f) {
    float const* const from = w.data() + static_cast<std::size_t>(f) * size;
    auto const [low, high] = std::minmax_element(from, from + size);
    report::Image image{static_cast<std::size_t>(w.shape()[2]), static_cast<std::size_t>(w.shape()[3]), {}};
    for (std::size_t i = 0; i < size; ++i)
      image.values.push_back(*high > *low ? (from[i] - *low) / (*high - *low) : 0.5f);
    r.push_back(std::move(image));
  }
  return r;
}

void draw(common::PictureOptions const& o, History const& history, Model const& model, Figures const& last) {
  double const steps = static_cast<double>(history.loss.size());
  report::Curve test{.name = "test", .color = report::orange, .circles = true};
  for (std::size_t e = 0; e < history.tests.size(); ++e)
    test.points.emplace_back(steps * static_cast<double>(e + 1) / static_cast<double>(history.tests.size()),
                             history.tests[e].loss);
  report::LineChart chart{
      .title = "Loss while training",
      .subtitle = formatted("cross-entropy; seed %llu, test accuracy %.4f",
                            static_cast<unsigned long long>(o.seed), last.confusion.accuracy()),
      .x_label = formatted("steps of %zu examples", batch),
      .steps = steps};
  chart.curves = {report::Curve::of("train", report::blue, history.loss), test};
  chart.save(o.output + "/loss.svg");
  report::draw_matrix(
      o.output + "/confusion.svg", "What the test pictures are, and what they are said to be",
      formatted("accuracy %.4f, mean F1 %.4f", last.confusion.accuracy(), last.confusion.macro().f1),
      last.confusion.counts(), names);
  report::draw_images(o.output + "/filters.svg", "Filters of the first layer",
                      "3 x 3 weights each, black the least and white the largest of each", filters(model), 8,
                      16);
}

void check_model(common::PictureOptions const& o) {
  Model model;
  dfdx::load_safetensors(o.load, model);
  print(evaluate(model, common::read_examples(o.data, "t10k", o.limit)));
}

void run(common::PictureOptions const& o) {
  common::prepare_folder(o.output);
  Examples const training = common::read_examples(o.data, "train", o.limit),
                 test = common::read_examples(o.data, "t10k", o.limit);
  std::printf("data     %s: %lld pictures to train on, %lld to test on\n", o.data.c_str(),
              static_cast<long long>(training.size()), static_cast<long long>(test.size()));
  auto model = dfdx::init<Model>(o.seed);
  std::printf("model    %lld parameters\n", static_cast<long long>(dfdx::parameter_count<Model>));
  std::fflush(stdout);

  report::Log csv(o.output + "/log.csv"), json(o.output + "/log.jsonl");
  History const history = [&] {
    report::Progress progress(steps_of(o, training));
    return common::or_keep(model, o.output, {}, [&] {
      return train(
          model, training, test, o,
          [&](std::int64_t done, double loss, std::optional<double> accuracy) {
            if (accuracy) progress.show(done, {{"loss", loss}, {"test accuracy", *accuracy}});
            else progress.show(done, {{"loss", loss}});
          },
          [&](std::int64_t epoch, double loss, Figures const& f) {
            report::Log::Row const row{{"epoch", epoch},
                                       {"train_loss", loss},
                                       {"test_loss", f.loss},
                                       {"test_accuracy", f.confusion.accuracy()}};
            csv.row(row);
            json.row(row);
          });
    });
  }();
  std::printf("trained  %zu steps in %.1f s, %.1f ms per step\n", history.loss.size(), history.seconds,
              history.step * 1e3);
  std::printf("epoch    test loss  accuracy\n");
  for (std::size_t e = 0; e < history.tests.size(); ++e)
    std::printf("%5zu    %9.4f    %.4f\n", e + 1, history.tests[e].loss,
                history.tests[e].confusion.accuracy());

  Figures const& last = history.tests.back();
  print(last);
  std::string const file = o.output + "/model.safetensors";
  common::save(file, model,
               {{"epochs", std::to_string(o.epochs)},
                {"test_accuracy", formatted("%.4f", last.confusion.accuracy())}});
  draw(o, history, model, last);
  std::printf("wrote    %s (read back: equal), log.csv, log.jsonl, loss.svg, confusion.svg, filters.svg\n",
              file.c_str());
}

}  // namespace

}  // namespace fashion

int main(int argc, char** argv) {
  return common::guarded("fashion", [&] {
    auto const options = common::parse_options(
        argc, argv, "fashion", "Learns to tell kinds of clothes apart by their pictures (Fashion-MNIST).",
        {.output = "fashion-output",
         .lr = 2e-3,
         .precision = common::Precision::f32,
         .device = dfdx::Device{}});
    if (options) options->load.empty() ? fashion::run(*options) : fashion::check_model(*options);
  });
}
