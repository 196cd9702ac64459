// SPDX-License-Identifier: BSL-1.0
// NamePattern - regular expressions for names, as adapter_config.json has them. std::regex would take two seconds of
// every program that reads such files, and the stack of one that reads a hostile one.
#pragma once

#include <algorithm>
#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include <dfdx/io/metadata.hpp>

namespace dfdx::models::detail {

/// NamePattern - a regular expression of ECMAScript that is to match all of a name: characters, . \d \w \s and their
/// opposites, [a-z] and [^a-z], ( ) (?: ) (?= ) (?! ), |, * + ? {2} {2,} {2,5}, ^ and $. No references back, no \b.
///
/// Math      each part maps a set of places in the name where it may begin to the set where it may end, so that nothing
///           is tried twice
/// Errors    "lora: the pattern (x is no regular expression, or of a kind that is not known"; "lora: the pattern ... is
///           too large for the name ..."
class NamePattern {
 public:
  explicit NamePattern(std::string text) : text_(std::move(text)) {
    root_ = alternatives(0);
    if (at_ != text_.size()) fail();
  }

  bool matches(std::string_view name) const {
    if (name.size() >= places) return false;
    Places from;
    from.set(0);
    int steps = 0;
    return run(root_, name, from, steps).test(name.size());
  }

 private:
  static constexpr std::size_t places = 512;
  using Places = std::bitset<places>;
  enum class Kind : unsigned char { one, sequence, either, repeat, ahead, not_ahead, begin, end };
  struct Part {
    Kind kind = Kind::sequence;
    std::bitset<256> characters{};
    std::vector<std::size_t> parts{};
    std::size_t least = 0, most = 0;
  };

  [[noreturn]] void fail(
      std::string const& why = "is no regular expression, or of a kind that is not known") const {
    dfdx::detail::raise_file("lora: the pattern " + dfdx::detail::shown_name(text_) + " " + why);
  }
  std::size_t put(Part p) {
    if (all_.size() >= 4096) fail("is too long");
    all_.push_back(std::move(p));
    return all_.size() - 1;
  }
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  char any() {
    if (at_ == text_.size()) fail();
    return text_[at_++];
  }

  std::size_t alternatives(int depth) {
    if (depth > 16) fail("is nested too deep");
    Part r{.kind = Kind::either};
    do {
      Part s{.kind = Kind::sequence};
      while (at_ < text_.size() && !next_is('|') && !next_is(')')) s.parts.push_back(repeated(depth));
      r.parts.push_back(put(std::move(s)));
    } while (take('|'));
    return put(std::move(r));
  }
  std::size_t repeated(int depth) {
    std::size_t part = atom(depth);
    Part r{.kind = Kind::repeat, .parts = {part}, .most = places};
    if (take('*')) r.least = 0;
    else if (take('+')) r.least = 1;
    else if (take('?')) r.most = 1;
    else if (take('{')) {
      r.least = r.most = number();
      if (take(',')) r.most = next_is('}') ? places : number();
      if (!take('}') || r.most < r.least) fail();
    } else {
      return part;
    }
    take('?');  // whether few or many are tried first does not matter to all of a name
    return put(std::move(r));
  }
  std::size_t number() {
    std::size_t n = 0, digits = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && digits < 4; ++at_, ++digits)
      n = n * 10 + static_cast<std::size_t>(text_[at_] - '0');
    if (digits == 0) fail();
    return n;
  }
  std::size_t atom(int depth) {
    char const c = any();
    Part r{.kind = Kind::one};
    if (c == '(') {
      if (take('?')) {
        char const kind = any();
        if (kind == '=') r.kind = Kind::ahead;
        else if (kind == '!') r.kind = Kind::not_ahead;
        else if (kind != ':') fail();
      }
      std::size_t const inner = alternatives(depth + 1);
      if (!take(')')) fail();
      if (r.kind == Kind::one) return inner;
      r.parts = {inner};
    } else if (c == '^') r.kind = Kind::begin;
    else if (c == '$') r.kind = Kind::end;
    else if (c == '.') r.characters.set().reset('\n').reset('\r');
    else if (c == '[') r.characters = characters();
    else if (c == '\\') r.characters = escaped();
    else if (c == '*' || c == '+' || c == '?' || c == '{' || c == ')') fail();
    else r.characters.set(static_cast<unsigned char>(c));
    return put(std::move(r));
  }
  std::bitset<256> escaped() {
    char const c = any();
    std::bitset<256> r;
    auto const range = [&](unsigned char a, unsigned char b) {
      for (int i = a; i <= b; ++i) r.set(static_cast<std::size_t>(i));
    };
    switch (c) {
      case 'd':
      case 'D': range('0', '9'); break;
      case 'w':
      case 'W': range('0', '9'), range('a', 'z'), range('A', 'Z'), r.set('_'); break;
      case 's':
      case 'S': range('\t', '\r'), r.set(' '); break;
      case 'n': r.set('\n'); return r;
      case 't': r.set('\t'); return r;
      default:
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) fail();
        r.set(static_cast<unsigned char>(c));
        return r;
    }
    return c < 'a' ? ~r : r;
  }
  std::bitset<256> characters() {
    bool const others = take('^');
    std::bitset<256> r;
    while (!take(']')) {
      char const c = any();
      if (c == '\\') {
        r |= escaped();
        continue;
      }
      auto const first = static_cast<unsigned char>(c);
      unsigned char last = first;
      if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = static_cast<unsigned char>(any());
        if (last < first || last == '\\') fail();
      }
      for (int i = first; i <= last; ++i) r.set(static_cast<std::size_t>(i));
    }
    return others ? ~r : r;
  }

  Places run(std::size_t part, std::string_view name, Places const& from, int& steps) const {
    if (++steps > 200'000) fail("is too large for the name " + dfdx::detail::shown_name(name));
    Part const& p = all_[part];
    Places r;
    if (from.none()) return r;
    switch (p.kind) {
      case Kind::one:
        for (std::size_t i = 0; i < name.size(); ++i)
          if (from.test(i) && p.characters.test(static_cast<unsigned char>(name[i]))) r.set(i + 1);
        return r;
      case Kind::sequence:
        r = from;
        for (std::size_t q : p.parts) r = run(q, name, r, steps);
        return r;
      case Kind::either:
        for (std::size_t q : p.parts) r |= run(q, name, from, steps);
        return r;
      case Kind::repeat: {
        // More often than there are characters changes nothing any more.
        Places now = from;
        for (std::size_t i = 0; i < std::min(p.least, name.size() + 1); ++i)
          now = run(p.parts[0], name, now, steps);
        r = now;
        for (std::size_t i = p.least; i < p.most && now.any(); ++i) {
          now = run(p.parts[0], name, now, steps) & ~r;
          r |= now;
        }
        return r;
      }
      case Kind::ahead:
      case Kind::not_ahead:
        for (std::size_t i = 0; i <= name.size(); ++i)
          if (from.test(i)) {
            Places one;
            one.set(i);
            if (run(p.parts[0], name, one, steps).any() == (p.kind == Kind::ahead)) r.set(i);
          }
        return r;
      case Kind::begin: r.set(0, from.test(0)); return r;
      default: r.set(name.size(), from.test(name.size())); return r;
    }
  }

  std::string text_;
  std::size_t at_ = 0, root_ = 0;
  std::vector<Part> all_;
};

}  // namespace dfdx::models::detail
