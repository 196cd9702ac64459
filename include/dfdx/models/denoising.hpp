// SPDX-License-Identifier: BSL-1.0
// Steps from noise to a picture: how much noise there is at each, and what is left once a network has said what is
// noise.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <dfdx/io/safetensors_weights.hpp>
#include <dfdx/models/config.hpp>
#include <dfdx/vocabulary/elementwise.hpp>

namespace dfdx::models {

/// Predicts - what a network says of x = a x_0 + s e: the noise e, or the velocity a e - s x_0.
enum class Predicts : std::uint8_t { noise, velocity };
/// Spacing - which of the times of training are taken: the first of equal intervals, the last of them, or evenly from
/// the first of all to the last.
enum class Spacing : std::uint8_t { leading, trailing, linspace };
/// Denoise - how a step is taken; euler_ancestral adds new noise in each, dpm_solver remembers the step before.
enum class Denoise : std::uint8_t { ddim, euler, euler_ancestral, dpm_solver };

/// NoiseSchedule - the noise that a network was trained with.
struct NoiseSchedule {
  index_t times = 1000;
  double beta_start = 0.00085, beta_end = 0.012;
  bool of_roots = true;  ///< the roots of beta grow evenly, else beta itself
  Predicts predicts = Predicts::noise;
  Spacing spacing = Spacing::leading;
  index_t offset = 1;               ///< added to times of leading spacing
  bool ends_without_noise = false;  ///< ddim's last step, which ends at the least noise of training otherwise
  bool keeps_least_noise = false;   ///< dpm_solver's last step ends there, not without noise
  bool karras =
      false;  ///< what is beside the picture falls evenly in its seventh root, as Karras et al. have it

  /// At each time a^2, the share of the picture's variance that is left.
  ///
  /// Math      a_t^2 = prod_{s <= t} (1 - beta_s)
  std::vector<double> kept() const {
    std::vector<double> r;
    double all = 1;
    double const first = of_roots ? std::sqrt(beta_start) : beta_start,
                 last = of_roots ? std::sqrt(beta_end) : beta_end;
    for (index_t t = 0; t < times; ++t) {
      double const b = first + (last - first) * static_cast<double>(t) /
                                   static_cast<double>(std::max<index_t>(times - 1, 1));
      r.push_back(all *= 1 - (of_roots ? b * b : b));
    }
    return r;
  }
  /// Errors    "denoising: 0 times", "denoising: betas from 0.1 to 0.01"
  void check() const {
    if (times < 1 || times > 1 << 20) raise("denoising: ", times, " times");
    if (!(beta_start > 0 && beta_start <= beta_end && beta_end < 1))
      dfdx::detail::raise_file("denoising: betas from " + std::to_string(beta_start) + " to " +
                               std::to_string(beta_end));
  }
};

/// Denoiser - so many steps from noise to what a network was trained to draw. Begin with normal numbers times initial.
/// In step i give the network input(i, x) and time(i): step(i, x, what it says) is the next x.
///
/// Math      with n = s / a the noise beside the picture: euler x' = x + (n' - n) e, euler_ancestral with new noise of
///           variance n'^2 - n'^4 / n^2 and as much less of the old; ddim x' = a' x_0 + s' e; dpm_solver: DPM-Solver++
///           (2M)
/// Dtypes    those of x
/// Errors    "denoising: 0 steps of 1000 times"
/// Source    Song, Meng and Ermon, "Denoising diffusion implicit models", 2021; Karras et al., "Elucidating the design
///           space of diffusion-based generative models", 2022; Lu et al., "DPM-Solver++", 2022
class Denoiser {
 public:
  Denoiser(NoiseSchedule const& schedule, Denoise how, index_t steps) : s_(schedule), how_(how) {
    s_.check();
    if (steps < 1) raise("denoising: ", steps, " steps of ", s_.times, " times");
    kept_ = s_.kept();
    list_times(steps);
    if (s_.karras && how_ != Denoise::ddim) list_karras();
    else
      for (double t : times_) noise_.push_back(noise_at(t));
    noise_.push_back(how_ == Denoise::dpm_solver && s_.keeps_least_noise ? beside(kept_[0]) : 0);
  }

