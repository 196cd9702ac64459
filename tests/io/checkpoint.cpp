// SPDX-License-Identifier: BSL-1.0
// A run that is stopped, saved and resumed by other objects is bitwise the run that went on; and what is refused.
#include "io/models.hpp"
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/io/checkpoint.hpp>

#include <catch2/catch_test_macros.hpp>

#include <sys/resource.h>
#include <csignal>
#include <fstream>

namespace tests::io_checkpoint {

using namespace dfdx;
using tests::error_of;

namespace {

struct Net {
  nn::Linear<3, 4> in;
  nn::Repeat<nn::Linear<4, 4, false>, 2> blocks;
  Buffer<float, 4> seen;
  DFDX_FIELDS(in, blocks, seen)
};
constexpr auto loss = [](auto net, auto const& x, auto const& y) {
  auto const h = tanh(net.in(x));
  net.seen = net.seen * 0.9f + mean<0>(h) * 0.1f;
  return std::pair(mean(square(mean<1>(net.blocks(h)) - y)), net);
};

bool same_bits(Array const& a, Array const& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         detail::array_bytes_equal(a.contiguous(), b.contiguous());
}
template <class M>
bool same_bits(M const& a, M const& b) {
  std::vector<Array> of_b;
  visit(b, [&](Array const& x) { of_b.push_back(x); });
  std::size_t i = 0;
  bool r = true;
  visit(a, [&](Array const& x) { r = r && same_bits(x, of_b[i++]); });
  return r;
}

auto const images = randn<float, 22, 3>(Key{7});
auto const targets = randn<float, 22>(Key{8});

// A run as one object, from a seed.
template <class O>
struct Run {
  Net model;
  TrainStep<std::remove_const_t<decltype(loss)>, O> step;
  data::Loader<4, Tensor<float, 22, 3>, Tensor<float, 22>> loader;
  Key key;
  optim::ReduceOnPlateau plateau;
  std::vector<float> losses;
  DFDX_FIELDS(model, step, loader, key, plateau, losses)

  Run(std::uint64_t seed, O const& rule)
      : model(init<Net>(seed)), step(train_step(loss, rule)), loader(Key{seed}, images, targets), key(seed) {}

