// SPDX-License-Identifier: BSL-1.0
// tokenize: prints the numbers of a text's tokens, or the text of numbers.
#include "options.hpp"

#include <dfdx/text.hpp>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <sstream>

namespace tokenize {

namespace {

using Ids = std::vector<std::int32_t>;
namespace text = dfdx::text;

std::string read_file(std::string const& path) {
  auto const bytes = dfdx::read_file(path, "text");
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

std::string read_input(Options const& o) {
  if (o.text) return *o.text;
  if (!o.file.empty()) return read_file(o.file);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

text::Tokenizer load(Options const& o) {
  text::LoadOptions how;
  how.count = o.count;
  if (!o.pre.empty()) {
    how.pattern = text::pattern_named(o.pre);
    if (!how.pattern) throw dfdx::error("--pre: '" + o.pre + "' is not known");
  }
  return text::load_tokenizer(o.tokenizer, how);
}

Ids numbers(std::string const& input) {
  Ids r;
  std::istringstream words(input);
  for (std::string word; words >> word;) {
    if (word.back() == ',') word.pop_back();
    std::size_t used = 0;
    long long value = -1;
    try {
      value = std::stoll(word, &used);
    } catch (std::exception const&) {
    }
    if (used != word.size() || word.empty() || value < 0 || value > 0x7FFFFFFF)
      throw dfdx::error("'" + word + "' is not the number of a token");
    r.push_back(static_cast<std::int32_t>(value));
  }
  return r;
}

void print(text::Tokenizer const& t, Ids const& ids, bool pieces, char const* before_first) {
  std::string line;
  for (std::int32_t id : ids) {
    if (pieces) line += std::to_string(id) + "\t" + text::detail::in_quotes(t.bytes(id)) + "\n";
    else line += (line.empty() ? before_first : " ") + std::to_string(id);
  }
  if (!pieces) line += "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
}

void run_cases(text::Tokenizer const& t, Options const& o, text::EncodeOptions const& how) {
  std::string const all = read_file(o.cases), end = "\n__ggml_vocab_test__\n";
  std::size_t at = 0;
  for (std::size_t next; (next = all.find(end, at)) != std::string::npos; at = next + end.size())
    print(t, t.encode(std::string_view(all).substr(at, next - at), how), o.pieces, " ");
  if (at != all.size()) throw dfdx::error(o.cases + " does not end with a line __ggml_vocab_test__");
}

void run(Options const& o) {
  text::Tokenizer const t = load(o);
  text::EncodeOptions how{o.bos, o.eos, o.special};
  if (!o.cases.empty()) how = {o.bos.value_or(false), o.eos.value_or(false), o.special};
  if (!o.cases.empty()) return run_cases(t, o, how);
  std::string const input = read_input(o);
  if (!o.decode) return print(t, t.encode(input, how), o.pieces, "");
  std::string const decoded = t.decode(numbers(input), o.special) + "\n";
  std::fwrite(decoded.data(), 1, decoded.size(), stdout);
}

}  // namespace

}  // namespace tokenize

int main(int argc, char** argv) {
  try {
    if (auto const options = tokenize::parse_options(argc, argv)) tokenize::run(*options);
    return 0;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "tokenize: %s\n", e.what());
    return 1;
  }
}
