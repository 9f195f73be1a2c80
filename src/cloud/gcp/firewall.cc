#include "cloud/gcp/firewall.h"

#include "cloud/gcp/requests.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::chrono::milliseconds kRulePatience{120'000};

tl::expected<void, ApiError> ask_and_wait(Api& api, Web& web, ApiCall call) {
  call.shown = "the firewall rule";
  ApiAnswer operation = api.ask(web, call);
  if (!operation) return tl::make_unexpected(std::move(operation).error());
  return api.wait(web, std::move(*operation), kRulePatience);
}

}  // namespace

tl::expected<void, ApiError> open_to(Api& api, Web& web, const std::string& owner,
                                     const std::string& cidr) {
  const std::string rules = api.path("/global/firewalls");
  const std::string rule = fmt::format("{}/{}", rules, firewall_name(owner));
  const ApiAnswer there = api.ask(web, {.target = rule, .shown = "the firewall rule"});
  if (there) {
    if (texts_at(*there, "sourceRanges") == std::vector<std::string>{cidr}) return {};
    return ask_and_wait(api, web,
                        {.method = "PATCH", .target = rule, .body = firewall_patch(cidr)});
  }
  if (there.error().status != 404) return tl::make_unexpected(there.error());
  auto made = ask_and_wait(api, web,
                           {.method = "POST", .target = rules, .body = firewall_body(owner, cidr)});
  // Another of our commands was faster.
  if (!made && made.error().status == 409)
    return ask_and_wait(api, web,
                        {.method = "PATCH", .target = rule, .body = firewall_patch(cidr)});
  return made;
}

tl::expected<void, ApiError> remove_rule(Api& api, Web& web, const std::string& owner) {
  auto done = ask_and_wait(
      api, web,
      {.method = "DELETE", .target = api.path("/global/firewalls/" + firewall_name(owner))});
  if (!done && done.error().status == 404) return {};
  return done;
}

}  // namespace lockstep::cloud::gcp