  void go_on(std::int64_t until) {
    optim::WarmupSchedule const rate{3, optim::CosineSchedule{.lr = 0.05, .steps = 17}};
    while (step.steps() < until) {
      optim::detail::base(step.optimizer()).lr = rate(step.steps());
      auto const& [x, y] = loader.next();
      auto const noisy =
          x + 0.1f * randn<float, 4, 3>(fold_in(key, static_cast<std::uint64_t>(step.steps())));
      losses.push_back(step(model, noisy, y));
      plateau(static_cast<double>(losses.back()));
    }
  }
};

// Stopped at each of some places, resumed with another seed's model, loader and key.
template <class O>
void check_resumed(O const& rule, O const& other) {
  tests::TemporaryFolder const folder;
  auto const file = folder / "run";
  Run<O> whole(1, rule);
  for (std::int64_t at : {0, 1, 7, 10}) {
    whole.go_on(at);
    save_checkpoint(file, "run", whole);
    Run<O> resumed(2, other);
    if (at > 1) resumed.go_on(at / 2);  // what it has done before must not show
    load_checkpoint(file, "run", resumed);
    CHECK(resumed.step.steps() == at);
    CHECK(same_bits(resumed.model, whole.model));
    Run<O> to_the_end(3, other);
    load_checkpoint(file, "run", to_the_end);
    resumed.go_on(17);
    to_the_end.go_on(17);
    Run<O> uninterrupted(1, rule);
    uninterrupted.go_on(17);
    CHECK(resumed.losses.size() == 17);
    CHECK(resumed.losses == uninterrupted.losses);
    CHECK(to_the_end.losses == uninterrupted.losses);
    CHECK(resumed.plateau.best == uninterrupted.plateau.best);
    CHECK(same_bits(resumed.model, uninterrupted.model));
    CHECK(
        same_bits(resumed.step.state_for(resumed.model), uninterrupted.step.state_for(uninterrupted.model)));
  }
}

}  // namespace

TEST_CASE(
    "a resumed run is the run that went on: schedule, decay by groups, average, accumulation, loss scale",
    "[io]") {
  auto const rule = [](double lr, double scale) {
    return optim::LossScale{
        optim::Accumulate{
            optim::Average{
                optim::ClipNorm{
                    optim::Groups{optim::AdamW{.lr = lr}, optim::group<"*.bias">({.weight_decay = 0})}, 1.0},
                0.9},
            3},
        {.scale = scale, .growth_interval = 4}};
  };
  check_resumed(rule(0.1, 3e37), rule(7, 2));
  Run run(1, rule(0.1, 3e37));
  run.go_on(17);
  CHECK(run.step.optimizer().skipped > 0);  // the scale was too large at first
  for (float l : run.losses) CHECK(std::isfinite(l));
}

namespace {

struct Small {
  Tensor<float, 3> weight;
  Tensor<float, dyn, dyn> table;
  Tensor<float> idle;  // without gradients
  Tensor<std::int32_t, 2> numbers;
  DFDX_FIELDS(weight, table, idle, numbers)
};
Small small(std::uint64_t seed) {
  return {randn<float, 3>(Key{seed}), randn<Tensor<float, dyn, dyn>>(Key{seed + 1}, {2, 2}),
          full<Tensor<float>>(0.5), Tensor<std::int32_t, 2>::from({1, 2})};
}
template <class O>
void descend(Small& m, optim::Optimizer<O>& o, std::int64_t until) {
  while (o.steps() < until) {
    auto const k = static_cast<double>(o.steps() + 1);
    watch(m);
    (sum(square(m.weight - 0.1 * k)) + sum(exp(m.table) * k)).backward();
    o.step(m);
    zero_grad(m);
  }
}
template <class O>
void check_on_tape(O const& rule) {
  tests::TemporaryFolder const folder;
  Small a = small(1), b = small(2);
  optim::Optimizer<O> whole(rule), resumed(rule);
  descend(a, whole, 3);
  save_checkpoint(folder / "c", "m", a, "o", whole);
  descend(b, resumed, 1);
  load_checkpoint(folder / "c", "m", b, "o", resumed);
  descend(a, whole, 8);
  descend(b, resumed, 8);
  INFO(detail::short_type_name<O>());
  CHECK(same_bits(a, b));
  REQUIRE(whole.state().size() == resumed.state().size());
  for (std::size_t i = 0; i < whole.state().size(); ++i) {
    REQUIRE(whole.state()[i].size() == resumed.state()[i].size());
    for (std::size_t k = 0; k < whole.state()[i].size(); ++k)
      CHECK(same_bits(whole.state()[i][k], resumed.state()[i][k]));
  }
}

}  // namespace

TEST_CASE("optimizers on the tape are resumed", "[io]") {
  namespace o = optim;
  check_on_tape(o::SGD{.lr = 0.1});
  check_on_tape(o::NAdam{});
  check_on_tape(o::Muon{});
  check_on_tape(o::freeze<"table">(o::ClipValue{o::Average{o::Adam{.amsgrad = true}, 0.5}, 0.5}));
}

TEST_CASE("an optimizer's counts of updates are held, and files that have none are read", "[io]") {
  tests::TemporaryFolder const folder;
  auto const late = [](Small& m, auto& o) {  // a step that moves `idle` too
    watch(m);
    (sum(square(m.weight)) + sum(exp(m.table)) + square(m.idle)).backward();
    o.step(m);
    zero_grad(m);
  };
  Small a = small(1), b = small(2), c = small(3);
  optim::Optimizer whole(optim::Adam{.lr = 0.1}), resumed(optim::Adam{}), old(optim::Adam{});
  descend(a, whole, 3);
  late(a, whole);
  save_checkpoint(folder / "c", "m", a, "o", whole);
  load_checkpoint(folder / "c", "m", b, "o", resumed);
  // As files were: all parameters count alike.
  std::vector<detail::NamedArray> tensors;
  for (SafetensorsFile const file = SafetensorsFile::open(folder / "c"); auto const& e : file.entries())
    if (e.name != "o.updates") tensors.push_back({e.name, e.array()});
  detail::write_safetensors(folder / "old", std::move(tensors),
                            {{detail::checkpoint_kind, detail::checkpoint_version}}, "test");
  load_checkpoint(folder / "old", "m", c, "o", old);
  late(a, whole);
  late(b, resumed);
  late(c, old);
  CHECK(same_bits(a, b));
  CHECK(same_bits(a.weight, c.weight));
  CHECK_FALSE(same_bits(a.idle, c.idle));
}

TEST_CASE("of every rule all numbers are held", "[io]") {
  tests::TemporaryFolder const folder;
  auto const check = [&]<class O>(O const& rule, O other) {
    INFO(detail::short_type_name<O>());
    CHECK(rule.scalars_at(5) != other.scalars_at(5));
    save_checkpoint(folder / "c", "rule", rule);
    load_checkpoint(folder / "c", "rule", other);
    for (int step : {5, 6, 9}) CHECK(rule.scalars_at(step) == other.scalars_at(step));
  };
  namespace o = optim;
  check(o::SGD{.lr = 0.1}, o::SGD{.lr = 0.2});
  check(o::SGD{.lr = 0.1, .momentum = 0.9f, .weight_decay = 0.1, .nesterov = true, .dampening = 0.1},
        o::SGD{.lr = 0.2, .momentum = 0.1f, .weight_decay = 0.3, .nesterov = false, .dampening = 0.0});
  check(o::Adam{.lr = 1, .beta1 = 0.1, .beta2 = 0.2, .eps = 0.3, .weight_decay = 0.4}, o::Adam{});
  check(o::AdamW{.lr = 1, .beta1 = 0.1, .beta2 = 0.2, .eps = 0.3, .weight_decay = 0.4, .amsgrad = true},
        o::AdamW{.amsgrad = true});
  check(o::Adamax{1, 0.1, 0.2, 0.3, 0.4}, {});
  check(o::NAdam{1, 0.1, 0.2, 0.3, 0.4, 0.5}, {});
  check(o::RAdam{1, 0.1, 0.2, 0.3, 0.4}, {});
  check(o::Adagrad{1, 0.1, 0.2, 0.3, 0.4}, {});
  check(o::RMSprop{.lr = 1, .alpha = 0.1, .eps = 0.2, .weight_decay = 0.3, .momentum = 0.4, .centered = true},
        o::RMSprop{.momentum = 0.5, .centered = true});
  check(o::Adadelta{2, 0.1, 0.2, 0.3}, {});
  check(o::Rprop{1, 0.1, 2, 0.2, 3}, {});
  check(o::Lion{1, 0.1, 0.2, 0.3}, {});
  check(o::ASGD{1, 0.1, 0.2, 3, 0.4}, {});
  check(o::LAMB{1, 0.1, 0.2, 0.3, 0.4}, {});
  check(o::Muon{.lr = 1, .weight_decay = 0.2, .momentum = 0.3, .eps = 0.4, .other = o::AdamW{.lr = 5}},
        o::Muon{});
  check(o::ClipNorm{o::SGD{.lr = 1}, 0.1}, o::ClipNorm{o::SGD{}, 0.2});
  check(o::ClipValue{o::SGD{.lr = 1}, 0.1}, o::ClipValue{o::SGD{}, 0.2});
  check(o::Average{o::SGD{.lr = 1}, 0.1}, o::Average{o::SGD{}, 0.2});
  check(o::Accumulate{o::SGD{.lr = 1}, 3}, o::Accumulate{o::SGD{}, 4});
  check(o::Groups{o::SGD{.lr = 1}, o::group<"a">({.lr = 2}), o::group<"b">({.lr = 3})},
        o::Groups{o::SGD{}, o::group<"a">({}), o::group<"b">({})});
  o::LossScale scale{o::Adam{.lr = 1}, {8, 4, 0.1, 7}}, other{o::Adam{}, {}};
  scale.skipped = 3, scale.good = 5;
  check(scale, other);
  save_checkpoint(folder / "c", "rule", scale);
  load_checkpoint(folder / "c", "rule", other);
  CHECK((other.good == 5 && other.scaling.growth == 4 && other.scaling.backoff == 0.1 &&
         other.scaling.growth_interval == 7));
}

TEST_CASE("L-BFGS goes on with what it has learnt", "[io]") {
  tests::TemporaryFolder const folder;
  auto const f = [](auto const& x) {
    auto p = x;
    watch(p);
    auto const y = sum(square(square(p) - 2.0)) + square(sum(p));
    y.backward();
    return std::pair(y.detach(), grads(p));
  };
  auto x = randn<double, 4>(Key{1}), z = randn<double, 4>(Key{2});
  optim::LBFGS whole({.max_iter = 4}), resumed({.max_iter = 9});
  whole.step(x, f);
  save_checkpoint(folder / "c", "x", x, "lbfgs", whole);
  resumed.step(z, f);
  load_checkpoint(folder / "c", "x", z, "lbfgs", resumed);
  CHECK(whole.step(x, f) == resumed.step(z, f));
  CHECK(same_bits(x, z));
  CHECK(whole.evaluations() == resumed.evaluations());
  auto other = randn<float, 3>(Key{1});
  CHECK(error_of([&] { resumed.step(other, f); }) == "lbfgs: what it has learnt is of another model");
}

TEST_CASE("a loop over a loader goes on in the middle of its pass", "[io]") {
  tests::TemporaryFolder const folder;
  auto const rows = arange<Tensor<std::int32_t, dyn>>(0, 1, {11});
  for (bool shuffled : {true, false}) {
    auto const make = [&](std::uint64_t seed) {
      return shuffled ? data::loader<2>(Key{seed}, rows) : data::loader<2>(rows);
    };
    for (int stop = 0; stop <= 12; ++stop) {
      auto whole = make(1), resumed = make(2);
      std::vector<int> seen, again;
      auto const run = [](auto& loader, auto const& each) {
        while (loader.epoch() < 3)
          for (auto const& [x] : loader)
            if (!each(x(0))) return;
      };
      int left = stop;
      save_checkpoint(folder / "c", "loader", whole);
      run(whole, [&](int x) {
        seen.push_back(x);
        if (--left == 0) save_checkpoint(folder / "c", "loader", whole);
        return true;
      });
      resumed.next();
      load_checkpoint(folder / "c", "loader", resumed);
      run(resumed, [&](int x) { return again.push_back(x), true; });
      CHECK(seen.size() == 15);
      seen.erase(seen.begin(), seen.begin() + stop);
      CHECK(again == seen);
    }
  }
}

TEST_CASE("numbers, texts, lists and structs of them", "[io]") {
  struct Inner {
    std::string name;
    std::vector<double> curve;
    DFDX_FIELDS(name, curve)
  };
  enum class Phase : std::uint8_t { first, second };
  struct All {
    bool b = false;
    std::uint64_t u = 0;
    int i = 0;
    float f = 0;
    double d = 0;
    Phase phase = Phase::first;
    std::array<Inner, 2> inner;
    std::vector<Inner> list;
    std::pair<int, std::tuple<>> pair{};
    std::vector<std::uint8_t> bytes;
    DFDX_FIELDS(b, u, i, f, d, phase, inner, list, pair, bytes)
  };
  tests::TemporaryFolder const folder;
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  All const a{true,
              ~std::uint64_t{0} - 1,
              -7,
              0.1f,
              nan,
              Phase::second,
              {{{"x", {1, 2}}, {"", {}}}},
              {{std::string("\0y", 2), {}}, {"z", {3}}, {"", {}}},
              {5, {}},
              {255, 0}};
  All b;
  b.list.resize(9);
  save_checkpoint(folder / "c", "all", a);
  load_checkpoint(folder / "c", "all", b);
  CHECK((b.b && b.u == a.u && b.i == -7 && b.f == 0.1f && std::isnan(b.d) && b.phase == Phase::second));
  CHECK((b.inner[0].name == "x" && b.inner[0].curve == std::vector<double>{1, 2} && b.inner[1].name.empty()));
  CHECK((b.list.size() == 3 && b.list[0].name == a.list[0].name && b.list[1].curve == a.list[1].curve));
  CHECK((b.pair.first == 5 && b.bytes == a.bytes));

  // What a smaller type cannot hold.
  save_checkpoint(folder / "c", "x", 300, "y", std::vector<int>{1, 300}, "z", -1);
  int x = 1;
  std::uint8_t narrow = 1;
  std::vector<std::uint8_t> list;
  unsigned z = 1;
  CHECK(error_of([&] { load_checkpoint(folder / "c", "x", narrow, "y", list, "z", z); }) ==
        "load_checkpoint: " + (folder / "c").string() +
            " does not fit this run: x: a number that is not possible in this run; y: a number that is not "
            "possible in "
            "this run; z: a number that is not possible in this run");
  CHECK(error_of([&] { save_checkpoint(folder / "c", "x", x, "x", x); }) ==
        "save_checkpoint: the name x is given twice");
  CHECK(error_of([&] { save_checkpoint(folder / "c", "x\xff", x); }) ==
        "save_checkpoint: a name or the metadata is not UTF-8");
}

namespace {

// Loads into parts whose numbers must then be as before.
template <class O = optim::Adam<>>
std::string refusal(std::filesystem::path const& file, O const& rule = {.lr = 0.25}) {
  Small m = small(5);
  optim::Optimizer<O> o(rule);
  descend(m, o, 2);
  Small const before = [&] {
    Small r = small(5);
    optim::Optimizer<O> again(rule);
    descend(r, again, 2);
    return r;
  }();
  auto loader = data::loader<2>(Key{3}, arange<std::int32_t, 9>());
  loader.next();
  double best = 7;
  std::string const said = error_of([&] {
    load_checkpoint(file, "model", m, "optimizer", o, "loader", loader, "best", best, "about",
                    must_equal("cats"));
  });
  CHECK(same_bits(m, before));
  CHECK(o.steps() == 2);
  CHECK(o.rule().lr == 0.25);
  CHECK(best == 7);
  auto same = data::loader<2>(Key{3}, arange<std::int32_t, 9>());
  same.next();
  CHECK(array_equal(std::get<0>(loader.next()), std::get<0>(same.next())));
  std::string const begin = "load_checkpoint: " + file.string() + " ";
  return said.starts_with(begin) ? said.substr(begin.size()) : said;
}

}  // namespace

TEST_CASE("models with lists of parts, and with parts that need not be there", "[io]") {
  struct Listed {
    std::vector<nn::Linear<2, 3>> layers;
    std::optional<Tensor<float, 2>> scale, shift;
    DFDX_FIELDS(layers, scale, shift)
  };
  tests::TemporaryFolder const folder;
  Listed a{std::vector<nn::Linear<2, 3>>(3), Tensor<float, 2>(), {}};
  init(a, Key{1});
  CHECK(!array_equal(a.layers[0].weight, a.layers[2].weight));
  CHECK(array_equal(*a.scale, zeros({2})));
  save_checkpoint(folder / "c", "model", a);
  Listed b{std::vector<nn::Linear<2, 3>>(3), Tensor<float, 2>(), {}};
  init(b, Key{2});
  load_checkpoint(folder / "c", "model", b);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(array_equal(a.layers[i].weight, b.layers[i].weight));
    CHECK(array_equal(a.layers[i].bias, b.layers[i].bias));
  }
  b.shift = ones<float, 2>();
  CHECK(error_of([&] { load_checkpoint(folder / "c", "model", b); }).find("model.shift.there") !=
        std::string::npos);
}

