// SPDX-License-Identifier: BSL-1.0
// Llama's kin from folders of Hugging Face against plain loops over complex numbers, which have nothing in common with
// the library: each kind with the keys of config.json that it is published with. A step of 1e-30 along the imaginary
// axis gives derivatives to the last bits.
#include "hf.hpp"
#include "worse.hpp"

#include <dfdx/core/random.hpp>
#include <dfdx/io/safetensors.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/llama_save.hpp>

#include <complex>
#include <fstream>
#include <set>

namespace tests::models_llama_kinds {

using namespace tests;

namespace {

using Number = std::complex<double>;
using Row = std::vector<Number>;

// The sizes that all have, unless a kind says otherwise; what its config.json says besides; and what that means.
struct Kind {
  char const* name;
  char const* type;
  std::string said;
  std::size_t heads = 4, kv = 2, size = 6, layers = 3, width = 24, hidden = 20, tokens = 31;
  std::vector<std::size_t> windows = {0, 0, 0};
  bool tied = false, bias = false, out_bias = false, mlp_bias = false, norms = false;
  std::function<double(double)> stretch = [](double f) { return f; };
  double base = 10000;
  // Rotary embeddings by a table: frequencies one by one, and what sines and cosines are multiplied with.
  std::vector<double> frequencies = {};
  double amplitude = 1;
  // Whether files have the rows of several matrices in one.
  bool fused = false;
};

std::string config_of(Kind const& k) {
  auto const n = [](char const* key, std::size_t value) {
    return std::string(", \"") + key + "\": " + std::to_string(value);
  };
  return "{\"model_type\": \"" + std::string(k.type) +
         "\", \"rms_norm_eps\": 1e-6, \"hidden_act\": \"silu\"" + n("hidden_size", k.width) +
         n("intermediate_size", k.hidden) + n("num_hidden_layers", k.layers) +
         n("num_attention_heads", k.heads) + n("num_key_value_heads", k.kv) + n("vocab_size", k.tokens) +
         (k.said.find("max_position") == k.said.npos ? n("max_position_embeddings", 64) : "") + ", " +
         k.said + "}";
}

class Plain {
 public:
  explicit Plain(Kind const& k) : k_(k) {
    auto const add = [&](std::string const& name, std::size_t rows, std::size_t columns) {
      shapes[name] = columns == 0 ? make_shape(static_cast<index_t>(rows))
                                  : make_shape(static_cast<index_t>(rows), static_cast<index_t>(columns));
      bool const norm = name.find("norm") != name.npos;
      double const most = columns == 0 ? 0.4 : 2 / std::sqrt(static_cast<double>(columns));
      Row& w = all[name];
      w.resize(rows * std::max<std::size_t>(columns, 1));
      for (Number& x : w)  // floats, for so they are written
        x = static_cast<float>((norm ? 1.0 : 0.0) + most * (2 * uniform_at(Key(7), drawn_++) - 1));
    };
    auto const linear = [&](std::string const& name, std::size_t out, std::size_t in, bool bias) {
      add(name + ".weight", out, in);
      if (bias) add(name + ".bias", out, 0);
    };
    add("model.embed_tokens.weight", k.tokens, k.width);
    for (std::size_t i = 0; i < k.layers; ++i) {
      std::string const in = "model.layers." + std::to_string(i) + ".", a = in + "self_attn.",
                        m = in + "mlp.";
      linear(a + "q_proj", k.heads * k.size, k.width, k.bias);
      linear(a + "k_proj", k.kv * k.size, k.width, k.bias),
          linear(a + "v_proj", k.kv * k.size, k.width, k.bias);
      linear(a + "o_proj", k.width, k.heads * k.size, k.out_bias);
      linear(m + "gate_proj", k.hidden, k.width, k.mlp_bias),
          linear(m + "up_proj", k.hidden, k.width, k.mlp_bias);
      linear(m + "down_proj", k.width, k.hidden, k.mlp_bias);
      add(in + "input_layernorm.weight", k.width, 0), add(in + "post_attention_layernorm.weight", k.width, 0);
      if (k.norms) add(a + "q_norm.weight", k.size, 0), add(a + "k_norm.weight", k.size, 0);
    }
    add("model.norm.weight", k.width, 0);
    if (!k.tied) linear("lm_head", k.tokens, k.width, false);
  }

