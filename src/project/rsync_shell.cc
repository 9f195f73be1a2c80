#include "project/rsync_shell.h"

#include "base/environment.h"
#include "base/log.h"
#include "hosts/place_json.h"

#include <utility>

namespace lockstep::project {

Result<int> rsync_shell(const std::vector<std::string>& words) {
  auto places = hosts::parse_places(env_text(kRsyncPlace));
  if (!places || places->size() != 1 || words.size() < 2)
    return fail(Errc::invalid_input, "this is an internal command, started by rsync");
  // rsync_trouble() takes the first line on stderr for the cause of a failure, so no notice may
  // come first.
  log::set_level(log::Level::error);
  hosts::CommandRequest request;
  request.hosts = std::move(*places);
  // rsync puts the host name of "host:PLACE" first, which means nothing here.
  request.argv.assign(words.begin() + 1, words.end());
  LOCKSTEP_TRY_ASSIGN(const auto endings, hosts::run_command(request));
  if (!endings.front().error.empty()) return fail(Errc::unavailable, endings.front().error);
  return endings.front().code;
}

}  // namespace lockstep::project
