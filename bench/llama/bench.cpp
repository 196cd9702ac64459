// SPDX-License-Identifier: BSL-1.0
// Language models token by token: models of random numbers in the shapes of stories15M and stories110M, in f32 and
// quantized. Each decoder's numbers are checked against those of the model on the tape before it is timed. A row is one
// token; the roof is how fast this machine reads memory, measured in the same run, and its share counts what a token
// must read: all matrices, once. Peers are llama2.c and llama.cpp where their programs are on PATH.
#include <dfdx/core/random.hpp>
#include <dfdx/models/generate.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/llama_step.hpp>

#include <cstdlib>

#include "../roof.hpp"
#include "peers.hpp"
#include "random_model.hpp"

namespace {

using namespace dfdx;

models::LlamaConfig config(index_t width, index_t hidden, index_t layers, index_t heads) {
  models::LlamaConfig c;
  c.vocabulary = 32000, c.width = width, c.hidden = hidden, c.layers = layers;
  c.heads = c.kv_heads = heads, c.head_size = width / heads, c.context = 512, c.tied = true;
  return c;
}

double matrix_bytes(models::Llama m) {
  double sum = 0;
  models::detail::visit_matrices(m, [&](std::string const&, auto const& layer) {
    sum += layer.stored ? static_cast<double>(layer.stored->data.row_bytes()) *
                              static_cast<double>(layer.stored->data.rows)
                        : static_cast<double>(layer.weight->size()) * 4;
  });
  return sum;
}

double relative_error(models::Llama const& m) {
  models::KvCache a = m.cache(4), b = m.cache(4);
  models::Decoder decode(m, 4);
  double worst = 0, size = 0;
  for (std::int32_t token : {1, 31999, 77}) {
    Array const want = m(models::detail::token_row(std::span(&token, 1)), a);
    std::span<float const> const got = decode(token, b);
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::abs(double{got[i]} - double{want.data<float>()[i]}));
      size = std::max(size, std::abs(double{want.data<float>()[i]}));
    }
  }
  return worst / size;
}

// A row for each peer; a single one without, if there is none.
void report(std::string const& name, double seconds, double bytes, double memory, double error,
            std::vector<std::pair<char const*, double>> const& peers) {
  char note[40];
  std::snprintf(note, sizeof note, "%.0f tokens/s", 1 / seconds);
  bench::Row row{.bench = "llama", .name = name, .ours_ms = seconds * 1e3};
  if (bytes > 0) row.roof = bytes / seconds / memory, row.bytes = bytes;
  row.error = error;
  row.note = note;
  bool alone = true;
  for (auto const& [peer, theirs] : peers) {
    if (!std::isfinite(theirs)) continue;
    row.peer = peer, row.peer_ms = theirs * 1e3;
    bench::print(row);
    alone = false;
  }
  if (alone) bench::print(row);
}

// The next token of several texts at once, a token's share of the time; the peer is the same text by text.
void measure_together(models::Llama const& m, std::string const& name, double alone) {
  for (std::size_t texts : {2, 4, 8}) {
    models::Decoder decode(m, 256, 1);
    std::vector<models::KvCache> caches;
    std::vector<models::KvCache*> all;
    for (std::size_t i = 0; i < texts; ++i) caches.push_back(m.cache(256));
    for (models::KvCache& c : caches) all.push_back(&c);
    std::vector<double> rounds;
    for (int round = 0; round < 5; ++round) {
      std::vector<std::int32_t> tokens(texts);
      for (models::KvCache& c : caches) c.length = 0;
      double const start = bench::seconds();
      for (index_t i = 0; i < 64; ++i) {
        for (std::size_t k = 0; k < texts; ++k)
          tokens[k] = static_cast<std::int32_t>((static_cast<std::size_t>(i) * 211 + k * 97) % 32000);
        decode(tokens, all);
      }
      rounds.push_back((bench::seconds() - start) / 64 / static_cast<double>(texts));
    }
    report(name + " decode of " + std::to_string(texts) + " texts", bench::best(rounds), 0, 0, bench::unknown,
           {{"one by one", alone}});
  }
}

// Some tokens by one thread and by two, where the program has OpenMP.
void measure_threads(models::Llama const& m, std::string const& name) {
#if defined(_OPENMP)
  std::vector<std::int32_t> prompt(128);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(i * 211 % 32000);
  for (std::size_t const n : {std::size_t{1}, prompt.size()}) {
    double best[2];
    for (int threads : {1, 2}) {
      models::Decoder decode(m, 512, threads);
      std::vector<double> rounds;
      for (int round = 0; round < 5; ++round) {
        models::KvCache cache = m.cache(512);
        double const start = bench::seconds();
        for (std::size_t i = 0; i < prompt.size(); i += n) decode(std::span(prompt).subspan(i, n), cache);
        rounds.push_back((bench::seconds() - start) / static_cast<double>(prompt.size()));
      }
      best[threads - 1] = bench::best(rounds);
    }
    report(name + (n == 1 ? " decode" : " prompt") + ", 2 threads", best[1], 0, 0, bench::unknown,
           {{"1 thread", best[0]}});
  }
#else
  static_cast<void>(m), static_cast<void>(name);
#endif
}