  void write(fs::path const& folder) const {
    std::map<std::string, Array> arrays;
    for (auto const& [name, w] : all) {
      Array a(Meta{DType::f32, shapes.at(name)});
      for (std::size_t i = 0; i < w.size(); ++i) a.data<float>()[i] = static_cast<float>(w[i].real());
      arrays.emplace(name, a);
    }
    auto const fuse = [&](std::string const& in, std::vector<char const*> const& parts, char const* whole) {
      std::vector<Array> rows;
      for (char const* p : parts) {
        rows.push_back(arrays.at(in + p + ".weight"));
        arrays.erase(in + p + ".weight");
      }
      arrays.emplace(in + whole + ".weight", concat(rows, 0).contiguous());
    };
    for (std::size_t l = 0; k_.fused && l < k_.layers; ++l) {
      std::string const in = "model.layers." + std::to_string(l) + ".";
      fuse(in + "self_attn.", {"q_proj", "k_proj", "v_proj"}, "qkv_proj");
      fuse(in + "mlp.", {"gate_proj", "up_proj"}, "gate_up_proj");
    }
    save_safetensors(folder / "model.safetensors", arrays, {});
    std::ofstream(folder / "config.json") << config_of(k_);
  }

  // [T][vocabulary]
  std::vector<Row> operator()(Tokens const& ids) const {
    std::size_t const T = ids.size(), group = k_.heads / k_.kv;
    std::vector<Row> h;
    for (std::int32_t t : ids) {
      auto const at = all.at("model.embed_tokens.weight").begin() + t * static_cast<std::ptrdiff_t>(k_.width);
      h.emplace_back(at, at + static_cast<std::ptrdiff_t>(k_.width));
    }
    for (std::size_t l = 0; l < k_.layers; ++l) {
      std::string const in = "model.layers." + std::to_string(l) + ".", a = in + "self_attn.",
                        m = in + "mlp.";
      std::vector<Row> q, k, v;
      for (std::size_t t = 0; t < T; ++t) {
        Row const x = norm(h[t], in + "input_layernorm");
        q.push_back(times(x, a + "q_proj")), k.push_back(times(x, a + "k_proj"));
        v.push_back(times(x, a + "v_proj"));
        turn(q[t], a + "q_norm", t), turn(k[t], a + "k_norm", t);
      }
      for (std::size_t t = 0; t < T; ++t) {
        Row seen(k_.heads * k_.size);
        std::size_t const first = k_.windows[l] > 0 && t + 1 > k_.windows[l] ? t + 1 - k_.windows[l] : 0;
        for (std::size_t head = 0; head < k_.heads; ++head) {
          Row weight;
          Number sum = 0;
          for (std::size_t s = first; s <= t; ++s) {
            Number score = 0;
            for (std::size_t i = 0; i < k_.size; ++i)
              score += q[t][head * k_.size + i] * k[s][head / group * k_.size + i];
            weight.push_back(std::exp(score / std::sqrt(static_cast<double>(k_.size))));
            sum += weight.back();
          }
          for (std::size_t s = first; s <= t; ++s)
            for (std::size_t i = 0; i < k_.size; ++i)
              seen[head * k_.size + i] += weight[s - first] / sum * v[s][head / group * k_.size + i];
        }
        add(h[t], times(seen, a + "o_proj"));
      }
      for (Row& x : h) {
        Row const y = norm(x, in + "post_attention_layernorm");
        Row gate = times(y, m + "gate_proj");
        Row const up = times(y, m + "up_proj");
        for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0 + std::exp(-gate[i]));
        add(x, times(gate, m + "down_proj"));
      }
    }
    std::vector<Row> r;
    for (Row const& x : h)
      r.push_back(times(norm(x, "model.norm"), k_.tied ? "model.embed_tokens" : "lm_head"));
    return r;
  }

  static Number loss(std::vector<Row> const& logits, Tokens const& ids) {
    Number r = 0;
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      Number sum = 0;
      for (Number x : logits[t]) sum += std::exp(x);
      r += std::log(sum) - logits[t][static_cast<std::size_t>(ids[t + 1])];
    }
    return r / static_cast<double>(ids.size() - 1);
  }

  std::map<std::string, Row> all;
  std::map<std::string, Shape> shapes;

