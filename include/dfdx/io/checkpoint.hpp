// SPDX-License-Identifier: BSL-1.0
// Saving and resuming a training run: save_checkpoint and load_checkpoint, for models, training steps, loaders and any
// other state, as one safetensors file.
#pragma once

#include <dfdx/io/checkpoint_parts.hpp>
#include <dfdx/io/safetensors.hpp>

namespace dfdx {

namespace detail {

inline constexpr char const *checkpoint_kind = "dfdx_checkpoint", *checkpoint_version = "1";

inline bool array_bytes_equal(Array const& a, Array const& b) {
  auto const bytes = static_cast<std::size_t>(a.size()) * size_of(a.dtype());
  return a.size() == b.size() && (bytes == 0 || std::memcmp(a.bytes(), b.bytes(), bytes) == 0);
}

struct CheckpointSaver {
  std::vector<NamedArray> tensors;

  void leaf(std::string const& name, Array const& x) { tensors.push_back({name, x}); }
  void newer(std::string const& name, Array const& x) { leaf(name, x); }
  template <class T>
  void item(std::string const& name, T const& x, std::int64_t = 0) {
    tensors.push_back({name, as_array(x)});
  }
  template <class T>
  void must_equal(std::string const& name, T const& x) {
    item(name, x);
  }
  void slot(std::string const& name, Array const& like, Array const* held, std::string const&) {
    Array x = held != nullptr ? *held : Array();
    if (x.empty()) {
      x = Array(like.meta());
      std::memset(x.bytes(), 0, static_cast<std::size_t>(x.size()) * size_of(x.dtype()));
    }
    leaf(name, x);
  }
  template <class T, class F>
  void list(std::string const& size, std::vector<T> const& all, F const& each) {
    item(size, all.size());
    for (T const& e : all) each(e);
  }
};

// Finds out what is wrong, and gets all memory that loading takes.
struct CheckpointChecker {
  SafetensorsFile const& file;
  std::string wrong{};
  std::map<std::string, Array> values{};

  void report(std::string const& what) { wrong += (wrong.empty() ? "" : "; ") + what; }
  // The value in the file, if it fits `like`.
  template <class Leaf>
  Array const* look(std::string const& name, Leaf const& like) {
    SafetensorsEntry const* e = file.find(name);
    if (e == nullptr) return report(name + " is missing"), nullptr;
    auto const [place, fresh] = values.try_emplace(name);
    if (!fresh) return report("the name " + name + " is given twice"), nullptr;
    std::string const why = misfit(like, *e, "this run");
    if (!why.empty()) return report(name + ": " + why), nullptr;
    return &(place->second = e->array());
  }
  template <class Leaf>
  void leaf(std::string const& name, Leaf const& x) {
    look(name, x);
  }
  void newer(std::string const& name, Array const& x) {
    if (file.find(name) != nullptr) look(name, x);
  }
  template <class T>
  std::optional<T> item(std::string const& name, T const&, std::int64_t below = 0) {
    Array const* a = nullptr;
    if constexpr (std::is_same_v<T, std::string>) a = look(name, Tensor<std::uint8_t, dyn>());
    else if constexpr (is_number_list<T>)
      a = look(name, Tensor<decltype(stored(typename T::value_type{})), dyn>());
    else a = look(name, Tensor<decltype(stored(T{}))>());
    if (a == nullptr) return {};
    auto x = from_array<T>(*a);
    bool possible = true;
    if constexpr (is_number_list<T> || (std::is_integral_v<T> && !std::is_same_v<T, bool>))
      possible = array_bytes_equal(as_array(x), *a);  // a number may be too large for where it goes
    if constexpr (std::is_integral_v<T>) {
      auto const number = static_cast<std::int64_t>(x);
      possible = possible && (below == 0 || (number >= 0 && number < below));
    }
    if (!possible) return report(name + ": a number that is not possible in this run"), std::nullopt;
    return x;
  }
  template <class T>
  void must_equal(std::string const& name, T const& x) {
    auto const there = item(name, x);
    if (there && !(*there == x))
      report(name + ": " + shown(*there) + " in the file, " + shown(x) + " in this run");
  }
  template <class Leaf>
  void slot(std::string const& name, Leaf const& like, Array*, std::string const& of) {
    Array const* const x = look(name, like);
    SafetensorsEntry const* const parameter = file.find(of);
    if (x != nullptr && parameter != nullptr && parameter->dims() != x->shape())
      report(name + ": another shape than " + of);
  }
  template <class T, class F>
  void list(std::string const& size, std::vector<T> const&, F const& each) {
    auto const n = item(size, std::size_t{});
    if (!n) return;
    if (*n > file.entries().size()) return report(size + ": more than there are tensors in the file");
    T const like{};
    for (std::size_t i = 0; i < *n; ++i) each(like);
  }
};

struct CheckpointLoader {
  std::map<std::string, Array>& values;

