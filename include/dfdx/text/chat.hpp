// SPDX-License-Identifier: BSL-1.0
// Chat templates: how models that were trained on conversations want them written. Each gives parts of a text;
// Tokenizer::encode(parts) takes control tokens from the template's words only, so that nobody's message can close its
// own turn or open another's. (Llama-2's and Mistral's "[INST]" is plain text, and can be written by anyone.)
#pragma once

#include <optional>
#include <span>

#include <dfdx/text/pipeline.hpp>
#include <dfdx/text/tokenizer.hpp>

namespace dfdx::text {

/// Message - one turn of a conversation: role is "system", "user" or "assistant".
struct Message {
  std::string role, content;
};

/// text_of - the parts as one text.
inline std::string text_of(std::span<TextPart const> parts) {
  std::string r;
  for (TextPart const& part : parts) r += part.text;
  return r;
}

namespace detail {

[[noreturn]] inline void fail_chat(std::size_t message, std::string const& why) {
  raise("chat: message " + std::to_string(message) + " " + why);
}

inline void check_roles(std::span<Message const> messages, bool alternate) {
  if (messages.empty()) raise("chat: there are no messages");
  std::size_t const first = messages[0].role == "system" ? 1 : 0;
  if (alternate && first == messages.size()) fail_chat(0, "is the system's, and no user's follows");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::string const& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant")
      fail_chat(i, "has the role " + in_quotes(role) + ", not system, user or assistant");
    if (!alternate || i < first) continue;
    char const* const wanted = (i - first) % 2 == 0 ? "user" : "assistant";
    if (role != wanted) fail_chat(i, "is the " + role + "'s where the " + wanted + "'s is next");
  }
}

inline std::string stripped(std::string const& text) { return trimmed(text, true, true); }

}  // namespace detail

/// llama2_chat - Llama-2's: <s>[INST] <<SYS>> ... <</SYS>> question [/INST] answer </s><s>[INST] ... [/INST]
///
/// Errors    "chat: message 1 is the user's where the assistant's is next"; "chat: message 0 has the role 'x', ..."
/// Source    https://github.com/meta-llama/llama, generation.py
inline std::vector<TextPart> llama2_chat(std::span<Message const> messages) {
  detail::check_roles(messages, true);
  bool const system = messages[0].role == "system";
  std::vector<TextPart> r;
  for (std::size_t i = system ? 1 : 0; i < messages.size(); ++i) {
    Message const& m = messages[i];
    if (m.role == "assistant") {
      r.push_back({" "});
      r.push_back({detail::stripped(m.content)});
      r.push_back({" "});
      r.push_back({"</s>", true});
      continue;
    }
    r.push_back({"<s>", true});
    bool const first = system && i == 1;
    std::string content =
        first ? "<<SYS>>\n" + messages[0].content + "\n<</SYS>>\n\n" + m.content : m.content;
    r.push_back({"[INST] " + detail::stripped(content) + " [/INST]"});
  }
  return r;
}

/// llama3_chat - Llama-3's: each message behind a header and in front of <|eot_id|>; if `answer`, the header of the
/// assistant's next message stands at the end.
///
/// Errors    "chat: there are no messages"; "chat: message 0 has the role 'x', not system, user or assistant"
/// Source    https://github.com/meta-llama/llama3, tokenizer.py
inline std::vector<TextPart> llama3_chat(std::span<Message const> messages, bool answer = true) {
  detail::check_roles(messages, false);
  std::vector<TextPart> r = {{"<|begin_of_text|>", true}};
  auto const header = [&](std::string const& role) {
    r.push_back({"<|start_header_id|>" + role + "<|end_header_id|>\n\n", true});
  };
  for (Message const& m : messages) {
    header(m.role);
    r.push_back({detail::stripped(m.content)});
    r.push_back({"<|eot_id|>", true});
  }
  if (answer) header("assistant");
  return r;
}

/// mistral_chat - Mistral's: <s>[INST] question [/INST] answer</s>[INST] ... [/INST]; what the system says stands in
/// front of the first question.
///
/// Errors    as llama2_chat
/// Source    https://docs.mistral.ai, tokenization of Mistral 7B Instruct
inline std::vector<TextPart> mistral_chat(std::span<Message const> messages) {
  detail::check_roles(messages, true);
  bool const system = messages[0].role == "system";
  std::vector<TextPart> r = {{"<s>", true}};
  for (std::size_t i = system ? 1 : 0; i < messages.size(); ++i) {
    Message const& m = messages[i];
    if (m.role == "assistant") {
      r.push_back({" " + m.content});
      r.push_back({"</s>", true});
    } else {
      r.push_back(
          {"[INST] " + (system && i == 1 ? messages[0].content + "\n\n" : "") + m.content + " [/INST]"});
    }
  }
  return r;
}

