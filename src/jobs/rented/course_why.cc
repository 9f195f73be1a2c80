#include "jobs/rented/course_why.h"

#include "base/date_text.h"
#include "base/text.h"
#include "cloud/renting_parts.h"
#include "jobs/rented/course_machines.h"
#include "rent/rented_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;

constexpr std::size_t kMostWhy = 200;  // of a provider's text

// A machine whose loss ended an attempt.
struct Loss {
  std::string machine;
  std::string offer;
  std::string what;
  std::string why;  // in the provider's words; may be empty
  std::int64_t at_ms = 0;
};

// Returns whether the machine went by itself. The course has asked the others to end.
bool went(const cloud::Held& held) {
  return held.machine.taken || (held.end_ms == 0 && held.gone_ms != 0);
}

// Returns when the machine went, as well as it is known by now. 0: it is not.
std::int64_t went_ms(const cloud::Held& held) {
  if (held.machine.ended_ms != 0) return held.machine.ended_ms;
  return held.gone_ms != 0 ? held.gone_ms : held.end_ms;
}

std::vector<Loss> losses_of(const cloud::Rental& rental, const cloud::Attempt& attempt) {
  // No machine went: the course left the machines at the provider's notice.
  const bool noticed = std::none_of(attempt.machines.begin(), attempt.machines.end(), went);
  std::vector<Loss> losses;
  for (const cloud::Held& held : attempt.machines) {
    if (!noticed && !went(held)) continue;
    const bool taken = noticed || held.machine.taken;
    losses.push_back({.machine = rent::node_name(rental, held.node),
                      .offer = cloud::offer_words(attempt.offer),
                      .what = taken ? "was taken away by its provider" : "has ended",
                      .why = printable(held.machine.why, kMostWhy),
                      .at_ms = went_ms(held)});
  }
  return losses;
}

std::string text_of(const Loss& loss, int attempt) {
  return fmt::format("attempt {}: {}, {}, {}{}{}{}\n", attempt, loss.machine, loss.offer, loss.what,
                     loss.at_ms == 0 ? "" : " at " + date_text(loss.at_ms),
                     loss.why.empty() ? "" : ": ", loss.why);
}

std::string doing(const cloud::RentedJob& course) {
  switch (course.stage) {
    case Stage::renting:
      return "machines are being rented";
    case Stage::lost:
      return "the rest of the lost machines is being terminated";
    case Stage::ending:
      return "the machines are being terminated";
    case Stage::working:
    case Stage::ended:
      break;
  }
  return {};
}

}  // namespace

Explanation with_course(Explanation said, const cloud::RentedJob& course,
                        const std::optional<cloud::Rental>& rental) {
  nlohmann::ordered_json json{{"attempt", course.losses + 1},
                              {"stage", cloud::rented_job_stage(course.stage)},
                              {"losses", nlohmann::ordered_json::array()}};
  std::string text;
  int number = 0;
  for (std::size_t i = 0; rental && i < rental->attempts.size(); ++i) {
    const cloud::Attempt& attempt = rental->attempts[i];
    if (attempt.code != kLostCode) continue;
    ++number;
    for (const Loss& loss : losses_of(*rental, attempt)) {
      text += text_of(loss, number);
      json["losses"].push_back({{"attempt", number},
                                {"machine", loss.machine},
                                {"offer", loss.offer},
                                {"at_ms", loss.at_ms},
                                {"why", loss.why}});
    }
  }
  const std::string now = doing(course);
  if (!now.empty()) text += fmt::format("attempt {}: {}\n", course.losses + 1, now);
  // The first line has the job's state.
  said.text.insert(said.text.find('\n') + 1, text);
  said.json["course"] = std::move(json);
  return said;
}

}  // namespace lockstep::jobs::rented