  index_t steps() const { return static_cast<index_t>(times_.size()); }
  /// Of training, as the network is told; from large to small.
  double time(index_t i) const { return times_.at(static_cast<std::size_t>(i)); }
  /// What normal numbers are multiplied with at first.
  double initial() const {
    if (!adds_noise_to_picture()) return 1;
    double const most = *std::max_element(noise_.begin(), noise_.end());
    return s_.spacing == Spacing::leading ? std::sqrt(most * most + 1) : most;
  }
  Array input(index_t i, Array const& x) const {
    if (!adds_noise_to_picture()) return x;
    double const n = noise(i);
    return x * (1 / std::sqrt(n * n + 1));
  }
  /// noise() gives normal numbers of the shape of x, if the way needs any.
  template <class Noise>
  Array step(index_t i, Array const& x, Array const& said, Noise const& noise) {
    switch (how_) {
      case Denoise::ddim: return ddim(i, x, said);
      case Denoise::dpm_solver: return dpm_solver(i, x, said);
      default: return euler(i, x, said, noise);
    }
  }

 private:
  // Whether x is a picture with noise beside it, and not one that was made smaller for it.
  bool adds_noise_to_picture() const { return how_ == Denoise::euler || how_ == Denoise::euler_ancestral; }
  double noise(index_t i) const { return noise_.at(static_cast<std::size_t>(i)); }
  double kept_at(double t) const { return kept_[static_cast<std::size_t>(t)]; }
  static double beside(double kept) { return std::sqrt((1 - kept) / kept); }
  // Between two times of training in proportion.
  double noise_at(double t) const {
    double const low = std::floor(t);
    auto const k = static_cast<std::size_t>(low);
    double const n = beside(kept_[k]);
    return k + 1 < kept_.size() ? n + (t - low) * (beside(kept_[k + 1]) - n) : n;
  }

  // The time of so much noise, by its logarithm in proportion.
  double time_of(double noise) const {
    std::size_t k = 0;
    while (k + 2 < kept_.size() && beside(kept_[k + 1]) <= noise) ++k;
    if (k + 1 == kept_.size()) return 0;
    double const low = std::log(beside(kept_[k])), high = std::log(beside(kept_[k + 1]));
    return static_cast<double>(k) + std::clamp((std::log(noise) - low) / (high - low), 0.0, 1.0);
  }
  // Between the ends of training, of the ways of Euler between those of the times that were chosen.
  void list_karras() {
    constexpr double power = 7;
    bool const chosen = adds_noise_to_picture();
    double const most = std::pow(chosen ? noise_at(times_.front()) : beside(kept_.back()), 1 / power),
                 least = std::pow(chosen ? noise_at(times_.back()) : beside(kept_.front()), 1 / power);
    for (std::size_t i = 0; i < times_.size(); ++i) {
      double const part = i > 0 ? static_cast<double>(i) / static_cast<double>(times_.size() - 1) : 0;
      noise_.push_back(std::pow(most + part * (least - most), power));
      double const t = time_of(noise_.back());
      times_[i] = chosen ? t : std::nearbyint(t);
    }
  }
  void list_times(index_t steps) {
    // dpm_solver's last step is one of those counted too, to no noise.
    index_t const more = how_ == Denoise::dpm_solver && s_.spacing != Spacing::trailing ? 1 : 0;
    if (steps + more > s_.times) raise("denoising: ", steps, " steps of ", s_.times, " times");
    auto const n = static_cast<double>(steps), all = static_cast<double>(s_.times);
    for (index_t i = 0; i < steps; ++i) {
      index_t const k = steps - 1 - i + more, parts = steps - 1 + more;
      double t = 0;
      if (s_.spacing == Spacing::trailing) {
        t = std::nearbyint(all - static_cast<double>(i) * all / n) - 1;
      } else if (s_.spacing == Spacing::leading) {
        t = static_cast<double>(k * (s_.times / (parts + 1)) + s_.offset);
      } else if (parts > 0) {
        t = (all - 1) * static_cast<double>(k) / static_cast<double>(parts);
        if (!adds_noise_to_picture()) t = std::nearbyint(t);
      }
      times_.push_back(std::clamp(t, 0.0, all - 1));
    }
  }