 private:
  Row times(Row const& x, std::string const& name) const {
    Row const& w = all.at(name + ".weight");
    Row y(w.size() / x.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += w[i * x.size() + j] * x[j];
    if (auto const b = all.find(name + ".bias"); b != all.end()) add(y, b->second);
    return y;
  }
  static void add(Row& x, Row const& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  Row norm(Row const& x, std::string const& name) const {
    Number squares = 0;
    for (Number e : x) squares += e * e;
    Number const by = std::sqrt(squares / static_cast<double>(x.size()) + 1e-6);
    Row y = all.at(name + ".weight");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= x[i] / by;
    return y;
  }
  // Heads normalized, if they are, and turned: elements i and i + size / 2 together, by angles rounded to floats.
  void turn(Row& x, std::string const& norms, std::size_t position) const {
    for (std::size_t from = 0; from < x.size(); from += k_.size) {
      auto const begin = x.begin() + static_cast<std::ptrdiff_t>(from);
      Row head(begin, begin + static_cast<std::ptrdiff_t>(k_.size));
      if (k_.norms) head = norm(head, norms);
      std::size_t const half = k_.size / 2;
      for (std::size_t i = 0; i < half; ++i) {
        double f = k_.stretch(std::pow(k_.base, -static_cast<double>(i) / static_cast<double>(half)));
        if (!k_.frequencies.empty()) f = k_.frequencies[i];
        float const angle = static_cast<float>(position) * static_cast<float>(f);
        double const c = static_cast<float>(std::cos(static_cast<double>(angle)) * k_.amplitude);
        double const s = static_cast<float>(std::sin(static_cast<double>(angle)) * k_.amplitude);
        x[from + i] = head[i] * c - head[i + half] * s;
        x[from + i + half] = head[i + half] * c + head[i] * s;
      }
    }
  }

  Kind k_;
  std::uint64_t drawn_ = 0;
};

// Longer than every window, and than what is called the original context below.
Tokens const text = {3, 14, 15, 9, 26, 5, 30, 8, 9, 7, 9, 3};

double off(Array const& logits, std::vector<Row> const& expected) {
  Array const x = logits.to(DType::f64).contiguous();
  double most = 0, scale = 1;
  for (std::size_t t = 0; t < expected.size(); ++t)
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      double const e = expected[t][i].real();
      scale = std::max(scale, std::abs(e));
      most = tests::worse(most, std::abs(x.data<double>()[t * expected[t].size() + i] - e));
    }
  return most / scale;
}

std::set<std::string> named_tensors(fs::path const& folder) {
  std::set<std::string> r;
  for (Weight const& w : read_safetensors(folder / "model.safetensors")) r.insert(w.name);
  return r;
}

void check(Kind const& kind) {
  INFO(kind.name);
  TemporaryFolder const folder;
  Plain plain(kind);
  plain.write(folder / "");
  std::vector<Row> const expected = plain(text);
  models::Llama m = models::load_llama(folder / "", DType::f64);
  Array const tokens = unsqueeze(models::detail::token_row(text), 0);
  CHECK(off(m(tokens), expected) < 1e-10);
  // By the decoder in f32, in pieces.
  models::Llama const narrow = models::load_llama(folder / "");
  CHECK(off(narrow(tokens), expected) < 1e-5);
  models::Context context(narrow, 32, DType::f32, 4);
  // Dynamic frequencies of keys that are kept are those of the text when they came.
  std::size_t const first = narrow.config.rope.stretched_by(12) ? text.size() : 7;
  Array last = context.add(std::span(text).first(first));
  for (std::size_t i = first; i < text.size(); ++i) last = context.add(std::span(text).subspan(i, 1));
  CHECK(off(last, {expected.back()}) < 1e-5);

  // The derivative of the loss along a direction of each tensor.
  visit(m, [](Array& leaf) { leaf.requires_grad(true); });
  loss_of(m(tokens), tokens).backward();
  std::uint64_t drawn = 0;
  visit_named(m, [&](std::string const& name, Array const& leaf) {
    INFO(name);
    Row& w = plain.all.at(name);
    Row const before = w;
    Array const g = leaf.grad().contiguous();
    double by_gradient = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      double const d = 2 * uniform_at(Key(11), drawn++) - 1;
      w[i] += Number(0, 1e-30 * d);
      by_gradient += g.data<double>()[i] * d;
    }
    CHECK(std::abs(Plain::loss(plain(text), text).imag() / 1e-30 - by_gradient) < 1e-10);
    w = before;
  });

