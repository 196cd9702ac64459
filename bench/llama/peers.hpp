// SPDX-License-Identifier: BSL-1.0
// llama2.c and llama.cpp, where a user has their programs `run` and `llama-bench` on PATH: the same model in files of
// theirs, on one thread.
#pragma once

#include <dfdx/io/gguf_write.hpp>
#include <dfdx/io/llama_names.hpp>
#include <dfdx/models/llama.hpp>

#include <cstdlib>
#include <filesystem>

namespace bench {

/// How long a peer takes for a token.
struct PeerTime {
  char const* peer;
  double decode, prompt;  // unknown where it does not tell
};

/// A folder of a model's files, removed at the end.
class Peers {
 public:
  explicit Peers(dfdx::models::Llama const& m) {
    run_ = is_on_path("run"), bench_ = is_on_path("llama-bench");
    if (!run_ && !bench_) return;
    std::string name = (std::filesystem::temp_directory_path() / "dfdx_bench_llama_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw dfdx::error("bench: no temporary folder");
    folder_ = name;
    dfdx::Weights all;
    dfdx::visit_named(
        m, [&](std::string const& leaf, dfdx::Array const& x) { all.add(dfdx::gguf_name(leaf), x); });
    all.rope = dfdx::RopeLayout::half_split;
    weights_ = dfdx::with_rope(all, dfdx::RopeLayout::interleaved, m.config.head_size);
    add_metadata(m.config);
    if (run_) write_llama2c(m.config);
  }
  Peers(Peers const&) = delete;
  Peers& operator=(Peers const&) = delete;
  ~Peers() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  /// What the peers take with matrices in f32, or in blocks.
  std::vector<PeerTime> times(std::optional<dfdx::Quant> quant) const {
    std::vector<PeerTime> r;
    if (run_ && !quant) {
      std::string const said = output("OMP_NUM_THREADS=1 run " + quoted("m.bin") + " -z " +
                                      quoted("tokenizer.bin") + " -t 0 -n 128 2>&1");
      std::size_t const at = said.rfind("achieved tok/s:");
      double const rate = at == said.npos ? 0 : std::atof(said.c_str() + at + 15);
      if (rate > 0) r.push_back({"llama2.c", 1 / rate, unknown});
      else std::fprintf(stderr, "llama: `run` on PATH did not say how many tokens a second\n");
    }
    if (bench_) {
      std::filesystem::path const file = folder_ / "m.gguf";
      if (quant) dfdx::save_gguf(file, weights_, dfdx::quantized_as{*quant});
      else dfdx::save_gguf(file, weights_);
      std::string const said =
          output("llama-bench -m " + quoted("m.gguf") + " -t 1 -p 128 -n 128 -o json 2>/dev/null");
      auto const rows = nlohmann::json::parse(said, nullptr, false);
      PeerTime t{"llama.cpp", unknown, unknown};
      if (rows.is_array())
        for (auto const& row : rows) {
          double const rate = row.value("avg_ts", 0.0);
          if (rate > 0) (row.value("n_gen", 0) > 0 ? t.decode : t.prompt) = 1 / rate;
        }
      if (std::isfinite(t.decode) || std::isfinite(t.prompt)) r.push_back(t);
      else std::fprintf(stderr, "llama: `llama-bench` on PATH did not say how many tokens a second\n");
    }
    return r;
  }

 private:
  static bool is_on_path(char const* program) {
    return std::system((std::string("command -v ") + program + " > /dev/null 2>&1").c_str()) == 0;
  }
  std::string quoted(char const* file) const { return "'" + (folder_ / file).string() + "'"; }
  static std::string output(std::string const& command) {
    std::string r;
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return r;
    char some[4096];
    for (std::size_t n; (n = std::fread(some, 1, sizeof some, pipe)) > 0;) r.append(some, n);
    pclose(pipe);
    return r;
  }

  void add_metadata(dfdx::models::LlamaConfig const& c) {
    dfdx::Metadata& m = weights_.metadata;
    m.set("general.architecture", std::string("llama"));
    auto const number = [&](char const* key, dfdx::index_t n) { m.set(key, static_cast<std::uint32_t>(n)); };
    number("llama.context_length", c.context), number("llama.embedding_length", c.width);
    number("llama.block_count", c.layers), number("llama.feed_forward_length", c.hidden);
    number("llama.attention.head_count", c.heads), number("llama.attention.head_count_kv", c.kv_heads);
    number("llama.rope.dimension_count", c.head_size), number("llama.vocab_size", c.vocabulary);
    m.set("llama.attention.layer_norm_rms_epsilon", static_cast<float>(c.norm_eps));
    m.set("tokenizer.ggml.model", std::string("no_vocab"));
  }

  // Version 0, whose head is the embedding, and a tokenizer of as many tokens.
  void write_llama2c(dfdx::models::LlamaConfig const& c) const {
    dfdx::FileWriter model(folder_ / "m.bin", "bench");
    auto const put = [](dfdx::FileWriter& to, auto x) { to.write(&x, sizeof x); };
    for (dfdx::index_t n : {c.width, c.hidden, c.layers, c.heads, c.kv_heads, c.vocabulary, c.context})
      put(model, static_cast<std::int32_t>(n));
    auto const tensor = [&](std::string const& name) {
      dfdx::Weight const& w = weights_.at(name);
      model.write(w.bytes.data(), w.bytes.size());
    };
    tensor("token_embd.weight");
    for (char const* part : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate",
                             "ffn_down", "ffn_up"})
      for (dfdx::index_t i = 0; i < c.layers; ++i)
        tensor("blk." + std::to_string(i) + "." + part + ".weight");
    tensor("output_norm.weight");
    std::string const tables(static_cast<std::size_t>(c.context * c.head_size) * 4, '\0');
    model.write(tables.data(), tables.size());
    model.finish();
    dfdx::FileWriter tokens(folder_ / "tokenizer.bin", "bench");
    put(tokens, std::int32_t{8});
    for (dfdx::index_t i = 0; i < c.vocabulary; ++i) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "<0x%02X>", static_cast<unsigned>(i - 3) & 255);
      std::string const text = i >= 3 && i < 259 ? byte : "t" + std::to_string(i);
      put(tokens, 0.0f), put(tokens, static_cast<std::int32_t>(text.size()));
      tokens.write(text.data(), text.size());
    }
    tokens.finish();
  }

  bool run_ = false, bench_ = false;
  std::filesystem::path folder_;
  dfdx::Weights weights_;
};

}  // namespace bench
