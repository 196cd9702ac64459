// SPDX-License-Identifier: BSL-1.0
// PyTorch's files: those of others, pickles made here piece by piece, and what is refused.
#include "io/models.hpp"
#include "io/zip.hpp"
#include "support.hpp"

#include <dfdx/core/random.hpp>
#include <dfdx/io/pt.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::io_pt {

using namespace tests;

namespace {

// Opcodes of pickles.
std::string text(std::string const& s) { return "X" + little(s.size(), 4) + s; }
std::string whole(std::int64_t x) {
  if (x >= 0 && x < 256) return "K" + little(static_cast<std::uint64_t>(x), 1);
  return "\x8a\x08" + little(static_cast<std::uint64_t>(x), 8);
}
std::string global(std::string const& module, std::string const& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string tuple(std::vector<std::int64_t> const& v) {
  std::string r = "(";
  for (std::int64_t x : v) r += whole(x);
  return r + "t";
}
std::string const ordered = global("collections", "OrderedDict") + ")R";
std::string tensor(std::string const& type, std::string const& storage, std::int64_t numbers,
                   std::int64_t offset, std::vector<std::int64_t> const& size,
                   std::vector<std::int64_t> const& stride) {
  return global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") + global("torch", type) +
         text(storage) + text("cpu") + whole(numbers) + "tQ" + whole(offset) + tuple(size) + tuple(stride) +
         "\x89" + ordered + "tR";
}
std::string dict(std::vector<std::pair<std::string, std::string>> const& items) {
  std::string r = "}(";
  for (auto const& [key, value] : items) r += text(key) + value;
  return r + "u";
}
std::string pickle(std::string const& value) { return "\x80\x02" + value + "."; }

std::string floats(int n) {
  std::string r;
  for (int i = 0; i < n; ++i) {
    auto const x = static_cast<float>(i);
    r.append(reinterpret_cast<char const*>(&x), 4);
  }
  return r;
}
std::string file(std::string const& value, bool packed = false, std::string const& storage = floats(6)) {
  return zip(
      {{"m/data.pkl", pickle(value), packed}, {"m/byteorder", "little"}, {"m/data/0", storage, packed}});
}
std::string refusal(std::string const& bytes, std::string const& set = "") {
  std::string const r = error_of([&] { pt_from(bytes_of(bytes), "f", set); });
  CHECK((r.empty() || r.starts_with("pt: f: ") || r.starts_with("data: f")));
  return r.starts_with("pt: f: ") ? r.substr(7) : r;
}
std::vector<float> values(Weights const& w, char const* name) {
  Array const a = w.array(name, DType::f32);
  return {a.data<float>(), a.data<float>() + a.size()};
}

}  // namespace

TEST_CASE("files that PyTorch wrote", "[io]") {
  std::filesystem::path const folder = std::filesystem::path(DFDX_SHARED_DIR) / "data/formats/candle";
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(folder))
    SKIP("no .pt files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Weights const plain = read_pt(folder / "test.pt"), nested = read_pt(folder / "test_with_key.pt"),
                asked = read_pt(folder / "test_with_key.pt", "model_state_dict");
  for (Weights const* w : {&plain, &nested, &asked}) {
    CHECK(w->format == "PyTorch");
    REQUIRE(w->size() == 1);
    CHECK(w->at("test").format == "I64");
    CHECK(w->at("test").shape == std::vector<index_t>{2, 4});
    CHECK(array_equal(w->array("test"), plain.array("test")));
  }
  Weights const w = read_pt(folder / "fortran_tensor_3d.pth");
  Array const a = w.array("tensor_fortran");
  REQUIRE(a.shape() == make_shape(2, 3, 4));
  // Its storage counts from 1 on, the first axis fastest.
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j)
      for (index_t k = 0; k < 4; ++k) {
        std::int64_t const first = a.at<std::int64_t>({0, 0, 0});
        CAPTURE(i, j, k, first);
        std::int64_t stored;
        auto const bytes = read_file(folder / "fortran_tensor_3d.pth", "t");
        data::detail::ZipFile const z(bytes, "z");
        std::memcpy(&stored, z.stored(z.members()[2]).data() + (i + 2 * j + 6 * k) * 8, 8);
        CHECK(a.at<std::int64_t>({i, j, k}) == stored);
      }
}

