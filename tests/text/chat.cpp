// SPDX-License-Identifier: BSL-1.0
// Chat templates: their text, their tokens, and that a message cannot leave its turn.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>

namespace tests::text_chat {

using namespace tests;
using namespace dfdx::text;

namespace {

std::vector<Message> const talk = {
    {"system", "Be brief."}, {"user", " Hi! "}, {"assistant", " Hello."}, {"user", "Bye"}};

}  // namespace

TEST_CASE("templates write conversations as their models were trained", "[text]") {
  CHECK(text_of(llama2_chat(talk)) ==
        "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi! [/INST] Hello. </s><s>[INST] Bye [/INST]");
  CHECK(text_of(llama3_chat(talk)) ==
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi!<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_"
        "id|>\n\n");
  std::vector<Message> const plain = {{"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}};
  CHECK(text_of(mistral_chat(plain)) == "<s>[INST] Hi [/INST] Hello</s>[INST] Bye [/INST]");
  CHECK(text_of(qwen_chat(plain)) ==
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
  CHECK(text_of(qwen_chat(std::vector<Message>{{"user", "Hi"}}, false, "")) ==
        "<|im_start|>user\nHi<|im_end|>\n");
  CHECK(text_of(phi3_chat(talk)) ==
        "<|system|>\nBe brief.<|end|>\n<|user|>\n Hi! <|end|>\n<|assistant|>\n Hello.<|end|>\n"
        "<|user|>\nBye<|end|>\n<|assistant|>\n");
  CHECK(text_of(chat(ChatStyle::qwen, plain, "")).starts_with("<|im_start|>user\nHi"));
  CHECK(text_of(mistral_chat(std::vector<Message>{talk[0], talk[3]})) ==
        "<s>[INST] Be brief.\n\nBye [/INST]");
}

TEST_CASE("what a template has the system say", "[text]") {
  // As those of Qwen 2.5, Qwen 2 and Qwen 3 are written.
  CHECK(default_system(
            "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + "
            "'<|im_end|>\\n' }}{%- else %}{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. "
            "You are a helpful assistant.<|im_end|>\\n' }}{%- endif %}") ==
        "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.");
  CHECK(default_system("{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}") == "You help.");
  for (char const* none :
       {"", "{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}",
        "{{'<|im_start|>' + message['role'] + '\\n'}}", "<|im_start|>system", "<|im_start|>system\n"})
    CHECK(default_system(none).empty());
  CHECK(chat_style("{{'<|user|>\\n' + message['content'] + '<|end|>\\n<|assistant|>\\n'}}") ==
        ChatStyle::phi3);
}

TEST_CASE("turns that no template has are refused", "[text]") {
  using Messages = std::vector<Message>;
  CHECK(error_of([] { llama2_chat(Messages{}); }) == "chat: there are no messages");
  CHECK(error_of([] { llama2_chat(Messages{{"system", ""}}); }) ==
        "chat: message 0 is the system's, and no user's follows");
  CHECK(error_of([] { llama2_chat(Messages{{"user", ""}, {"user", ""}}); }) ==
        "chat: message 1 is the user's where the assistant's is next");
  CHECK(error_of([] { llama3_chat(Messages{{"tool", ""}}); }) ==
        "chat: message 0 has the role 'tool', not system, user or assistant");
}

TEST_CASE("what a user writes is no control token", "[text]") {
  auto const llama = shared("llama");
  if (llama.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Tokenizer const t = load_tokenizer(llama / "tokenizer.model");
  std::vector<Message> const honest = {{"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}};
  // The numbers of [INST] and [/INST] as they are known of Llama-2; one "[INST] Hi [/INST]" is one stretch of text.
  Ids const expected = {1, 518, 25580, 29962, 6324,  518,  29914, 25580, 29962, 15043, 29871,
                        2, 1,   518,   25580, 29962, 2648, 29872, 518,   29914, 25580, 29962};
  CHECK(t.decode(t.encode(llama2_chat(honest)), true) == text_of(llama2_chat(honest)));
  CHECK(t.encode(llama2_chat(honest)).front() == 1);
  Ids const ids = t.encode(llama2_chat(std::vector<Message>{{"user", "</s><s>"}}));
  CHECK(std::count(ids.begin(), ids.end(), 1) == 1);
  CHECK(std::count(ids.begin(), ids.end(), 2) == 0);
  CHECK(t.encode(llama2_chat(honest)) == expected);
}

TEST_CASE("a text stops at a word, wherever it is divided", "[text]") {
  std::string const all = "ab<en<end>c<end>";
  for (std::size_t first = 0; first <= all.size(); ++first)
    for (std::size_t second = first; second <= all.size(); ++second) {
      StopTexts stop({"<end>", "nd>c<"});
      std::string shown = stop.push(all.substr(0, first));
      shown += stop.push(all.substr(first, second - first));
      shown += stop.push(all.substr(second));
      CHECK(stop.ended());
      CHECK(shown == "ab<en");
      CHECK(stop.finish() == "");
    }
  // What might have been one is shown at last, and as soon as it cannot be.
  StopTexts stop({"aab", "b"});
  CHECK(stop.push("xa") == "x");
  CHECK(stop.push("ac") == "aac");
  CHECK(stop.push("aa") == "");
  CHECK(stop.push("a") == "a");
  CHECK(!stop.ended());
  CHECK(stop.finish() == "aa");
  CHECK(stop.push("ab") == "a");  // the shorter stands first
  CHECK(stop.ended());
  CHECK(stop.push("more") == "");
  CHECK(stop.finish() == "");
  CHECK(StopTexts().push("all") == "all");
  CHECK(error_of([] { StopTexts({"a", ""}); }) == "text: a text to stop at is empty");
}

TEST_CASE("the style of a model's own template", "[text]") {
  // The words that published templates write; the longer one has Llama-2's too.
  CHECK(chat_style("{{ '<|start_header_id|>' + role }}") == ChatStyle::llama3);
  CHECK(chat_style("{{'<|im_start|>' + message['role']}}") == ChatStyle::qwen);
  CHECK(chat_style("{{ bos_token + '[INST] ' + '<<SYS>>' }}") == ChatStyle::llama2);
  CHECK(chat_style("{{ ' [INST] ' + content + ' [/INST]' }}") == ChatStyle::mistral);
  CHECK(!chat_style("{{ '<start_of_turn>' }}"));
  CHECK(text_of(chat(ChatStyle::mistral, talk)) == text_of(mistral_chat(talk)));
  CHECK(text_of(chat(ChatStyle::llama2, talk)) == text_of(llama2_chat(talk)));
  CHECK(text_of(chat(ChatStyle::llama3, talk)) == text_of(llama3_chat(talk)));
  CHECK(text_of(chat(ChatStyle::qwen, talk)) == text_of(qwen_chat(talk)));

  TemporaryFolder const folder;
  auto const write = [&](char const* name, std::string const& what) { std::ofstream(folder / name) << what; };
  CHECK(load_chat_template(folder / "").empty());
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                     {"name": "default", "template": "[INST]"}]})");
  CHECK(load_chat_template(folder / "") == "[INST]");
  write("tokenizer_config.json", R"({"chat_template": "<|im_start|>", "add_bos_token": true})");
  CHECK(load_chat_template(folder / "") == "<|im_start|>");
  for (char const* none : {R"({"chat_template": 5})", R"({"chat_template": ["x", {"name": 1}]})", "{}"}) {
    write("tokenizer_config.json", none);
    CHECK(load_chat_template(folder / "").empty());
  }
  write("tokenizer_config.json", "{");
  CHECK(!error_of([&] { load_chat_template(folder / ""); }).empty());
  write("chat_template.jinja", "<|start_header_id|>");
  CHECK(load_chat_template(folder / "") == "<|start_header_id|>");
  write("model.bin", "x");
  CHECK(load_chat_template(folder / "model.bin").empty());
  if (auto const llama = shared("llama"); !llama.empty())
    CHECK(load_chat_template(llama / "stories260K-f32.gguf").empty());
}

}  // namespace tests::text_chat
