// SPDX-License-Identifier: BSL-1.0
// A whole run, whatever the size of the pictures: trains a model or loads one, tests it and draws what it makes.
#pragma once

#include "../common/learn.hpp"
#include "cause.hpp"
#include "figures.hpp"
#include "linear.hpp"
#include "models.hpp"

namespace autoencoder {

inline constexpr auto reconstruct = [](auto const& model, auto const& pictures) {
  return model(common::brightness(pictures));
};
inline constexpr auto encode = [](auto const& model, auto const& pictures) {
  return model.encode(common::brightness(pictures));
};

/// The codes of pictures, [N, Code] by rows; batches of one size only, so the last picture fills up the last.
template <class Model>
std::vector<float> codes(Model const& model, common::PicturesOf<Model::side> const& pictures) {
  auto program = dfdx::compile(encode);
  constexpr std::size_t batch = common::batch, points = Model::side * Model::side;
  auto x = dfdx::empty<std::uint8_t, batch, Model::side, Model::side>();
  auto const n = static_cast<std::size_t>(pictures.shape()[0]);
  std::vector<float> r;
  for (std::size_t begin = 0; begin < n; begin += batch) {
    for (std::size_t i = 0; i < batch; ++i)
      std::copy_n(pictures.data() + std::min(begin + i, n - 1) * points, points, x.data() + i * points);
    auto const z = program(model, x);
    r.insert(r.end(), z.data(), z.data() + std::min(batch, n - begin) * Model::code);
  }
  return r;
}

template <std::size_t Side, std::size_t Code>
void run_model(common::PictureOptions const& o, Data<Side> const& data) {
  Model<Side, Code> model;
  std::string written = o.output + "/";
  if (o.load.empty()) {
    auto const& training = data.training.pictures;
    model = dfdx::init<Model<Side, Code>>(o.seed);
    common::learn(model, loss, cause<Side, Code>, o, training, data.test.pictures,
                  "squared error of a point");
    auto const other = compare(training, data.test.pictures, static_cast<dfdx::index_t>(Code));
    std::printf("compare  %.4f when all are drawn as the mean picture, %.4f by %zu directions (linear)\n",
                other.mean_picture, other.main_directions, Code);
    written += "model.safetensors (read back: equal), log.csv, loss.svg, ";
  } else {
    dfdx::load_safetensors(o.load, model);
    std::printf("test     loss %.4f squared error of a point\n",
                common::mean_loss(model, loss, data.test.pictures));
  }
  common::draw_reconstructions(o.output + "/reconstructions.png", model, reconstruct, data.test.pictures);
  written += "reconstructions.png";
  if constexpr (Code == 2) {
    draw_codes(o.output + "/codes.svg", codes(model, data.test.pictures), data.test.labels, data.classes);
    written += ", codes.svg";
  }
  std::printf("wrote    %s\n", written.c_str());
}

}  // namespace autoencoder
