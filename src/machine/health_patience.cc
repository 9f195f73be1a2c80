#include "machine/health_patience.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::machine {
namespace {

struct WaitRow {
  Ailment ailment;
  std::string_view what;  // "waits for ..."
};

// In a published log of a p4d the fabric manager is up 47 s after the first login. An ailment
// without a row does not pass by itself.
constexpr std::array kWaits{
    WaitRow{Ailment::no_driver, "the NVIDIA driver"},
    WaitRow{Ailment::no_fabric, "the fabric manager of the NVSwitches"},
};

std::string_view what_passes(const HealthFinding& finding) {
  for (const WaitRow& row : kWaits)
    if (row.ailment == finding.ailment) return row.what;
  return {};
}

}  // namespace

HealthPatience::Word HealthPatience::judge(const std::vector<HealthFinding>& findings,
                                           std::chrono::milliseconds now) {
  using std::chrono::ceil;
  using std::chrono::seconds;
  std::string sick;
  std::string_view waits_for;
  // A defect that no waiting can cure decides at once.
  for (const HealthFinding& finding : findings) {
    if (finding.kind != HealthFinding::Kind::bad) continue;
    const std::string_view passing = what_passes(finding);
    if (passing.empty()) return {.kind = Word::Kind::sick, .text = finding.what};
    if (!sick.empty()) continue;
    sick = finding.what;
    waits_for = passing;
  }
  if (sick.empty()) return {};
  if (!since_) since_ = now;
  const auto waited = now - *since_;
  if (waited >= most_)
    return {.kind = Word::Kind::sick,
            .text = fmt::format("{}, for {} s", sick, ceil<seconds>(waited).count())};
  return {.kind = Word::Kind::wait,
          .text = fmt::format("waits for {}, {} s at most: {}", waits_for,
                              ceil<seconds>(most_).count(), sick)};
}

}  // namespace lockstep::machine
