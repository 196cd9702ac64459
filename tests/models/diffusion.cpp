// SPDX-License-Identifier: BSL-1.0
// What draws pictures against results of Hugging Face's diffusers, made by tests/golden/make_diffusion_refs.py.
#include "hf.hpp"

#include <dfdx/io/safetensors.hpp>
#include <dfdx/models/autoencoder_kl.hpp>
#include <dfdx/models/denoising.hpp>
#include <dfdx/models/stable_diffusion.hpp>
#include <dfdx/models/unet.hpp>
#include <dfdx/text/vocabulary_files.hpp>

namespace tests::models_diffusion {

using namespace tests;

namespace {

fs::path golden(std::string const& below) { return fs::path(DFDX_TEST_DIR) / "golden/diffusers" / below; }
Weights refs_of(std::string const& folder) { return read_safetensors(golden(folder) / "refs.safetensors"); }

// The largest difference, as a share of the largest number.
double off(Array const& a, Array const& want) {
  return largest_difference(a, want) / max(abs(want.to(DType::f64))).item<double>();
}
constexpr std::pair<DType, double> kinds[] = {{DType::f32, 2e-5}, {DType::f64, 1e-13}};

// A copy of weights with another entry in the config.
Weights with_config(Weights w, std::string const& key, MetaValue value) {
  w.metadata.set("config." + key, std::move(value));
  return w;
}

}  // namespace

TEST_CASE("networks that say what is noise, as those of Stable Diffusion 1 and 2", "[models]") {
  for (char const* name : {"unet_sd1", "unet_sd2"})
    for (auto const& [dtype, within] : kinds) {
      INFO(name << " " << name_of(dtype));
      Weights const refs = refs_of(name);
      models::Unet const m = models::load_unet(golden(name), dtype);
      // A time that is no integer, one that is, one for each picture, and sizes that are halved to odd ones.
      for (std::string const kind : {"float", "int", "per_batch", "odd"}) {
        INFO(kind);
        auto const in = [&](char const* what) { return refs.array(kind + ".in." + what); };
        int parts = 0;
        Array const y = m.run(in("sample").to(dtype), in("timestep"), in("encoder_hidden_states").to(dtype),
                              [&](std::string part, std::size_t i, Array const& h) {
                                if (part == "down" || part == "up") part += "_blocks." + std::to_string(i);
                                if (part == "mid") part += "_block";
                                if (refs.find(kind + ".mid." + part + ".f32") == nullptr) return;
                                INFO(part);
                                CHECK(off(h, refs.array(kind + ".mid." + part + ".f32")) < 2e-5);
                                ++parts;
                              });
        CHECK(parts == (kind == "int" ? 10 : 0));
        CHECK(y.dtype() == dtype);
        CHECK(off(y, refs.array(kind + ".out.sample.f64")) < within);
      }
    }
}

TEST_CASE("networks that say what is noise learn", "[models]") {
  Weights const refs = refs_of("unet_sd1");
  models::Unet m = models::load_unet(golden("unet_sd1"), DType::f64);
  auto const in = [&](char const* what) { return refs.array(std::string("float.in.") + what); };
  auto const loss = [&] {
    return sum(
        square(m(in("sample").to(DType::f64), in("timestep"), in("encoder_hidden_states").to(DType::f64))));
  };
  auto& w = *m.down_blocks[0].attentions[1].transformer_blocks[0].attn2.to_k.weight;
  w.requires_grad(true);
  loss().backward();
  Array const g = w.grad();
  w.requires_grad(false);
  for (index_t i : {0, 17}) {
    double const old = w[0][i].item<double>(), h = 1e-5;
    auto const at = [&](double v) {
      w.data<double>()[i] = v;
      return loss().item<double>();
    };
    double const slope = (at(old + h) - at(old - h)) / (2 * h);
    at(old);
    CHECK(std::abs(slope - g[0][i].item<double>()) < 1e-6 * (1 + std::abs(slope)));
  }
}

TEST_CASE("an autoencoder of pictures", "[models]") {
  Weights const refs = refs_of("vae");
  Weights const files = open_weights(golden("vae"));
  // As older files call the parts of attention.
  Weights const old = files.renamed([](Weight const& w) {
    std::string name = w.name;
    for (auto const& [now, before] : {std::pair(".to_q.", ".query."),
                                      {".to_k.", ".key."},
                                      {".to_v.", ".value."},
                                      {".to_out.0.", ".proj_attn."}})
      if (std::size_t const at = name.find(now); at != name.npos)
        name.replace(at, std::string(now).size(), before);
    return name;
  });
  REQUIRE(old.find("decoder.mid_block.attentions.0.proj_attn.bias") != nullptr);
  for (Weights const& w : {files, old})
    for (auto const& [dtype, within] : kinds) {
      models::Autoencoder const m = models::load_autoencoder(w, dtype);
      CHECK(m.config.scaling_factor == 0.18215);
      for (std::string const kind : {"", "wide."}) {
        auto const [mean, logarithm] = m.encode(refs.array(kind + "in.image").to(dtype));
        CHECK(off(mean, refs.array(kind + "out.mean.f64")) < within);
        CHECK(off(logarithm, refs.array(kind + "out.logvar.f64")) < within);
        CHECK(off(m.decode(refs.array(kind + "in.latents").to(dtype)), refs.array(kind + "out.image.f64")) <
              within);
      }
    }
}

TEST_CASE("steps from noise to a picture", "[models]") {
  int trajectories = 0;
  for (auto const& entry : fs::directory_iterator(golden("schedulers"))) {
    fs::path const folder = entry.path();
    Weights const refs = read_safetensors(folder / "refs.safetensors");
    auto const [schedule, how] = models::noise_schedule(folder / "scheduler_config.json");
    for (index_t const n : {1, 4, 20}) {
      std::string const in = "steps" + std::to_string(n) + ".";
      if (refs.find(in + "timesteps.f64") == nullptr) continue;
      INFO(folder.filename() << ", " << n << " steps");
      ++trajectories;
      models::Denoiser d(schedule, how, n);
      CHECK(d.steps() == n);
      CHECK(std::abs(d.initial() - refs.array(in + "init_noise_sigma.f64")[0].item<double>()) < 1e-12);
      Array const times = refs.array(in + "timesteps.f64"), inputs = refs.array(in + "scaled_input.f64"),
                  samples = refs.array(in + "sample.f64");
      Array x = refs.array(in + "in.noise").to(DType::f64) * d.initial();
      for (index_t i = 0; i < n; ++i) {
        CHECK(std::abs(d.time(i) - times[i].item<double>()) < 1e-9);
        Array const seen = d.input(i, x);
        CHECK(largest_difference(seen, inputs[i]) < 1e-11);
        x = d.step(i, x, seen * 0.3 + 0.01 * std::sin(d.time(i) / 100),
                   [&] { return refs.array(in + "in.step_noise")[i].to(DType::f64); });
        CHECK(largest_difference(x, samples[i]) < 1e-11);
      }
    }
  }
  CHECK(trajectories == 35);
}

// A whole model in a folder, as diffusers lays it out: the network and the autoencoder of above, and a text encoder of
// random numbers for a vocabulary of letters.
void write_model(TemporaryFolder const& folder) {
  fs::create_directories(folder / "tokenizer");
  fs::create_directories(folder / "text_encoder");
  fs::create_directories(folder / "scheduler");
  fs::copy(golden("unet_sd1"), folder / "unet");
  fs::copy(golden("vae"), folder / "vae");
  fs::copy(golden("schedulers/euler_trailing/scheduler_config.json"),
           folder / "scheduler/scheduler_config.json");
  std::string letters;
  for (int i = 0; i < 26; ++i) {
    std::string const letter(1, static_cast<char>('a' + i));
    letters += "\"" + letter + "\": " + std::to_string(2 * i) + ", \"" + letter +
               "</w>\": " + std::to_string(2 * i + 1) + ", ";
  }
  folder.write("tokenizer/vocab.json",
               "{" + letters + "\"<|startoftext|>\": 52, \"<|endoftext|>\": 53, \"!\": 54}");
  folder.write("tokenizer/merges.txt", "#version: 0.2\n");
  folder.write("tokenizer/special_tokens_map.json",
               "{\"pad_token\": {\"content\": \"!\", \"lstrip\": false}}");
  folder.write("text_encoder/config.json",
               "{\"model_type\": \"clip_text_model\", \"vocab_size\": 55, \"hidden_size\": 24, "
               "\"intermediate_size\": 32, "
               "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"max_position_embeddings\": 7, "
               "\"eos_token_id\": 53}");
  models::ClipTextConfig c;
  c.vocabulary = 55, c.width = 24, c.hidden = 32, c.layers = 2, c.heads = 2, c.context = 7;
  models::ClipText m = models::detail::outline_of(c);
  std::uint64_t seed = 0;
  visit(m, [&](Array& leaf) { leaf = randn(leaf.shape(), Key{seed++}) * 0.3; });
  save_safetensors(folder / "text_encoder/model.safetensors", m);
}

TEST_CASE("pictures from texts", "[models]") {
  TemporaryFolder const folder;
  write_model(folder);
  models::StableDiffusion const m = models::load_stable_diffusion(folder / "");
  CHECK(m.pad == 54);
  CHECK(m.how == models::Denoise::euler);
  // Texts that are short end with what pads them, and long ones are cut before their end.
  CHECK(array_equal(m.context("Cab"),
                    m.text_encoder(reshape(from({52, 4, 0, 3, 53, 54, 54}, {7}), {1, 7}).to(DType::i32))));
  CHECK(array_equal(m.context("abcdefghij"),
                    m.text_encoder(reshape(from({52, 0, 2, 4, 6, 8, 53}, {7}), {1, 7}).to(DType::i32))));
  models::DrawOptions o{.width = 64, .height = 48, .steps = 3, .guidance = 3, .seed = 5};
  std::vector<index_t> seen;
  Array const picture = m.draw("a cat", o, [&](index_t i, index_t n) { seen.push_back(10 * n + i); });
  CHECK(seen == std::vector<index_t>{30, 31, 32});
  CHECK(picture.shape() == make_shape(3, 48, 64));
  CHECK(min(picture).item() >= 0);
  CHECK(max(picture).item() <= 1);
  CHECK(array_equal(m.draw("a cat", o), picture));
  // The same by hand.
  models::Denoiser d(m.schedule, models::Denoise::euler, 3);
  Array x = randn(make_shape(1, 4, 6, 8), fold_in(Key{5}, 0)) * d.initial();
  for (index_t i = 0; i < 3; ++i) {
    Array const t = Array::number(static_cast<float>(d.time(i))), in = d.input(i, x);
    Array const without = m.unet(in, t, m.context("")), with = m.unet(in, t, m.context("a cat"));
    x = d.step(i, x, without + (with - without) * 3.0, [] { return Array(); });
  }
  Array const want = clamp(m.vae.decode(x * (1 / 0.18215))[0] * 0.5 + 0.5, 0.0, 1.0);
  CHECK(largest_difference(picture, want) < 1e-4);
  auto const changed = [&](auto const& change) {
    models::DrawOptions p = o;
    change(p);
    return largest_difference(m.draw("a cat", p), picture) > 1e-3;
  };
  CHECK(changed([](auto& p) { p.seed = 6; }));
  CHECK(changed([](auto& p) { p.guidance = 1; }));
  CHECK(changed([](auto& p) { p.avoid = "dog"; }));
  CHECK(changed([](auto& p) { p.how = models::Denoise::euler_ancestral; }));
  CHECK(changed([](auto& p) { p.how = models::Denoise::dpm_solver; }));
  CHECK(largest_difference(m.draw("a dog", o), picture) > 1e-3);
  o.width = 60;
  CHECK(error_of([&] { m.draw("a cat", o); }) == "draw: 48 x 60 points: 8 must divide both");
  fs::remove_all(folder / "unet");
  fs::copy(golden("unet_sd2"), folder / "unet");
  CHECK(has(error_of([&] { models::load_stable_diffusion(folder / ""); }),
            "texts are vectors of 24 numbers, and the network reads 20"));
}

TEST_CASE("what draws pictures and does not fit", "[models]") {
  Weights const unet = open_weights(golden("unet_sd1")), vae = open_weights(golden("vae"));
  auto const refused = [](Weights const& w) { return error_of([&] { models::load_unet(w); }); };
  CHECK(has(refused(with_config(unet, "addition_embed_type", std::string("text_time"))),
            "addition_embed_type is not supported"));
  CHECK(has(refused(with_config(unet, "attention_head_dim", std::int64_t{3})),
            "unet: 4 channels are not divided by 3 heads"));
  CHECK(has(refused(with_config(unet, "cross_attention_dim", std::int64_t{25})), "does not fit the model"));
  CHECK(has(refused(with_config(unet, "norm_num_groups", std::int64_t{0})), "unet: groups: 0"));
  CHECK(has(refused(with_config(unet, "transformer_layers_per_block", std::int64_t{1} << 40)),
            "layers of a transformer"));
  CHECK(has(refused(with_config(unet, "layers_per_block", std::int64_t{3})),
            "resnets.2.norm1.weight is missing"));
  CHECK(has(error_of([&] { models::load_unet(vae); }), "unet"));
  CHECK(has(error_of([&] { models::load_autoencoder(unet); }),
            "blocks of type CrossAttnDownBlock2D are not supported"));
  models::Unet const m = models::load_unet(unet);
  Array const x = zeros({2, 4, 8, 8}), text = zeros({2, 7, 24});
  CHECK(error_of([&] { m(x[0], zeros({}), text); }) ==
        "unet: a picture [B, 4, H, W] required, got [4, 8, 8]");
  CHECK(error_of([&] { m(x, zeros({3}), text); }) == "unet: times [3] for 2 pictures");
  CHECK(error_of([&] { m(x, zeros({}), zeros({2, 7, 25})); }) ==
        "unet: a context [2, T, 24] required, got [2, 7, 25]");
  models::Autoencoder const a = models::load_autoencoder(vae);
  CHECK(error_of([&] { a.encode(zeros({3, 8, 8})); }) ==
        "autoencoder: a picture [B, 3, H, W] required, got [3, 8, 8]");
  CHECK(error_of([&] { a.decode(zeros({1, 3, 8, 8})); }) ==
        "autoencoder: a latent [B, 4, H, W] required, got [1, 3, 8, 8]");
  CHECK(error_of([&] { models::Denoiser({}, models::Denoise::ddim, 0); }) ==
        "denoising: 0 steps of 1000 times");
  CHECK(has(
      error_of([&] { models::Denoiser({.beta_start = 0.1, .beta_end = 0.01}, models::Denoise::euler, 1); }),
      "denoising: betas from"));
  TemporaryFolder const folder;
  CHECK(has(
      error_of([&] { models::noise_schedule(folder.write("s.json", "{\"prediction_type\": \"sample\"}")); }),
      "prediction_type sample is not supported"));
  CHECK(has(error_of([&] { models::noise_schedule(folder.write("t.json", "{")); }), "is not valid JSON"));
  CHECK(has(error_of([&] {
              models::noise_schedule(folder.write("u.json", "{\"_class_name\": \"HeunDiscreteScheduler\"}"));
            }),
            "_class_name HeunDiscreteScheduler is not supported"));
  CHECK(has(error_of([&] { models::noise_schedule(folder.write("v.json", "{\"clip_sample\": true}")); }),
            "clip_sample is not supported"));
  CHECK(has(error_of([&] { models::Denoiser({}, models::Denoise::dpm_solver, 1000); }),
            "denoising: 1000 steps of 1000 times"));
}

}  // namespace tests::models_diffusion
