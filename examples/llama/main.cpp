// SPDX-License-Identifier: BSL-1.0
// llama: texts, scores and conversations from the files of a published language model.
#include "../common/tokenizer.hpp"
#include "engine.hpp"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>

namespace llama {

namespace {

namespace text = dfdx::text;
using dfdx::error;
using Ids = std::vector<std::int32_t>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The most memory that the program had, in MB; 0 where the system does not say.
double peak_megabytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

class Runner {
 public:
  explicit Runner(Options o) : o_(std::move(o)) {
    auto const start = Clock::now();
    model_ = std::make_unique<Engine>(o_);
    tokenizer_.emplace(common::load_tokenizer(o_.tokenizer, o_.model, model_->vocabulary()));
    load_seconds_ = seconds_since(start);
    for (auto const& [token, by] : o_.sampling.bias)
      if (token >= model_->vocabulary())
        throw error("--logit-bias: token " + std::to_string(token) + ", there are " +
                    std::to_string(model_->vocabulary()));
  }

  void run() {
    if (!o_.perplexity.empty()) score();
    else if (o_.chat) converse();
    else if (o_.prompts.size() > 1) complete_all();
    else complete();
    model_->save_session();
    if (o_.stats) print_stats();
  }

 private:
  // A model of no beginning of its own gets one: it must predict the first token from something.
  Ids encoded(std::string const& text) const {
    Ids ids = tokenizer_->encode(text);
    if (ids.empty()) {
      std::int32_t const bos = tokenizer_->bos() >= 0 ? tokenizer_->bos() : model_->bos();
      if (bos < 0) throw error("the prompt is empty, and the model has no token to begin with");
      ids.push_back(bos);
    }
    return ids;
  }

