#include "cloud/gcp/launch.h"

#include "cloud/gcp/requests.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

namespace lockstep::cloud::gcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLaunchPatience{120'000};  // of asking again while Google is busy
constexpr milliseconds kDone{600'000};            // of the operation
// An insert that was understood is done by then, and its requestId may be forgotten later.
constexpr std::int64_t kSettled = 15LL * 60'000;

LaunchOutcome answered(const LaunchSpec& spec) {
  LaunchOutcome outcome{.kind = LaunchOutcome::Kind::answered};
  for (int node = spec.node; node < spec.node + spec.count; ++node)
    outcome.ids.push_back(machine_name(spec, node));
  return outcome;
}

enum class There { all, some, none, foreign };

// Whether the machines of this attempt exist.
tl::expected<There, ApiError> look(Api& api, Web& web, const LaunchSpec& spec) {
  int ours = 0;
  for (int node = spec.node; node < spec.node + spec.count; ++node) {
    const std::string name = machine_name(spec, node);
    const ApiAnswer machine = api.ask(
        web, {.target = api.path(fmt::format("/zones/{}/instances/{}", spec.offer.zone, name)),
              .shown = name});
    if (!machine && machine.error().status == 404) continue;
    if (!machine) return tl::make_unexpected(machine.error());
    if (text_at(*machine, "labels/lockstep-intent") != label_of(spec.intent) ||
        text_at(*machine, "labels/lockstep-owner") != label_of(spec.owner))
      return There::foreign;
    ++ours;
  }
  return ours == spec.count ? There::all : ours == 0 ? There::none : There::some;
}

// The name is taken: by an earlier try of the same launch, or by somebody else.
LaunchOutcome of_conflict(Api& api, Web& web, const LaunchSpec& spec, ApiError error) {
  const auto there = look(api, web, spec);
  if (!there) return {.kind = LaunchOutcome::Kind::unknown, .message = there.error().message};
  if (*there == There::all) return answered(spec);
  if (*there == There::foreign) {
    error.message = "the name is taken, by a machine that is not ours: " + error.message;
    return outcome_of(std::move(error));
  }
  return {.kind = LaunchOutcome::Kind::unknown, .message = std::move(error.message)};
}

LaunchOutcome insert(Api& api, Web& web, const LaunchSpec& spec, const LaunchCall& call,
                     bool asked_before) {
  const std::string shown = fmt::format("launch in {}", call.zone);
  ApiAnswer operation = api.ask(web, {.method = "POST",
                                      .target = call.target,
                                      .body = call.body,
                                      .shown = shown,
                                      .patience = kLaunchPatience});
  if (!operation) {
    if (operation.error().status == 409)
      return of_conflict(api, web, spec, std::move(operation).error());
    // What does not reach Google says nothing of what reached it before.
    if (asked_before && operation.error().kind != ApiError::Kind::refused)
      operation.error().kind = ApiError::Kind::unanswered;
    return outcome_of(std::move(operation).error());
  }
  // That it is taken says nothing yet: that there is no room comes as the operation's end.
  const auto done = api.wait(web, std::move(*operation), kDone);
  if (done) return answered(spec);
  ApiError error = done.error();
  if (error.code == "RESOURCE_ALREADY_EXISTS" || error.code == "alreadyExists")
    return of_conflict(api, web, spec, std::move(error));
  // It was asked for: whoever stops waiting does not know.
  if (error.kind != ApiError::Kind::refused) error.kind = ApiError::Kind::unanswered;
  return outcome_of(std::move(error));
}

}  // namespace

LaunchCall make_call(const Api& api, const LaunchSpec& spec, const std::string& image,
                     int disk_gb) {
  const LaunchWords words{.image = image, .disk_gb = disk_gb};
  const bool gang = spec.count > 1;
  const std::string token = request_id(spec);
  return {.region = spec.offer.region,
          .zone = spec.offer.zone,
          .token = token,
          .target = api.path(fmt::format("/zones/{}/instances{}?requestId={}", spec.offer.zone,
                                         gang ? "/bulkInsert" : "", token)),
          .body = gang ? bulk_body(spec, words) : insert_body(spec, words)};
}

LaunchOutcome launch(Api& api, Web& web, const LaunchSpec& spec, const LaunchCall& call) {
  return insert(api, web, spec, call, false);
}

LaunchOutcome resolve(Api& api, Web& web, const LaunchSpec& spec, const LaunchCall& call,
                      std::int64_t asked_ms) {
  const auto there = look(api, web, spec);
  if (!there) return {.kind = LaunchOutcome::Kind::unknown, .message = there.error().message};
  if (*there == There::all) return answered(spec);
  if (web.now_ms() - asked_ms > kSettled) {
    if (*there == There::some)  // of a gang that is not whole: to be ended as one
      return answered(spec);
    return {.kind = LaunchOutcome::Kind::refused,
            .refusal = Refusal::next_zone,
            .message = "it was never made"};
  }
  // The same requestId makes nothing new, and tells how the first went.
  return insert(api, web, spec, call, true);
}

}  // namespace lockstep::cloud::gcp