  // Written and read again it is the same, windows and scaled positions too.
  models::save_llama(folder / "again", narrow);
  models::Llama const again = models::load_llama(folder / "again");
  CHECK(array_equal(again(tokens), narrow(tokens)));
  CHECK(again.config.window == narrow.config.window);
  CHECK(again.config.rope == narrow.config.rope);
  CHECK(again.config.rope_divisors.within == narrow.config.rope_divisors.within);
  CHECK(again.config.rope_divisors.beyond == narrow.config.rope_divisors.beyond);
  CHECK(named_tensors(folder / "again") == named_tensors(folder / ""));
}

}  // namespace

TEST_CASE("windows of attention", "[models]") {
  check({.name = "of all layers", .type = "mistral", .said = R"("sliding_window": 4)", .windows = {4, 4, 4}});
  check({.name = "of none", .type = "mistral", .said = R"("sliding_window": null, "head_dim": null)"});
  check({.name = "that a Llama does not know", .type = "llama", .said = R"("sliding_window": 4)"});
  std::string const qwen = R"("use_sliding_window": true, "sliding_window": 3, )";
  check({.name = "from a layer on",
         .type = "qwen2",
         .said = qwen + R"("max_window_layers": 1)",
         .windows = {0, 3, 3},
         .bias = true});
  check({.name = "beyond the last layer",
         .type = "qwen2",
         .said = qwen + R"("max_window_layers": 28)",
         .bias = true});
  check({.name = "not used",
         .type = "qwen2",
         .said = R"("use_sliding_window": false, "sliding_window": 3, "max_window_layers": 0)",
         .bias = true});
  check({.name = "of the layers that are named",
         .type = "qwen3",
         .said = qwen + R"("layer_types": ["sliding_attention", "full_attention", "sliding_attention"],)" +
                 R"("head_dim": 6, "max_window_layers": 2)",
         .windows = {3, 0, 3},
         .norms = true});
}

TEST_CASE("heads, biases, norms and the last layer", "[models]") {
  check({.name = "heads wider than the model",
         .type = "qwen3",
         .said = R"("head_dim": 10, "tie_word_embeddings": true)",
         .size = 10,
         .tied = true,
         .norms = true});
  check({.name = "biases",
         .type = "qwen3",
         .said = R"("head_dim": 6, "attention_bias": true, "rope_theta": 1000000)",
         .bias = true,
         .out_bias = true,
         .norms = true,
         .base = 1e6});
  check({.name = "all biases",
         .type = "llama",
         .said = R"("head_dim": 4, "attention_bias": true, "mlp_bias": true)",
         .size = 4,
         .bias = true,
         .out_bias = true,
         .mlp_bias = true});
  check(
      {.name = "no head, and no word of it", .type = "llama", .said = R"("dtype": "float32")", .tied = true});
  // A Mistral that says nothing of a window has one of 4096.
  check({.name = "one head of keys",
         .type = "mistral",
         .said = R"("torch_dtype": "float32")",
         .kv = 1,
         .windows = {4096, 4096, 4096}});
  // Where a Qwen 3 does not say how large its heads are, they are of 128.
  check({.name = "heads of 128",
         .type = "qwen3",
         .said = R"("use_cache": true)",
         .heads = 2,
         .kv = 1,
         .size = 128,
         .layers = 1,
         .windows = {0},
         .norms = true});
}

TEST_CASE("rotary embeddings by every key that is about", "[models]") {
  auto const linear = [](double f) { return f / 4; };
  for (char const* said :
       {R"("rope_scaling": {"type": "linear", "factor": 4.0})",
        R"("rope_scaling": {"rope_type": "linear", "factor": 4})",
        R"("rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0})",
        R"("rope_theta": 10000, "rope_parameters": {"type": "linear", "factor": 4.0}, "rope_scaling": null)"})
    check({.name = said, .type = "llama", .said = said, .stretch = linear});
  check({.name = "nothing but a base",
         .type = "qwen2",
         .said = R"("rope_parameters": {"rope_theta": 500.0})",
         .bias = true,
         .base = 500});
  // 12 positions where 8 were trained.
  check({.name = "dynamic",
         .type = "llama",
         .said = R"("max_position_embeddings": 8, "rope_scaling": {"type": "dynamic", "factor": 2.0})",
         .base = 10000 * std::pow(2.0 * 12 / 8 - 1, 6.0 / 4)});
  auto const llama3 = [](double f) {
    double const wave = 2 * 3.14159265358979323846 / f;
    if (wave < 8.0 / 4) return f;
    if (wave > 8.0 / 1) return f / 8;
    double const smooth = (8 / wave - 1) / (4 - 1);
    return (1 - smooth) * f / 8 + smooth * f;
  };
  std::string const parts = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )"
                            R"("original_max_position_embeddings": 8)";
  check({.name = "llama3",
         .type = "llama",
         .said = R"("rope_theta": 50.0, "rope_scaling": {"rope_type": "llama3", )" + parts + "}",
         .stretch = llama3,
         .base = 50});
  check({.name = "llama3, newer",
         .type = "llama",
         .said = R"("rope_parameters": {"rope_theta": 50.0, "rope_type": "llama3", )" + parts + "}",
         .stretch = llama3,
         .base = 50});
}

