// SPDX-License-Identifier: BSL-1.0
// What the command lines of the examples have in common.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <string>
#include <vector>

namespace common {

/// Reads the command line; false if --help was asked for and answered. Throws when something is wrong with it.
inline bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (CLI::Success const& help) {
    app.exit(help);
    return false;
  }
}

/// The name of one of the choices.
template <class Choices>
CLI::IsMember one_of(Choices const& choices) {
  std::vector<std::string> names;
  for (auto const& choice : choices) names.emplace_back(choice.name);
  return CLI::IsMember(names);
}

/// A whole number, `least` or more.
inline CLI::Validator at_least(long least) {
  auto const check = [least](std::string const& text) {
    char* end = nullptr;
    long const v = std::strtol(text.c_str(), &end, 10);
    return *end == '\0' && end != text.c_str() && v >= least
               ? std::string()
               : "a whole number from " + std::to_string(least) + " on required, got " + text;
  };
  return {check, ""};
}

/// A learning rate; also one that spoils every model at once, for training says so.
inline CLI::Validator rate() {
  auto const check = [](std::string const& text) {
    char* end = nullptr;
    double const v = std::strtod(text.c_str(), &end);
    return *end == '\0' && v >= 1e-9 && v <= 1e38 ? std::string()
                                                  : "a number from 1e-9 to 1e38 required, got " + text;
  };
  return {check, ""};
}

}  // namespace common