TEST_CASE("dicts, lists and views of storages", "[io]") {
  for (bool packed : {false, true}) {
    std::string const bytes = file(dict({{"a", tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1})},
                                         {"t", tensor("FloatStorage", "0", 6, 0, {3, 2}, {1, 3})},
                                         {"row", tensor("FloatStorage", "0", 6, 3, {3}, {1})},
                                         {"one", tensor("FloatStorage", "0", 6, 5, {}, {})},
                                         {"none", tensor("FloatStorage", "0", 6, 0, {0, 3}, {3, 1})},
                                         {"epoch", whole(-7)},
                                         {"lr", "G" + std::string("\x3f\xf8\0\0\0\0\0\0", 8)},
                                         {"name", text("x")},
                                         {"flag", "\x88"},
                                         {"nothing", "N"}}),
                                   packed);
    Weights const w = pt_from(bytes_of(bytes));
    CHECK(values(w, "a") == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(values(w, "t") == std::vector<float>{0, 3, 1, 4, 2, 5});
    CHECK(values(w, "row") == std::vector<float>{3, 4, 5});
    CHECK(values(w, "one") == std::vector<float>{5});
    CHECK(w.array("none").shape() == make_shape(0, 3));
    CHECK(w.metadata.integer("epoch") == -7);
    CHECK(w.metadata.number("lr") == 1.5);
    CHECK(w.metadata.text("name") == "x");
    CHECK(w.metadata.flag("flag", false));
    CHECK(w.begin()->name == "a");
  }
  std::string const t = tensor("FloatStorage", "0", 6, 0, {6}, {1});
  std::string const parameter =
      global("torch._utils", "_rebuild_parameter") + "(" + t + "\x88" + ordered + "tR";
  CHECK(pt_from(bytes_of(file(parameter))).at("tensor").size() == 6);
  CHECK(pt_from(bytes_of(file("](" + t + "N" + t + "e"))).at("2").size() == 6);
  std::string const one = dict({{"net", dict({{"a", t}})}, {"step", whole(3)}});
  CHECK(pt_from(bytes_of(file(one))).metadata.integer("step") == 3);
  std::string const two = file(dict({{"ema", dict({{"a", t}})}, {"net", dict({{"b", t}})}}));
  CHECK(refusal(two) == "it has several sets of tensors: ema, net; name one");
  CHECK(refusal(two, "x") == "it has no set of tensors x; there are ema, net");
  CHECK(pt_from(bytes_of(two), "f", "net").find("b") != nullptr);
  std::string const usual = file(dict({{"ema", dict({{"a", t}})}, {"state_dict", dict({{"b", t}})}}));
  CHECK(pt_from(bytes_of(usual)).find("b") != nullptr);
  // The memo, and an OrderedDict with attributes.
  std::string const memo = ordered + "q\1" + text("a") + "q\2" + t + "q\3s" + text("b") + "h\3s" +
                           dict({{"_metadata", "h\1"}}) + "b";
  CHECK(pt_from(bytes_of(file(memo))).size() == 2);
}

TEST_CASE("a pickle that calls anything is refused by its name", "[io]") {
  auto const told = [](std::string const& name) {
    return "it would call " + name + "; only tensors are built";
  };
  CHECK(refusal(file(global("posix", "system") + "(" + text("id") + "tR")) == told("posix.system"));
  CHECK(refusal(file(global("posix", "system"))) == told("posix.system"));
  CHECK(refusal(file(text("os") + text("system") + "\x93")) == told("os.system"));
  CHECK(refusal(file(global("builtins", "eval"))) == told("builtins.eval"));
  CHECK(refusal(file(global("torch", "load"))) == told("torch.load"));
  CHECK(refusal(file(global("torch._utils", "_rebuild_tensor_v3"))) ==
        told("torch._utils._rebuild_tensor_v3"));
  CHECK(refusal(file(global("torch", "os.xStorage"))) == told("torch.os.xStorage"));
  CHECK(refusal(file(global("collections", "OrderedDict") + ")\x81")) ==
        "opcode 0x81 at byte 28 of its pickle is not supported");
  CHECK(refusal(file("(" + text("x") + "iposix\nsystem\n")) ==
        "opcode 0x69 at byte 9 of its pickle is not supported");
  CHECK(refusal(file(text("x") + ")R")) == "its pickle calls what is no function");
  CHECK(refusal(file(global("torch", "FloatStorage") + ")R")) == told("torch.FloatStorage"));
  CHECK(refusal(file(global(std::string(300, 'a'), "b"))) ==
        "it would call what has a name of more than 200 bytes");
}