// Frequencies by an independent program from the formulas of the papers.
TEST_CASE("yarn", "[models]") {
  check({.name = "yarn",
         .type = "qwen2",
         .said = R"("rope_theta": 10000.0, "max_position_embeddings": 32, )"
                 R"("rope_scaling": {"type": "yarn", "factor": 4.0})",
         .size = 16,
         .width = 64,
         .bias = true,
         .frequencies = {1, 0.197642353760524, 0.025, 0.00790569415042095, 0.0025, 0.000790569415042095,
                         0.00025, 7.90569415042095e-05},
         .amplitude = 1.13862943611199});
  check({.name = "yarn with all that can be said",
         .type = "llama",
         .said = R"("head_dim": 12, "rope_parameters": {"rope_type": "yarn", "rope_theta": 500, )"
                 R"("factor": 8, "truncate": false, )"
                 R"("beta_fast": 6, "beta_slow": 1.5, "mscale": 0.707, "mscale_all_dim": 1.3, )"
                 R"("original_max_position_embeddings": 64})",
         .size = 12,
         .frequencies = {1, 0.24147293627596, 0.0157490131236859, 0.00559016994374947, 0.00198425131496025,
                         0.00070431727846196},
         .amplitude = 0.902929840463961});
  check(
      {.name = "yarn with a factor of attention",
       .type = "mistral",
       .said =
           R"("head_dim": 16, "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 2.5, )"
           R"("beta_fast": null, "original_max_position_embeddings": 2048, "attention_factor": 1.25})",
       .size = 16,
       .frequencies = {1, 0.177827941003892, 0.025298221281347, 0.00337404795114209, 0.0004,
                       7.11311764015569e-05, 1.26491106406735e-05, 2.2493653007614e-06},
       .amplitude = 1.25});
}

TEST_CASE("Phi-3, longrope", "[models]") {
  check({.name = "phi3",
         .type = "phi3",
         .said = R"("sliding_window": 5, "rope_scaling": null)",
         .windows = {5, 5, 5},
         .fused = true});
  std::string const factors = R"("short_factor": [1, 1.05, 1.1, 1.3], "long_factor": [1.5, 2, 5.0, 9.25]})";
  check({.name = "within the original context",
         .type = "phi3",
         .said = R"("head_dim": 8, "max_position_embeddings": 64, "original_max_position_embeddings": 16, )"
                 R"("rope_scaling": {"type": "longrope", )" +
                 factors,
         .size = 8,
         .frequencies = {1, 0.0952380952380952, 0.00909090909090909, 0.000769230769230769},
         .amplitude = 1.22474487139159,
         .fused = true});
  check({.name = "beyond it",
         .type = "phi3",
         .said = R"("head_dim": 8, "max_position_embeddings": 64, "original_max_position_embeddings": 8, )"
                 R"("rope_scaling": {"type": "su", "attention_factor": 1.5, )" +
                 factors,
         .size = 8,
         .frequencies = {0.666666666666667, 0.05, 0.002, 0.000108108108108108},
         .amplitude = 1.5,
         .fused = true});
  check({.name = "a factor by itself",
         .type = "phi3",
         .said = R"("head_dim": 8, "max_position_embeddings": 64, "rope_scaling": {"type": "longrope", )"
                 R"("factor": 2.5, )" +
                 factors,
         .size = 8,
         .frequencies = {1, 0.0952380952380952, 0.00909090909090909, 0.000769230769230769},
         .amplitude = std::sqrt(1 + std::log(2.5) / std::log(64)),
         .fused = true});
  // What config.json has no word for is not written otherwise.
  models::LlamaConfig c;
  c.architecture = "phi3", c.vocabulary = 5, c.width = 8, c.hidden = 6, c.layers = 1, c.heads = 1;
  c.kv_heads = 1, c.head_size = 8, c.context = 64, c.rope.kind = models::RopeFrequencies::Kind::longrope;
  c.rope.original_context = 16, c.rope.factor = 4;
  c.rope_divisors = {{1, 1, 1, 1}, {2, 2, 2, 2}};
  auto const refused = [&] { return error_of([&] { models::llama_config_json(c, DType::f32); }); };
  CHECK(refused().empty());
  c.rope.factor = 3;
  CHECK(has(refused(), "has no word for a factor of longrope that is not that of its contexts"));
  c.rope.factor = 4, c.mlp_bias = true;
  CHECK(has(refused(), "phi3 has no word for biases of the hidden layers"));
  c.mlp_bias = false, c.attention_bias = c.output_bias = true;
  CHECK(has(refused(), "phi3 has no word for biases of attention's results"));
  TemporaryFolder const folder;
  Kind k{.name = "",
         .type = "phi3",
         .said = R"("head_dim": 8, "rope_scaling": {"type": "longrope", "factor": 2, )" +
                 factors.substr(0, factors.find("1.3")) + R"(1.3, 2], "long_factor": [1]})",
         .size = 8,
         .fused = true};
  Plain(k).write(folder / "");
  CHECK(error_of([&] { models::load_llama(folder / ""); }) ==
        "rope: 5 divisors of frequencies for heads of 8");
  k.said = R"("head_dim": 8, "partial_rotary_factor": 0.75)";
  Plain(k).write(folder / "");
  CHECK(has(error_of([&] { models::load_llama(folder / ""); }), "of a part of each head are not supported"));
  k.said = R"("head_dim": 6)", k.size = 8;
  Plain(k).write(folder / "");
  CHECK(has(error_of([&] { models::load_llama(folder / ""); }), "blk.0.attn_q.weight is missing"));
}

