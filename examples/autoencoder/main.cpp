// SPDX-License-Identifier: BSL-1.0
// autoencoder: learns to write pictures with 32 numbers each, and to draw them again from these.
#include "../common/learn.hpp"
#include "model.hpp"

namespace autoencoder {

namespace {

constexpr auto loss = [](auto const& model, auto const& pictures, auto const&) {
  auto const x = common::brightness(pictures);
  return mse_loss(model(x), x);
};
constexpr auto reconstruct = [](auto const& model, auto const& pictures) {
  return model(common::brightness(pictures));
};

// The error of drawing every picture as the mean of those to train on.
double mean_picture_error(common::Pictures const& training, common::Pictures const& test) {
  constexpr std::size_t points = common::side * common::side;
  std::vector<double> mean(points);
  auto const add = [&](common::Pictures const& p, auto const& f) {
    for (dfdx::index_t i = 0; i < p.size(); ++i)
      f(static_cast<std::size_t>(i) % points, static_cast<double>(p.data()[i]) / 255);
  };
  add(training, [&](std::size_t k, double v) { mean[k] += v; });
  for (double& m : mean) m /= static_cast<double>(training.shape()[0]);
  double error = 0;
  add(test, [&](std::size_t k, double v) { error += (v - mean[k]) * (v - mean[k]); });
  return error / static_cast<double>(test.size());
}

void run(common::PictureOptions const& o) {
  common::prepare_folder(o.output);
  auto const test = common::read_examples(o.data, "t10k", o.limit).pictures;
  Model model;
  std::string written = o.output + "/reconstructions.png";
  if (o.load.empty()) {
    auto const training = common::read_examples(o.data, "train", o.limit).pictures;
    model = dfdx::init<Model>(o.seed);
    common::learn(model, loss, o, training, test, "squared error of a point");
    std::printf("compare  %.4f when all are drawn as the mean picture\n", mean_picture_error(training, test));
    written = o.output + "/model.safetensors (read back: equal), log.csv, loss.svg, reconstructions.png";
  } else {
    dfdx::load_safetensors(o.load, model);
    std::printf("test     loss %.4f squared error of a point\n", common::mean_loss(model, loss, test));
  }
  common::draw_reconstructions(o.output + "/reconstructions.png", model, reconstruct, test);
  std::printf("wrote    %s\n", written.c_str());
}

}  // namespace

}  // namespace autoencoder

int main(int argc, char** argv) {
  return common::guarded("autoencoder", [&] {
    auto const options = common::parse_options(
        argc, argv, "autoencoder",
        "Learns to write pictures with 32 numbers each, and to draw them again from these.",
        {.output = "autoencoder-output", .epochs = 5, .lr = 2e-3});
    if (options) autoencoder::run(*options);
  });
}
