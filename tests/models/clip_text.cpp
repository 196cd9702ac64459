// SPDX-License-Identifier: BSL-1.0
// CLIP's text encoder against results of Hugging Face's transformers.
#include "hf.hpp"

#include <dfdx/models/clip_text.hpp>

namespace tests::models_clip_text {

using namespace tests;

namespace {

fs::path tiny() { return shared("refs/hf/clip-text-tiny-quick_gelu"); }
Array some_tokens() { return read_safetensors(tiny() / "refs.safetensors").array("input_ids"); }

}  // namespace

TEST_CASE("tiny text encoders of transformers", "[models]") {
  for_models_of_types({"clip", "clip_text_model"}, [](fs::path const& folder) {
    Weights const refs = read_safetensors(folder / "refs.safetensors");
    Array const ids = refs.array("input_ids");
    for (auto const& [dtype, within] : {std::pair(DType::f32, 1e-5), {DType::f64, 1e-10}}) {
      models::ClipText const m = models::load_clip_text(folder, dtype);
      Array const last = m(ids);
      CHECK(last.dtype() == dtype);
      CHECK(largest_difference(last, refs.array("last_hidden_state_f64")) < within);
      CHECK(largest_difference(m.pooled(ids, last), refs.array("pooled_f64")) < within);
    }
  });
}

TEST_CASE("where a text ends", "[models]") {
  models::ClipText m = models::load_clip_text(tiny());
  Array const tokens = reshape(from({5, 9, 7, 9, 1, 2, 3, 4}, {8}), {2, 4}).to(DType::i32), last = m(tokens);
  auto const row = [&](index_t b, index_t t) { return slice(slice(last, 0, b, b + 1), 1, t, t + 1); };
  auto const pooled = [&](index_t b) {
    return reshape(slice(m.pooled(tokens, last), 0, b, b + 1), {1, 1, -1});
  };
  m.config.eos = 9;  // the first, or where there is none the beginning
  CHECK(array_equal(pooled(0), row(0, 1)));
  CHECK(array_equal(pooled(1), row(1, 0)));
  m.config.eos = 2;  // an old config: the highest
  CHECK(array_equal(pooled(0), row(0, 1)));
  CHECK(array_equal(pooled(1), row(1, 3)));
  CHECK(m.pooled(tokens[0], m(tokens[0])).shape() == make_shape(64));
  // What stands behind a position changes nothing of it.
  CHECK(largest_difference(m(slice(tokens, 1, 0, 2)), slice(last, 1, 0, 2)) < 1e-5);
}

TEST_CASE("a text encoder in a whole model, and of other names", "[models]") {
  Weights const files = open_weights(tiny());
  Array const tokens = some_tokens(), whole = models::load_clip_text(files)(tokens);
  Weights clip = files.renamed([](Weight const& w) { return "text_model." + w.name; });
  for (auto const& [key, value] : files.metadata.entries())
    if (key.starts_with("config.")) clip.metadata.set("config.text_config." + key.substr(7), value);
  clip.metadata.set("config.model_type", std::string("clip"));
  clip.metadata.set("config.hidden_size", std::int64_t{7});  // not that of the texts
  clip.add("text_projection.weight", ones(make_shape(3, 64)));
  clip.add("text_model.embeddings.position_ids", arange(32));
  clip.add("vision_model.post_layernorm.bias", ones(make_shape(7)));
  clip.add("visual_projection.weight", ones(make_shape(3, 7)));
  clip.add("logit_scale", ones({}));
  models::ClipText const m = models::load_clip_text(clip);
  CHECK(array_equal(m(tokens), whole));
  Array const sums = sum(m.pooled(tokens, whole), 1, true);
  CHECK(largest_difference(m.embed(tokens), concat({sums, sums, sums}, 1)) < 1e-5);
  CHECK(error_of([&] { models::load_clip_text(files).embed(tokens); }) ==
        "clip: this model has no text_projection");
}

TEST_CASE("files that do not fit a text encoder are refused", "[models]") {
  fs::path const files = tiny();
  TemporaryFolder const folder;
  auto const config = [&](std::string const& from, std::string const& to) {
    copy_changed(files, folder / "", from, to);
    return error_of([&] { models::load_clip_text(folder / ""); });
  };
  CHECK(has(config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
            "text_model.encoder.layers.2.layer_norm1.weight is missing; "
            "text_model.encoder.layers.2.layer_norm1.bias"));
  CHECK(has(config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"), "is not in the model"));
  CHECK(has(config("\"intermediate_size\": 128", "\"intermediate_size\": 127"),
            "[128, 64] in the file, [127, 64]"));
  CHECK(config("\"num_attention_heads\": 4", "\"num_attention_heads\": 3") ==
        "clip: a width of 64 is not divided by 3 heads");
  CHECK(has(config("\"model_type\": \"clip_text_model\"", "\"model_type\": \"vit\""), "models of type vit"));
  CHECK(has(config("\"quick_gelu\"", "\"gelu_slow\""), "an activation gelu_slow, which is not supported"));
  CHECK(config("\"hidden_act\": \"quick_gelu\"", "\"hidden_act\": \"gelu\"").empty());
  models::ClipText const m = models::load_clip_text(tiny());
  CHECK(error_of([&] { m(zeros(make_shape(33)).to(DType::i32)); }) ==
        "clip: 33 positions, there is room for 32");
}

}  // namespace tests::models_clip_text
