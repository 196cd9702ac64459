// SPDX-License-Identifier: BSL-1.0
// Draws what a text says with Stable Diffusion 1 or 2 (or SD-Turbo) from a folder of Hugging Face's diffusers.
#include <CLI/CLI.hpp>

#include <dfdx/models.hpp>
#include <dfdx/report/png.hpp>

#include <chrono>
#include <cstdio>
#include <map>

using namespace dfdx;

int main(int argc, char** argv) {
  models::DrawOptions o;
  std::string folder, prompt, out = "picture.png";
  DType dtype = DType::f32;
  models::Denoise how = models::Denoise::ddim;
  CLI::App app{
      "Draws what a text says. MODEL is a folder of diffusers with text_encoder, tokenizer, unet, vae and "
      "scheduler in "
      "it, for example stable-diffusion-v1-5 or sd-turbo from Hugging Face."};
  app.add_option("model", folder, "the folder")->required()->type_name("MODEL");
  app.add_option("-p,--prompt", prompt, "what is to be seen")->required();
  app.add_option("--avoid", o.avoid, "what is not to be seen");
  app.add_option("--width", o.width, "points")->capture_default_str();
  app.add_option("--height", o.height, "points")->capture_default_str();
  app.add_option("--steps", o.steps, "steps")->capture_default_str();
  app.add_option("--guidance", o.guidance, "how far the text leads; 1 for Turbo")->capture_default_str();
  app.add_option("--seed", o.seed, "of the noise that it begins with")->capture_default_str();
  auto* const method = app.add_option("--method", how, "how steps are taken (what the model says)")
                           ->transform(CLI::CheckedTransformer(std::map<std::string, models::Denoise>{
                               {"ddim", models::Denoise::ddim},
                               {"euler", models::Denoise::euler},
                               {"euler_a", models::Denoise::euler_ancestral},
                               {"dpm++2m", models::Denoise::dpm_solver}}));
  app.add_option("--dtype", dtype, "of the networks' weights")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, DType>{{"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}}));
  app.add_option("-o,--out", out, "the picture, a PNG file")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (method->count() > 0) o.how = how;

  auto const seconds = [begin = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  try {
    models::StableDiffusion const m = models::load_stable_diffusion(folder, dtype);
    std::fprintf(stderr, "loaded in %.1f s\n", seconds());
    Array const picture = m.draw(prompt, o, [&](index_t i, index_t n) {
      std::fprintf(stderr, "step %td of %td, %.1f s\n", i + 1, n, seconds());
    });
    report::save_png(out, picture);
    std::fprintf(stderr, "%s: %.1f s\n", out.c_str(), seconds());
  } catch (error const& e) {
    std::fprintf(stderr, "draw: %s\n", e.what());
    return 1;
  }
}