void measure(char const* shape, char const* format, models::Llama const& m, double allowed, double memory,
             std::vector<bench::PeerTime> const& peers) {
  std::string const name = std::string(shape) + " " + format;
  double const error = relative_error(m);
  if (!(error <= allowed)) {
    std::fprintf(stderr, "llama: %s is off by %g\n", name.c_str(), error);
    std::exit(1);
  }
  no_grad const mode;
  constexpr index_t positions = 256;
  models::Decoder decode(m, positions, 1);
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    models::KvCache cache = m.cache(positions);
    std::int32_t token = 1;
    double const start = bench::seconds();
    for (index_t i = 0; i < 128; ++i) {
      std::span<float const> const logits = decode(token, cache);
      token = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
    rounds.push_back((bench::seconds() - start) / 128);
  }
  std::vector<std::pair<char const*, double>> decoding, reading;
  for (bench::PeerTime const& p : peers)
    decoding.emplace_back(p.peer, p.decode), reading.emplace_back(p.peer, p.prompt);
  report(name + " decode 128", bench::best(rounds), matrix_bytes(m), memory, error, decoding);
  measure_together(m, name, bench::best(rounds));
  measure_threads(m, name);
  std::vector<std::int32_t> prompt(128);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(i * 211 % 32000);
  rounds.clear();
  for (int round = 0; round < 7; ++round) {
    models::Context context(m, positions);
    double const start = bench::seconds();
    context.add(prompt);
    rounds.push_back((bench::seconds() - start) / 128);
  }
  report(name + " prompt of 128", bench::best(rounds), 0, memory, bench::unknown, reading);
}

constexpr models::LlamaSizes stories15m{.vocabulary = 32000,
                                        .width = 288,
                                        .hidden = 768,
                                        .layers = 6,
                                        .heads = 6,
                                        .kv_heads = 6,
                                        .head_size = 48,
                                        .context = 512,
                                        .tied = true};

// The same numbers in a model of static sizes: its program against the decoder, in turns.
void measure_static(models::Llama const& m, double memory) {
  models::LlamaModel<stories15m> same;
  std::map<std::string, Array> all;
  visit_named(m, [&](std::string const& name, Array const& leaf) { all.emplace(name, leaf); });
  visit(same, [](auto& leaf) { leaf = std::remove_cvref_t<decltype(leaf)>::uninitialized(); });
  visit_state(same, [&](std::string const& name, Array const& leaf) {
    copy_elements(all.at(name).operand(), leaf.operand());
  });
  using Cache = models::LlamaCache<stories15m, 256>;
  models::LlamaStep step;
  models::Decoder decode(m, 256, 1);
  std::vector<double> ours, theirs;
  double worst = 0, size = 0;
  for (int round = 0; round < 7; ++round) {
    Cache cache = Cache::empty();
    models::KvCache beside = m.cache(256);
    for (std::int32_t i = 0; i < 128; ++i) {
      std::int32_t const token = i * 211 % 32000;
      double const start = bench::seconds();
      auto const logits = step(same, token, cache);
      double const middle = bench::seconds();
      std::span<float const> const want = decode(token, beside);
      ours.push_back(middle - start), theirs.push_back(bench::seconds() - middle);
      for (std::size_t k = 0; round == 0 && k < want.size(); ++k) {
        worst = std::max(worst, std::abs(double{want[k]} - double{logits.data()[k]}));
        size = std::max(size, std::abs(double{want[k]}));
      }
    }
  }
  if (!(worst <= 1e-5 * size)) {
    std::fprintf(stderr, "llama: static sizes are off by %g\n", worst / size);
    std::exit(1);
  }
  char note[80];
  std::snprintf(note, sizeof note, "%.0f tokens/s, arena %td bytes", 1 / bench::median(ours),
                models::LlamaStep::program_for<decltype(same), Cache>::arena_bytes);
  bench::Row row{.bench = "llama", .name = "15M f32 static, a token", .ours_ms = bench::median(ours) * 1e3};
  row.peer = "Decoder", row.peer_ms = bench::median(theirs) * 1e3;
  row.bytes = matrix_bytes(m);
  row.roof = row.bytes / bench::median(ours) / memory;
  row.error = worst / size;
  row.note = note;
  bench::print(row);
}

void shape(char const* name, models::LlamaConfig const& c, double memory) {
  models::Llama const m = bench::random_model(c, 0.05f);
  bench::Peers const peers(m);
  measure(name, "f32", m, 1e-5, memory, peers.times({}));
  if (c.width == stories15m.width) measure_static(m, memory);
  measure(name, "q8_0", models::quantized(m, Quant::q8_0), 0.05, memory, peers.times(Quant::q8_0));
  measure(name, "q4_0", models::quantized(m, Quant::q4_0), 0.05, memory, peers.times(Quant::q4_0));
}

}  // namespace

int main(int argc, char** argv) {
#if defined(_OPENMP)
  omp_set_num_threads(1);  // but where a row says so
#endif
  double const memory = bench::measure_memory();
  std::fprintf(stderr, "memory: %.1f GB/s\n", memory / 1e9);
  shape("15M", config(288, 768, 6, 6), memory);
  if (argc > 1 && std::string_view(argv[1]) == "--quick") return 0;
  shape("110M", config(768, 2048, 12, 12), memory);
}
