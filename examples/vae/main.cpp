// SPDX-License-Identifier: BSL-1.0
// vae: learns what pictures look like, and draws new ones from noise.
#include "../common/learn.hpp"
#include "cause.hpp"

namespace vae {

namespace {

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
    common::learn(model, loss, cause, o, common::read_examples(o.data, "train", o.limit).pictures, test,
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
