#include "ssh/ssh_environment.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::ssh {
namespace {

constexpr std::string_view kMore = "LOCKSTEP_SSH_ENV";

// With the AWS_ and CLOUDSDK_ names, `aws ssm start-session` and `gcloud compute start-iap-tunnel`
// as ProxyCommand find their credentials in files.
constexpr std::array kNames = std::to_array<std::string_view>({
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "GPG_TTY",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "SSH_SK_PROVIDER",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CLOUDSDK_CONFIG",
    "CLOUDSDK_ACTIVE_CONFIG_NAME",
});
constexpr std::array kBeginnings = std::to_array<std::string_view>({"LC_", "XDG_", "KRB5"});

}  // namespace

std::vector<std::string> ssh_environment(const std::vector<std::string>& own) {
  std::vector<std::string> more;
  for (const std::string& each : own)
    if (each.starts_with(kMore) && each.size() > kMore.size() && each[kMore.size()] == '=')
      more = split(std::string_view(each).substr(kMore.size() + 1), ',');
  const auto goes = [&more](std::string_view name) {
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
           std::find(more.begin(), more.end(), name) != more.end() ||
           std::any_of(kBeginnings.begin(), kBeginnings.end(),
                       [name](std::string_view each) { return name.starts_with(each); });
  };
  std::vector<std::string> environment;
  for (const std::string& each : own)
    if (goes(std::string_view(each).substr(0, each.find('=')))) environment.push_back(each);
  return environment;
}

}  // namespace lockstep::ssh
