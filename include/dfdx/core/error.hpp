// SPDX-License-Identifier: BSL-1.0
// Errors: one text for a fault, thrown as dfdx::error at run time or shown by the compiler. Rules about shapes
// build the text once, in `Text`; `raise` throws it, `told` makes the compiler print it. But for CUDA nothing else
// throws or catches, so that programs without exceptions are a matter of this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <dfdx/core/device.hpp>
#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>

namespace dfdx {

/// error - what the library throws (see raise); what() is one sentence that names the op and the shapes.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Position - an index in a message: a number of any sign, where an extent would say dyn.
struct Position {
  index_t value;
};

/// Text - a message of bounded length that can be built in a constant expression; longer ones are cut.
class Text {
 public:
  static constexpr int capacity = 191;

  constexpr Text() = default;

  constexpr Text& put(char const* s) {
    while (*s != 0 && size_ < capacity) data_[size_++] = *s++;
    return *this;
  }
  constexpr Text& put(index_t v) {
    if (v < 0 && v != extent::unknown && (v & extent::factor_mask) != 0) return put("dyn");
    if (v == extent::unknown) return put("dyn");
    return put_digits(static_cast<std::uint64_t>(v));
  }
  constexpr Text& put(int v) { return put(Position{v}); }
  constexpr Text& put(Position p) {
    auto const v = static_cast<std::uint64_t>(p.value);
    if (p.value >= 0) return put_digits(v);
    return put("-").put_digits(0 - v);
  }
  constexpr Text& put(DType d) { return put(name_of(d)); }
  constexpr Text& put(Device d) { return d.is_cpu() ? put("cpu") : put("cuda:").put(int{d.index}); }
  constexpr Text& put(Shape const& s) {
    put("[");
    for (int i = 0; i < s.rank; ++i) {
      if (i != 0) put(", ");
      put(s[i]);
    }
    return put("]");
  }

  /// rename - says it of another op: what stands before the first colon.
  constexpr void rename(char const* op) {
    Text const old = *this;
    char const* rest = old.data_;
    while (*rest != 0 && *rest != ':') ++rest;
    *this = Text{};
    put(op).put(rest);
  }

  constexpr char const* data() const { return data_; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(size_); }
  constexpr char const* c_str() const { return data_; }

 private:
  constexpr Text& put_digits(std::uint64_t v) {
    char digits[24] = {};
    int n = 0;
    do digits[n++] = static_cast<char>('0' + v % 10);
    while ((v /= 10) != 0);
    while (n > 0 && size_ < capacity) data_[size_++] = digits[--n];
    return *this;
  }

  char data_[capacity + 1] = {};
  int size_ = 0;
};

template <class... Parts>
constexpr Text make_text(Parts const&... parts) {
  Text t;
  (t.put(parts), ...);
  return t;
}

/// raise - throws dfdx::error with the text. In a constant expression the call itself is the diagnostic. In programs
/// that are compiled without exceptions (-fno-exceptions) it writes the text to the standard error output and aborts:
/// nothing could be told to the caller.
[[noreturn]] inline void raise(std::string const& text) {
#if defined(__cpp_exceptions)
  throw error(text);
#else
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
#endif
}
[[noreturn]] inline void raise(Text const& t) { raise(std::string(t.data(), t.size())); }

template <class... Parts>
[[noreturn]] void raise(char const* first, Parts const&... parts) {
  raise(make_text(first, parts...));
}

namespace detail {

// What f() returns, or g(e) if it throws an E. Without exceptions nothing comes back from where it went wrong.
template <class E, class F, class G>
auto caught(F const& f, G const& g) -> decltype(f()) {
#if defined(__cpp_exceptions)
  try {
    return f();
  } catch (E const& e) {
    return g(e);
  }
#else
  static_cast<void>(g);
  return f();
#endif
}

// The same for whatever it throws.
template <class F>
std::exception_ptr caught(F const& f) {
#if defined(__cpp_exceptions)
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
#else
  f();
#endif
  return {};
}

// A text as a template argument.
template <std::size_t N>
struct Literal {
  char text[N + 1] = {};
  constexpr Literal() = default;
  constexpr Literal(char const (&s)[N + 1]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};
template <std::size_t Size>
Literal(char const (&)[Size]) -> Literal<Size - 1>;

// clang quotes a text argument of up to 31 characters, so there the text is given in pieces that end at a blank.
#if defined(__clang__)
inline constexpr std::size_t piece_length = 31;
#else
inline constexpr std::size_t piece_length = Text::capacity;
#endif

constexpr std::size_t piece_end(Text const& t, std::size_t begin) {
  if (t.size() - begin <= piece_length) return t.size();
  std::size_t end = begin + piece_length;
  while (end > begin + 1 && t.data()[end - 1] != ' ') --end;
  return end > begin + 1 ? end : begin + piece_length;
}

// Where the k-th piece begins; with k = -1, how many pieces there are.
constexpr std::size_t piece(Text const& t, std::size_t k) {
  std::size_t begin = 0, n = 0;
  for (; n != k && begin < t.size(); ++n) begin = piece_end(t, begin);
  return k == static_cast<std::size_t>(-1) ? n : begin;
}

template <class Message, std::size_t K>
constexpr auto literal() {
  constexpr std::size_t begin = piece(Message::value, K), end = piece_end(Message::value, begin);
  Literal<end - begin> r;
  for (std::size_t i = begin; i < end; ++i) r.text[i - begin] = Message::value.data()[i];
  return r;
}

}  // namespace detail

/// told<Message>::once - static_assert(told<Message>::once) makes the compiler print Message::value (a Text) as its one
/// error: it quotes the arguments of the class. Each function around it is a note more, so there is none.
#if defined(__clang__)
template <detail::Literal... Message>
struct error_in_dfdx_call {
  static constexpr bool once = false;
};
namespace detail {
template <class Message, std::size_t... K>
auto quote(std::index_sequence<K...>) -> std::type_identity<error_in_dfdx_call<literal<Message, K>()...>>;
}
template <class Message>
using told = typename decltype(detail::quote<Message>(
    std::make_index_sequence<detail::piece(Message::value, static_cast<std::size_t>(-1))>{}))::type;
#else
template <detail::Literal... Message>
struct error_in_dfdx_call;  // never defined
template <class Message>
using told = error_in_dfdx_call<detail::literal<Message, 0>()>;
#endif

}  // namespace dfdx