  template <class Leaf>
  void leaf(std::string const& name, Leaf& x) {
    take_over(x, std::move(values.at(name)));
  }
  void newer(std::string const& name, Array& x) {
    if (values.contains(name)) leaf(name, x);
  }
  template <class T>
  void item(std::string const& name, T& x, std::int64_t = 0) {
    x = from_array<T>(values.at(name));
  }
  template <class T>
  void must_equal(std::string const&, T const&) {}
  void slot(std::string const& name, Array const&, Array* held, std::string const&) {
    take_over(*held, std::move(values.at(name)));
  }
  template <class T, class F>
  void list(std::string const& size, std::vector<T>& all, F const& each) {
    all.resize(from_array<std::size_t>(values.at(size)));
    for (T& e : all) each(e);
  }
};

// Names and parts by turns.
template <class To, class... Parts>
void visit_parts(To& to, std::tuple<Parts&...> const& parts) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr bool by_turns =
        sizeof...(Parts) > 0 && sizeof...(Parts) % 2 == 0 &&
        (std::is_convertible_v<std::tuple_element_t<2 * I, std::tuple<Parts&...>>, std::string> && ...);
    static_assert(by_turns, "checkpoint: names and parts by turns: \"model\", model, \"optimizer\", step");
    if constexpr (by_turns)
      CheckpointVisitor<To>(to, "").each(
          NamedPart{std::string(std::get<2 * I>(parts)), std::get<2 * I + 1>(parts)}...);
  }(std::make_index_sequence<sizeof...(Parts) / 2>{});
}

}  // namespace detail

/// save_checkpoint - writes the state of a training run, so that it can go on as if it had never stopped:
///
///   save_checkpoint("run.safetensors", "model", model, "optimizer", step, "loader", loader, "best", best);
///
/// Names and parts by turns. A part is a model or other tree of tensors, a TrainStep or optim::Optimizer right behind
/// its model, an optim::LBFGS, a data::Loader, a Key, a number, a std::string, a std::vector of these, must_equal(x),
/// or a struct with DFDX_FIELDS of such parts. Of an optimizer all is held: the state of each parameter, the steps done
/// (which a schedule goes by), its numbers and those of the rules in it, averages, sums of gradients, the scale of the
/// loss. The file is a safetensors file in which the tensors of the model are called "model.fc1.weight" and so on.
///
/// It is written under another name, flushed to the disk and renamed: when that fails, or the machine does, the file
/// that was there before stays.
///
/// Errors    "save_checkpoint: cannot write run.safetensors: No space left on device"; "save_checkpoint: the name model
///           is given twice"
template <class... Parts>
void save_checkpoint(std::filesystem::path const& path, Parts const&... parts) {
  detail::CheckpointSaver saver;
  detail::visit_parts(saver, std::tie(parts...));
  detail::write_safetensors(path, std::move(saver.tensors),
                            {{detail::checkpoint_kind, detail::checkpoint_version}}, "save_checkpoint");
}

/// load_checkpoint - brings the parts to where save_checkpoint found them; the same names and types in the same order.
///
///   auto step = train_step(loss, optim::AdamW{.lr = 1e-3});
///   load_checkpoint("run.safetensors", "model", model, "optimizer", step, "loader", loader, "best", best);
///   while (step.steps() < 1000) ...
///
/// What follows is bitwise what would have followed there. Numbers of an optimizer (lr, beta1, ...) are those of the
/// file; its kind, its groups and the rows of a loader must be as they were.
///
/// Errors    "load_checkpoint: run.safetensors does not fit this run: model.fc1.bias is missing; optimizer.rule.kind:
///           "Adam" in the file, "AdamW" in this run; loader.rows: 60000 in the file, 50000 in this run; old.scale is
///           not in this run". All mismatches in one error; then, or when the file is damaged, no checkpoint or of
///           another version, all parts are as before
template <class... Parts>
void load_checkpoint(std::filesystem::path const& path, Parts&&... parts) {
  SafetensorsFile const file = SafetensorsFile::open(path);
  auto const fail = [&](std::string const& why) {
    detail::raise_file("load_checkpoint: " + path.string() + " " + why);
  };
  auto const kind = file.metadata().find(detail::checkpoint_kind);
  if (kind == file.metadata().end()) fail("is no checkpoint");
  if (kind->second != detail::checkpoint_version)
    fail("is a checkpoint of version " + kind->second.substr(0, 20) + ", not " + detail::checkpoint_version);

  detail::CheckpointChecker check{file};
  detail::visit_parts(check, std::tie(std::as_const(parts)...));
  for (SafetensorsEntry const& e : file.entries())
    if (!check.values.contains(e.name)) check.report(e.name + " is not in this run");
  if (!check.wrong.empty()) fail("does not fit this run: " + check.wrong);

  detail::CheckpointLoader load{check.values};
  detail::visit_parts(load, std::tie(parts...));
}

}  // namespace dfdx