  // The picture and the noise in x = a x_0 + s e.
  std::pair<Array, Array> told_apart(Array const& x, Array const& said, double kept) const {
    double const a = std::sqrt(kept), s = std::sqrt(1 - kept);
    if (s_.predicts == Predicts::velocity) return {x * a - said * s, said * a + x * s};
    return {(x - said * s) * (1 / a), said};
  }

  Array ddim(index_t i, Array const& x, Array const& said) const {
    auto const before = static_cast<index_t>(time(i)) - s_.times / steps();
    double const next = before >= 0             ? kept_at(static_cast<double>(before))
                        : s_.ends_without_noise ? 1
                                                : kept_[0];
    auto const [picture, noise] = told_apart(x, said, kept_at(time(i)));
    return picture * std::sqrt(next) + noise * std::sqrt(1 - next);
  }

  template <class Noise>
  Array euler(index_t i, Array const& x, Array const& said, Noise const& more) const {
    double const n = noise(i), next = noise(i + 1), kept = 1 / (n * n + 1);
    Array const e =
        s_.predicts == Predicts::velocity ? told_apart(x * std::sqrt(kept), said, kept).second : said;
    if (how_ == Denoise::euler || next == 0) return x + e * (next - n);
    double const fresh = std::sqrt(next * next * (n * n - next * next) / (n * n)),
                 old = std::sqrt(next * next - fresh * fresh);
    return x + e * (old - n) + more() * fresh;
  }

  Array dpm_solver(index_t i, Array const& x, Array const& said) {
    auto const parts = [](double n) { return std::pair(1 / std::sqrt(n * n + 1), n / std::sqrt(n * n + 1)); };
    auto const [a, s] = parts(noise(i));
    auto const [next_a, next_s] = parts(noise(i + 1));
    Array const picture = told_apart(x, said, a * a).first;
    // How much of the old x goes, in terms of the logarithm of n: all of it where no noise is left.
    double const gone = noise(i + 1) / noise(i) - 1;
    Array y = x * (next_s / s) - picture * (next_a * gone);
    // The last of few steps, and one to no noise, do not look back.
    if (i > 0 && (i + 1 < steps() || (steps() >= 15 && noise(i + 1) > 0))) {
      double const h = std::log(noise(i) / noise(i + 1)), before = std::log(noise(i - 1) / noise(i));
      y = y - (picture - before_) * (0.5 * next_a * gone * h / before);
    }
    before_ = picture;
    return y;
  }