TEST_CASE("PyTorch's files that must be refused", "[io]") {
  auto const one = [](std::int64_t numbers, std::int64_t offset, std::vector<std::int64_t> const& size,
                      std::vector<std::int64_t> const& stride, std::string const& type = "FloatStorage") {
    return refusal(file(dict({{"t", tensor(type, "0", numbers, offset, size, stride)}})));
  };
  std::string const outside = "t: its elements are not all in its storage";
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  CHECK(one(6, 0, {6}, {1}) == "");
  CHECK(one(6, 1, {6}, {1}) == outside);
  CHECK(one(6, -1, {2}, {1}) == outside);
  CHECK(one(6, 0, {2, 3}, {4, 1}) == outside);
  CHECK(one(6, 0, {-2}, {1}) == outside);
  CHECK(one(6, 5, {2}, {-1}) == outside);
  CHECK(one(6, 0, {huge, huge}, {0, 0}) == outside);
  CHECK(one(6, 0, {huge}, {0}) == outside);
  CHECK(one(6, huge, {2}, {huge}) == outside);
  CHECK(one(6, 0, {2, 3}, {1}) == "t: it has another number of extents than of strides");
  CHECK(one(7, 0, {6}, {1}) == "t: its storage has 24 bytes, not 7 elements");
  CHECK(one(-1, 0, {6}, {1}) == "t: its storage has 24 bytes, not -1 elements");
  CHECK(one(6, 0, {6}, {1}, "QInt8Storage") == "t: its storage is a QInt8Storage, which is not supported");
  CHECK(one(6, 0, std::vector<std::int64_t>(17, 1), std::vector<std::int64_t>(17, 1)) ==
        "a tensor has more than 16 axes");
  CHECK(refusal(file(dict({{"t", tensor("FloatStorage", "1", 6, 0, {6}, {1})}}))) == "there is no storage 1");
  CHECK(refusal(file(dict({{"t\xff", tensor("FloatStorage", "0", 6, 0, {6}, {1})}}))) ==
        "t?: its name is not UTF-8");
  std::string const t = tensor("FloatStorage", "0", 6, 0, {6}, {1});
  CHECK(refusal(file(dict({{"t", t}, {"t", t}}))) == "t: the name is given twice");
  CHECK(refusal(file("}" + whole(1) + t + "s")) == "a tensor has a name that is no text");
  CHECK(refusal(file(dict({}))) == "it holds no tensors");
  CHECK(refusal(file(whole(1))) == "it holds no tensors");
  CHECK(refusal(file("")) == "its pickle takes what is not there");
  CHECK(refusal(file("h\1")) == "its pickle takes what is not there");
  CHECK(refusal(file("NN")) == "its pickle has more than one value");
  CHECK(refusal(file("NNa")) == "its pickle adds to what is no list and no dict");
  CHECK(refusal(file("}(Nu")) == "its pickle has a key without a value");
  CHECK(refusal(file("X" + little(0xffffffff, 4))) == "its pickle ends early");
  CHECK(refusal(file(std::string(3'000'000, 'N'))) == "its pickle makes too many values");
  // A list in itself, and one that holds the one before twice, over and over.
  CHECK(refusal(file("]q\1h\1a")) == "");
  std::string laughs = "]q\1";
  for (int i = 0; i < 200; ++i) laughs += "](h\1h\1eq\1";
  CHECK(refusal(file("}" + text("x") + "h\1s")) == "its pickle takes what is not there");
  CHECK(refusal(file(laughs + "0" + t)) != "");
  // Views that are transposed: each would be a copy.
  std::vector<std::pair<std::string, std::string>> views;
  for (int i = 0; i < 9; ++i)
    views.push_back({"v" + std::to_string(i), tensor("FloatStorage", "0", 6, 0, {3, 2}, {1, 3})});
  CHECK(refusal(file(dict(views))) ==
        "its tensors are views that take more memory than all that it stores, twice over");

  CHECK(refusal("\x80\x02 old") == "it is a file of PyTorch before 1.6, which is not supported");
  CHECK(refusal("") == "data: f is no zip file");
  CHECK(refusal(zip({{"m/x", ""}})) == "it has no data.pkl, as files of PyTorch have");
  CHECK(refusal(zip({{"m/data.pkl", ""}, {"m/data.pkl", ""}})) == "it has the part m/data.pkl twice");
  CHECK(refusal(zip({{"m/data.pkl", pickle("N")}, {"m/byteorder", "big"}})) ==
        "it is not little-endian, which is not supported");
  CHECK(refusal(zip({{"m/data.pkl", std::string(65'000'000, 'N'), true}})) ==
        "its pickle is longer than 64 MB");
}

TEST_CASE("every truncation and many damages of a PyTorch file are refused or read, never worse", "[io]") {
  for (bool packed : {false, true}) {
    std::string const value = dict({{"a", tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1})},
                                    {"t", tensor("FloatStorage", "0", 6, 0, {3, 2}, {1, 3})}});
    std::string const good = file(value, packed);
    REQUIRE(refusal(good) == "");
    for (std::size_t n = 0; n < good.size(); ++n) CHECK(refusal(good.substr(0, n)) != "");
    for (std::uint64_t i = 0; i < 5000; ++i) {
      std::string bad = good, worse = pickle(value);
      bad[static_cast<std::size_t>(integer_at(Key{i}, 0, static_cast<index_t>(bad.size())))] =
          static_cast<char>(integer_at(Key{i}, 1, 256));
      // The checksum would hide most damages of the pickle.
      worse[static_cast<std::size_t>(integer_at(Key{i}, 2, static_cast<index_t>(worse.size())))] =
          static_cast<char>(integer_at(Key{i}, 3, 256));
      for (std::string const& s : {bad, zip({{"m/data.pkl", worse}, {"m/data/0", floats(6), packed}})})
        error_of([&] {
          for (Weight const& w : pt_from(bytes_of(s)))
            if (w.dtype) w.array();
        });
    }
  }
}

}  // namespace tests::io_pt
