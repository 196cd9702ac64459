// SPDX-License-Identifier: BSL-1.0
// The part of Python's pickle format that PyTorch stores tensors with, as data: nothing in it is ever called. For
// io/pt.hpp, and not part of <dfdx/io.hpp>.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <dfdx/core/shape.hpp>
#include <dfdx/io/metadata.hpp>

namespace dfdx::detail {

/// PickledTensor - what torch._utils._rebuild_tensor_v2 is given: where in a storage the elements are.
struct PickledTensor {
  std::string storage, type;  // "0", "FloatStorage"
  std::int64_t numbers = 0;   // of the storage
  std::int64_t offset = 0;
  std::vector<index_t> size, stride;
};

/// Pickle - the value that a pickle describes: dicts, lists, tuples, texts, numbers, None and tensors. Values refer to
/// others by their index, so that a list within itself and one that is there a million times cost no more than their
/// bytes.
///
/// Errors    "it would call os.system; only tensors are built", "opcode 0x81 at byte 20 is not supported", "it ends
///           early", behind what `fail` puts there
/// Source    Python's pickletools; PyTorch's torch/serialization.py
class Pickle {
 public:
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    global,
    storage,
    tensor,
    mark
  };
  using Index = std::uint32_t;
  struct Value {
    Kind kind = Kind::none;
    std::int64_t integer = 0;  // also a boolean, and the index of a tensor
    double real = 0;
    std::string text;  // also the name of a global, "torch.FloatStorage"
    std::vector<Index>
        items;  // of a dict keys and values by turns; of a storage what its identity is made of
  };

  /// `name` is for messages: "pt: m.pt".
  Pickle(std::span<std::byte const> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
    run();
  }

  Value const& operator[](Index i) const { return values_[i]; }
  Value const& root() const { return values_[root_]; }
  PickledTensor const& tensor(Value const& v) const { return tensors_[static_cast<std::size_t>(v.integer)]; }

 private:
  // Far more than a model has, and few enough that a file of opcodes that make values does not fill the memory.
  static constexpr std::size_t max_values = std::size_t{1} << 20, max_axes = 16, max_name = 200;

  [[noreturn]] void fail(std::string const& why) const { raise_file(name_ + ": " + why); }
  void require(bool ok, char const* why) const {
    if (!ok) fail(why);
  }

