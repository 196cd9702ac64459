// SPDX-License-Identifier: BSL-1.0
#include "engine.hpp"

#include "load.hpp"

#include <dfdx/models/batch.hpp>

#include <filesystem>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace llama {

using namespace dfdx;

namespace {

// Loops over all numbers of a model that load.cpp calls, and that are compiled here to be fast (CMakeLists.txt).
[[gnu::used]] auto const quantize = &quantize_row;
[[gnu::used]] auto const read = &Weight::read;
[[gnu::used]] auto const convert = &Weight::array;

}  // namespace

class Engine::Running {
 public:
  explicit Running(Options const& o) : options(o), model(load_model(o)) {}

  std::int64_t capacity() const {
    // A context of a hundred thousand positions would take more memory than the model.
    return options.context > 0 ? options.context : std::min<index_t>(model.config.positions(), 8192);
  }
  models::GenerateOptions how(std::vector<std::int32_t> const& stop) {
    models::GenerateOptions r;
    r.tokens = options.tokens, r.keep = options.keep, r.stop = stop;
    r.capacity = capacity(), r.cache = cache(), r.read = &read;
    return r;
  }
  Context& begun() {
    if (context) return *context;
    bool const goes_on = !options.session.empty() && std::filesystem::exists(options.session);
    context.emplace(goes_on ? load_session(options.session, model, capacity())
                            : Context(model, capacity(), cache()));
    return *context;
  }

  Options options;
  models::AnyModel model;
  std::optional<Context> context;
  index_t read = 0;

 private:
  Encoding cache() const {
    if (options.cache == "f16") return DType::f16;
    if (options.cache == "bf16") return DType::bf16;
    if (options.cache == "q8_0") return Quant::q8_0;
    return DType::f32;
  }
};

Engine::Engine(Options const& o) {
#if defined(_OPENMP)
  if (o.threads > 0) omp_set_num_threads(static_cast<int>(o.threads));
#else
  if (o.threads > 1) throw error("--threads: this program was built without OpenMP");
#endif
  r_ = std::make_unique<Running>(o);
}
Engine::~Engine() = default;

std::string const& Engine::architecture() const { return r_->model.config.architecture; }
std::int64_t Engine::vocabulary() const { return r_->model.config.vocabulary; }
std::int32_t Engine::bos() const { return r_->model.config.bos; }
std::vector<std::int32_t> const& Engine::eos() const { return r_->model.config.eos; }
std::int64_t Engine::capacity() const { return r_->capacity(); }
std::int64_t Engine::read() const { return r_->read; }

std::vector<std::int32_t> Engine::generate(std::vector<std::int32_t> const& prompt,
                                           std::vector<std::int32_t> const& stop,
                                           std::function<bool(std::int32_t)> const& take) {
  return models::generate(r_->begun(), prompt, models::Sampler(r_->options.sampling), r_->how(stop), take);
}

std::vector<std::vector<std::int32_t>> Engine::generate_all(
    std::vector<std::vector<std::int32_t>> const& prompts, std::vector<std::int32_t> const& stop,
    std::function<bool(std::size_t, std::int32_t)> const& take) {
  return models::generate(r_->model, prompts, {models::Sampler(r_->options.sampling)}, r_->how(stop), take);
}

Engine::Score Engine::score(std::vector<std::int32_t> const& ids) {
  models::Score const s = models::score(r_->model, ids, r_->options.context);
  r_->read += static_cast<index_t>(ids.size());
  return {s.loss, s.perplexity(), s.tokens};
}

void Engine::save_session() const {
  if (!r_->options.session.empty() && r_->context)
    llama::save_session(r_->options.session, r_->model, *r_->context);
}

}  // namespace llama
