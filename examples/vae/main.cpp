// SPDX-License-Identifier: BSL-1.0
// vae: learns what pictures look like, and draws new ones from noise.
#include "../common/learn.hpp"
#include "model.hpp"

namespace vae {

namespace {

// The negative evidence lower bound of a picture: what its points cost given a code drawn from the encoder's
// distribution, and how far that is from N(0, 1).
constexpr auto loss = [](auto const& model, auto const& pictures, auto const& key) {
  auto const x = dfdx::flatten<1>(common::brightness(pictures));
  auto const [mean, log_variance] = model.encode(x);
  auto const z = mean + exp(log_variance * 0.5) * dfdx::randn_like(mean, key);
  auto const points = sum(dfdx::bce_with_logits<dfdx::Reduction::none>(model.decode(z), x));
  auto const divergence = sum(exp(log_variance) + square(mean) - 1.0 - log_variance) * 0.5;
  return (points + divergence) / static_cast<double>(common::batch);
};
constexpr auto decode = [](auto const& model, auto const& z) {
  return dfdx::unflatten<1, 28, 28>(sigmoid(model.decode(z)));
};
constexpr auto reconstruct = [](auto const& model, auto const& pictures) {
  return decode(model, model.encode(dfdx::flatten<1>(common::brightness(pictures))).first);
};

void run(common::PictureOptions const& o) {
  common::prepare_folder(o.output);
  Model model;
  std::string written;
  auto const test = common::read_examples(o.data, "t10k", o.limit).pictures;
  if (o.load.empty()) {
    model = dfdx::init<Model>(o.seed);
    common::learn(model, loss, o, common::read_examples(o.data, "train", o.limit).pictures, test,
                  "nats of a picture");
    written = o.output + "/model.safetensors (read back: equal), log.csv, loss.svg, ";
  } else {
    dfdx::load_safetensors(o.load, model);
    std::printf("test     loss %.4f nats of a picture\n", common::mean_loss(model, loss, test));
  }
  auto const noise = dfdx::randn<float, 64, latent>(dfdx::fold_in(dfdx::Key{o.seed}, 2));
  namespace report = dfdx::report;
  report::save_png(o.output + "/samples.png",
                   report::tiled(common::images(dfdx::compile(decode)(model, noise)), 8, 2));
  common::draw_reconstructions(o.output + "/reconstructions.png", model, reconstruct, test);
  std::printf("wrote    %s%s/samples.png, reconstructions.png\n", written.c_str(), o.output.c_str());
}

}  // namespace

}  // namespace vae

int main(int argc, char** argv) {
  return common::guarded("vae", [&] {
    auto const options = common::parse_options(
        argc, argv, "vae", "Learns what pictures look like, and draws new ones from noise.",
        {.output = "vae-output", .epochs = 10, .lr = 1e-3});
    if (options) vae::run(*options);
  });
}