  std::span<std::byte const> take(std::uint64_t n) {
    require(n <= bytes_.size() - at_, "its pickle ends early");
    auto const r = bytes_.subspan(at_, static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return r;
  }
  std::uint64_t word(int size) {
    std::uint64_t x = 0;
    auto const b = take(static_cast<std::uint64_t>(size));
    std::memcpy(&x, b.data(), b.size());
    return x;
  }
  std::string text_of(std::uint64_t n) {
    auto const b = take(n);
    return {reinterpret_cast<char const*>(b.data()), b.size()};
  }
  std::string line() {
    std::size_t n = 0;
    while (n < bytes_.size() - at_ && bytes_[at_ + n] != std::byte{'\n'}) ++n;
    std::string r = text_of(n);
    take(1);
    return r;
  }

  Value& push(Kind kind) {
    require(values_.size() < max_values, "its pickle makes too many values");
    stack_.push_back(static_cast<Index>(values_.size()));
    Value& v = values_.emplace_back();
    v.kind = kind;
    return v;
  }
  void push_integer(std::int64_t x, Kind kind = Kind::integer) { push(kind).integer = x; }
  void push_text(std::uint64_t n) {
    std::string s = text_of(n);
    push(Kind::text).text = std::move(s);
  }
  Index pop() {
    require(!stack_.empty() && values_[stack_.back()].kind != Kind::mark,
            "its pickle takes what is not there");
    Index const r = stack_.back();
    stack_.pop_back();
    return r;
  }
  Value& top(Kind kind) {
    require(!stack_.empty() && values_[stack_.back()].kind == kind,
            "its pickle adds to what is no list and no dict");
    return values_[stack_.back()];
  }
  std::vector<Index> pop_to_mark() {
    std::size_t n = stack_.size();
    while (n > 0 && values_[stack_[n - 1]].kind != Kind::mark) --n;
    require(n > 0, "its pickle takes what is not there");
    std::vector<Index> r(stack_.begin() + static_cast<std::ptrdiff_t>(n), stack_.end());
    stack_.resize(n - 1);
    return r;
  }
  void push_tuple(std::size_t n) {
    std::vector<Index> items(n);
    while (n > 0) items[--n] = pop();
    push(Kind::tuple).items = std::move(items);
  }
  void add(Kind kind, std::vector<Index> const& items) {
    Value& to = top(kind);
    require(kind != Kind::dict || items.size() % 2 == 0, "its pickle has a key without a value");
    to.items.insert(to.items.end(), items.begin(), items.end());
  }
  void remember(std::uint64_t at) {
    require(!stack_.empty(), "its pickle takes what is not there");
    memo_[at] = stack_.back();
  }
  void recall(std::uint64_t at) {
    auto const found = memo_.find(at);
    require(found != memo_.end(), "its pickle takes what is not there");
    stack_.push_back(found->second);
  }

  // Refused where it is named, whether or not it would be called.
  void global(std::string const& module, std::string const& member) {
    std::string const name = module + "." + member;
    require(name.size() <= max_name, "it would call what has a name of more than 200 bytes");
    constexpr std::string_view allowed[] = {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2",
                                            "torch._utils._rebuild_parameter"};
    constexpr std::string_view end = "Storage";
    bool const storage = module == "torch" && member.ends_with(end) && member.find('.') == member.npos;
    if (!storage && std::find(std::begin(allowed), std::end(allowed), name) == std::end(allowed))
      fail("it would call " + shown_name(name) + "; only tensors are built");
    push(Kind::global).text = name;
  }

  std::int64_t integer(Index i, Kind kind = Kind::integer) const {
    require(values_[i].kind == kind, "a tensor is described in another way than by PyTorch");
    return values_[i].integer;
  }
  std::vector<index_t> extents(Index i) const {
    Value const& v = values_[i];
    require(v.kind == Kind::tuple || v.kind == Kind::list,
            "a tensor is described in another way than by PyTorch");
    require(v.items.size() <= max_axes, "a tensor has more than 16 axes");
    std::vector<index_t> r;
    for (Index e : v.items) r.push_back(integer(e));
    return r;
  }

  void reduce() {
    Index const arguments = pop(), callee = pop();
    // A short one: it is copied, and it may be there many times.
    require(values_[callee].kind == Kind::global && values_[arguments].kind == Kind::tuple &&
                values_[arguments].items.size() <= 8,
            "its pickle calls what is no function");
    std::string const& name = values_[callee].text;
    std::vector<Index> const given = values_[arguments].items;
    if (name == "collections.OrderedDict") {
      require(given.empty(), "an OrderedDict is made in another way than by PyTorch");
      push(Kind::dict);
    } else if (name == "torch._utils._rebuild_tensor_v2") {
      require(given.size() >= 4 && values_[given[0]].kind == Kind::storage,
              "a tensor is described in another way than by PyTorch");
      std::vector<Index> const& identity = values_[given[0]].items;
      PickledTensor t;
      t.type = values_[identity[0]].text.substr(6);
      t.storage = values_[identity[1]].text;
      t.numbers = integer(identity[2]);
      t.offset = integer(given[1]);
      t.size = extents(given[2]);
      t.stride = extents(given[3]);
      push(Kind::tensor).integer = static_cast<std::int64_t>(tensors_.size());
      tensors_.push_back(std::move(t));
    } else if (name == "torch._utils._rebuild_parameter") {
      require(!given.empty() && values_[given[0]].kind == Kind::tensor,
              "a tensor is described in another way than by PyTorch");
      stack_.push_back(given[0]);
    } else fail("it would call " + shown_name(name) + "; only tensors are built");
  }
  // ("storage", its type, the name of the file's part, the device, how many numbers)
  void persistent() {
    Value const& v = values_[pop()];
    require(v.items.size() == 5, "a storage is described in another way than by PyTorch");
    std::vector<Index> const given = v.items;
    bool const good = values_[given[0]].text == "storage" && values_[given[1]].kind == Kind::global &&
                      values_[given[1]].text.starts_with("torch.") &&
                      values_[given[1]].text.ends_with("Storage") && values_[given[2]].kind == Kind::text &&
                      values_[given[2]].text.size() <= max_name && values_[given[4]].kind == Kind::integer;
    require(good, "a storage is described in another way than by PyTorch");
    push(Kind::storage).items = {given[1], given[2], given[4]};
  }

  void run() {
    for (;;) {
      std::size_t const begin = at_;
      auto const code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      if (!step(code)) {
        constexpr char const* digits = "0123456789abcdef";
        fail(std::string("opcode 0x") + digits[code >> 4] + digits[code & 15] + " at byte " +
             std::to_string(begin) + " of its pickle is not supported");
      }
    }
    root_ = pop();
    require(stack_.empty() && at_ == bytes_.size(), "its pickle has more than one value");
  }

  bool step(unsigned char code) {
    switch (code) {
      case 0x80: take(1); return true;                                          // PROTO
      case 0x95: take(8); return true;                                          // FRAME
      case '(': push(Kind::mark); return true;                                  // MARK
      case '0': pop(); return true;                                             // POP
      case 'N': push(Kind::none); return true;                                  // NONE
      case 0x88: push_integer(1, Kind::boolean); return true;                   // NEWTRUE
      case 0x89: push_integer(0, Kind::boolean); return true;                   // NEWFALSE
      case 'K': push_integer(static_cast<std::int64_t>(word(1))); return true;  // BININT1
      case 'M': push_integer(static_cast<std::int64_t>(word(2))); return true;  // BININT2
      case 'J':
        push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(word(4))));
        return true;                     // BININT
      case 0x8a: return long_integer();  // LONG1
      case 'G': {                        // BINFLOAT, the one that is big-endian
        double const x = std::bit_cast<double>(__builtin_bswap64(word(8)));
        push(Kind::real).real = x;
        return true;
      }
      case 'X': push_text(word(4)); return true;   // BINUNICODE
      case 'T': push_text(word(4)); return true;   // BINSTRING
      case 'U':                                    // SHORT_BINSTRING
      case 0x8c: push_text(word(1)); return true;  // SHORT_BINUNICODE
      case ')': push(Kind::tuple); return true;    // EMPTY_TUPLE
      case 0x85:                                   // TUPLE1, 2 and 3
      case 0x86:
      case 0x87: push_tuple(code - 0x84u); return true;
      case 't': {  // TUPLE
        std::vector<Index> items = pop_to_mark();
        push(Kind::tuple).items = std::move(items);
        return true;
      }
      case ']': push(Kind::list); return true;                // EMPTY_LIST
      case '}': push(Kind::dict); return true;                // EMPTY_DICT
      case 'a': add_one(Kind::list, 1); return true;          // APPEND
      case 's': add_one(Kind::dict, 2); return true;          // SETITEM
      case 'e': add(Kind::list, pop_to_mark()); return true;  // APPENDS
      case 'u': add(Kind::dict, pop_to_mark()); return true;  // SETITEMS
      case 'q': remember(word(1)); return true;               // BINPUT
      case 'r': remember(word(4)); return true;               // LONG_BINPUT
      case 0x94: remember(memo_.size()); return true;         // MEMOIZE
      case 'h': recall(word(1)); return true;                 // BINGET
      case 'j': recall(word(4)); return true;                 // LONG_BINGET
      case 'c': {                                             // GLOBAL
        std::string const module = line();
        global(module, line());
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        Index const member = pop(), module = pop();
        global(std::string(values_[module].text), std::string(values_[member].text));
        return true;
      }
      case 'R': reduce(); return true;                // REDUCE
      case 'Q': persistent(); return true;            // BINPERSID
      case 'b': pop(), top(Kind::dict); return true;  // BUILD: attributes of an OrderedDict, unused
      default: return false;
    }
  }
  void add_one(Kind kind, std::size_t n) {
    std::vector<Index> items(n);
    while (n > 0) items[--n] = pop();
    add(kind, items);
  }
  bool long_integer() {
    std::uint64_t const n = word(1);
    require(n <= 8, "its pickle has an integer of more than 64 bits");
    std::uint64_t const x = word(static_cast<int>(n));
    // The sign is that of the last byte.
    int const unused = 64 - static_cast<int>(n) * 8;
    push_integer(n == 0 ? 0 : static_cast<std::int64_t>(x << unused) >> unused);
    return true;
  }

  std::span<std::byte const> bytes_;
  std::string name_;
  std::size_t at_ = 0;
  std::vector<Value> values_;
  std::vector<PickledTensor> tensors_;
  std::vector<Index> stack_;
  std::map<std::uint64_t, Index> memo_;
  Index root_ = 0;
};

}  // namespace dfdx::detail
