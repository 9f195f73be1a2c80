// The folder in which a wheel is built, and the commands of pip that work there.
#pragma once

#include "base/error.h"
#include "setup/wheel_build.h"
#include "setup/wheel_plan.h"

#include <string>
#include <vector>

namespace lockstep::setup {

// In TMPDIR or /tmp. What builds that were killed have left there is removed after a day.
Result<std::string> make_scratch();
void remove_scratch(const std::string& scratch);

struct FetchedSource {
  std::string place;   // path of the archive
  std::string commit;  // the commit that pip names for a git URL, else empty
};
// Fetches the source of an index or a URL by pip.
Result<FetchedSource> fetch_source(const WheelPlan& plan, const std::string& scratch,
                                   const SayLine& say);
// A copy of a project without what earlier builds have left in it. Its .git is a link.
Status copy_source(const std::string& from, const std::string& to);
// Compilers that make code for the level, as CC and CXX of the build; "NAME=value".
Result<std::vector<std::string>> compiler_variables(const WheelPlan& plan,
                                                    const std::string& scratch);

std::vector<std::string> wheel_command(const WheelPlan& plan, const std::string& source,
                                       const std::string& out);
// What pip is told beside the build's own variables.
std::vector<std::string> pip_variables();

}  // namespace lockstep::setup