TEST_CASE("yarn and longrope of GGUF", "[models]") {
  // What the keys mean; the numbers themselves are those of above.
  auto const config_with = [](std::vector<std::pair<std::string, MetaValue>> const& more, bool factors,
                              double context = 64) {
    Weights w;
    w.metadata.set("general.architecture", std::string("phi3"));
    for (auto const& [key, n] : {std::pair("embedding_length", 32.0),
                                 {"feed_forward_length", 8},
                                 {"block_count", 1},
                                 {"attention.head_count", 4},
                                 {"attention.layer_norm_rms_epsilon", 1e-5}})
      w.metadata.set(std::string("phi3.") + key, n);
    w.metadata.set("phi3.context_length", context);
    for (auto const& [key, value] : more) w.metadata.set("phi3." + key, value);
    w.add("token_embd.weight", zeros({5, 32}));
    if (factors) {
      w.add("rope_factors_short.weight", Tensor<float, 4>::from({1.0f, 1.05f, 1.1f, 1.3f}));
      w.add("rope_factors_long.weight", Tensor<float, 4>::from({1.5f, 2.0f, 5.0f, 9.25f}));
    }
    return models::llama_config(w);
  };
  auto const near = [](std::vector<double> const& got, std::vector<double> const& want) {
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - want[i]) < 1e-6 * want[i]);
  };
  models::LlamaConfig c = config_with({{"rope.scaling.original_context_length", 16}}, true);
  near(c.frequencies(16), {1, 0.0952380952380952, 0.00909090909090909, 0.000769230769230769});
  near(c.frequencies(17), {0.666666666666667, 0.05, 0.002, 0.000108108108108108});
  CHECK(std::abs(c.rope.amplitude - 1.22474487139159) < 1e-12);
  CHECK(config_with({{"rope.scaling.original_context_length", 16}, {"rope.scaling.attn_factor", 1.19}}, true)
            .rope.amplitude == 1.19);
  c = config_with({{"rope.scaling.type", "yarn"}, {"rope.scaling.factor", 4.0}, {"attention.key_length", 16}},
                  false, 32);
  near(c.frequencies(100), {1, 0.197642353760524, 0.025, 0.00790569415042095, 0.0025, 0.000790569415042095,
                            0.00025, 7.90569415042095e-05});
  CHECK(std::abs(c.rope.amplitude - 1.13862943611199) < 1e-12);
  CHECK(has(error_of([&] { config_with({{"rope.scaling.type", "longrope"}}, false); }),
            "without its two tensors"));
  CHECK(has(error_of([&] { config_with({{"rope.scaling.type", "spiral"}}, false); }),
            "of type spiral are not supported"));
}

}  // namespace tests::models_llama_kinds
