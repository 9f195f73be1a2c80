#include "cloud/gcp/firewall.h"

#include "base/text.h"
#include "cloud/gcp/requests.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::chrono::milliseconds kRulePatience{120'000};

Asked<void> ask_and_wait(Api& api, Web& web, ApiCall call) {
  call.shown = "the firewall rule";
  ApiAnswer operation = api.ask(web, call);
  if (!operation) return tl::make_unexpected(std::move(operation).error());
  return api.wait(web, std::move(*operation), kRulePatience);
}

Asked<void> set_rule(Api& api, Web& web, const std::string& owner, std::vector<std::string> cidrs,
                     bool keep) {
  const std::string rules = api.path("/global/firewalls");
  const std::string rule = fmt::format("{}/{}", rules, firewall_name(owner));
  for (bool again = false;; again = true) {
    const ApiAnswer there = api.ask(web, {.target = rule, .shown = "the firewall rule"});
    if (there) {
      const std::vector<std::string> before = texts_at(*there, "sourceRanges");
      // PATCH replaces the whole list of networks.
      if (keep) cidrs.insert(cidrs.end(), before.begin(), before.end());
      std::sort(cidrs.begin(), cidrs.end());
      cidrs.erase(std::unique(cidrs.begin(), cidrs.end()), cidrs.end());
      // Skip a needless change: Google takes seconds for each change.
      if (std::is_permutation(before.begin(), before.end(), cidrs.begin(), cidrs.end())) return {};
      return ask_and_wait(api, web,
                          {.method = "PATCH", .target = rule, .body = firewall_patch(cidrs)});
    }
    if (there.error().status != 404) return tl::make_unexpected(there.error());
    auto made = ask_and_wait(
        api, web, {.method = "POST", .target = rules, .body = firewall_body(owner, cidrs)});
    // Another command of this installation may have made the rule meanwhile. Look again, once.
    if (made || made.error().status != 409 || again) return made;
  }
}

}  // namespace

Asked<void> open_to(Api& api, Web& web, const std::string& owner,
                    const std::vector<std::string>& cidrs) {
  return set_rule(api, web, owner, cidrs, false);
}

Asked<void> open_also_to(Api& api, Web& web, const std::string& owner, const std::string& cidrs) {
  return set_rule(api, web, owner, split(cidrs, ','), true);
}

Asked<void> remove_rule(Api& api, Web& web, const std::string& owner) {
  auto done = ask_and_wait(
      api, web,
      {.method = "DELETE", .target = api.path("/global/firewalls/" + firewall_name(owner))});
  if (!done && done.error().status == 404) return {};
  return done;
}

}  // namespace lockstep::cloud::gcp