/// qwen_chat - Qwen's (ChatML): <|im_start|>role, the message, <|im_end|>; `system` is what the system says if no
/// message of it comes first, nothing if it is empty.
///
/// Errors    as llama3_chat
/// Source    https://qwen.readthedocs.io, "Key Concepts"
inline std::vector<TextPart> qwen_chat(std::span<Message const> messages, bool answer = true,
                                       std::string const& system = "You are a helpful assistant.") {
  detail::check_roles(messages, false);
  std::vector<TextPart> r;
  auto const put = [&](std::string const& role, std::string const& content) {
    r.push_back({"<|im_start|>" + role + "\n", true});
    r.push_back({content});
    r.push_back({"<|im_end|>\n", true});
  };
  if (messages[0].role != "system" && !system.empty()) put("system", system);
  for (Message const& m : messages) put(m.role, m.content);
  if (answer) r.push_back({"<|im_start|>assistant\n", true});
  return r;
}

/// phi3_chat - Phi-3's: <|user|>, the message, <|end|>, each on a line of its own.
///
/// Errors    as llama3_chat
/// Source    https://huggingface.co/microsoft/Phi-3-mini-4k-instruct, "Chat Format"
inline std::vector<TextPart> phi3_chat(std::span<Message const> messages, bool answer = true) {
  detail::check_roles(messages, false);
  std::vector<TextPart> r;
  for (Message const& m : messages) {
    r.push_back({"<|" + m.role + "|>\n", true});
    r.push_back({m.content});
    r.push_back({"<|end|>\n", true});
  }
  if (answer) r.push_back({"<|assistant|>\n", true});
  return r;
}

/// ChatStyle - the templates that are known.
enum class ChatStyle : std::uint8_t { llama2, llama3, mistral, qwen, phi3 };

/// chat_style - which of them a model's own template is (Jinja, from load_chat_template), by the words that it writes
/// between messages; nothing if it is another's.
inline std::optional<ChatStyle> chat_style(std::string_view jinja) {
  auto const writes = [&](std::string_view words) { return jinja.find(words) != jinja.npos; };
  if (writes("<|start_header_id|>")) return ChatStyle::llama3;
  if (writes("<|im_start|>")) return ChatStyle::qwen;
  if (writes("<|assistant|>") && writes("<|end|>")) return ChatStyle::phi3;
  if (writes("<<SYS>>")) return ChatStyle::llama2;
  if (writes("[INST]")) return ChatStyle::mistral;
  return {};
}

/// default_system - what a template of ChatML (qwen_chat) has the system say where no message of it comes first: the
/// words that stand in it as they are. Empty if there are none, as in those of Qwen 3.
inline std::string default_system(std::string_view jinja) {
  std::string_view const begin = "<|im_start|>system", end = "<|im_end|>";
  for (std::size_t at = jinja.find(begin); at != jinja.npos; at = jinja.find(begin, at + 1)) {
    std::string_view rest = jinja.substr(at + begin.size());
    // A new line, or the escape for one.
    if (rest.starts_with("\n")) rest.remove_prefix(1);
    else if (rest.starts_with("\\n")) rest.remove_prefix(2);
    else continue;
    std::string_view const words = rest.substr(0, rest.find(end));
    // What is put together from a message leaves the quotation or begins another expression.
    bool const whole = words.size() < rest.size() && words.find_first_of("'\"{}\\+") == words.npos;
    if (whole && !words.empty()) return std::string(words);
  }
  return {};
}

/// chat - a conversation in that style; `system` is what the system says in ChatML if no message of it comes first.
///
/// Errors    those of the style's function
inline std::vector<TextPart> chat(ChatStyle style, std::span<Message const> messages,
                                  std::string const& system = "You are a helpful assistant.") {
  switch (style) {
    case ChatStyle::llama3: return llama3_chat(messages);
    case ChatStyle::phi3: return phi3_chat(messages);
    case ChatStyle::qwen: return qwen_chat(messages, true, system);
    case ChatStyle::mistral: return mistral_chat(messages);
    default: return llama2_chat(messages);
  }
}

}  // namespace dfdx::text
