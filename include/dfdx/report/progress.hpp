// SPDX-License-Identifier: BSL-1.0
// A progress bar with figures, for any loop.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

namespace dfdx::report {

/// Progress - a bar on a stream: redrawn in place in a terminal, a line now and then elsewhere.
///
///     report::Progress progress(steps);
///     for (...) progress.show(i + 1, {{"loss", loss}, {"accuracy", accuracy}});
///
/// The line is ended when the bar goes out of scope, so that a message follows on one of its own.
class Progress {
 public:
  using Figure = std::pair<char const*, double>;

  /// Of `total` steps, one at least.
  explicit Progress(std::int64_t total, std::FILE* to = stderr)
      : total_(std::max<std::int64_t>(total, 1)), to_(to), terminal_(isatty(fileno(to)) != 0) {}
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress() {
    if (terminal_ && drawn_) std::fputc('\n', to_);
  }

  /// After `done` steps; cheap when there is nothing to redraw. The first call says where a run begins: steps done
  /// before it are not in the rate.
  void show(std::int64_t done, std::initializer_list<Figure> figures) {
    done = std::clamp<std::int64_t>(done, 0, total_);
    using namespace std::chrono;
    auto const now = steady_clock::now();
    if (from_ < 0) {
      from_ = std::max<std::int64_t>(done - 1, 0);
      tenths_ = from_ * 10 / total_;
    }
    bool const last = done == total_;
    // Ten times a second for people, ten times in all for a file.
    if (!last && (terminal_ ? now - shown_ < milliseconds(100) : done * 10 / total_ == tenths_)) return;
    shown_ = now;
    tenths_ = done * 10 / total_;
    double const seconds = duration<double>(now - start_).count();
    double const rate = static_cast<double>(done - from_) / std::max(seconds, 1e-9);
    constexpr std::int64_t width = 30;
    auto const full = static_cast<std::size_t>(done * width / total_);
    std::string const bar = std::string(full, '#') + std::string(static_cast<std::size_t>(width) - full, '.');
    std::string values;
    for (auto const& [name, value] : figures) {
      char text[64];
      std::snprintf(text, sizeof text, "  %.20s %.3f", name, value);
      values += text;
    }
    std::fprintf(to_, "%s  [%s] %3d%%%s  %.*f steps/s  %s%s", terminal_ ? "\r" : "", bar.c_str(),
                 static_cast<int>(done * 100 / total_), values.c_str(), rate < 100 ? 1 : 0, rate,
                 last ? ("took " + time(seconds)).c_str()
                      : (time(static_cast<double>(total_ - done) / std::max(rate, 1e-9)) + " left").c_str(),
                 terminal_ ? "\x1b[K" : "\n");
    std::fflush(to_);
    drawn_ = true;
  }

 private:
  static std::string time(double seconds) {
    char text[32];
    auto const s = static_cast<long>(seconds + 0.5);
    if (s >= 3600) std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
    return text;
  }

  std::int64_t total_, tenths_ = 0, from_ = -1;
  std::FILE* to_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
};

}  // namespace dfdx::report
