// SPDX-License-Identifier: BSL-1.0
// libFuzzer's entry for the readers of tokenizers: the first byte chooses one, the rest is its file. Whatever is in it,
// a reader throws dfdx::error or gives a tokenizer that encodes, and decodes what it encoded.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/gguf.hpp>
#include <dfdx/text.hpp>

#include <cstdlib>

namespace {

using namespace dfdx::text;

TokenizerParts parse(unsigned char kind, std::string_view file) {
  switch (kind % 10) {
    case 0: return parse_sentencepiece(file, "f");
    case 1: return parse_llama2c(file, "f");
    case 2: return parse_tiktoken(file, "f", Pattern::llama3);
    case 3: return parse_tokenizer_json(file, "f");
    case 4: return parse_clip(file, "f");
    case 5: return parse_wordpiece(file, "f");
    case 6: return parse_tokenizer_json(R"({"model": {"vocab": {"a": 0}, "merges": []}})", "f", file, "c");
    case 7: {
      std::size_t const cut = file.find('\0');
      if (cut == std::string_view::npos) throw dfdx::error("no second file");
      return parse_gpt2(file.substr(0, cut), file.substr(cut + 1), "f", "g");
    }
    case 9: {
      auto const* const begin = reinterpret_cast<std::byte const*>(file.data());
      return parse_gguf(gguf_vocabulary(dfdx::gguf_from({begin, file.size()}).metadata));
    }
    default: {  // a table of characters, with the file as the text too
      TokenizerParts p;
      p.model = TokenizerModel::unigram;
      p.tokens = {"<unk>", "a"};
      p.scores = {0, -1};
      p.unknown = 0;
      p.normal = {{NormalStep::Kind::map, "", "", std::make_shared<CharacterMap const>("f", file)}};
      return p;
    }
  }
}

bool is_read(fuzz::Bytes bytes) {
  if (bytes.empty()) return false;
  std::string_view const file(reinterpret_cast<char const*>(bytes.data()) + 1, bytes.size() - 1);
  bool taken = false;
  try {
    Tokenizer const t(parse(static_cast<unsigned char>(bytes[0]), file));
    taken = true;  // its small vocabulary may lack what the texts have
    for (std::string_view text :
         {std::string_view("Hello  w\xC3\xB6rld's\n\n 123 \xF0\x9F\xA6\x99\xFF"), file.substr(0, 400)}) {
      auto const ids = t.encode(text, {.bos = false, .eos = false, .special = true});
      std::string const back = t.decode(ids, true);
      StreamDecoder stream(t);
      std::string streamed;
      for (std::int32_t id : ids) {
        streamed = stream.push(id);
        if (!dfdx::is_utf8(streamed)) std::abort();
      }
    }
  } catch (dfdx::error const&) {
  }
  return taken;
}

}  // namespace

static fuzz::Reader const tokenizer("tokenizer", is_read);