  NoiseSchedule s_;
  Denoise how_;
  std::vector<double> kept_, times_, noise_;
  Array before_;
};

/// noise_schedule - what a folder's scheduler_config.json says, and with it how its makers took steps.
///
/// Errors    "denoising: m: prediction_type sample is not supported"
inline std::pair<NoiseSchedule, Denoise> noise_schedule(Metadata const& m) {
  auto const refuse = [&](char const* key) {
    dfdx::detail::raise_file("denoising: " + m.source() + ": " + key + " " +
                             dfdx::detail::shown_name(m.text(std::string("config.") + key)) +
                             " is not supported");
  };
  NoiseSchedule s;
  s.times = m.integer("config.num_train_timesteps", s.times);
  s.beta_start = m.number("config.beta_start", s.beta_start);
  s.beta_end = m.number("config.beta_end", s.beta_end);
  std::string const betas = detail::text_or(m, "config.beta_schedule", "scaled_linear"),
                    says = detail::text_or(m, "config.prediction_type", "epsilon"),
                    spaced = detail::text_or(m, "config.timestep_spacing", "leading"),
                    by = detail::text_or(m, "config._class_name", "DDIMScheduler");
  // PNDM, with which version 1 was published, begins with steps of ddim.
  for (char const* known : {"DDIMScheduler", "PNDMScheduler", "EulerDiscreteScheduler",
                            "EulerAncestralDiscreteScheduler", "DPMSolverMultistepScheduler", ""}) {
    if (by == known) break;
    if (*known == '\0') refuse("_class_name");
  }
  for (char const* option : {"clip_sample", "thresholding", "rescale_betas_zero_snr", "use_lu_lambdas",
                             "use_exponential_sigmas", "use_beta_sigmas"})
    if (m.flag(std::string("config.") + option, false))
      dfdx::detail::raise_file("denoising: " + m.source() + ": " + option + " is not supported");
  if (detail::text_or(m, "config.algorithm_type", "dpmsolver++") != "dpmsolver++") refuse("algorithm_type");
  if (detail::text_or(m, "config.solver_type", "midpoint") != "midpoint") refuse("solver_type");
  if (m.integer("config.solver_order", 2) != 2)
    dfdx::detail::raise_file("denoising: " + m.source() + ": a solver_order other than 2 is not supported");
  if (betas != "scaled_linear" && betas != "linear") refuse("beta_schedule");
  if (says != "epsilon" && says != "v_prediction") refuse("prediction_type");
  if (spaced != "leading" && spaced != "trailing" && spaced != "linspace") refuse("timestep_spacing");
  s.of_roots = betas == "scaled_linear";
  s.predicts = says == "epsilon" ? Predicts::noise : Predicts::velocity;
  s.spacing = spaced == "leading"    ? Spacing::leading
              : spaced == "trailing" ? Spacing::trailing
                                     : Spacing::linspace;
  s.offset = m.integer("config.steps_offset", 0);
  s.ends_without_noise = m.flag("config.set_alpha_to_one", true);
  s.keeps_least_noise = detail::text_or(m, "config.final_sigmas_type", "zero") == "sigma_min";
  s.karras = m.flag("config.use_karras_sigmas", false);
  Denoise const how = by == "EulerDiscreteScheduler"            ? Denoise::euler
                      : by == "EulerAncestralDiscreteScheduler" ? Denoise::euler_ancestral
                      : by == "DPMSolverMultistepScheduler"     ? Denoise::dpm_solver
                                                                : Denoise::ddim;
  s.check();
  return {s, how};
}

/// The same of a file scheduler_config.json. Infinities, which Python writes there and JSON lacks, count as null.
///
/// Errors    "denoising: m/scheduler_config.json is not valid JSON in UTF-8"
inline std::pair<NoiseSchedule, Denoise> noise_schedule(std::filesystem::path const& path) {
  auto const file = MappedFile::open(path, "denoising");
  std::string text(reinterpret_cast<char const*>(file->bytes().data()), file->bytes().size());
  for (std::string const word : {": -Infinity", ": Infinity", ": NaN"})
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;)
      text.replace(at, word.size(), ": null");
  auto const [value, fault] =
      dfdx::detail::parse_json({reinterpret_cast<std::byte const*>(text.data()), text.size()}, 8);
  if (!fault.empty()) dfdx::detail::raise_file("denoising: " + path.string() + " " + fault);
  if (!value.is_object()) dfdx::detail::raise_file("denoising: " + path.string() + " is not a JSON object");
  Metadata m(path.string());
  dfdx::detail::add_config(m, "config", value);
  return noise_schedule(m);
}

}  // namespace dfdx::models
