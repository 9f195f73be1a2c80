// The folder in which a wheel is built, and pip's commands that work there.
#pragma once

#include "base/error.h"
#include "setup/wheel_build.h"
#include "setup/wheel_plan.h"

#include <string>
#include <vector>

namespace lockstep::setup {

// Makes a folder in TMPDIR or /tmp and returns its path. Removes folders of killed builds after a
// day.
Result<std::string> make_scratch();
void remove_scratch(const std::string& scratch);

struct FetchedSource {
  std::string place;   // path of the archive
  std::string commit;  // the commit that pip reports for a git URL, else empty
};
// Fetches the source from an index or a URL with pip.
Result<FetchedSource> fetch_source(const WheelPlan& plan, const std::string& scratch,
                                   const SayLine& say);
// Copies a project without the output of earlier builds. .git becomes a link, not a copy.
Status copy_source(const std::string& from, const std::string& to);
// Returns the variables ("NAME=value") whose CC and CXX compile for the level. They point at this
// binary, which replaces -march=native and runs the real compiler.
Result<std::vector<std::string>> compiler_variables(const WheelPlan& plan,
                                                    const std::string& scratch);

// Returns the argv of `pip wheel`.
std::vector<std::string> wheel_command(const WheelPlan& plan, const std::string& source,
                                       const std::string& out);
// Returns pip's settings, to be added to the build's own variables.
std::vector<std::string> pip_variables();

}  // namespace lockstep::setup
