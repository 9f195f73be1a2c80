#include "cloud/gcp/launch.h"

#include "cloud/gcp/requests.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

namespace lockstep::cloud::gcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLaunchPatience{120'000};  // with "busy" answers
constexpr milliseconds kDone{600'000};            // until the operation is done
// After this time an insert that Google received is done. Later Google may forget the requestId.
constexpr std::int64_t kSettled = 15LL * 60'000;

LaunchOutcome answered(const LaunchSpec& spec) {
  LaunchOutcome outcome{.kind = LaunchOutcome::Kind::answered};
  for (int node = spec.node; node < spec.node + spec.count; ++node)
    outcome.ids.push_back(machine_name(spec, node));
  return outcome;
}

enum class There { all, some, none, foreign };

// Asks which machines of this attempt exist.
Asked<There> look(Api& api, Web& web, const LaunchSpec& spec) {
  int ours = 0;
  for (int node = spec.node; node < spec.node + spec.count; ++node) {
    const std::string name = machine_name(spec, node);
    const ApiAnswer machine = api.ask(
        web, {.target = api.path(fmt::format("/zones/{}/instances/{}", spec.offer.zone, name)),
              .shown = name});
    if (!machine && machine.error().status == 404) continue;
    if (!machine) return tl::make_unexpected(machine.error());
    // The name alone does not prove ownership. The labels do.
    if (text_at(*machine, "labels/lockstep-intent") != label_of(spec.intent) ||
        text_at(*machine, "labels/lockstep-owner") != label_of(spec.owner))
      return There::foreign;
    ++ours;
  }
  return ours == spec.count ? There::all : ours == 0 ? There::none : There::some;
}

// Called when the name exists: an earlier try of this launch made the machine, or another program
// did.
LaunchOutcome of_conflict(Api& api, Web& web, const LaunchSpec& spec, ApiFailure error) {
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
    // This call did not reach Google, but an earlier one may have.
    if (asked_before && operation.error().kind != ApiFailure::Kind::refused)
      operation.error().kind = ApiFailure::Kind::unanswered;
    return outcome_of(std::move(operation).error());
  }
  // An accepted call does not prove success: lack of capacity shows only at the end of the
  // operation.
  const auto done = api.wait(web, std::move(*operation), kDone);
  if (done) return answered(spec);
  ApiFailure error = done.error();
  if (error.code == "RESOURCE_ALREADY_EXISTS" || error.code == "alreadyExists")
    return of_conflict(api, web, spec, std::move(error));
  // Google has accepted the launch. If waiting failed, the outcome is unknown.
  if (error.kind != ApiFailure::Kind::refused) error.kind = ApiFailure::Kind::unanswered;
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
    if (*there == There::some)  // an incomplete gang: the caller terminates it as a whole
      return answered(spec);
    return {.kind = LaunchOutcome::Kind::refused,
            .refusal = Refusal::next_zone,
            .message = "it was never made"};
  }
  // A repeated requestId launches nothing new: Google returns the result of the first call.
  return insert(api, web, spec, call, true);
}

}  // namespace lockstep::cloud::gcp