  Ids stop_tokens() const {
    Ids r = model_->eos();
    if (tokenizer_->eos() >= 0) r.push_back(tokenizer_->eos());
    // Llama 3 and Qwen end a turn with another token than a text.
    for (char const* end :
         {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>"})
      if (auto const id = tokenizer_->find(end)) r.push_back(*id);
    return r;
  }

  // Prints what comes after the tokens; the tokens that it was.
  Ids speak(Ids const& prompt) {
    text::StreamDecoder decoder(*tokenizer_);
    text::StopTexts stop(o_.stop);
    for (std::int32_t id : prompt) decoder.push(id);
    auto start = Clock::now();
    bool first = true;
    Ids const r = model_->generate(prompt, stop_tokens(), [&](std::int32_t id) {
      if (std::exchange(first, false)) {
        prefill_seconds_ += seconds_since(start);
        start = Clock::now();
      } else {
        ++decoded_;
      }
      put(stop.push(decoder.push(id)));
      return !stop.ended();
    });
    put(stop.push(decoder.finish()));
    put(stop.finish());
    decode_seconds_ += first ? 0 : seconds_since(start);
    return r;
  }
  static void put(std::string const& s) {
    std::fwrite(s.data(), 1, s.size(), stdout);
    std::fflush(stdout);
  }

  void complete() {
    std::string const prompt = !o_.prompts.empty() ? o_.prompts[0]
                               : !o_.file.empty()  ? common::read_text(o_.file)
                                                   : "";
    put(prompt);
    speak(encoded(prompt));
    put("\n");
  }

  // All texts go on at once, so they are printed when they are done, in the order of their prompts.
  void complete_all() {
    struct Text {
      text::StreamDecoder words;
      text::StopTexts stop;
      std::string said;
    };
    std::vector<Ids> asked;
    std::vector<Text> texts;
    for (std::string const& prompt : o_.prompts) {
      asked.push_back(encoded(prompt));
      texts.push_back({text::StreamDecoder(*tokenizer_), text::StopTexts(o_.stop), prompt});
      for (std::int32_t id : asked.back()) texts.back().words.push(id);
    }
    // All first tokens are there before any second one.
    auto start = Clock::now();
    bool first = true;
    std::size_t begun = 0, told = 0;
    std::vector<Ids> const ids =
        model_->generate_all(asked, stop_tokens(), [&](std::size_t i, std::int32_t id) {
          if (std::exchange(first, false)) {
            prefill_seconds_ = seconds_since(start);
            start = Clock::now();
          }
          texts[i].said += texts[i].stop.push(texts[i].words.push(id));
          return !texts[i].stop.ended();
        });
    decode_seconds_ = first ? 0 : seconds_since(start);
    for (Ids const& r : ids) begun += !r.empty(), told += r.size();
    decoded_ = told - begun;
    for (Text& t : texts) {
      t.said += t.stop.push(t.words.finish());
      t.said += t.stop.finish();
      put((&t == &texts[0] ? "" : "---\n") + t.said + "\n");
    }
  }

  // As the model's own template wants it, if it is one of the known; else by the tokens that there are.
  text::ChatStyle style(std::string const& own) const {
    if (auto const known = text::chat_style(own)) return *known;
    auto const guessed = [&](char const* name, text::ChatStyle r) {
      std::fprintf(stderr, "llama: the model has %s template for conversations; they are written as %s's\n",
                   own.empty() ? "no" : "an unknown", name);
      return r;
    };
    if (tokenizer_->find("<|start_header_id|>")) return guessed("Llama 3", text::ChatStyle::llama3);
    if (tokenizer_->find("<|im_start|>")) return guessed("Qwen", text::ChatStyle::qwen);
    if (model_->architecture() == "mistral") return guessed("Mistral", text::ChatStyle::mistral);
    if (model_->architecture() == "phi3") return guessed("Phi-3", text::ChatStyle::phi3);
    return guessed("Llama 2", text::ChatStyle::llama2);
  }

  void converse() {
    std::string const own = text::load_chat_template(o_.model);
    text::ChatStyle const as = style(own);
    std::string const system = own.empty() ? "You are a helpful assistant." : text::default_system(own);
    auto const written = [&](auto const& turns) { return text::chat(as, turns, system); };
    std::vector<text::Message> messages;
    if (!o_.system.empty()) messages.push_back({"system", o_.system});
    put("> ");
    for (std::string line; std::getline(std::cin, line); put("\n> ")) {
      messages.push_back({"user", line});
      Ids asked = tokenizer_->encode(written(messages));
      // The oldest turns are forgotten when there is no room for them and an answer.
      std::size_t const oldest = messages[0].role == "system" ? 1 : 0,
                        room = static_cast<std::size_t>(model_->capacity());
      while (asked.size() + room / 4 > room && messages.size() > oldest + 2) {
        auto const from = messages.begin() + static_cast<std::ptrdiff_t>(oldest);
        messages.erase(from, from + 2);
        asked = tokenizer_->encode(written(messages));
      }
      Ids const answer = speak(asked);
      text::StopTexts stop(o_.stop);  // what was not shown is not said
      std::string const words = stop.push(tokenizer_->decode(answer));
      messages.push_back({"assistant", words + stop.finish()});
    }
    put("\n");
  }

  void score() {
    Ids const ids = encoded(common::read_text(o_.perplexity));
    auto const start = Clock::now();
    Engine::Score const s = model_->score(ids);
    prefill_seconds_ = seconds_since(start);
    std::printf("tokens %lld, loss %.6f, perplexity %.4f\n", static_cast<long long>(s.tokens), s.loss,
                s.perplexity);
  }

  void print_stats() const {
    std::fprintf(stderr, "load     %.3f s\n", load_seconds_);
    auto const rate = [](char const* what, std::size_t n, double seconds) {
      if (n > 0)
        std::fprintf(stderr, "%-8s %zu tokens in %.3f s, %.1f a second\n", what, n, seconds,
                     static_cast<double>(n) / seconds);
    };
    rate("prefill", static_cast<std::size_t>(model_->read()), prefill_seconds_);
    rate("decode", decoded_, decode_seconds_);
    if (double const mb = peak_megabytes(); mb > 0) std::fprintf(stderr, "memory   %.1f MB at most\n", mb);
  }

  Options o_;
  std::unique_ptr<Engine> model_;
  std::optional<text::Tokenizer> tokenizer_;
  double load_seconds_ = 0, prefill_seconds_ = 0, decode_seconds_ = 0;
  std::size_t decoded_ = 0;
};

}  // namespace

}  // namespace llama

int main(int argc, char** argv) {
  try {
    if (auto const options = llama::parse_options(argc, argv)) llama::Runner(*options).run();
    return 0;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "llama: %s\n", e.what());
    return 1;
  }
}