TEST_CASE("a file of another run is refused, all differences named, nothing changed", "[io]") {
  tests::TemporaryFolder const folder;
  auto const file = folder / "c";
  Small m = small(1);
  optim::Optimizer o(optim::Adam{.lr = 0.5});
  descend(m, o, 3);
  auto loader = data::loader<2>(Key{1}, arange<std::int32_t, 9>());
  double best = 1;
  auto const about = must_equal("cats");
  save_checkpoint(file, "model", m, "optimizer", o, "loader", loader, "best", best, "about", about);
  CHECK(refusal(file, optim::AdamW{.lr = 0.25}) ==
        "does not fit this run: optimizer.rule.kind: \"Adam\" in the file, \"AdamW\" in this run");
  CHECK(refusal(file, optim::Adam{.lr = 0.25, .amsgrad = true}) ==
        "does not fit this run: optimizer.rule.amsgrad is missing; optimizer.slots.2.weight is missing; "
        "optimizer.slots.2.table is missing; optimizer.slots.2.idle is missing");

  auto more = data::loader<3>(arange<std::int32_t, 10>());
  save_checkpoint(file, "model", m, "optimizer", o, "loader", more, "best", 1.0f, "about", must_equal("dogs"),
                  "more", m.weight);
  CHECK(refusal(file) ==
        "does not fit this run: loader.rows: 10 in the file, 9 in this run; loader.batch: 3 in the file, 2 "
        "in this "
        "run; loader.shuffled: false in the file, true in this run; best: dtype F32 in the file, F64 in this "
        "run; "
        "about: \"dogs\" in the file, \"cats\" in this run; more is not in this run");

  auto const other = init<tests::Model>(1);
  save_checkpoint(file, "model", other);
  std::string const said = refusal(file);
  for (char const* part : {"model.weight is missing", "optimizer.steps is missing", "loader.key is missing",
                           "best is missing", "model.fc1.weight is not in this run"})
    CHECK(said.find(part) != said.npos);

  // Groups and frozen parameters are known by their patterns.
  auto const grouped = [](auto g) { return optim::Optimizer(optim::Groups{optim::Adam{}, g}); };
  auto biases = grouped(optim::group<"*.bias", "b">({.lr = 2}));
  auto all = grouped(optim::group<"*">({.lr = 3}));
  save_checkpoint(file, "m", m, "o", biases);
  CHECK(error_of([&] { load_checkpoint(file, "m", m, "o", all); }) ==
        "load_checkpoint: " + file.string() +
            " does not fit this run: o.rule.groups.0.patterns: \"*.bias b\" in the file, \"*\" in this run");
  optim::Optimizer frozen(optim::freeze<"x">(optim::Adam{}));
  optim::Optimizer thawed(optim::freeze<"y">(optim::Adam{}));
  save_checkpoint(file, "m", m, "o", frozen);
  CHECK(error_of([&] {
          load_checkpoint(file, "m", m, "o", thawed);
        }).ends_with("o.rule.patterns: \"x\" in the file, \"y\" in this run"));
}

