// SPDX-License-Identifier: BSL-1.0
// The functions of the reference cases, by name: each calls the vocabulary on Arrays, in memory or recorded.
#pragma once

#include "refs/cases.hpp"

#include <functional>

namespace refs {

/// Arguments - the inputs of a case by name, and its attributes.
class Arguments {
 public:
  Arguments(Case const& c, std::vector<Array> values) : case_(c), values_(std::move(values)) {}
  Array const& operator[](std::string const& name) const {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (case_.names[i] == name) return values_[i];
    throw std::runtime_error(case_.id + ": no input " + name);
  }
  bool has(std::string const& name) const {
    return std::find(case_.names.begin(), case_.names.end(), name) != case_.names.end();
  }
  std::size_t size() const { return values_.size(); }
  json const& attrs() const { return case_.attrs; }
  double number(char const* key) const { return case_.attrs.at(key).get<double>(); }
  double number(char const* key, double otherwise) const {
    return case_.attrs.contains(key) ? case_.attrs.at(key).get<double>() : otherwise;
  }
  int integer(char const* key) const { return case_.attrs.at(key).get<int>(); }
  bool flag(char const* key) const { return case_.attrs.contains(key) && case_.attrs.at(key).get<bool>(); }

 private:
  Case const& case_;
  std::vector<Array> values_;
};

using Function = std::function<std::vector<Array>(Arguments const&)>;

/// The table; each file adds its part.
std::map<std::string, Function> const& functions();
void add_elementwise(std::map<std::string, Function>&);
void add_reductions(std::map<std::string, Function>&);
void add_shapes(std::map<std::string, Function>&);
void add_networks(std::map<std::string, Function>&);
void add_layers(std::map<std::string, Function>&);
void add_optimizers(std::map<std::string, Function>&);

}  // namespace refs