TEST_CASE("foreign, damaged and forged checkpoints", "[io]") {
  tests::TemporaryFolder const folder;
  auto const file = folder / "c";
  CHECK(refusal(file) == "safetensors: cannot read " + file.string() + ": No such file or directory");
  save_safetensors(file, small(1));
  CHECK(refusal(file) == "is no checkpoint");
  save_safetensors(file, small(1), {{"dfdx_checkpoint", "2"}});
  CHECK(refusal(file) == "is a checkpoint of version 2, not 1");

  Small m = small(1);
  optim::Optimizer o(optim::Adam{.lr = 0.5});
  descend(m, o, 3);
  auto loader = data::loader<2>(Key{1}, arange<std::int32_t, 9>());
  double best = 1;
  save_checkpoint(file, "model", m, "optimizer", o, "loader", loader, "best", best, "about",
                  must_equal("cats"));
  std::ifstream in(file, std::ios::binary);
  std::string const good{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t n = 0; n < good.size(); n += 29) {
    folder.write("t", good.substr(0, n));
    CHECK(refusal(folder / "t").starts_with("safetensors: "));
  }

  // What the format allows and a run cannot have.
  auto all = SafetensorsFile::open(file).arrays();
  auto const forged = [&](char const* name, Array const& value) {
    auto changed = all;
    changed[name] = value;
    save_safetensors(file, changed, {{"dfdx_checkpoint", "1"}});
    return refusal(file);
  };
  CHECK(forged("loader.batches_done", full<Tensor<std::int64_t>>(4)) ==
        "does not fit this run: loader.batches_done: a number that is not possible in this run");
  CHECK(forged("loader.batches_done", full<Tensor<std::int64_t>>(-1)) ==
        "does not fit this run: loader.batches_done: a number that is not possible in this run");
  CHECK(forged("optimizer.slots.1.table", zeros<float, 5, 1>()) ==
        "does not fit this run: optimizer.slots.1.table: another shape than model.table");
  CHECK(forged("optimizer.slots.1.weight", zeros<float, 2>()) ==
        "does not fit this run: optimizer.slots.1.weight: shape [2] in the file, [3] in this run");
  CHECK(forged("optimizer.moved", zeros<std::uint8_t, 3>()) ==
        "does not fit this run: optimizer.moved: shape [3] in the file, [4] in this run");
  CHECK(forged("optimizer.rule.kind", zeros<std::uint8_t, 0>()) ==
        "does not fit this run: optimizer.rule.kind: \"\" in the file, \"Adam\" in this run");

  std::vector<std::string> texts(3);
  save_checkpoint(file, "texts", texts);
  all = SafetensorsFile::open(file).arrays();
  for (double n : {4.0, -1.0, 1e15}) {
    all["texts.size"] = full<Tensor<std::int64_t>>(n);
    save_safetensors(file, all, {{"dfdx_checkpoint", "1"}});
    CHECK(error_of([&] { load_checkpoint(file, "texts", texts); }) ==
          "load_checkpoint: " + file.string() + " does not fit this run: texts." +
              (n == 4 ? "3 is missing" : "size: more than there are tensors in the file") +
              (n == 4
                   ? ""
                   : "; texts.0 is not in this run; texts.1 is not in this run; texts.2 is not in this run"));
    CHECK(texts.size() == 3);
  }
}

TEST_CASE("a disk that is full leaves the checkpoint that was there", "[io]") {
  tests::TemporaryFolder const folder;
  auto const file = folder / "c";
  auto large = zeros<float, 100000>();
  int step = 1;
  save_checkpoint(file, "large", large, "step", step);
  // A limit to the size of files is a full disk to those who write them.
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string said;
  {
    rlimit small = before;
    small.rlim_cur = 100000;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    said = error_of([&] { save_checkpoint(file, "large", large, "step", 2); });
    setrlimit(RLIMIT_FSIZE, &before);
  }
  std::signal(SIGXFSZ, handler);
  CHECK(said == "save_checkpoint: cannot write " + file.string() + ": File too large");
  CHECK(folder.files() == 1);
  step = 0;
  load_checkpoint(file, "large", large, "step", step);
  CHECK(step == 1);
}

}  // namespace tests::io_checkpoint
